"""Repairs of CUDA sources: what a verdict's diagnostics and mismatches suggest to change.

Every rule makes a small change at one place. `propose` orders them by how likely they are.
"""

from __future__ import annotations

from kernelgym.agents.fixes.fix import Fix
from kernelgym.agents.fixes.propose import propose

__all__ = ["Fix", "propose"]
