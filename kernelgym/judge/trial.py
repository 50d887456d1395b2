"""Running a task's reference a few times, to see whether it can be judged.

For processes that may be lost: the program may be anyone's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from kernelgym.judge.degenerate import Draw, degeneracy, float_outputs
from kernelgym.tasks import Task

__all__ = ["Trial", "gibibytes"]

_SEED = 0
_DRAWS = 5  # what the judge draws by default


def gibibytes(nbytes: float) -> str:
    """A number of bytes for a reader."""
    return f"{nbytes / 2**30:.2f} GiB"


class Trial:
    """A task's reference at one size, constructed under a fixed seed.

    Args:
        task: The task.
        size: Its preset.
        train: Whether it runs in train mode.

    Raises:
        Exception: Whatever the task's program raises.
    """

    def __init__(self, task: Task, size: str, *, train: bool) -> None:
        self._task = task
        self._size = size
        module = task.module(size)
        with _seeded(_SEED):
            self.model: torch.nn.Module = module.Model(*module.get_init_inputs()).train(train)
        self._state = {key: value.clone() for key, value in self.model.state_dict().items()}

    def inputs(self, seed: int, index: int) -> list[Any]:
        """The inputs of one draw; see `Task.draw_inputs`."""
        return self._task.draw_inputs(self._size, seed, index)

    def run(
        self,
        inputs: list[Any],
        seed: int = _SEED,
        program: Callable[[torch.nn.Module], Callable[..., Any]] = lambda model: model,
    ) -> Draw:
        """One forward pass from the constructed state and a seeded generator.

        Args:
            inputs: The positional arguments; they are copied first.
            seed: Seeds what the pass draws.
            program: Makes what is run from the model, such as `torch.compile()`.
        """
        self.model.load_state_dict(self._state)
        given = tuple(value for value in inputs if isinstance(value, torch.Tensor))
        arguments = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]
        with torch.no_grad(), _seeded(seed):
            return Draw(given, float_outputs(program(self.model)(*arguments)))

    def repeats(self) -> bool:
        """Whether two passes with the same inputs, differently seeded, give the same values."""
        inputs = self.inputs(_SEED, 0)
        first, second = self.run(inputs, 1), self.run(inputs, 2)
        return len(first.outputs) == len(second.outputs) and all(
            a.shape == b.shape and torch.allclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True)
            for a, b in zip(first.outputs, second.outputs, strict=True)
        )

    def degeneracy(self) -> str:
        """Why the outputs say nothing, or `""`: see `kernelgym.judge.degenerate`."""
        return degeneracy(
            [
                (self.run(self.inputs(1, index)), self.run(self.inputs(2, index)))
                for index in range(2)
            ],
            [self.run(self.inputs(1, index)) for index in range(2, _DRAWS)],
        )


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
