"""The tolerances of the protocols that have a fixed one; needs no torch."""

from __future__ import annotations

__all__ = ["fixed_tolerance"]


def fixed_tolerance(protocol: str, precision: str) -> float | None:
    """The tolerance of a protocol that has a fixed one, else None."""
    if protocol == "kernelbench":
        return 1e-2 if precision in ("fp16", "bf16") else 1e-4
    if protocol == "cuda_agent":
        return 1e-2
    return None
