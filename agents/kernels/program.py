"""The way in: a task's text becomes a program of plans, which renders with any choice of knobs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from kernelgym.agents.kernels.kernel import Knob
from kernelgym.agents.kernels.lowering import lower
from kernelgym.agents.kernels.plan import Plan
from kernelgym.agents.kernels.render import render
from kernelgym.agents.kernels.trace import read_source, trace

__all__ = ["CompiledProgram", "compile_program"]


@dataclasses.dataclass(frozen=True)
class CompiledProgram:
    """A task, lowered to kernels.

    Attributes:
        source: The reference program.
        plans: One, or those of training and of evaluation mode where they differ.
    """

    source: str
    plans: tuple[Plan, ...]

    def knobs(self) -> dict[str, Knob]:
        """All choices, under `"<plan>.<kernel>.<knob>"`."""
        return {
            f"{plan.name}.{name}": knob
            for plan in self.plans
            for name, knob in plan.knobs().items()
        }

    def render(self, choice: Mapping[str, int | str] | None = None) -> str:
        """The text of `model_new.py`.

        Args:
            choice: Choices for some knobs; the others take their first one.
        """
        return render(self.source, self.plans, choice or {})


def compile_program(task: str) -> CompiledProgram:
    """Traces and lowers a program in KernelBench's form, in both of the model's modes.

    Args:
        task: An observation's `task`, or the program itself. It is run: it must be trusted.

    Raises:
        TaskFormatError: There is no program in it, or it cannot be traced.
        UnsupportedOperator: There is no kernel for one of its operators.
    """
    source = read_source(task)
    training, evaluation = trace(source, training=True), trace(source, training=False)
    if str(training.graph) == str(evaluation.graph):
        return CompiledProgram(source, (lower(training, "forward"),))
    plans = (lower(training, "forward_train"), lower(evaluation, "forward_eval"))
    return CompiledProgram(source, plans)
