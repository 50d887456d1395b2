"""Does the emulator say what a GPU says? Has both judge the same candidates, and compares.

    python -m benchmarks.agreement judge --device cpu --records emulator.jsonl
    python -m benchmarks.agreement judge --device cuda --records h200.jsonl --seconds 200
    python -m benchmarks.agreement compare emulator.jsonl h200.jsonl --json agreement.json

The candidates are the honest controls, faults put into some of them, and kernels whose behaviour is
undefined. Both judge at the size `small`, without counters. They *agree* on a candidate when both
call it `correct` or both do not; the reasons may differ, since a GPU sees a wild write as wrong
values or as an error of the driver. Left out is what either could not run: what the emulator does
not support, and what does not compile on both.

Where they differ, the table says of which kind: `race`, `memory` and `barrier` are undefined
behaviour that the emulator reports by rule while this GPU, this time, gave the right values;
`stricter` and `laxer` are verdicts on values, the emulator's being the stricter or the laxer one.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.mutation import chosen
from benchmarks.mutation import read_records as read_mutation_records
from benchmarks.undefined import UNDEFINED
from kernelgym import __version__
from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault
from kernelgym.judge.judge import Judge
from kernelgym.judge.pool import evaluate_many
from kernelgym.judge.verdict import Verdict
from tests.honest.candidates import read

__all__ = ["Case", "Record", "cases", "compare"]

_FAULTS_PER_KERNEL = 7
_CHUNK = 16
# What the emulator reports by rule, whatever values came out.
_UNDEFINED = ("race", "memory", "barrier")


@dataclasses.dataclass(frozen=True)
class Case:
    """One candidate: its name, where it comes from, its task and files."""

    name: str
    group: str
    task: str
    files: Mapping[str, str] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Record:
    """What one device said of one candidate; a line of the records."""

    name: str
    group: str
    task: str
    outcome: str
    reason: str
    message: str
    device: str
    seconds: float


def cases() -> list[Case]:
    """Every candidate, in an order that mixes the groups."""
    found = [Case(name, "honest", control.task, control.files) for name, control in read().items()]
    found += [
        Case(fault.name, f"fault.{fault.kind}", control.task, fault.apply(control.files))
        for control, fault in chosen(_FAULTS_PER_KERNEL)
    ]
    found += [
        Case(name, name.split("_")[0], "L1/19", {"model_new.py": text})
        for name, text in UNDEFINED.items()
    ]
    # A run that is cut short has then seen some of each.
    return [case for start in range(7) for case in found[start::7]]


def read_records(path: pathlib.Path) -> dict[str, Record]:
    """Records by candidate; a last line that was cut off is left out."""
    records = {}
    lines = path.read_text().splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            record = Record(**json.loads(line))
        except json.JSONDecodeError:
            if number != len(lines):
                raise
            break
        records[record.name] = record
    return records


def judge(options: argparse.Namespace) -> int:
    """Judges what the records do not have yet, some at a time."""
    path: pathlib.Path = options.records
    path.parent.mkdir(parents=True, exist_ok=True)
    known = read_records(path)
    if options.faults is not None:
        known |= _of_mutation(options.faults, options.device)
    path.write_text("".join(_line(record) for record in known.values()))
    todo = [case for case in cases() if case.name not in known]
    config = JudgeConfig(
        device=options.device,
        size="small",
        counters=False,
        run_timeout=options.run_timeout,
        baselines=("eager",),
    )
    started, faults = time.monotonic(), 0
    with Judge(config) as one:
        for at in range(0, len(todo), _CHUNK):
            if time.monotonic() - started > options.seconds:
                print(f"out of time: {len(todo) - at} are left for another run", flush=True)
                break
            chunk = todo[at : at + _CHUNK]
            results = evaluate_many(
                [(case.task, dict(case.files)) for case in chunk],
                judge=one,
                workers=options.workers,
            )
            with path.open("a") as file:
                for case, result in zip(chunk, results, strict=True):
                    if isinstance(result, EnvironmentFault):
                        faults += 1
                        print(f"{case.name}: {result}", file=sys.stderr, flush=True)
                    else:
                        file.write(_line(_recorded(case, result)))
            spent = time.monotonic() - started
            print(f"{at + len(chunk)} of {len(todo)} in {spent:.0f} s", flush=True)
    return 1 if faults else 0


def _of_mutation(path: pathlib.Path, device: str) -> dict[str, Record]:
    """Verdicts that `benchmarks.mutation` has had already, under the same configuration."""
    wanted = {case.name: case for case in cases()}
    name = "emulator" if device == "cpu" else device
    return {
        fault: Record(
            fault, wanted[fault].group, wanted[fault].task, r.outcome, r.reason, "", name, r.seconds
        )
        for fault, r in read_mutation_records(path).items()
        if fault in wanted
    }


def _recorded(case: Case, verdict: Verdict) -> Record:
    return Record(
        case.name,
        case.group,
        case.task,
        str(verdict.outcome),
        verdict.reason,
        verdict.message[:160],
        verdict.provenance.device,
        round(sum(seconds for _, seconds in verdict.seconds), 3),
    )


def _line(record: Record) -> str:
    return json.dumps(dataclasses.asdict(record), ensure_ascii=False) + "\n"


# --- comparing ---------------------------------------------------------------------------------


def compare(emulator: Mapping[str, Record], gpu: Mapping[str, Record]) -> dict[str, Any]:
    """How far two devices' verdicts agree.

    Args:
        emulator: The emulator's, by candidate.
        gpu: A GPU's.

    Returns:
        Counts over all and by group, every difference with its kind, and what was left out.
    """
    shared = [name for name in emulator if name in gpu]
    left_out = {name: why for name in shared if (why := _not_runnable(emulator[name], gpu[name]))}
    judged = [name for name in shared if name not in left_out]
    groups: dict[str, dict[str, int]] = collections.defaultdict(collections.Counter)
    differences = []
    for name in judged:
        ours, theirs = emulator[name], gpu[name]
        same = (ours.outcome == "correct") == (theirs.outcome == "correct")
        groups[ours.group]["judged"] += 1
        groups[ours.group]["agree"] += same
        if not same:
            differences.append(
                {
                    "name": name,
                    "group": ours.group,
                    "kind": _kind(ours, theirs),
                    "emulator": f"{ours.outcome} {ours.reason}".strip(),
                    "gpu": f"{theirs.outcome} {theirs.reason}".strip(),
                    "emulator_says": ours.message,
                    "gpu_says": theirs.message,
                }
            )
    undefined = sum(row["kind"] in _UNDEFINED for row in differences)
    agree = len(judged) - len(differences)
    return {
        "kernelgym": __version__,
        "devices": sorted({r.device for r in (*emulator.values(), *gpu.values())}),
        "candidates": len(shared),
        "judged": len(judged),
        "agree": agree,
        "agreement": round(agree / len(judged), 4) if judged else None,
        "undefined_behaviour_reported_by_rule": undefined,
        "agreement_on_values": (
            round(agree / (len(judged) - undefined), 4) if len(judged) > undefined else None
        ),
        "same_outcome": sum(emulator[n].outcome == gpu[n].outcome for n in judged),
        "groups": {group: dict(row) for group, row in sorted(groups.items())},
        "differences": differences,
        "left_out": left_out,
        "not_judged_by_both": sorted({*emulator, *gpu} - set(shared)),
    }


def _not_runnable(ours: Record, theirs: Record) -> str:
    if ours.outcome == "unsupported":
        return f"emulator: {ours.reason}"
    if ours.outcome == theirs.outcome == "compile_error":
        return "does not compile"
    return ""


def _kind(ours: Record, theirs: Record) -> str:
    if theirs.outcome != "correct":
        return "laxer"
    family = ours.reason.split(".")[0]
    return family if family in _UNDEFINED else "stricter"


def table(result: Mapping[str, Any]) -> str:
    """The comparison as Markdown."""
    lines = ["| candidates | judged by both | agree |", "|---|---|---|"]
    for group, row in result["groups"].items():
        lines.append(f"| {group} | {row['judged']} | {row['agree']} |")
    lines.append(f"| **all** | {result['judged']} | {result['agree']} |")
    lines += ["", "| differs | kind | emulator | GPU |", "|---|---|---|---|"]
    for row in result["differences"]:
        lines.append(f"| {row['name']} | {row['kind']} | {row['emulator']} | {row['gpu']} |")
    return "\n".join(lines)


def tell(options: argparse.Namespace) -> int:
    """Prints the comparison, and writes it."""
    result = compare(read_records(options.emulator), read_records(options.gpu))
    print(table(result))
    print(f"\nagreement: {result['agreement']}; on values: {result['agreement_on_values']}")
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    judging = commands.add_parser("judge", help="judge every candidate on one device")
    judging.add_argument("--device", choices=("cpu", "cuda"), required=True)
    judging.add_argument("--records", type=pathlib.Path, required=True)
    judging.add_argument("--faults", type=pathlib.Path, help="records of benchmarks.mutation")
    judging.add_argument("--workers", type=int, help="judgements at a time; default: CPU cores")
    judging.add_argument("--seconds", type=float, default=1e9, help="start nothing after that")
    judging.add_argument("--run-timeout", type=float, default=12.0)
    judging.set_defaults(act=judge)
    comparing = commands.add_parser("compare", help="compare two devices' verdicts")
    comparing.add_argument("emulator", type=pathlib.Path)
    comparing.add_argument("gpu", type=pathlib.Path)
    comparing.add_argument("--json", type=pathlib.Path)
    comparing.set_defaults(act=tell)
    options = parser.parse_args(arguments)
    return int(options.act(options))


if __name__ == "__main__":
    sys.exit(main())
