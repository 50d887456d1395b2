"""Registers the environment ids with Gymnasium."""

from __future__ import annotations

import gymnasium as gym

__all__ = ["ENV_IDS", "register_all"]

ENV_IDS = {
    "KernelBench-L1-v0": {"task": "L1"},
    "KernelBench-L2-v0": {"task": "L2"},
    "KernelBench-L3-v0": {"task": "L3"},
    "Kernel-v0": {},
    "KernelSynth-v0": {},
}
"""Ids and the arguments they stand for; `Kernel-v0` wants `task=`."""

_ENTRY_POINTS = {
    "KernelSynth-v0": ("kernelgym.synthetic:make_env", "kernelgym.synthetic:make_vector_env"),
}
_DEFAULT_ENTRY_POINTS = ("kernelgym.env:KernelEnv", "kernelgym.vector:KernelVectorEnv")


def register_all() -> None:
    """Registers every id, once."""
    for env_id, kwargs in ENV_IDS.items():
        if env_id not in gym.registry:
            entry_point, vector_entry_point = _ENTRY_POINTS.get(env_id, _DEFAULT_ENTRY_POINTS)
            gym.register(
                env_id,
                entry_point=entry_point,
                vector_entry_point=vector_entry_point,
                nondeterministic=True,  # times are measured, inputs salted
                kwargs=dict(kwargs),
            )
