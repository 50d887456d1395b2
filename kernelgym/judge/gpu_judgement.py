"""One judgement on a GPU: check → time → profile, in one process of the candidate's."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import pathlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import filelock
import torch

from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault
from kernelgym.judge import protocol
from kernelgym.judge.check import Checker, Placed
from kernelgym.judge.confinement import candidate_policy
from kernelgym.judge.defences import ALL_DEFENCES, Defences
from kernelgym.judge.device import arithmetic, build_target, gpu_facts, release_unused, settle
from kernelgym.judge.device_data import DeviceData
from kernelgym.judge.energy import EnergyCounter, EnergyPair, compare_energy
from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.gpus import floor_seconds, gpu_model
from kernelgym.judge.hardware_counters import count_in_candidate, with_hardware_counters
from kernelgym.judge.judgement import Judgement, PlaceNames
from kernelgym.judge.measuring import Meter
from kernelgym.judge.ownership import (
    calls_library,
    declared_kernels,
    foreign_compute,
    owned_kernels,
    shorter_than_its_kernels,
    split_by_owner,
)
from kernelgym.judge.process import CandidateProcess, Zygote
from kernelgym.judge.reference import Reference
from kernelgym.judge.standby import Standby
from kernelgym.judge.verdict import Counters, Coverage, Outcome, SassSummary, Timing, Verdict
from kernelgym.tasks import Task
from kernelgym.toolchain.build import BuildRequest, BuildResult, SourceFile
from kernelgym.toolchain.sass import summarise_build
from kernelgym.toolchain.service import BuildService

__all__ = ["GpuJudgement", "gpu_standby"]

_STATED = "every draw is within its budget"


class GpuJudgement(Judgement):
    """Judges one workspace once on a GPU; see `Judge.evaluate`.

    Work on one GPU is exclusive: the judgement holds a lock by the card's UUID, which it lets go of
    while compilers run.
    """

    def __init__(
        self,
        task: Task,
        files: tuple[SourceFile, ...],
        config: JudgeConfig,
        size: str,
        device: torch.device,
        service: BuildService,
        standby: Standby,
        defences: Defences = ALL_DEFENCES,
    ) -> None:
        super().__init__(task, files, config, size, device, service, defences)
        self._standby = standby

    def _judged(self, reference: Reference, checker: Checker) -> Verdict:
        counter = EnergyCounter(gpu_facts(self._device).uuid) if self._config.energy else None
        beside = ThreadPoolExecutor(1)
        try:
            with self._turn(), self._candidate() as candidate:
                with self._phase("check"):
                    checker.check(candidate)
                failure = checker.evidence.failure(self._config.ruleset, True, self._defences)
                if failure is not None:
                    raise failure
                with self._phase("time"):
                    facts = gpu_facts(self._device)
                    data = DeviceData.load(facts)
                    meter = Meter(checker, reference, facts, self._salt, self._config, data)
                    timing = meter.measure(candidate)
                sass = None
                if self._config.counters:
                    # Not before: it takes a core, and so would change what is timed.
                    sass = beside.submit(self._disassembled, tuple(self._builds))
                with self._phase("profile"):
                    inputs = reference.inputs(0)
                    placed = checker.place(inputs)
                    profile = self._profile(candidate, checker, placed, reference, timing)
                energy = EnergyPair()
                if counter is not None:
                    with self._phase("energy"):
                        energy = self._energy(counter, candidate, placed, reference, inputs)
                if profile is not None and self._config.counters:
                    with self._phase("counters"):
                        counted = self._counted(candidate, placed, reference, profile[0])
                        profile = counted, profile[1]
            if sass is not None:
                with self._phase("disassemble"):
                    self._sass = sass.result()
        except CheckFailed as error:
            return self._failed(error, checker.correctness)
        except torch.OutOfMemoryError as error:
            raise EnvironmentFault(
                f"the grader wants more GPU memory than is free: {error}"
            ) from error
        finally:
            beside.shutdown()
            release_unused(self._device)
            if counter is not None:
                counter.close()
        counters, coverage = profile or (None, None)
        verdict = self._make(
            Outcome.CORRECT,
            "",
            _STATED,
            correctness=checker.correctness,
            timing=timing,
            counters=counters if self._config.counters else None,
            coverage=coverage,
        )
        return dataclasses.replace(
            verdict,
            peak_memory_eager=meter.eager_peak,
            energy=energy.candidate,
            energy_eager=energy.eager,
        )

    def _profile(
        self,
        candidate: CandidateProcess,
        checker: Checker,
        placed: Placed,
        reference: Reference,
        timing: Timing,
    ) -> tuple[Counters, Coverage] | None:
        """What ran in one call, by owner; None where the profiler sees nothing on this machine.

        Raises:
            CheckFailed: Nothing of the candidate's ran, or what it ran takes longer than it claims.
        """
        command = protocol.Profile(placed.arguments, reference.run_seed(0))
        told: protocol.Profiled = checker.answer(candidate, command, protocol.Profiled, "run")
        own = owned_kernels(self._builds) | declared_kernels(self._files)
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
                f"forward launched {foreign[0][:200]}, which is not the candidate's",
            )
        if self._defences.clock:
            failure = failure or shorter_than_its_kernels(timing.candidate.median, told.kernels)
        if failure is not None:
            raise failure
        return split

    def _disassembled(self, builds: Sequence[BuildResult]) -> tuple[SassSummary, ...]:
        """What the machine code of each build is made of."""
        cache, protection = self._service.cache, self._config.protection
        distinct = {build.key: build for build in builds}.values()
        summaries = (summarise_build(build, cache, protection=protection) for build in distinct)
        return tuple(itertools.chain.from_iterable(summaries))

    def _counted(
        self, candidate: CandidateProcess, placed: Placed, reference: Reference, counters: Counters
    ) -> Counters:
        """Adds hardware counters, or says why there are none."""
        counted = count_in_candidate(
            candidate, placed, reference.run_seed(0), self._device, self._service.cache
        )
        if isinstance(counted, str):
            return dataclasses.replace(counters, note=counted)
        model = gpu_model(gpu_facts(self._device).name)
        return with_hardware_counters(counters, *counted, model)

    def _energy(
        self,
        counter: EnergyCounter,
        candidate: CandidateProcess,
        placed: Placed,
        reference: Reference,
        inputs: Sequence[Any],
    ) -> EnergyPair:
        """Joules of a call on both sides; the candidate's are missing if it did not stay for it."""
        seed = reference.run_seed(0)
        call = reference.call(inputs)

        def mine(calls: int) -> None:
            command = protocol.Repeat(placed.arguments, seed, calls)
            answer = candidate.ask(command, protocol.Repeated)
            if isinstance(answer, protocol.Failed):
                raise protocol.CandidateGone(answer.message)

        def eager(calls: int) -> None:
            for _ in range(calls):
                call()
            settle(self._device)

        facts = gpu_facts(self._device)
        model = gpu_model(facts.name)
        least = 0.0
        if model is not None:
            least = floor_seconds(model, reference.facts.min_bytes, facts.l2_bytes)
        try:
            with arithmetic(self._config.precision):
                return compare_energy(counter, mine, eager, least_seconds=0.5 * least)
        except (protocol.CandidateGone, protocol.CandidateTimeout):
            return EnergyPair()

    # --- processes ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def _candidate(self) -> Iterator[CandidateProcess]:
        with self._phase("start"):
            waiting = self._standby.take()
        try:
            waiting.candidate.attend(self._build, self._config.run_timeout)
            yield waiting.candidate
        finally:
            self._standby.give_back(waiting)

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
        self._lock = device_lock(self._device, self._service.cache.root)
        with self._phase("queue"):
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release(force=True)

    # --- verdicts ----------------------------------------------------------------------------

    def _place_names(self) -> PlaceNames:
        facts = gpu_facts(self._device)
        compiler = self._service.gpu_compiler()
        return PlaceNames(facts.name, compiler, facts.cuda, facts.driver, facts.uuid)


def gpu_standby(
    config: JudgeConfig,
    device: torch.device,
    service: BuildService,
    zygote: Zygote,
    *,
    count: int = 3,
    defences: Defences = ALL_DEFENCES,
) -> Standby:
    """Processes ahead for candidates on one GPU.

    Args:
        config: How they will be judged.
        device: The GPU.
        service: Whose builds they load.
        zygote: Where they are forked from.
        count: How many to keep ahead.
        defences: Which of the judge's defences are in force.
    """
    target, root = build_target(device), service.cache.root

    def setup(scratch: pathlib.Path) -> protocol.Setup:
        return protocol.Setup(
            target=target,
            variant="fast",
            scratch=str(scratch),
            policy=candidate_policy(config, scratch, (root,), gpu=True),
            device=str(device),
            defences=defences,
        )

    return Standby(
        zygote, setup, protocol.Begin(config.precision), lambda: device_lock(device, root), count
    )


def device_lock(device: torch.device, root: pathlib.Path) -> filelock.FileLock:
    """A lock that one GPU's users share, whatever its index and whoever they are."""
    root.mkdir(parents=True, exist_ok=True)
    return filelock.FileLock(root / f"gpu-{gpu_facts(device).uuid}.lock")
