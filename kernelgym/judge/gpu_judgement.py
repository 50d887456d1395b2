"""One judgement on a GPU: check → time → profile, in one process of the candidate's."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator

import filelock
import torch

from kernelgym.errors import EnvironmentFault, SandboxFault
from kernelgym.judge import protocol
from kernelgym.judge.check import Checker
from kernelgym.judge.confinement import candidate_policy
from kernelgym.judge.device import build_target, gpu_facts, release_unused
from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.judgement import Judgement, PlaceNames
from kernelgym.judge.measuring import Meter
from kernelgym.judge.ownership import (
    calls_library,
    foreign_compute,
    owned_kernels,
    shorter_than_its_kernels,
    split_by_owner,
)
from kernelgym.judge.process import CandidateProcess
from kernelgym.judge.reference import Reference
from kernelgym.judge.verdict import Counters, Coverage, Outcome, Timing, Verdict
from kernelgym.toolchain.build import BuildRequest, BuildResult

__all__ = ["GpuJudgement"]

_STATED = "every draw is within its budget"


class GpuJudgement(Judgement):
    """Judges one workspace once on a GPU; see `Judge.evaluate`.

    Work on one GPU is exclusive: the judgement holds a lock by the card's UUID, which it lets go of
    while compilers run.
    """

    def _judged(self, reference: Reference, checker: Checker) -> Verdict:
        try:
            with self._turn(), self._candidate("fast") as candidate:
                with self._phase("start"):
                    self._begin(candidate)
                with self._phase("check"):
                    checker.check(candidate)
                failure = checker.evidence.failure(self._config.ruleset, True, self._defences)
                if failure is not None:
                    raise failure
                with self._phase("time"):
                    facts = gpu_facts(self._device)
                    meter = Meter(checker, reference, facts, self._salt, self._config)
                    timing = meter.measure(candidate)
                with self._phase("profile"):
                    profile = self._profile(candidate, checker, reference, timing)
        except CheckFailed as error:
            return self._failed(error, checker.correctness)
        except torch.OutOfMemoryError as error:
            raise EnvironmentFault(
                f"the grader wants more GPU memory than is free: {error}"
            ) from error
        finally:
            release_unused(self._device)
        counters, coverage = profile or (None, None)
        return self._make(
            Outcome.CORRECT,
            "",
            _STATED,
            correctness=checker.correctness,
            timing=timing,
            counters=counters if self._config.counters else None,
            coverage=coverage,
        )

    def _profile(
        self,
        candidate: CandidateProcess,
        checker: Checker,
        reference: Reference,
        timing: Timing,
    ) -> tuple[Counters, Coverage] | None:
        """What ran in one call, by owner; None where the profiler sees nothing on this machine.

        Raises:
            CheckFailed: Nothing of the candidate's ran, or what it ran takes longer than it claims.
        """
        placed = checker.place(reference.inputs(0))
        command = protocol.Profile(placed.arguments, reference.run_seed(0))
        told: protocol.Profiled = checker.answer(candidate, command, protocol.Profiled, "run")
        own = owned_kernels(self._builds)
        library = calls_library(self._requests)
        split = split_by_owner(told.kernels, own, library=library)
        # Without a profile, what was built is all the evidence there is.
        seen = bool(own) or library
        ran = seen if split is None else split[1].own + split[1].library > 0.0
        failure = checker.evidence.failure(self._config.ruleset, ran, self._defences)
        foreign = foreign_compute(told.kernels, own, library=library)
        if self._config.ruleset == "strict" and self._defences.witness and foreign:
            failure = failure or CheckFailed(
                "rule.hidden_compute",
                f"forward launched {foreign[0]}, which is not the candidate's",
            )
        if self._defences.clock:
            failure = failure or shorter_than_its_kernels(timing.candidate.median, told.kernels)
        if failure is not None:
            raise failure
        return split

    # --- processes ---------------------------------------------------------------------------

    def _begin(self, candidate: CandidateProcess) -> None:
        try:
            answer = candidate.ask(protocol.Begin(self._config.precision), protocol.Begun)
        except (protocol.CandidateGone, protocol.CandidateTimeout) as error:
            raise SandboxFault(f"a candidate's process did not open the GPU: {error}") from error
        if isinstance(answer, protocol.Failed):
            raise SandboxFault(
                f"expected a candidate's process to open {self._device}, got {answer.kind}: "
                f"{answer.message}"
            )

    def _setup(self, variant: str, scratch: pathlib.Path) -> protocol.Setup:
        return protocol.Setup(
            files=self._files,
            target=build_target(self._device),
            variant=variant,
            scratch=str(scratch),
            policy=candidate_policy(self._config, scratch, (self._service.cache.root,), gpu=True),
            device=str(self._device),
            defences=self._defences,
        )

    def _build(self, request: BuildRequest) -> BuildResult:
        lock = self._lock
        lock.release()
        try:
            return super()._build(request)
        finally:
            with self._phase("queue"):
                lock.acquire()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        root = self._service.cache.root
        root.mkdir(parents=True, exist_ok=True)
        self._lock = filelock.FileLock(root / f"gpu-{gpu_facts(self._device).uuid}.lock")
        with self._phase("queue"):
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release(force=True)

    # --- verdicts ----------------------------------------------------------------------------

    def _place_names(self) -> PlaceNames:
        facts = gpu_facts(self._device)
        return PlaceNames(facts.name, self._service.gpu_compiler(), facts.cuda, facts.driver)
