"""kernelgym: a Gymnasium environment in which agents edit CUDA code and are judged by what runs.

Importing it registers the environment ids with Gymnasium, and does nothing else; everything heavier
is imported when it is first used.

Example:
    >>> import gymnasium as gym
    >>> import kernelgym
    >>> env = gym.make("KernelBench-L1-v0")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kernelgym._version import __version__
from kernelgym.registration import register_all as _register_all

if TYPE_CHECKING:
    from kernelgym.budget import Budget, Usage
    from kernelgym.client import Client
    from kernelgym.config import JudgeConfig
    from kernelgym.env import KernelEnv
    from kernelgym.errors import EnvironmentFault, KernelGymError, UsageError
    from kernelgym.evaluation import Evaluation, evaluate_agent
    from kernelgym.judge.judge import Judge, evaluate
    from kernelgym.judge.pool import JudgePool, aevaluate, evaluate_many
    from kernelgym.judge.verdict import Outcome, Verdict
    from kernelgym.runner import EpisodeResult, run_episode
    from kernelgym.vector import KernelVectorEnv, make_vec
    from kernelgym.workspace import Workspace

__all__ = [
    "Budget",
    "Client",
    "EnvironmentFault",
    "EpisodeResult",
    "Evaluation",
    "Judge",
    "JudgeConfig",
    "JudgePool",
    "KernelEnv",
    "KernelGymError",
    "KernelVectorEnv",
    "Outcome",
    "Usage",
    "UsageError",
    "Verdict",
    "Workspace",
    "__version__",
    "aevaluate",
    "evaluate",
    "evaluate_agent",
    "evaluate_many",
    "make_vec",
    "run_episode",
]

_HOMES = {
    "Budget": "budget",
    "Client": "client",
    "EnvironmentFault": "errors",
    "EpisodeResult": "runner",
    "Evaluation": "evaluation",
    "Judge": "judge.judge",
    "JudgeConfig": "config",
    "JudgePool": "judge.pool",
    "KernelEnv": "env",
    "KernelGymError": "errors",
    "KernelVectorEnv": "vector",
    "Outcome": "judge.verdict",
    "Usage": "budget",
    "UsageError": "errors",
    "Verdict": "judge.verdict",
    "Workspace": "workspace",
    "aevaluate": "judge.pool",
    "evaluate": "judge.judge",
    "evaluate_agent": "evaluation",
    "evaluate_many": "judge.pool",
    "make_vec": "vector",
    "run_episode": "runner",
}

_register_all()


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
