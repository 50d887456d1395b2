"""`Judge`: a task and a workspace come in, a verdict goes out.

screen → build → check → time → count, the last four with the candidate in a process of its own.
On the emulator a judgement uses two candidate processes: one runs the plain binary for all draws of
the check, one the instrumented binary once, in another order of threads, for memory errors, races
and counts, from which times are modelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any

from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault
from kernelgym.judge.defences import ALL_DEFENCES, Defences
from kernelgym.judge.device import build_target, gpu_facts, resolve_device
from kernelgym.judge.emulated_judgement import EmulatedJudgement
from kernelgym.judge.gpu_judgement import GpuJudgement, gpu_standby
from kernelgym.judge.prebuild import prebuild
from kernelgym.judge.process import Zygote
from kernelgym.judge.sources import find_task, workspace_files
from kernelgym.judge.standby import Standby
from kernelgym.judge.verdict import Verdict
from kernelgym.tasks import Task
from kernelgym.toolchain.service import BuildService

__all__ = ["Judge", "evaluate"]


class Judge:
    """Judges candidates under one configuration; a context manager.

    It keeps a standby process and a build service between verdicts, so one judge for many verdicts
    is much faster than many. Safe to use from several threads.

    Args:
        config: How to judge.
        service: Build service to share; one of its own by default.
        defences: For tests of the judge alone: which of its defences are in force.

    Raises:
        ConfigError: The configuration asks for a device that is not there.
    """

    def __init__(
        self,
        config: JudgeConfig | None = None,
        *,
        service: BuildService | None = None,
        defences: Defences = ALL_DEFENCES,
    ) -> None:
        self.config = config or JudgeConfig()
        self.device = resolve_device(self.config.device)
        self.size = self._size_of(self.config)
        self._owns_service = service is None
        self._service = service or BuildService(protection=self.config.protection)
        self._zygote = Zygote()
        self._defences = defences
        self._standby: Standby | None = None
        if self.device.type == "cuda":
            self._standby = gpu_standby(
                self.config, self.device, self._service, self._zygote, defences=defences
            )
            self._standby.refill()
            self._service.start(build_target(self.device))

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Judge:
        """The judge itself: Gymnasium copies an environment's arguments, and processes cannot be."""
        return self

    @property
    def device_name(self) -> str:
        """The device as a verdict's provenance names it."""
        return "emulator" if self.device.type == "cpu" else gpu_facts(self.device).name

    @property
    def losses(self) -> int:
        """How often the standby process has ended; what was judged meanwhile says nothing."""
        return self._zygote.losses

    def evaluate(
        self, task: Task | str, workspace: Any, *, config: JudgeConfig | None = None
    ) -> Verdict:
        """Judges one candidate.

        Args:
            task: A task, its id, or the path of a file in KernelBench's form.
            workspace: A `Workspace`, a mapping from path to text, or the text of `model_new.py`.
            config: In place of the judge's own; the device stays the judge's.

        Returns:
            The verdict; whatever the candidate does ends in one.

        Raises:
            UsageError: The task is unknown or the workspace is no workspace.
            EnvironmentFault: The harness, the machine or the reference failed.
        """
        config = config or self.config
        task, files, size = find_task(task), workspace_files(workspace), self._size_of(config)
        if self._standby is None:
            return EmulatedJudgement(
                task, files, config, size, self.device, self._service, self._zygote, self._defences
            ).verdict()
        standby = self._standby
        if config != self.config:
            standby = gpu_standby(
                config, self.device, self._service, self._zygote, count=0, defences=self._defences
            )
        return GpuJudgement(
            task, files, config, size, self.device, self._service, standby, self._defences
        ).verdict()

    def prepare(self, workspace: Any, *, config: JudgeConfig | None = None) -> None:
        """Has compiled what a candidate is going to ask for, so that its judgement finds it ready.

        It needs no GPU and may go on while another candidate is timed. It may fail to foresee a
        build; the judgement then makes it. On the emulator, where nothing waits for compilers,
        it does nothing.

        Args:
            workspace: As for `evaluate`.
            config: As for `evaluate`.

        Raises:
            UsageError: The workspace is no workspace.
        """
        files = workspace_files(workspace)
        if self.device.type != "cpu":
            target = build_target(self.device)
            prebuild(files, config or self.config, target, self._service, self._zygote)

    def evaluate_many(
        self, jobs: Iterable[tuple[Task | str, Any]], *, workers: int | None = None
    ) -> list[Verdict | EnvironmentFault]:
        """Judges a batch; see `kernelgym.evaluate_many`."""
        from kernelgym.judge.pool import evaluate_many

        return evaluate_many(jobs, judge=self, workers=workers)

    def _size_of(self, config: JudgeConfig) -> str:
        if config.size != "auto":
            return config.size
        return "small" if self.device.type == "cpu" else "full"

    def close(self) -> None:
        """Ends the processes that are kept ahead. Calling it twice is fine."""
        if self._standby is not None:
            self._standby.close()
        self._zygote.close()
        if self._owns_service:
            self._service.close()


def evaluate(task: Task | str, source_or_files: Any, **config: Any) -> Verdict:
    """Judges one candidate with a judge of its own.

    Args:
        task: A task, its id, or a path.
        source_or_files: Text of `model_new.py`, a mapping from path to text, or a `Workspace`.
        **config: Fields of `JudgeConfig`.

    Example:
        >>> verdict = evaluate("L1/19", open("model_new.py").read())  # doctest: +SKIP
    """
    with Judge(JudgeConfig(**config)) as judge:
        return judge.evaluate(task, source_or_files)
