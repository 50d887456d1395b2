"""Which tasks accept an answer that skips their work? Trivial answers, under each protocol's rule.

    python -m kernelgym.judge.audit --tasks all --size small
    python -m kernelgym.judge.audit --tasks weak --size full --device cuda --out weak.json
    python -m kernelgym.judge.audit --merge weak.json

No candidate is built or run: the answers of `kernelgym.judge.trivial` are held against the
judge's own reference, draws and comparison. One passes when it passes every draw. What was found is
kept in `tasks/audit.json`; `docs/audit.md` explains it.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import gc
import pathlib
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from kernelgym import __version__, tasks
from kernelgym.config import PROTOCOLS, JudgeConfig
from kernelgym.errors import KernelGymError
from kernelgym.judge.audit_records import (
    RECORDS,
    ProtocolAudit,
    TaskAudit,
    clean_ids,
    load,
    merge,
    save,
)
from kernelgym.judge.correctness import Expected, compare
from kernelgym.judge.reference import Reference
from kernelgym.judge.salt import Salt
from kernelgym.judge.tolerances import fixed_tolerance
from kernelgym.judge.trivial import ANSWERS, Case, answers

__all__ = [
    "KNOWN_WEAK",
    "RECORDS",
    "ProtocolAudit",
    "TaskAudit",
    "audit",
    "audit_all",
    "clean_ids",
    "load",
    "merge",
    "save",
]

_WEAK = {
    "L1": "4 6 19 20 23 24 27 28 31 32 33 34 35 37 38 39 40 49 53 90 94 95 96 97 98 99 100",
    "L2": "8 9 22 23 36 38 42 44 45 49 51 56 58 64 65 66 80 83 84 89 91",
}
KNOWN_WEAK = tuple(
    f"{level}/{number}" for level, numbers in _WEAK.items() for number in numbers.split()
)
"""The 48 tasks of levels 1 and 2 that were reported to accept an answer without the work."""

# The rehearsal is draw `draw + _REHEARSAL` of a protocol whose draws have consecutive seeds.
_REHEARSAL = 1000
_CHUNK = 1 << 26

# Answers that are the task itself and no shortcut: multiplying a matrix by a number is a·x + b.
_NO_SHORTCUT = {"L1/5": ("affine",)}


def audit(
    task: tasks.Task,
    size: str = "small",
    protocols: Sequence[str] = PROTOCOLS,
    config: JudgeConfig | None = None,
) -> TaskAudit:
    """Holds every trivial answer against one task.

    Args:
        task: Which task.
        size: Which shapes.
        protocols: Which rules.
        config: Device, draws, precision and seed; the default draws five times on a CPU, seed 0.

    Raises:
        KernelGymError: The reference did not run.
    """
    config = config or JudgeConfig(device="cpu", seed=0)
    device = torch.device("cpu" if config.device == "auto" else config.device)
    start = time.perf_counter()
    results: list[ProtocolAudit] = []
    for protocol in protocols:
        results += _audit_protocol(task, size, config.replace(protocol=protocol), device)
        _release(device)
    return TaskAudit(
        **_header(task.id, size, device, config.draws),
        seconds=round(time.perf_counter() - start, 2),
        results=tuple(results),
    )


def audit_all(
    chosen: Iterable[tasks.Task],
    size: str,
    out: pathlib.Path,
    config: JudgeConfig | None = None,
    *,
    again: bool = False,
    progress: Callable[[TaskAudit], None] | None = None,
) -> dict[tuple[str, str], TaskAudit]:
    """Audits many tasks, keeping what is done in a file after each; a second call goes on there.

    A task whose reference does not run is recorded with its error, and tried again the next time.

    Args:
        chosen: Which tasks.
        size: Which shapes.
        out: The file of records; those of other tasks and sizes stay in it.
        config: As for `audit`.
        again: Also audit what the file already has.
        progress: Called with each new record.

    Returns:
        All the records of the file, by (task, size).

    Raises:
        RecordError: The file is not one of records.
    """
    config = config or JudgeConfig(device="cpu", seed=0)
    records = load(out) if out.exists() else {}
    for task in chosen:
        known = records.get((task.id, size))
        if known is not None and not known.error and not again:
            continue
        start = time.perf_counter()
        device = torch.device("cpu" if config.device == "auto" else config.device)
        try:
            record = audit(task, size, PROTOCOLS, config)
        except (KernelGymError, RuntimeError) as error:  # torch says RuntimeError of most, and OOM
            record = TaskAudit(
                **_header(task.id, size, device, config.draws),
                seconds=round(time.perf_counter() - start, 2),
                results=(),
                error=f"{type(error).__name__}: {error}".splitlines()[0][:500],
            )
        _release(device)
        records[task.id, size] = record
        save(records, out)
        if progress is not None:
            progress(record)
    return records


class _Rule:
    """One rule of a protocol, and the answers that have passed it so far."""

    def __init__(self, protocol: str, tolerance: float | None) -> None:
        self.protocol = protocol
        self.tolerance = tolerance
        self.expected: Sequence[Expected] = ()
        self._alive: set[str] | None = None
        self._passed: dict[str, int] = {}

    def wants(self, name: str) -> bool:
        """Whether an answer, or one of those that a name stands for, has failed no draw yet."""
        return self._alive is None or any(a.split(":")[0] == name for a in self._alive)

    def judge(self, name: str, output: int, value: torch.Tensor) -> None:
        """Notes whether an answer is right for one output of this draw."""
        alive = self._alive is None or name in self._alive
        if alive and _passes(value, self.expected[output]):
            self._passed[name] = self._passed.get(name, 0) + 1

    def end_draw(self, outputs: int) -> None:
        """Keeps the answers that were right for every output."""
        self._alive = {name for name, count in self._passed.items() if count == outputs}
        self._passed = {}

    def result(self, task_id: str) -> ProtocolAudit:
        """What has passed every draw."""
        no_shortcut = _NO_SHORTCUT.get(task_id, ())
        passing = [a for a in self._alive or () if a.split(":")[0] not in no_shortcut]
        passing.sort(key=lambda name: (ANSWERS.index(name.split(":")[0]), name))
        return ProtocolAudit(self.protocol, self.tolerance, tuple(passing))


def _audit_protocol(
    task: tasks.Task, size: str, config: JudgeConfig, device: torch.device
) -> list[ProtocolAudit]:
    salt = Salt.make(config.seed, task.id)
    reference = Reference(task, size, config, salt, device)
    tolerances = [fixed_tolerance(config.protocol, precision) for precision in ("default", "fp16")]
    rules = [_Rule(config.protocol, tolerance) for tolerance in dict.fromkeys(tolerances)]
    for draw in range(config.draws):
        inputs = reference.inputs(draw)
        if reference.upstream:
            outputs = reference.outputs(inputs, draw)
            for rule in rules:
                assert rule.tolerance is not None
                rule.expected = [Expected.from_tolerance(v, rule.tolerance) for v in outputs]
            rehearsed_inputs = reference.inputs(draw + _REHEARSAL)
        else:
            rules[0].expected = reference.expected(inputs, draw)
            # The same law: that is the number of the draw.
            rehearsed_inputs = task.draw_inputs(
                size, salt.seed("rehearsal"), draw, device, reference.dtype
            )
        rehearsed = reference.outputs(rehearsed_inputs, draw)
        count = len(rehearsed)
        for output in range(count):
            case = Case(
                task=task.id,
                names=tuple(spec.name for spec in reference.specs),
                inputs=inputs,
                right=_own(rules[0].expected[output], rehearsed[output].dtype),
                dtype=rehearsed[output].dtype,
                rehearsed_inputs=rehearsed_inputs,
                rehearsed=rehearsed[output],
                run=_runner(reference, draw, output),
            )
            for name, value in answers(case, lambda name: any(rule.wants(name) for rule in rules)):
                for rule in rules:
                    rule.judge(name, output, value)
                del value
            del case
        for rule in rules:
            rule.end_draw(count)
            rule.expected = ()
        del inputs, rehearsed_inputs, rehearsed
        _release(device)
        if not any(rule.wants(name) for rule in rules for name in ANSWERS):
            break
    return [rule.result(task.id) for rule in rules]


def _runner(
    reference: Reference, draw: int, output: int
) -> Callable[[Sequence[Any]], torch.Tensor]:
    return lambda values: reference.outputs(values, draw)[output]


def _own(expected: Expected, dtype: torch.dtype) -> torch.Tensor:
    return expected.value.to(dtype)


def _passes(value: torch.Tensor, expected: Expected) -> bool:
    """The judge's comparison, in parts: most answers fail in the first."""
    if expected.scores is not None:
        return compare(value.contiguous(), expected).passed
    parts = zip(
        value.reshape(-1).split(_CHUNK),
        expected.value.reshape(-1).split(_CHUNK),
        strict=True,
    )
    for got, right in parts:
        difference = (got.double() - right.double()).abs()
        if not bool((difference <= dataclasses.replace(expected, value=right).budget).all()):
            return False
    return True


def _header(task_id: str, size: str, device: torch.device, draws: int) -> dict[str, Any]:
    return {
        "task": task_id,
        "size": size,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "versions": {"torch": torch.__version__, "kernelgym": __version__},
        "draws": draws,
    }


def _release(device: torch.device) -> None:
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


def _chosen(names: Sequence[str]) -> list[tasks.Task]:
    chosen: list[str] = []
    for name in names:
        if name == "all":
            chosen += tasks.ids()
        elif name == "weak":
            chosen += KNOWN_WEAK
        elif name in ("L1", "L2", "L3"):
            chosen += tasks.ids(int(name[1]))
        else:
            chosen.append(tasks.get(name).id)
    return [tasks.get(task_id) for task_id in dict.fromkeys(chosen)]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; see the module's docstring. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m kernelgym.judge.audit", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--tasks", nargs="+", default=["all"], help="all, weak (the 48 reported), L1, or ids"
    )
    parser.add_argument("--size", default="small", choices=("small", "medium", "full"))
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, default=RECORDS, help="file of records")
    parser.add_argument("--again", action="store_true", help="also audit what the file has")
    parser.add_argument("--merge", type=pathlib.Path, help="take this file's records, audit none")
    options = parser.parse_args(arguments)
    try:
        if options.merge is not None:
            print(f"{merge(options.merge, options.out)} records taken into {options.out}")
            return 0
        config = JudgeConfig(device=options.device, draws=options.draws, seed=0)
        chosen = _chosen(options.tasks)
        records = audit_all(
            chosen, options.size, options.out, config, again=options.again, progress=_print
        )
    except KernelGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    own = [records[task.id, options.size] for task in chosen]
    failed = [record for record in own if record.error]
    weak = [r for r in own if not r.error and r.passing("audited") and r.task in tasks.ids()]
    print(f"{len(own)} tasks, {len(failed)} failed, {len(weak)} weak under audited")
    return 1 if failed else 0


def _print(record: TaskAudit) -> None:
    found = "; ".join(
        f"{r.protocol}{'' if r.tolerance is None else f' {r.tolerance:g}'}: {', '.join(r.passing)}"
        for r in record.results
        if r.passing
    )
    print(f"{record.task:7} {record.seconds:6.1f} s  {record.error or found or '-'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
