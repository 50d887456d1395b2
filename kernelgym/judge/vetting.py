"""Vetting one row after another inside the sandbox: `python -m kernelgym.judge.vetting ORDER`.

Started by `kernelgym.judge.vet`, confined. This process imports torch and runs no operator with
it, so that each row can be examined in a fork: a row that crashes, hangs or eats memory takes
nobody with it, and one row sees nothing of another.
"""

from __future__ import annotations

import contextlib
import enum
import os
import pathlib
import resource
import select
import signal
import sys
import time
import warnings

import msgspec
import torch

# Each row's first pass over fake tensors would import this, and spend more than a second on it.
import torch._dynamo

from kernelgym.errors import TaskFormatError
from kernelgym.judge.trial import Trial, gibibytes
from kernelgym.tasks import Task

__all__ = ["Finding", "Order", "Reason", "Row", "main", "vet_row", "warm_up"]

_MAX_MESSAGE = 500
_OWN_BYTES = 2**30  # what Python and torch write to themselves

_WARM_UP = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(4)]
def get_init_inputs():
    return []
"""


class Reason(enum.Enum):
    """Why a row cannot be judged."""

    FORMAT = "format"  # it is not a file in KernelBench's form
    IMPORT = "import"  # the file, or making its inputs or its model, raises
    SHAPES = "shapes"  # it does not run on tensors without values, or gives other shapes with them
    MEMORY = "memory"  # it needs more than there is
    RUN = "run"  # the forward pass raises
    DETERMINISM = "determinism"  # equal inputs give different outputs, in evaluation mode too
    DEGENERATE = "degenerate"  # an answer that computes nothing would pass
    TIMEOUT = "timeout"  # it takes too long
    CRASH = "crash"  # its process dies


class Row(msgspec.Struct, frozen=True):
    """A task on its way into the sandbox; the fields of `Task`."""

    id: str
    level: int
    number: int
    name: str
    path: str
    text: str

    def task(self) -> Task:
        """The task."""
        return Task(self.id, self.level, self.number, self.name, self.path, self.text)


class Order(msgspec.Struct, frozen=True):
    """What to do.

    Attributes:
        rows: The tasks.
        size: The preset that is run.
        memory: Bytes that a row may take.
        seconds: Wall-clock limit of a row.
    """

    rows: tuple[Row, ...]
    size: str
    memory: int
    seconds: float


class Finding(msgspec.Struct, frozen=True):
    """What was found about a row; no reason means that it is fit.

    Attributes:
        index: Which row of the order.
        reason: Why it is unfit, or None.
        message: What was expected and what came.
    """

    index: int
    reason: Reason | None = None
    message: str = ""


def vet_row(task: Task, size: str, memory: int) -> tuple[Reason | None, str]:
    """Examines one task in this process.

    Args:
        task: The task; its program is run.
        size: The preset.
        memory: Bytes that it may take.

    Returns:
        Why it is unfit, or None; and the message.
    """
    reason = Reason.FORMAT
    try:
        task.file  # noqa: B018 (parses)
        reason = Reason.IMPORT
        task.module(size)
        reason = Reason.SHAPES
        facts = task.facts(size)
        if not any(spec.dtype is not None for spec in task.input_specs(size)):
            return reason, "get_inputs: expected at least one tensor, got none"
        if not facts.outputs:
            return reason, "forward: expected at least one tensor, got none"
        reason = Reason.MEMORY
        if facts.memory_bytes > memory:
            needed = gibibytes(facts.memory_bytes)
            return reason, f"expected at most {gibibytes(memory)} at size {size}, needs {needed}"
        reason = Reason.RUN
        trial = Trial(task, size, train=not facts.stochastic)
        outputs = trial.run(trial.inputs(0, 0)).outputs
        reason = Reason.SHAPES
        shapes = tuple(tuple(value.shape) for value in outputs)
        expected = tuple(shape for shape, _ in facts.outputs)
        if shapes != expected and not facts.mode_matters:
            return reason, f"expected outputs of shape {expected} as without values, got {shapes}"
        reason = Reason.DETERMINISM
        if not trial.repeats():
            return reason, "expected equal outputs for equal inputs, got different ones"
        reason = Reason.DEGENERATE
        if why := trial.degeneracy():
            return reason, why
    except MemoryError as error:
        return Reason.MEMORY, f"expected at most {gibibytes(memory)}, got more: {error}"
    except TaskFormatError as error:
        if isinstance(error.__cause__, MemoryError):
            reason = Reason.MEMORY
        return reason, str(error)
    except BaseException as error:  # the program may be anyone's, and call sys.exit
        if "can't allocate memory" in str(error):  # torch's allocator says it so
            reason = Reason.MEMORY
        return reason, f"{type(error).__name__}: {error}"
    return None, ""


def warm_up() -> None:
    """Imports what the forks will need, and leaves one thread, so that forking is safe."""
    torch.set_num_threads(1)
    Task("warm-up", 0, 0, "", "warm-up", _WARM_UP).facts("full")


def main(order_path: str) -> None:
    """Vets the rows of an order, and writes a line of JSON about each to stdout."""
    warnings.simplefilter("ignore")  # the rows' own
    order = msgspec.json.decode(pathlib.Path(order_path).read_bytes(), type=Order)
    warm_up()
    for index, row in enumerate(order.rows):
        finding = _in_fork(index, row, order)
        sys.stdout.buffer.write(msgspec.json.encode(finding) + b"\n")
        sys.stdout.buffer.flush()


def _in_fork(index: int, row: Row, order: Order) -> Finding:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read)
            _examine(index, row, order, write)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    deadline = time.monotonic() + order.seconds
    data = b""
    timed_out = False
    with open(read, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                timed_out = True
                break
            block = pipe.read(2**16)
            if not block:
                break
            data += block
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if timed_out:
        return Finding(index, Reason.TIMEOUT, f"expected an end within {order.seconds:g} s")
    try:
        return msgspec.json.decode(data, type=Finding)
    except msgspec.DecodeError:
        number = os.waitstatus_to_exitcode(status)
        how = f"signal {-number}" if number < 0 else f"exit status {number}"
        return Finding(index, Reason.CRASH, f"expected an answer, the process ended with {how}")


def _examine(index: int, row: Row, order: Order, write: int) -> None:
    """Runs in the fork, away from the streams that the answers go through."""
    os.setpgid(0, 0)
    with open(os.devnull, "r+b") as nothing:
        for stream in (0, 1, 2):
            os.dup2(nothing.fileno(), stream)
    # What can be written to: the libraries that are mapped do not count.
    limit = order.memory + _OWN_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    reason, message = vet_row(row.task(), order.size, order.memory)
    finding = Finding(index, reason, message[:_MAX_MESSAGE])
    os.write(write, msgspec.json.encode(finding))


if __name__ == "__main__":
    main(sys.argv[1])
