"""Synthesis of training tasks: compositions of torch's operators, in KernelBench's form.

This package makes candidates and compares texts; it runs nothing and imports no torch. Which of
them are fit is decided by `kernelgym.judge.synthesis`.
"""

from kernelgym.tasks.synthesis.compose import (
    CUDA_AGENT_LENGTHS,
    OPERATORS,
    compose,
    compositions,
)
from kernelgym.tasks.synthesis.composition import HELD_OUT, TRAIN, Composition, split_of
from kernelgym.tasks.synthesis.operator import Operator
from kernelgym.tasks.synthesis.similarity import closest, similarity, syntax_tokens
from kernelgym.tasks.synthesis.values import BATCH

__all__ = [
    "BATCH",
    "CUDA_AGENT_LENGTHS",
    "HELD_OUT",
    "OPERATORS",
    "TRAIN",
    "Composition",
    "Operator",
    "closest",
    "compose",
    "compositions",
    "similarity",
    "split_of",
    "syntax_tokens",
]
