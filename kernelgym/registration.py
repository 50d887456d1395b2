"""Registers the environment ids with Gymnasium."""

from __future__ import annotations

import gymnasium as gym

__all__ = ["ENV_IDS", "register_all"]

ENV_IDS = {
    "KernelBench-L1-v0": {"task": "L1"},
    "KernelBench-L2-v0": {"task": "L2"},
    "KernelBench-L3-v0": {"task": "L3"},
    "Kernel-v0": {},
}
"""Ids and the arguments they stand for; `Kernel-v0` wants `task=`."""


def register_all() -> None:
    """Registers every id, once."""
    for env_id, kwargs in ENV_IDS.items():
        if env_id not in gym.registry:
            gym.register(
                env_id,
                entry_point="kernelgym.env:KernelEnv",
                vector_entry_point="kernelgym.vector:KernelVectorEnv",
                nondeterministic=True,  # times are measured, inputs salted
                kwargs=dict(kwargs),
            )
