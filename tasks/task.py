"""`Task`: a reference PyTorch program to beat, at each of its sizes."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import types
from typing import TYPE_CHECKING, Any

from kernelgym.errors import TaskFormatError, UsageError
from kernelgym.tasks import format as task_format

if TYPE_CHECKING:
    import torch

    from kernelgym.tasks.facts import Facts
    from kernelgym.tasks.laws import InputSpec

__all__ = ["Task", "load_file"]


@dataclasses.dataclass(frozen=True)
class Task:
    """A reference program in KernelBench's form, with what the judge knows about it.

    A task is text and nothing else until `module` is called: making one neither runs it nor imports
    torch, and it can be pickled.

    Attributes:
        id: `"L1/19"` for one of KernelBench's, otherwise the file's stem.
        level: KernelBench's level, 0 for a task from elsewhere.
        number: Its number in the level, 0 for a task from elsewhere.
        name: Its name in KernelBench, such as `"ReLU"`.
        path: The file it was read from.
        text: That file's text, with every preset and the judge's statements.
    """

    id: str
    level: int
    number: int
    name: str
    path: str
    text: str = dataclasses.field(repr=False)

    @functools.cached_property
    def file(self) -> task_format.TaskFile:
        """The text, parsed.

        Raises:
            TaskFormatError: The text is not in the form of a task file.
        """
        return task_format.parse(self.text, self.path)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes with a preset of their own; one without presets has `full` only.

        A size that is not listed means the next larger one that is: `medium` is left out where
        `full` fits a card of 16 GB.
        """
        return tuple(size for size in task_format.SIZES if size in self.file.presets) or ("full",)

    def source(self, size: str = "full") -> str:
        """The program for one size as a stand-alone file: what an agent is shown.

        Raises:
            UsageError: No such size.
        """
        return self.file.source(self._preset(size))

    def module(self, size: str = "full") -> types.ModuleType:
        """Runs the program for one size as a module of its own, registered nowhere.

        The module has `Model`, `get_inputs` and `get_init_inputs`. Its line numbers are those of
        the file.

        Raises:
            UsageError: No such size.
        """
        code = self.file.code(self._preset(size))
        module = types.ModuleType(f"{self.id}[{size}]")
        module.__file__ = self.path
        exec(code, module.__dict__)
        return module

    def input_specs(self, size: str = "full") -> tuple[InputSpec, ...]:
        """Shape, dtype and law of each input, found without allocating any.

        Raises:
            UsageError: No such size.
            TaskFormatError: `get_inputs` fails, or gives more values than `forward` takes; or the
                file states a law that is not one.
        """
        from kernelgym.tasks import facts

        return facts.input_specs(self, self._preset(size))

    def draw_inputs(
        self,
        size: str,
        seed: int,
        index: int = 0,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | None = None,
    ) -> list[Any]:
        """Draws the positional arguments of `Model.forward` from their laws.

        Args:
            size: Which shapes.
            seed: Determines every value, together with `index` and the kind of device.
            index: Number of the draw, from 0; laws change with it: see `kernelgym.tasks.laws`.
            device: Where the tensors are made.
            dtype: Type of floating-point inputs; None for that of `get_inputs`.

        Raises:
            UsageError: No such size.
        """
        from kernelgym.tasks import laws

        return laws.draw_inputs(self, self._preset(size), seed, index, device, dtype)

    def perturb(self, model: torch.nn.Module, size: str, seed: int) -> None:
        """Moves a model's parameters off their constructed values, in place.

        The noise follows from the state's keys, shapes and `seed`, whatever the device.

        Args:
            model: A `Model` of `module(size)`, or any module with the same state keys.
            size: Which shapes.
            seed: Determines the noise.

        Raises:
            UsageError: No such size.
            TaskFormatError: The file has a law for a state key that the model lacks.
        """
        from kernelgym.tasks import weights

        weights.perturb(self, model, self._preset(size), seed)

    def facts(self, size: str = "full") -> Facts:
        """What the judge knows of the task at one size; nothing is allocated or computed.

        Raises:
            UsageError: No such size.
            TaskFormatError: The program fails, or asks for values while it runs.
        """
        from kernelgym.tasks import facts

        return facts.facts(self, self._preset(size))

    def _preset(self, size: str) -> str:
        """The size whose preset a size means."""
        if size not in task_format.SIZES:
            raise UsageError(f"size: expected one of {', '.join(task_format.SIZES)}, got {size!r}")
        return size if size in self.sizes else "full"

    def judge_statement(self, name: str, default: Any) -> Any:
        """The value of one of the file's statements for the judge, or the default."""
        return self.file.judge.get(name, default)


def load_file(path: str | pathlib.Path) -> Task:
    """Reads any file in KernelBench's form as a task. It is parsed, not run.

    Raises:
        TaskFormatError: The file cannot be read, or lacks a part; the message says which.
    """
    path = pathlib.Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskFormatError(f"{path}: expected a readable Python file, got: {error}") from error
    task = Task(id=path.stem, level=0, number=0, name=path.stem, path=str(path), text=text)
    task_format.parse(text, str(path))
    return task
