"""How many broken kernels does `repair` mend within five verdicts, and how many do random edits?

    python -m benchmarks.repair --records repair.jsonl --json benchmarks/results/repair.json

Broken kernels are honest ones with one fault each: those of `benchmarks/faults.py`, and slips that no
compiler takes. What the judge does not find wrong is left out. It goes on where it stopped.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import platform
import random
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.faults import faults_of, sample
from benchmarks.mutation import KERNELS
from kernelgym import __version__
from kernelgym.agents.random_edits import RandomEdits
from kernelgym.agents.repair import Repair
from kernelgym.config import JudgeConfig
from kernelgym.edits import parse
from kernelgym.errors import EditError, EnvironmentFault
from kernelgym.judge.judge import Judge
from kernelgym.judge.verdict import Verdict
from kernelgym.tasks import get
from kernelgym.workspace import Workspace
from tests.honest.candidates import Control, read

VERDICTS = 5
SLIPS = ("semicolon", "name", "include", "bracket")
_SEED = 11
_NAMES = (
    "threadIdx",
    "blockIdx",
    "blockDim",
    "__syncthreads",
    "fmaxf",
    "expf",
    "data_ptr",
    "numel",
)


@dataclasses.dataclass(frozen=True)
class Broken:
    """A kernel with one fault.

    Attributes:
        name: Unique.
        task: Task id.
        kind: A kind of `benchmarks.faults`, or one of `SLIPS`.
        files: The workspace.
    """

    name: str
    task: str
    kind: str
    files: Mapping[str, str] = dataclasses.field(repr=False)


def slips_of(control: Control, seed: int) -> Iterator[Broken]:
    """One slip of each kind, where the candidate has a place for it."""
    rng = random.Random(seed)
    for file, text in control.files.items():
        begin = max(text.find("__global__"), 0)
        inside = re.compile(r"(?<=[\w)\]]);(?=\n)")
        places: dict[str, list[tuple[int, int, str]]] = {
            "semicolon": [(*m.span(), "") for m in inside.finditer(text, begin)][:40],
            "name": [
                (m.start(), m.end(), m[0][:2] + m[0][3:])
                for name in _NAMES
                for m in re.finditer(rf"\b{name}\b", text)
            ],
            "include": [
                (*m.span(), "") for m in re.finditer(r"#include <(?:float|cfloat|math)\S*>\n", text)
            ],
            "bracket": [(*m.span(), ";") for m in re.finditer(r"\)\);(?=\n)", text[begin:])],
        }
        places["bracket"] = [(a + begin, b + begin, ");") for a, b, _ in places["bracket"]]
        for kind, found in places.items():
            if found and "__global__" in text:
                a, b, new = rng.choice(found)
                changed = {**control.files, file: text[:a] + new + text[b:]}
                yield Broken(f"{control.name}:{file}:{a}:{kind}", control.task, kind, changed)


def broken(per_kernel: int) -> list[Broken]:
    """All that are tried, in an order of its own, so that a run cut short says something of each."""
    found: list[Broken] = []
    controls = read()
    for number, name in enumerate(KERNELS):
        control = controls[name]
        faults = sample(faults_of(name, control.files), per_kernel, _SEED + number)
        found += [Broken(f.name, control.task, f.kind, f.apply(control.files)) for f in faults]
        found += slips_of(control, _SEED + number)
    random.Random(_SEED).shuffle(found)
    return found


def repaired(judge: Judge, one: Broken) -> tuple[Verdict, int | None, str]:
    """The start's verdict, the verdict that was correct (None: none was), and the last change."""
    agent = Repair()
    start = Workspace(dict(one.files), reference=get(one.task).source(judge.size))
    workspace, verdict, first = start, None, None
    for number in range(1, VERDICTS + 1):
        info = {"workspace": workspace, "verdict": verdict, "edit_error": ""}
        script = parse(agent({}, info))
        if script.submits:
            break
        workspace = script.apply(workspace)
        verdict = judge.evaluate(get(one.task), workspace)
        first = first or verdict
        if verdict.correct:
            says = agent.last_change
            return first, number, says
    assert first is not None
    return first, None, ""


def by_chance(judge: Judge, one: Broken, seed: int) -> int | None:
    """Which random edit of the broken files was correct, of `VERDICTS`; None: none was."""
    agent = RandomEdits(seed=seed, junk=0.0)
    start = Workspace(dict(one.files))
    number = 0
    while number < VERDICTS:
        try:
            workspace = parse(agent({}, {"workspace": start})).apply(start)
        except EditError:
            continue
        number += 1
        if judge.evaluate(get(one.task), workspace).correct:
            return number
    return None


def run(options: argparse.Namespace) -> None:
    """Tries what the records do not have yet."""
    path: pathlib.Path = options.records
    known = _records(path)
    config = JudgeConfig(
        device=options.device, size="small", counters=False, baselines=("eager",), run_timeout=12.0
    )
    started = time.monotonic()
    with Judge(config) as judge, path.open("a") as file:
        for number, one in enumerate(broken(options.per_kernel)):
            if one.name in known or time.monotonic() - started > options.seconds:
                continue
            try:
                first, took, says = repaired(judge, one)
                chance = None if first.correct else by_chance(judge, one, number)
            except EnvironmentFault as fault:
                print(f"{one.name}: {fault}", file=sys.stderr)
                continue
            record = {
                "name": one.name,
                "kind": one.kind,
                "outcome": str(first.outcome),
                "reason": first.reason,
                "repair": took,
                "says": says,
                "random": chance,
            }
            file.write(json.dumps(record) + "\n")
            file.flush()


def summary(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts by kind of fault, of those that the judge found wrong and could judge."""
    judged = [r for r in records if r["outcome"] not in ("correct", "unsupported")]
    kinds: dict[str, dict[str, int]] = {}
    for kind in [*dict.fromkeys(r["kind"] for r in judged), "all"]:
        rows = [r for r in judged if kind in (r["kind"], "all")]
        kinds[kind] = {
            "broken": len(rows),
            "repair": sum(r["repair"] is not None for r in rows),
            "random": sum(r["random"] is not None for r in rows),
        }
    return {"verdicts": VERDICTS, "kinds": kinds}


def _records(path: pathlib.Path) -> dict[str, dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {record["name"]: record for record in map(json.loads, lines)}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=pathlib.Path, required=True)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--per-kernel", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3600.0, help="start nothing after that")
    options = parser.parse_args(arguments)
    run(options)
    result = summary(list(_records(options.records).values()))
    print("| fault | broken | `repair` | random edits |\n|---|---|---|---|")
    for kind, row in result["kinds"].items():
        print(f"| `{kind}` | {row['broken']} | {row['repair']} | {row['random']} |")
    if options.json is not None:
        facts = {"kernelgym": __version__, "machine": platform.platform(), **result}
        options.json.write_text(json.dumps(facts, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
