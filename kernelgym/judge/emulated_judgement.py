"""A judgement on the emulator: the plain binary decides on values, the instrumented one on causes."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import pathlib
import posixpath
import tempfile
from collections.abc import Iterator

import torch

from kernelgym.config import JudgeConfig
from kernelgym.errors import RecordError
from kernelgym.judge import baselines, protocol
from kernelgym.judge.check import Checker, Observed
from kernelgym.judge.confinement import candidate_policy
from kernelgym.judge.counters import emulated_counters
from kernelgym.judge.defences import ALL_DEFENCES, Defences
from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.judgement import Judgement, PlaceNames
from kernelgym.judge.physics import EMULATED_DEVICE, light_seconds
from kernelgym.judge.process import CandidateProcess, Zygote
from kernelgym.judge.reasons import REASONS
from kernelgym.judge.reference import Reference
from kernelgym.judge.standby import remove_folder
from kernelgym.judge.verdict import (
    Counters,
    Measurement,
    Outcome,
    Speedup,
    Timing,
    Verdict,
)
from kernelgym.tasks import Task
from kernelgym.toolchain.build import BuildRequest, BuildResult, SourceFile
from kernelgym.toolchain.diagnostics import resolve, tidy
from kernelgym.toolchain.emulator_report import EmulatorReport, parse_report
from kernelgym.toolchain.service import BuildService
from kernelgym.toolchain.sourcemap import SourceMap
from kernelgym.toolchain.units import source_texts

__all__ = ["EmulatedJudgement"]

# Findings of the instrumented run that mean wrong values rather than a failed kernel.
_WRONG_VALUES = ("race.", "memory.uninitialised")
_CODES = {"unsupported": "emulator.unsupported"}
_ACCESS_BUDGET = 100_000_000
_PERMUTED_ORDER = 7
# Of a task's inputs, parameters and outputs; some tasks have parts that need not be read.
_LEAST_TRAFFIC = 0.25


class EmulatedJudgement(Judgement):
    """Judges one workspace once, on the CPU."""

    _decoy = False

    def __init__(
        self,
        task: Task,
        files: tuple[SourceFile, ...],
        config: JudgeConfig,
        size: str,
        device: torch.device,
        service: BuildService,
        zygote: Zygote,
        defences: Defences = ALL_DEFENCES,
    ) -> None:
        super().__init__(task, files, config, size, device, service, defences)
        self._zygote = zygote

    def _judged(self, reference: Reference, checker: Checker) -> Verdict:
        """Checks, counts and times; here on the emulator."""
        failure: CheckFailed | None = None
        try:
            with self._phase("check"), self._candidate("fast") as candidate:
                checker.check(candidate)
        except CheckFailed as error:
            failure = error
        if failure is not None and not failure.ran:
            return self._failed(failure, checker.correctness)
        observed, report, unlike = self._observe(checker)
        failure = failure or unlike
        if report is not None:
            unwatched = any(
                launch.owner == "own" and not launch.checked for launch in report.launches
            )
            if unwatched and self._defences.instrumentation:
                failure = CheckFailed("rule.instrumentation", "a kernel ran uninstrumented")
            # The instrumented run knows causes; a wrong value is only their effect.
            failure = self._found(report, observed) or failure
        # That tensors were touched by the host is the effect of it, when torch computed in hiding.
        failure = checker.evidence.hidden(self._defences) or failure
        failure = failure or checker.evidence.failure(
            self._config.ruleset,
            report is None or self._did_the_work(report, reference),
            self._defences,
        )
        if failure is None and self._decoy:
            failure = CheckFailed(
                "rule.decoy", "the output is right although the candidate's kernels did nothing"
            )
        if failure is not None:
            return self._failed(failure, checker.correctness)
        if report is None or observed is None:
            # The plain run passed, so the instrumented one only lacked time.
            return self._failed(
                CheckFailed("run.timeout", "the instrumented run did not finish in time", ran=True),
                checker.correctness,
            )
        with self._phase("time"):
            counters, coverage = emulated_counters(
                EMULATED_DEVICE, report.launches, observed.operators
            )
            moved = sum(operator.bytes for operator in observed.operators) + sum(
                counters.total.get(name) or 0.0
                for name in ("dram_bytes_read", "dram_bytes_written")
            )
            wanted = _LEAST_TRAFFIC * reference.facts.min_bytes
            if self._defences.traffic and not counters.sampled and moved < wanted:
                return self._failed(
                    CheckFailed(
                        "cheat.physics",
                        f"forward moved {moved:.0f} bytes, of at least {reference.facts.min_bytes} "
                        "that the task has to move",
                    ),
                    checker.correctness,
                )
            timing = self._timing(counters, reference)
        return self._make(
            Outcome.CORRECT,
            "",
            "every draw is within its budget",
            correctness=checker.correctness,
            timing=timing,
            counters=counters if self._config.counters else None,
            coverage=coverage,
        )

    def _observe(
        self, checker: Checker
    ) -> tuple[Observed | None, EmulatorReport | None, CheckFailed | None]:
        """The instrumented run: memory errors, races and counts, and whether its values are right."""
        observed: Observed | None = None
        failure: CheckFailed | None = None
        gone = (protocol.CandidateGone, protocol.CandidateTimeout)
        with self._phase("count"), self._candidate("checked") as candidate:
            try:
                observed = checker.observe(candidate)
            except CheckFailed as error:
                failure = error  # the findings that led to it may still be had
            try:
                answer = candidate.ask(protocol.FetchReport(), protocol.Report)
            except gone:
                return None, None, failure
            if failure is None and self._defences.decoys:
                self._decoy = checker.is_decoy(candidate)
        if isinstance(answer, protocol.Failed):
            return observed, None, failure
        hidden = (self._service.emulator().directory,)
        modules = {path for result in self._builds for _, path in result.libraries}
        try:
            report = parse_report(
                answer.text, map_place=self._place, hidden=hidden, modules=modules
            )
        except RecordError:
            # It comes out of the candidate's process, which must have written over it.
            return None, None, CheckFailed("run.died", "the emulator's report was destroyed")
        return observed, report, failure

    def _did_the_work(self, report: EmulatorReport, reference: Reference) -> bool:
        """Whether the candidate's kernels and library calls can have made the outputs.

        A decoy is told by what it writes: under `strict` at least half of the outputs' bytes.
        """
        if self._config.ruleset != "strict" or any(launch.sampled for launch in report.launches):
            return bool(report.launches)
        wanted = sum(
            math.prod(spec.shape) * spec.dtype.itemsize for spec in reference.output_specs()
        )
        written = sum(launch.counts.get("dram_write_bytes", 0) for launch in report.launches)
        return bool(report.launches) and written >= wanted / 2

    def _place(self, file: str, line: int) -> tuple[str, int]:
        """Where in the workspace a compiled file and line come from."""
        source_map = SourceMap(self._files)
        file = posixpath.normpath(file)
        for request in self._requests:
            place = resolve(file, line, source_map=source_map, sources=source_texts(request))
            if place is not None:
                return place.file, place.line
        return "", 0

    def _found(self, report: EmulatorReport, observed: Observed | None) -> CheckFailed | None:
        """What the instrumented run found wrong, as a failure."""
        sampled = any(launch.sampled for launch in report.launches)
        findings = [
            finding
            for finding in report.findings
            if finding.severity == "error"
            # Where blocks were left out, what they would have written is missing.
            and not (sampled and finding.code == "memory.uninitialised")
            and not (self._config.ruleset != "strict" and finding.code == "memory.host_copy")
        ]
        if not findings or not self._defences.findings:
            return None
        # A failed kernel explains wrong values, and a race why something was not written yet.
        first = min(
            findings,
            key=lambda f: (f.code.startswith(_WRONG_VALUES), f.code == "memory.uninitialised"),
        )
        code = _CODES.get(first.code, first.code)
        code = code if code in REASONS else "kernel.error"
        findings.sort(key=lambda finding: finding is not first)
        return CheckFailed(code, first.text, diagnostics=tuple(findings), ran=True)

    def _timing(self, counters: Counters, reference: Reference) -> Timing:
        light = light_seconds(EMULATED_DEVICE, reference.facts.flops, reference.facts.min_bytes)
        # The counts know nothing of arithmetic: nothing is faster than light.
        seconds = max(counters.total.time, light if self._defences.traffic else 1e-9)
        calls = baselines.reference_operators(self._task, self._size, train=reference.train)
        eager = baselines.eager_seconds(EMULATED_DEVICE, calls)
        compiled = baselines.compile_seconds(EMULATED_DEVICE, calls)
        asked = self._config.baselines
        return Timing(
            candidate=_modelled(seconds),
            eager=_modelled(eager) if "eager" in asked else None,
            compile=_modelled(compiled) if "compile" in asked else None,
            speedup_eager=_ratio(eager, seconds) if "eager" in asked else None,
            speedup_compile=_ratio(compiled, seconds) if "compile" in asked else None,
            light_fraction=min(light / seconds, 1.0),
        )

    @contextlib.contextmanager
    def _candidate(self, variant: str) -> Iterator[CandidateProcess]:
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="kernelgym-"))
        try:
            with CandidateProcess(self._zygote) as candidate:
                candidate.setup(self._setup(variant, scratch))
                candidate.attend(self._build, self._config.run_timeout)
                yield candidate
        finally:
            remove_folder(scratch)

    def _setup(self, variant: str, scratch: pathlib.Path) -> protocol.Setup:
        kit = self._service.emulator()
        return protocol.Setup(
            target="emulator",
            variant=variant,
            scratch=str(scratch),
            policy=candidate_policy(
                self._config,
                scratch,
                (kit.directory, self._service.cache.root),
                threads=not self._defences.threads,
            ),
            runtime=str(kit.runtime),
            order=_PERMUTED_ORDER if variant == "checked" else 0,
            access_budget=_ACCESS_BUDGET,
            track=variant == "checked",
            defences=self._defences,
        )

    def _build(self, request: BuildRequest) -> BuildResult:
        result = super()._build(request)
        if self._config.nvcc_check and result.status == "ok":
            with self._phase("build"):
                result = self._builds[-1] = self._checked_with_nvcc(self._requests[-1], result)
        return result

    def _checked_with_nvcc(self, request: BuildRequest, result: BuildResult) -> BuildResult:
        """The result, with what nvcc says of the same source: a GPU's compiler has the last word."""
        report = self._service.check(
            request, self._config.architecture, timeout=self._config.build_timeout
        )
        status = "ok" if report.ok else "timeout" if report.timed_out else "compile_error"
        return dataclasses.replace(
            result,
            status=status,
            diagnostics=tidy((*report.diagnostics, *result.diagnostics)),
            kernels=report.kernels,
        )

    def _place_names(self) -> PlaceNames:
        return PlaceNames("emulator", self._service.emulator().compiler)


def _modelled(seconds: float) -> Measurement:
    return Measurement(seconds, seconds, seconds, 0, "modelled")


def _ratio(baseline: float, seconds: float) -> Speedup:
    value = baseline / seconds
    return Speedup(value, value, value)
