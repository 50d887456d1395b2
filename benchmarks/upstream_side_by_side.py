"""KernelBench's own evaluation and this judge, side by side on the same candidates.

    python -m benchmarks.upstream_side_by_side --kernelbench ~/KernelBench --json both.json
    python -m benchmarks.upstream_side_by_side --kernelbench ~/KernelBench \
        --candidate L1/19 model_new.py --candidate L1/23 softmax.py

Needs a GPU, and a KernelBench checkout with what it imports installed. Upstream runs in a process
of its own for each candidate, with an empty build folder, through `benchmarks/run_upstream.py`.
Prints for each candidate how long both took and what both said, and the reasons where they differ.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.run_upstream import MARK
from benchmarks.undefined import UNDEFINED
from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault, UsageError
from kernelgym.judge.judge import Judge
from kernelgym.tasks import get
from tests.honest.candidates import read

__all__ = ["Candidate", "Row", "row_of", "upstream"]

# A few of each kind; upstream takes files that are one text each.
_HONEST = ("l1_019_plain", "l1_001_tiled", "l1_023_shared_reduce", "l1_040_layer_norm")
_WRONG = ("wrong_zeros", "wrong_sign", "unset_tail", "race_shared_without_barrier")
_RUNNER = pathlib.Path(__file__).with_name("run_upstream.py")


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A candidate: its name, its task's id and the text of its `model_new.py`."""

    name: str
    task: str
    text: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Row:
    """What both said of one candidate. All times are seconds; None where not measured.

    Attributes:
        name: The candidate's.
        task: Its task's id.
        ours: This judge's outcome.
        theirs: Upstream's.
        agree: Whether both or neither say `correct`.
        our_seconds: Wall-clock of this judge's verdict, builds included.
        their_seconds: Of upstream's.
        our_time: The candidate's time of one call, by this judge.
        their_time: By upstream.
        our_speedup: Against eager, by this judge.
        their_speedup: By upstream.
        our_reason: Why, by this judge.
        their_reason: By upstream.
    """

    name: str
    task: str
    ours: str
    theirs: str
    agree: bool
    our_seconds: float | None
    their_seconds: float | None
    our_time: float | None = None
    their_time: float | None = None
    our_speedup: float | None = None
    their_speedup: float | None = None
    our_reason: str = ""
    their_reason: str = ""


def upstream(
    checkout: pathlib.Path,
    reference: str,
    candidate: str,
    *,
    trials: int = 5,
    timeout: float = 600.0,
) -> dict[str, Any]:
    """What upstream says of one candidate, or why it said nothing.

    Args:
        checkout: The KernelBench checkout.
        reference: The task's program.
        candidate: Text of `model_new.py`.
        trials: Input draws of its check; it times 100 calls.
        timeout: Seconds after which its process is ended.

    Returns:
        See `benchmarks/run_upstream.py`; `verdict` is `"failed"` when it gave no answer.
    """
    with tempfile.TemporaryDirectory(prefix="upstream-") as folder:
        request = {
            "checkout": str(checkout),
            "reference": reference,
            "candidate": candidate,
            "trials": trials,
            "timing_trials": 100,
            "backend": "triton" if "@triton.jit" in candidate else "cuda",
            "build_dir": folder,
        }
        started = time.perf_counter()
        try:
            finished = subprocess.run(
                [sys.executable, str(_RUNNER)],
                input=json.dumps(request),
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {
                "verdict": "failed",
                "seconds": timeout,
                "why": f"not finished in {timeout:g} s",
            }
        spent = time.perf_counter() - started
    lines = [line for line in finished.stdout.splitlines() if line.startswith(MARK)]
    if not lines:
        last = (finished.stderr.strip().splitlines() or ["no output"])[-1]
        why = f"exit status {finished.returncode}: {last[:300]}"
        return {"verdict": "failed", "seconds": spent, "why": why}
    answer: dict[str, Any] = json.loads(lines[-1].removeprefix(MARK))
    # Importing torch and opening the GPU are part of its price: it needs a process for each.
    return {**answer, "seconds": spent, "inside": answer["seconds"]}


def row_of(candidate: Candidate, judge: Judge, theirs: Mapping[str, Any]) -> Row:
    """Judges a candidate, and puts what upstream said beside it."""
    started = time.perf_counter()
    speedup = seconds = None
    try:
        verdict = judge.evaluate(candidate.task, candidate.text)
        ours, reason = str(verdict.outcome), f"{verdict.reason}: {verdict.message}"
        if verdict.timing is not None:
            seconds = verdict.timing.candidate.median
            speedup = verdict.timing.speedup_eager.value if verdict.timing.speedup_eager else None
    except EnvironmentFault as fault:
        ours, reason = "fault", str(fault)
    spent = time.perf_counter() - started
    mine, eager = theirs.get("candidate"), theirs.get("eager")
    return Row(
        candidate.name,
        candidate.task,
        ours,
        str(theirs["verdict"]),
        (ours == "correct") == (theirs["verdict"] == "correct"),
        spent,
        theirs["seconds"],
        seconds,
        mine,
        speedup,
        eager / mine if eager and mine else None,
        reason,
        str(theirs.get("why", "")),
    )


def default_candidates() -> list[Candidate]:
    """Honest ones and wrong ones, for those who bring none."""
    controls = read()
    found = [
        Candidate(name, controls[name].task, controls[name].files["model_new.py"])
        for name in _HONEST
    ]
    return [*found, *(Candidate(name, "L1/19", UNDEFINED[name]) for name in _WRONG)]


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown, and below it the reasons where verdicts differ."""
    lines = [
        "| candidate | task | KernelBench | kernelgym | s | s | us a call | us a call |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        figures = [
            _figure(row.their_seconds),
            _figure(row.our_seconds),
            _figure(row.their_time, 1e6),
            _figure(row.our_time, 1e6),
        ]
        lines.append(
            f"| {row.name} | {row.task} | {row.theirs} | {row.ours} | {' | '.join(figures)} |"
        )
    lines.append("\nIn each pair of columns KernelBench's figure comes first.")
    for row in rows:
        if not row.agree:
            lines += [f"\n{row.name}:", f"  KernelBench: {row.theirs}: {row.their_reason or '-'}"]
            lines.append(f"  kernelgym: {row.ours}: {row.our_reason}")
    return "\n".join(lines)


def _figure(value: float | None, factor: float = 1.0) -> str:
    return f"{value * factor:.3g}" if value is not None else "-"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernelbench", type=pathlib.Path, required=True, help="a checkout")
    parser.add_argument("--candidate", nargs=2, action="append", metavar=("TASK", "FILE"))
    parser.add_argument("--size", default="full", help="which shapes")
    parser.add_argument(
        "--device", default="cuda", help="of this judge; upstream always uses a GPU"
    )
    parser.add_argument("--trials", type=int, default=5, help="input draws of upstream's check")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for upstream's each")
    parser.add_argument("--seconds", type=float, default=1e9, help="start nothing after that")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args(arguments)
    if not options.kernelbench.is_dir():
        raise UsageError(f"--kernelbench: expected a folder, got {options.kernelbench}")
    candidates = default_candidates()
    if options.candidate:
        candidates = [Candidate(f, t, pathlib.Path(f).read_text()) for t, f in options.candidate]
    config = JudgeConfig(device=options.device, size=options.size, counters=False)
    rows: list[Row] = []
    started = time.monotonic()
    with Judge(config) as judge:
        for candidate in candidates:
            if time.monotonic() - started > options.seconds:
                print("out of time", file=sys.stderr)
                break
            theirs = upstream(
                options.kernelbench.resolve(),
                get(candidate.task).source(options.size),
                candidate.text,
                trials=options.trials,
                timeout=options.timeout,
            )
            rows.append(row_of(candidate, judge, theirs))
            if options.json is not None:
                found = [dataclasses.asdict(row) for row in rows]
                options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
