"""`Judge`: a task and a workspace come in, a verdict goes out.

screen → build → check → time → count, the last four with the candidate in a process of its own.
On the emulator a judgement uses two candidate processes: one runs the plain binary for all draws of
the check, one the instrumented binary once, in another order of threads, for memory errors, races
and counts, from which times are modelled.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from kernelgym.config import JudgeConfig
from kernelgym.judge.defences import ALL_DEFENCES, Defences
from kernelgym.judge.device import resolve_device
from kernelgym.judge.emulated_judgement import EmulatedJudgement
from kernelgym.judge.gpu_judgement import GpuJudgement
from kernelgym.judge.process import Zygote
from kernelgym.judge.sources import find_task, workspace_files
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
        self.size = self.config.size
        if self.size == "auto":
            self.size = "small" if self.device.type == "cpu" else "full"
        self._service = service or BuildService(protection=self.config.protection)
        self._zygote = Zygote()
        self._defences = defences

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

    def evaluate(self, task: Task | str, workspace: Any) -> Verdict:
        """Judges one candidate.

        Args:
            task: A task, its id, or the path of a file in KernelBench's form.
            workspace: A `Workspace`, a mapping from path to text, or the text of `model_new.py`.

        Returns:
            The verdict; whatever the candidate does ends in one.

        Raises:
            UsageError: The task is unknown or the workspace is no workspace.
            EnvironmentFault: The harness, the machine or the reference failed.
        """
        kind = EmulatedJudgement if self.device.type == "cpu" else GpuJudgement
        return kind(
            find_task(task),
            workspace_files(workspace),
            self.config,
            self.size,
            self.device,
            self._service,
            self._zygote,
            self._defences,
        ).verdict()

    def close(self) -> None:
        """Ends the standby process. Calling it twice is fine."""
        self._zygote.close()


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
