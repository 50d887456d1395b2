"""Does the judge see faults? Puts hundreds into correct kernels, and judges each.

    python -m benchmarks.mutation run --records faults.jsonl            # on the emulator
    python -m benchmarks.mutation run --records gpu.jsonl --device cuda # verdicts of a GPU
    python -m benchmarks.mutation report faults.jsonl --json results.json

`run` goes on where it stopped; `run --again correct` judges anew what had that outcome, after the
judge has changed, and keeps what the probe found. Next to each verdict of the emulator stands a ground truth that does
not come from the judge (`benchmarks/probe.py`), and what upstream's rules would have said of the
values. `report --truth faults.jsonl gpu.jsonl` takes a GPU's verdicts with the emulator's truth.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import itertools
import json
import pathlib
import platform
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.faults import KINDS, Fault, faults_of, sample
from benchmarks.probe import Effect, Prober
from kernelgym import __version__
from kernelgym.config import JudgeConfig
from kernelgym.judge.judge import Judge
from kernelgym.tasks import get
from kernelgym.toolchain.service import BuildService
from tests.honest.candidates import Control, read

# Kernels of many kinds whose task is small enough to be run a few hundred times on a CPU.
KERNELS = (
    "l1_004_split_k_atomics",
    "l1_004_warp_per_row",
    "l1_012_diagonal",
    "l1_014_triangular",
    "l1_016_transposed",
    "l1_019_float4_pybind",
    "l1_019_functor",
    "l1_023_online_warp",
    "l1_023_shared_reduce",
    "l1_024_cooperative_groups",
    "l1_025_unrolled",
    "l1_033_batch_norm",
    "l1_035_welford",
    "l1_036_channels_strided",
    "l1_037_last_block",
    "l1_040_layer_norm",
    "l1_044_shared_window",
    "l1_049_max_accessor",
    "l1_051_argmax_pairs",
    "l1_082_constant_memory",
    "l1_089_block_scan",
    "l1_093_bool_mask",
    "l1_094_two_pass_loss",
    "l1_097_attention",
)
_SEED = 7
_RUN_TIMEOUT = 12.0  # seconds


@dataclasses.dataclass(frozen=True)
class Record:
    """What came of one fault; a line of the records.

    Attributes:
        fault: The fault's name.
        candidate: The kernel that it was put into.
        kind: Its kind.
        line: Where.
        says: What was changed.
        outcome: The verdict's outcome.
        reason: The verdict's reason.
        generalises: What the verdict says of another shape.
        differs: Whether the output is beyond the budget at the task's shapes; None if not asked.
        where: On which input.
        elsewhere: Whether it is at smaller shapes.
        upstream: Whether upstream's rules see it.
        upstream_says: Why.
        seconds: Of the judgement.
        commit: What the judge was built from.
    """

    fault: str
    candidate: str
    kind: str
    line: int
    says: str
    outcome: str
    reason: str
    generalises: bool | None
    differs: bool | None = None
    where: str = ""
    elsewhere: bool | None = None
    upstream: bool | None = None
    upstream_says: str = ""
    seconds: float = 0.0
    commit: str = ""


def chosen(per_kernel: int, kernels: Sequence[str] = KERNELS) -> list[tuple[Control, Fault]]:
    """The faults that a run takes, the same ones each time, the kernels in turn."""
    controls = read()
    rows = []
    for number, name in enumerate(kernels):
        control = controls[name]
        taken = sample(faults_of(name, control.files), per_kernel, _SEED + number)
        rows.append([(control, fault) for fault in taken])
    # In turn, so that a run which is cut short says something of all of them.
    return [pair for turn in itertools.zip_longest(*rows) for pair in turn if pair is not None]


def still_there(
    records: Mapping[str, Record], controls: Mapping[str, Control]
) -> list[tuple[Control, Fault]]:
    """The faults of records, where the kernels that they were put into are what they were."""
    found = {
        fault.name: (controls[name], fault)
        for name in {record.candidate for record in records.values()} & set(controls)
        for fault in faults_of(name, controls[name].files)
    }
    return [found[name] for name in records if name in found]


def read_records(path: pathlib.Path) -> dict[str, Record]:
    """Records by fault; a last line that was cut off is left out."""
    records = {}
    lines = path.read_text().splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            record = Record(**json.loads(line))
        except json.JSONDecodeError:
            if number != len(lines):
                raise
            break
        records[record.fault] = record
    return records


class Campaign:
    """Judges faults, and probes what they do.

    Args:
        device: `"cpu"` for the emulator, `"cuda"` for a GPU; only the emulator probes.
        draws: Draws of the judge's check.
    """

    def __init__(self, device: str, draws: int = 5) -> None:
        service = BuildService()
        self.judge = Judge(
            JudgeConfig(
                device=device,
                size="small",
                counters=False,
                draws=draws,
                run_timeout=_RUN_TIMEOUT,
                baselines=("eager",),
            ),
            service=service,
        )
        self.prober = Prober(service, run_timeout=_RUN_TIMEOUT) if device == "cpu" else None
        self._commit = _commit()

    def close(self) -> None:
        """Ends the standby processes."""
        self.judge.close()
        if self.prober is not None:
            self.prober.close()

    def examine(self, control: Control, fault: Fault, known: Record | None = None) -> Record:
        """Judges one fault.

        Args:
            control: The kernel.
            fault: What is changed in it.
            known: A record whose ground truth is taken over.

        Raises:
            EnvironmentFault: The harness failed.
        """
        files = fault.apply(control.files)
        verdict = self.judge.evaluate(control.task, files)
        correctness = verdict.correctness
        record = Record(
            fault.name,
            fault.candidate,
            fault.kind,
            fault.line,
            fault.says,
            str(verdict.outcome),
            verdict.reason,
            correctness.generalises if correctness else None,
            seconds=round(sum(seconds for _, seconds in verdict.seconds), 3),
            commit=self._commit,
        )
        if known is not None and known.differs is not None:
            return _with_truth_of(record, known)
        if self.prober is None or verdict.reason.startswith("build."):
            return record
        effect = self.prober.effect(get(control.task), files, control.files)
        return dataclasses.replace(record, **dataclasses.asdict(effect))


def run(options: argparse.Namespace) -> int:
    """Judges what the records do not have yet."""
    path: pathlib.Path = options.records
    path.parent.mkdir(parents=True, exist_ok=True)
    known = read_records(path)
    path.write_text("".join(json.dumps(dataclasses.asdict(r)) + "\n" for r in known.values()))
    if options.again is None:
        pairs = chosen(options.per_kernel)
        todo = [(control, fault) for control, fault in pairs if fault.name not in known]
    else:
        pairs = still_there(known, read())
        todo = [pair for pair in pairs if _is_stale(known[pair[1].name], options.again)]
    print(f"{len(pairs)} faults in {len(KERNELS)} kernels, {len(todo)} to judge", flush=True)
    campaign = Campaign(options.device)
    lock = threading.Lock()
    started, faults = time.monotonic(), 0

    def work(pair: tuple[Control, Fault]) -> None:
        if time.monotonic() - started > options.seconds:
            return
        record = campaign.examine(*pair, known.get(pair[1].name))
        with lock, path.open("a") as file:
            file.write(json.dumps(dataclasses.asdict(record)) + "\n")

    try:
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            futures = {pool.submit(work, pair): pair for pair in todo}
            for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
                try:
                    future.result()
                # Whatever it is, one fault's failure is no reason to lose the others' verdicts.
                except Exception:
                    faults += 1
                    print(futures[future][1].name, traceback.format_exc(), file=sys.stderr)
                if number % 20 == 0:
                    print(f"{number} of {len(todo)}", flush=True)
    finally:
        campaign.close()
    return 1 if faults else 0


def _is_stale(record: Record, outcome: str) -> bool:
    return record.commit != _commit() and outcome in (record.outcome, "any")


@functools.cache
def _commit() -> str:
    """The checkout's commit, with a `+` where files have been changed since."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
        cwd=pathlib.Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.strip()


# --- the report --------------------------------------------------------------------------------


def summary(records: Iterable[Record]) -> dict[str, Any]:
    """Rates by kind, and every fault that was missed or refused without a wrong output."""
    built = [r for r in records if not r.reason.startswith("build.")]
    unjudged = [r for r in built if r.outcome == "unsupported"]
    judged = [r for r in built if r.outcome != "unsupported" and r.differs is not None]
    kinds: dict[str, dict[str, int]] = {}
    for kind in (*KINDS, "all"):
        of_kind = [r for r in judged if kind in (r.kind, "all")]
        wrong = [r for r in of_kind if r.differs]
        kinds[kind] = {
            "faults": len(of_kind),
            "wrong": len(wrong),
            "found": sum(r.outcome != "correct" for r in wrong),
            "found_upstream": sum(bool(r.upstream) for r in wrong),
            "no_effect": sum(not r.differs for r in of_kind),
            "refused_without_effect": sum(
                not r.differs and r.outcome != "correct" for r in of_kind
            ),
        }
    wrong = [r for r in judged if r.differs]
    reasons = collections.Counter(r.reason for r in wrong if r.outcome != "correct")
    return {
        "kinds": kinds,
        "kernels": len({r.candidate for r in judged}),
        "unsupported": len(unjudged),
        "reasons": dict(reasons.most_common()),
        "missed": [_told(r) for r in wrong if r.outcome == "correct"],
        "missed_upstream": len([r for r in wrong if not r.upstream]),
        "refused_without_effect": [
            _told(r) for r in judged if not r.differs and r.outcome != "correct"
        ],
        "wrong_only_at_other_shapes": [
            _told(r) for r in judged if not r.differs and r.elsewhere and r.outcome == "correct"
        ],
    }


def with_truth(records: Mapping[str, Record], truth: Mapping[str, Record]) -> list[Record]:
    """A GPU's verdicts with the emulator's ground truth; faults without one are left out."""
    merged = []
    for name, record in records.items():
        known = truth.get(name)
        if known is not None and known.differs is not None:
            merged.append(_with_truth_of(record, known))
    return merged


def _with_truth_of(record: Record, known: Record) -> Record:
    names = [field.name for field in dataclasses.fields(Effect)]
    return dataclasses.replace(record, **{name: getattr(known, name) for name in names})


def table(result: Mapping[str, Any]) -> str:
    """The rates as a table in Markdown."""
    lines = [
        "| kind | faults | wrong output | found | found under upstream's rules |",
        "|---|---|---|---|---|",
    ]
    for kind, row in result["kinds"].items():
        shown = f"`{kind}`" if kind != "all" else "**all**"
        share, theirs = (_percent(row[key], row["wrong"]) for key in ("found", "found_upstream"))
        lines.append(
            f"| {shown} | {row['faults']} | {row['wrong']} | {row['found']} ({share}) | "
            f"{row['found_upstream']} ({theirs}) |"
        )
    return "\n".join(lines)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _told(record: Record) -> dict[str, Any]:
    told = dataclasses.asdict(record)
    return {key: value for key, value in told.items() if key not in ("seconds", "fault")}


def report(options: argparse.Namespace) -> int:
    """Prints the table and the lists, and writes the JSON."""
    records = read_records(options.records)
    rows = list(records.values())
    if options.truth is not None:
        rows = with_truth(records, read_records(options.truth))
    result = {
        "kernelgym": __version__,
        "machine": platform.platform(),
        "device": "cuda" if options.truth is not None else "emulator",
        **summary(rows),
    }
    print(table(result))
    for name in ("missed", "refused_without_effect", "wrong_only_at_other_shapes"):
        print(f"\n{name}: {len(result[name])}")
        for row in result[name]:
            print(f"  {row['candidate']}:{row['line']} {row['kind']}: {row['says']}")
            print(f"      {row['outcome']} {row['reason']} | {row['where']}")
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    judging = commands.add_parser("run", help="judge faults")
    judging.add_argument("--records", type=pathlib.Path, required=True)
    judging.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    judging.add_argument("--per-kernel", type=int, default=19)
    judging.add_argument("--workers", type=int, default=2)
    judging.add_argument("--again", metavar="OUTCOME", help="judge anew what had it, or `any`")
    judging.add_argument("--seconds", type=float, default=3600.0, help="start nothing after that")
    judging.set_defaults(act=run)
    telling = commands.add_parser("report", help="say what came of them")
    telling.add_argument("records", type=pathlib.Path)
    telling.add_argument("--truth", type=pathlib.Path, help="records of the emulator")
    telling.add_argument("--json", type=pathlib.Path)
    telling.set_defaults(act=report)
    options = parser.parse_args(arguments)
    return int(options.act(options))


if __name__ == "__main__":
    sys.exit(main())
