"""Whether a changed kernel computes something else: a ground truth that owes nothing to a verdict.

A candidate runs on the emulator, uninstrumented, under two orders of threads and blocks, on inputs
from laws of this file (none of the judge's own, no salt), at the task's shapes and at smaller ones;
every output is held against the reference in fp64 with the error budget of `docs/judge.md`.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError
from kernelgym.judge import protocol
from kernelgym.judge.check import Checker
from kernelgym.judge.correctness import Expected, compare
from kernelgym.judge.emulated_judgement import EmulatedJudgement
from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.judgement import PlaceNames
from kernelgym.judge.process import Zygote
from kernelgym.judge.reference import OutputSpec, Reference
from kernelgym.judge.salt import Salt
from kernelgym.judge.sources import workspace_files
from kernelgym.judge.verdict import Verdict
from kernelgym.tasks import Task
from kernelgym.toolchain.service import BuildService

__all__ = ["Effect", "Prober"]

_CPU = torch.device("cpu")
_ORDERS = (0, 5)
_UPSTREAM_DRAWS = 5
_SEED = 20240229

Values = Callable[[tuple[int, ...], torch.Generator], torch.Tensor]


def _sparse(shape: tuple[int, ...], random: torch.Generator) -> torch.Tensor:
    values = torch.randn(shape, generator=random)
    return values * (torch.rand(shape, generator=random) < 0.1)


def _ramp(shape: tuple[int, ...], random: torch.Generator) -> torch.Tensor:
    count = max(1, torch.Size(shape).numel())
    return (torch.arange(count) % 251 - 125).reshape(shape) / 64.0


_LAWS: dict[str, Values] = {
    "U[-1,1)": lambda shape, random: torch.rand(shape, generator=random) * 2 - 1,
    "U[0,1)": lambda shape, random: torch.rand(shape, generator=random),
    "N(0,4)": lambda shape, random: torch.randn(shape, generator=random) * 4,
    "N(5,1)": lambda shape, random: torch.randn(shape, generator=random) + 5,
    "N(-2,0.1)": lambda shape, random: torch.randn(shape, generator=random) * 0.1 - 2,
    "sparse": _sparse,
    "ramp": _ramp,
}


@dataclasses.dataclass(frozen=True)
class Effect:
    """What a changed kernel does.

    Attributes:
        differs: Whether some output at the task's shapes was beyond its budget, or none came.
        where: Law, order and what came of it, of the first such.
        elsewhere: Whether that is so at smaller shapes; None where the task has none.
        upstream: Whether upstream's rules see it: seed 42, U[0,1), five draws, `allclose` at 1e-4.
        upstream_says: Why, or `""`.
    """

    differs: bool
    where: str = ""
    elsewhere: bool | None = None
    upstream: bool = False
    upstream_says: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class _Case:
    """Inputs and what should come out."""

    name: str
    inputs: Sequence[Any]
    expected: tuple[Expected, ...]
    wanted: Sequence[OutputSpec] | None = None


@dataclasses.dataclass(frozen=True)
class _Truth:
    """One task's cases, worked out once."""

    reference: Reference
    cases: tuple[_Case, ...]
    smaller: tuple[_Case, ...]
    upstream: Reference
    upstream_cases: tuple[_Case, ...]


class Prober:
    """Runs candidates on inputs of its own. Safe to use from several threads.

    Args:
        service: Where builds come from; with a judge's own, nothing is built twice.
        size: Which shapes.
        run_timeout: Seconds after which a process is ended; who needs longer differs.
    """

    def __init__(
        self, service: BuildService, size: str = "small", *, run_timeout: float = 30.0
    ) -> None:
        self._service = service
        self._size = size
        self._zygote = Zygote()
        self._config = JudgeConfig(
            device="cpu", size=size, ruleset="kernelbench", run_timeout=run_timeout
        )
        self._upstream = self._config.replace(protocol="kernelbench")
        self._truths: dict[str, _Truth] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Ends the standby process."""
        self._zygote.close()

    def effect(self, task: Task, files: Mapping[str, str], original: Mapping[str, str]) -> Effect:
        """What a changed candidate does, against its task's reference.

        Args:
            task: The candidate's task.
            files: The candidate.
            original: What it was made from. Inputs on which that is beyond the budget itself (a
                variance that cancels, say) are left out: they say nothing of the change.

        Raises:
            EnvironmentFault: The harness or the reference failed.
        """
        key = json.dumps([task.id, dict(original)])
        with self._lock:
            truth = self._truths.get(key) or self._work_out(task, original)
            self._truths[key] = truth
        differs, where = False, ""
        for order in _ORDERS:
            cases = truth.cases if order == 0 else truth.cases[:2]
            wrong, _ = self._wrong(task, files, truth.reference, cases, order)
            if wrong:
                differs, where = True, wrong
                break
        if "run.timeout" in where:
            return Effect(True, where, None, True, where)  # it never ends for anybody
        elsewhere = None
        if not differs and truth.smaller:
            elsewhere = bool(self._wrong(task, files, truth.reference, truth.smaller, 0)[0])
        says, _ = self._wrong(task, files, truth.upstream, truth.upstream_cases, 0)
        return Effect(differs, where, elsewhere, bool(says), says)

    # --- running -----------------------------------------------------------------------------

    def _wrong(
        self,
        task: Task,
        files: Mapping[str, str],
        reference: Reference,
        cases: Sequence[_Case],
        order: int,
    ) -> tuple[str, _Case | None]:
        """The first case that comes out wrong, in words, or `""`; None where none came out."""
        config = self._upstream if reference.upstream else self._config
        sources = workspace_files(files)
        run = _Run(task, sources, config, self._size, _CPU, self._service, self._zygote)
        return run.first_wrong(Checker(reference, config, sources), cases, order)

    # --- what should come out ----------------------------------------------------------------

    def _honest(
        self,
        task: Task,
        original: Mapping[str, str],
        reference: Reference,
        cases: Sequence[_Case],
    ) -> tuple[_Case, ...]:
        """The cases on which the original is right."""
        kept = list(cases)
        while kept:
            wrong, case = self._wrong(task, original, reference, kept, 0)
            if not wrong:
                break
            if case is None:
                raise UsageError(f"{task.id}: expected a correct original, got: {wrong}")
            kept.remove(case)
        return tuple(kept)

    def _work_out(self, task: Task, original: Mapping[str, str]) -> _Truth:
        salt = Salt.make(_SEED, task.id)
        reference = Reference(task, self._size, self._config, salt, _CPU)
        cases = []
        for number, (name, law) in enumerate(_LAWS.items()):
            random = torch.Generator().manual_seed(_SEED + number)
            given = task.draw_inputs(self._size, _SEED, number, _CPU, torch.float32)
            inputs = [
                _shaped(spec.law.kind, law, value, random)
                for spec, value in zip(reference.specs, given, strict=True)
            ]
            cases.append(_Case(name, inputs, reference.expected(inputs, number)))
        upstream = Reference(task, self._size, self._upstream, salt, _CPU)
        theirs = []
        for draw in range(_UPSTREAM_DRAWS):
            inputs = upstream.inputs(draw)
            expected = upstream.expected(inputs, draw)
            theirs.append(_Case(f"draw {draw}", inputs, expected))
        smaller = _smaller(reference, cases[0])
        return _Truth(
            reference,
            self._honest(task, original, reference, cases),
            self._honest(task, original, reference, smaller),
            upstream,
            tuple(theirs),
        )


class _Run(EmulatedJudgement):
    """One process of a candidate's, uninstrumented, that runs given inputs."""

    def first_wrong(
        self, checker: Checker, cases: Sequence[_Case], order: int
    ) -> tuple[str, _Case | None]:
        self._order = order
        try:
            with self._candidate("fast") as candidate:
                checker._construct(candidate)
                for number, case in enumerate(cases):
                    if case.wanted is not None:
                        checker._io = None  # other shapes, other buffers
                    got = checker._run(candidate, case.inputs, number, case.wanted)
                    for value, expected in zip(got, case.expected, strict=True):
                        result = compare(value, expected)
                        if not result.passed:
                            says = f"{case.name}, order {order}: {result.bad} elements"
                            return says, case
        except CheckFailed as error:
            return f"order {order}: {error.reason}: {error.message}"[:200], None
        return "", None

    def _setup(self, variant: str, scratch: Any) -> protocol.Setup:
        return dataclasses.replace(super()._setup(variant, scratch), order=self._order)

    def _judged(self, reference: Reference, checker: Checker) -> Verdict:
        raise NotImplementedError("a probe gives no verdict")

    def _place_names(self) -> PlaceNames:
        return PlaceNames("emulator", "")


def _shaped(kind: str, law: Values, given: Any, random: torch.Generator) -> Any:
    """A value of the law in the given one's place, where the task leaves values free."""
    if not isinstance(given, torch.Tensor) or not given.is_floating_point():
        return given
    values = law(tuple(given.shape), random)
    if kind == "upper_triangular":
        return values.triu()
    if kind == "lower_triangular":
        return values.tril()
    free = ("mixed", "mixed_unit", "uniform", "normal", "signed_uniform")
    return values if kind in free else given


def _smaller(reference: Reference, case: _Case) -> tuple[_Case, ...]:
    """A case cut down along the task's independent dimension, where it has one."""
    cut = reference.facts.slice_dim
    if cut is None or len(case.expected) != 1:
        return ()
    extent = case.expected[0].value.shape[cut.output]
    dims = dict(cut.arguments)
    names = [spec.name for spec in reference.specs]
    cases = []
    for keep in sorted({1, extent // 2} - {0, extent}):
        inputs = [
            value.narrow(dims[name], 0, keep).contiguous() if name in dims else value
            for name, value in zip(names, case.inputs, strict=True)
        ]
        expected = case.expected[0].narrow(cut.output, keep)
        spec = OutputSpec(tuple(expected.value.shape), reference.output_specs()[0].dtype)
        cases.append(_Case(f"extent {keep}", inputs, (expected,), [spec]))
    return tuple(cases)
