"""One judgement, phase by phase."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from kernelgym._version import __version__
from kernelgym.config import JudgeConfig
from kernelgym.judge.check import Checker
from kernelgym.judge.defences import ALL_DEFENCES, Defences
from kernelgym.judge.device import build_target
from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.native_calls import refused_calls
from kernelgym.judge.reasons import REASONS
from kernelgym.judge.reference import Reference
from kernelgym.judge.salt import Salt
from kernelgym.judge.screen import Finding, screen
from kernelgym.judge.sources import source_hash
from kernelgym.judge.verdict import (
    Build,
    Correctness,
    Counters,
    Coverage,
    Diagnostic,
    Outcome,
    Provenance,
    SassSummary,
    Timing,
    Verdict,
)
from kernelgym.tasks import Task
from kernelgym.toolchain.build import BuildRequest, BuildResult, SourceFile
from kernelgym.toolchain.service import BuildService

__all__ = ["Judgement", "PlaceNames"]


class PlaceNames(NamedTuple):
    """What a verdict's provenance says of the device and the compiler."""

    device: str
    compiler: str
    cuda: str = ""
    driver: str = ""
    uuid: str = ""


class Judgement(abc.ABC):
    """Judges one workspace once; see `Judge.evaluate`. What differs by device is a subclass's."""

    def __init__(
        self,
        task: Task,
        files: tuple[SourceFile, ...],
        config: JudgeConfig,
        size: str,
        device: torch.device,
        service: BuildService,
        defences: Defences = ALL_DEFENCES,
    ) -> None:
        self._task = task
        self._files = files
        self._config = config
        self._size = size
        self._device = device
        self._service = service
        self._defences = defences
        self._salt = Salt.make(config.seed, task.id)
        self._builds: list[BuildResult] = []
        self._requests: list[BuildRequest] = []
        self._sass: tuple[SassSummary, ...] = ()
        self._seconds: dict[str, float] = {}
        self._checker: Checker | None = None
        self._train = True
        self._output = ""
        self._refusal: CheckFailed | None = None

    def verdict(self) -> Verdict:
        """Runs all phases.

        Raises:
            EnvironmentFault: The harness or the reference failed.
        """
        with self._phase("screen"):
            finding = self._screened()
        if finding is not None:
            return self._failed(
                CheckFailed(finding.reason, finding.message, diagnostics=finding.diagnostics)
            )
        with self._phase("reference"):
            reference = Reference(
                self._task, self._size, self._config, self._salt, self._device, self._defences
            )
            self._train = reference.train
            checker = Checker(reference, self._config, self._files, self._defences)
        self._checker = checker
        return self._judged(reference, checker)

    def _screened(self) -> Finding | None:
        defences = self._defences
        if not (defences.screen or defences.instrumentation):
            return None
        return screen(
            self._files,
            self._config.ruleset if defences.screen else "",
            emulated=self._device.type == "cpu" and defences.instrumentation,
        )

    @abc.abstractmethod
    def _judged(self, reference: Reference, checker: Checker) -> Verdict:
        """Checks, counts and times."""

    @abc.abstractmethod
    def _place_names(self) -> PlaceNames:
        """What provenance says of device and compiler."""

    # --- processes ---------------------------------------------------------------------------

    def _build(self, request: BuildRequest) -> BuildResult:
        # The candidate's word is taken for what to compile, and for files that it wrote itself, not
        # for the workspace.
        target = build_target(self._device)
        known = {file.path for file in self._files}
        written = tuple(file for file in request.files if file.path not in known)
        request = dataclasses.replace(request, files=(*self._files, *written), target=target)
        with self._phase("build"):
            result = self._service.build(request, timeout=self._config.build_timeout)
        self._builds.append(result)
        self._requests.append(request)
        return self._allowed(result)

    def _allowed(self, result: BuildResult) -> BuildResult:
        """The result, or a refusal when the library calls what no kernel has a use for."""
        if not self._defences.native_calls:
            return result
        calls = sorted({call for _, path in result.libraries for call in refused_calls(path)})
        if not calls:
            return result
        text = "the built library calls " + ", ".join(calls)
        self._refusal = CheckFailed("rule.native_call", text)
        problem = Diagnostic("", 0, 0, "error", text, tool="judge", code="rule.native_call")
        return dataclasses.replace(
            result, status="compile_error", libraries=(), diagnostics=(problem,)
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
        failure = self._refusal or failure
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
                protections=(
                    *(self._checker.protections if self._checker else ()),
                    *self._defences.missing(),
                ),
                device_uuid=place.uuid,
            ),
            diagnostics=(*diagnostics, *self._notices()),
            build=self._build_record(),
            correctness=correctness,
            timing=timing,
            counters=counters,
            coverage=coverage,
            peak_memory=self._checker.peak_memory if self._checker else None,
            output=self._output,
            seconds=tuple(self._seconds.items()),
        )

    def _notices(self) -> list[Diagnostic]:
        """What a reader should know, and nothing is decided by."""
        changed = self._checker.changed_flags if self._checker is not None else ()
        return [
            Diagnostic(
                "",
                0,
                0,
                "warning",
                f"torch's {name} was changed; it was put back before each call",
                tool="judge",
                code="flags.changed",
            )
            for name in changed
        ]

    def _build_record(self) -> Build | None:
        if not self._builds:
            return None
        # Of the tools that packages call, those that made no kernel say little.
        made = [result for result in self._builds if result.libraries or result.kernels]
        last = (made or self._builds)[-1]
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
            sass=self._sass,
        )
