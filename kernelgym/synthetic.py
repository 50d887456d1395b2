"""`KernelSynth-v0`: the environment on synthesised tasks, from a file or made on the spot."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from kernelgym.env import KernelEnv
from kernelgym.errors import ConfigError
from kernelgym.vector import KernelVectorEnv

if TYPE_CHECKING:
    from kernelgym.tasks import Task

__all__ = ["make_env", "make_vector_env"]

_SPLITS = ("train", "heldout")


def make_env(
    tasks: str | os.PathLike[str] | None = None,
    split: str = "train",
    *,
    count: int = 16,
    tasks_seed: int = 0,
    **kwargs: Any,
) -> KernelEnv:
    """Makes a `KernelEnv` on synthesised tasks; `reset` picks among them.

    Args:
        tasks: A file that `kernelgym tasks synthesize` wrote. None makes a small set here, in
            about ten seconds the first time; its tasks pass every filter but compilation.
        split: `"train"` or `"heldout"`.
        count: How many tasks to make where there is no file.
        tasks_seed: Determines the tasks made.
        **kwargs: As for `KernelEnv`, but for `task`.

    Raises:
        ConfigError: An argument is not accepted.
        TaskFormatError: A line of the file is not a task; the message gives its number.
        UsageError: The file has no task of that split.
    """
    if "task" in kwargs:
        raise ConfigError("task: expected no such argument, the tasks are synthesised ones")
    return KernelEnv(list(_tasks(tasks, split, count, tasks_seed)), **kwargs)


def make_vector_env(
    num_envs: int,
    tasks: str | os.PathLike[str] | None = None,
    split: str = "train",
    *,
    count: int = 16,
    tasks_seed: int = 0,
    **kwargs: Any,
) -> KernelVectorEnv:
    """Makes a `KernelVectorEnv` on synthesised tasks; arguments as for `make_env`."""
    chosen = list(_tasks(tasks, split, count, tasks_seed))
    return KernelVectorEnv(num_envs, task=chosen, **kwargs)


def _tasks(
    path: str | os.PathLike[str] | None, split: str, count: int, seed: int
) -> tuple[Task, ...]:
    if split not in _SPLITS:
        raise ConfigError(f"split: expected one of {', '.join(_SPLITS)}, got {split!r}")
    if path is None:
        return _made(count, seed, split)
    from kernelgym.tasks.records import read_tasks

    return read_tasks(os.fspath(path), split)


@functools.lru_cache(maxsize=8)
def _made(count: int, seed: int, split: str) -> tuple[Task, ...]:
    from kernelgym.judge.synthesis import sample

    return sample(count, seed, split)
