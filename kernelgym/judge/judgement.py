"""One judgement, phase by phase."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import pathlib
import posixpath
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from kernelgym._version import __version__
from kernelgym.config import JudgeConfig
from kernelgym.errors import RecordError
from kernelgym.judge import baselines, protocol
from kernelgym.judge.check import Checker, CheckFailed, Observed
from kernelgym.judge.confinement import candidate_policy
from kernelgym.judge.counters import emulated_counters
from kernelgym.judge.device import build_target
from kernelgym.judge.physics import EMULATED_DEVICE, light_seconds
from kernelgym.judge.process import CandidateProcess, Zygote
from kernelgym.judge.reasons import REASONS
from kernelgym.judge.reference import Reference
from kernelgym.judge.salt import Salt
from kernelgym.judge.screen import screen
from kernelgym.judge.sources import source_hash
from kernelgym.judge.verdict import (
    Build,
    Correctness,
    Counters,
    Coverage,
    Diagnostic,
    Measurement,
    Outcome,
    Provenance,
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

__all__ = ["Judgement", "PlaceNames"]

# Findings of the instrumented run that mean wrong values rather than a failed kernel.
_WRONG_VALUES = ("race.", "memory.uninitialised")
_CODES = {"unsupported": "emulator.unsupported"}
_ACCESS_BUDGET = 100_000_000
_PERMUTED_ORDER = 7
# Of a task's inputs, parameters and outputs; some tasks have parts that need not be read.
_LEAST_TRAFFIC = 0.25


class PlaceNames(NamedTuple):
    """What a verdict's provenance says of the device and the compiler."""

    device: str
    compiler: str
    cuda: str = ""
    driver: str = ""


class Judgement:
    """Judges one workspace once; see `Judge.evaluate`."""

    def __init__(
        self,
        task: Task,
        files: tuple[SourceFile, ...],
        config: JudgeConfig,
        size: str,
        device: torch.device,
        service: BuildService,
        zygote: Zygote,
    ) -> None:
        self._task = task
        self._files = files
        self._config = config
        self._size = size
        self._device = device
        self._service = service
        self._zygote = zygote
        self._salt = Salt.make(config.seed, task.id)
        self._builds: list[BuildResult] = []
        self._requests: list[BuildRequest] = []
        self._seconds: dict[str, float] = {}
        self._checker: Checker | None = None
        self._train = True
        self._output = ""

    def verdict(self) -> Verdict:
        """Runs all phases.

        Raises:
            EnvironmentFault: The harness or the reference failed.
        """
        with self._phase("screen"):
            finding = screen(self._files, self._config.ruleset, emulated=self._device.type == "cpu")
        if finding is not None:
            return self._failed(
                CheckFailed(finding.reason, finding.message, diagnostics=finding.diagnostics)
            )
        with self._phase("reference"):
            reference = Reference(self._task, self._size, self._config, self._salt, self._device)
            self._train = reference.train
            checker = Checker(reference, self._config)
        self._checker = checker
        return self._judged(reference, checker)

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
            if any(launch.owner == "own" and not launch.checked for launch in report.launches):
                failure = CheckFailed("rule.instrumentation", "a kernel ran uninstrumented")
            # The instrumented run knows causes; a wrong value is only their effect.
            failure = self._found(report, observed) or failure
        failure = failure or checker.rule_failure(
            report is None or self._did_the_work(report, reference)
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
            if not counters.sampled and moved < _LEAST_TRAFFIC * reference.facts.min_bytes:
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

    # --- the emulator's phases ---------------------------------------------------------------

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
        if not findings:
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
        seconds = max(counters.total.time, light)
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

    # --- processes ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def _candidate(self, variant: str) -> Iterator[CandidateProcess]:
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="kernelgym-"))
        try:
            with CandidateProcess(
                self._zygote,
                self._build,
                self._config.run_timeout,
                namespace=self._device.type == "cpu",
            ) as candidate:
                candidate.setup(self._setup(variant, scratch))
                yield candidate
        finally:
            _remove(scratch)

    def _setup(self, variant: str, scratch: pathlib.Path) -> protocol.Setup:
        kit = self._service.emulator()
        return protocol.Setup(
            files=self._files,
            target="emulator",
            variant=variant,
            scratch=str(scratch),
            policy=candidate_policy(
                self._config, scratch, (kit.directory, self._service.cache.root)
            ),
            runtime=str(kit.runtime),
            order=_PERMUTED_ORDER if variant == "checked" else 0,
            access_budget=_ACCESS_BUDGET,
            track=variant == "checked",
        )

    def _build(self, request: BuildRequest) -> BuildResult:
        # The candidate's word is taken for what to compile, and for files that it wrote itself, not
        # for the workspace.
        target = build_target(self._device)
        known = {file.path for file in self._files}
        written = tuple(file for file in request.files if file.path not in known)
        request = dataclasses.replace(request, files=(*self._files, *written), target=target)
        with self._phase("build"):
            result = self._service.build(request, timeout=self._config.build_timeout)
            if self._config.nvcc_check and target == "emulator" and result.status == "ok":
                result = self._checked_with_nvcc(request, result)
        self._builds.append(result)
        self._requests.append(request)
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

    @contextlib.contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        # Phases are disjoint: a build inside the check is not the check's time.
        started, inner = time.monotonic(), sum(self._seconds.values())
        try:
            yield
        finally:
            spent = time.monotonic() - started - (sum(self._seconds.values()) - inner)
            self._seconds[name] = self._seconds.get(name, 0.0) + spent

    # --- verdicts ----------------------------------------------------------------------------

    def _failed(self, failure: CheckFailed, correctness: Correctness | None = None) -> Verdict:
        self._output = failure.output or self._output
        return self._make(
            REASONS[failure.reason].outcome,
            failure.reason,
            failure.message,
            diagnostics=failure.diagnostics,
            correctness=correctness,
        )

    def _make(
        self,
        outcome: Outcome,
        reason: str,
        message: str,
        *,
        diagnostics: Sequence[Diagnostic] = (),
        correctness: Correctness | None = None,
        timing: Timing | None = None,
        counters: Counters | None = None,
        coverage: Coverage | None = None,
    ) -> Verdict:
        config = self._config
        place = self._place_names()
        return Verdict(
            task=self._task.id,
            outcome=outcome,
            reason=reason,
            message=message,
            source_hash=source_hash(self._files),
            provenance=Provenance(
                kernelgym=__version__,
                torch=str(torch.__version__),
                device=place.device,
                protocol=config.protocol,
                ruleset=config.ruleset,
                precision=config.precision,
                size=self._size,
                mode="train" if self._train else "eval",
                driver=place.driver,
                cuda=place.cuda,
                compiler=place.compiler,
                salt_commitment=self._salt.commitment,
                protection=config.protection,
                protections=self._checker.protections if self._checker else (),
            ),
            diagnostics=tuple(diagnostics),
            build=self._build_record(),
            correctness=correctness,
            timing=timing,
            counters=counters,
            coverage=coverage,
            peak_memory=self._checker.peak_memory if self._checker else None,
            output=self._output,
            seconds=tuple(self._seconds.items()),
        )

    def _place_names(self) -> PlaceNames:
        return PlaceNames("emulator", self._service.emulator().compiler)

    def _build_record(self) -> Build | None:
        if not self._builds:
            return None
        last = self._builds[-1]
        # The instrumented run asks for the same builds again; the first answers count.
        first = list({result.key: result for result in reversed(self._builds)}.values())
        return Build(
            path=last.path,
            cached=all(result.cached for result in first),
            key=last.key,
            why=last.why,
            kernels=tuple(kernel for result in first for kernel in result.kernels),
            warnings=tuple(
                d for result in first for d in result.diagnostics if d.severity == "warning"
            ),
        )


def _remove(folder: pathlib.Path) -> None:
    """Removes a scratch folder, however deep a candidate has made it."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        subprocess.run(["rm", "-rf", "--", str(folder)], check=False)


def _modelled(seconds: float) -> Measurement:
    return Measurement(seconds, seconds, seconds, 0, "modelled")


def _ratio(baseline: float, seconds: float) -> Speedup:
    value = baseline / seconds
    return Speedup(value, value, value)
