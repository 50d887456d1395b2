"""What the trusted grader and the untrusted candidate process say to each other.

The grader leads: it sends one command and waits for its answer; in between the candidate may ask
for builds. Commands are pickled (the grader is trusted by the candidate); answers are JSON of the
types below and nothing else, bounded in length, because whatever comes from the candidate's
process may be a lie.
"""

from __future__ import annotations

import dataclasses
import pickle
import socket
import struct
import time
from typing import Annotated, Any

import msgspec

from kernelgym.judge.counting_protocol import (
    Count,
    Counted,
    CountedLaunch,
    Repeat,
    Repeated,
)
from kernelgym.judge.defences import ALL_DEFENCES, Defences
from kernelgym.toolchain.build import BuildRequest, BuildResult, Diagnostic, SourceFile
from kernelgym.toolchain.confinement import Policy

__all__ = [
    "Answer",
    "Begin",
    "Begun",
    "BuildAsked",
    "Built",
    "CandidateGone",
    "CandidateTimeout",
    "Channel",
    "Command",
    "Construct",
    "Constructed",
    "Count",
    "Counted",
    "CountedLaunch",
    "Failed",
    "FetchReport",
    "Import",
    "Imported",
    "KernelTime",
    "LoadState",
    "Loaded",
    "Operator",
    "OutputInfo",
    "Profile",
    "Profiled",
    "Ran",
    "Repeat",
    "Repeated",
    "Report",
    "Run",
    "Setup",
    "TensorSlot",
    "Time",
    "Timed",
]

_SEND_SECONDS = 10.0
MAX_ANSWER_BYTES = 64 * 2**20
_HEADER = struct.Struct("<Q")


class CandidateTimeout(Exception):
    """The candidate did not answer in time."""


class CandidateGone(Exception):
    """The candidate's process has ended, or spoke something that is not the protocol."""


@dataclasses.dataclass(frozen=True)
class TensorSlot:
    """Where a tensor lies in a shared buffer: offset and size in bytes; `dtype` as `"float32"`."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    offset: int
    nbytes: int


# --- commands, grader to candidate -----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Setup:
    """Comes first: how to run whatever will come."""

    target: str
    variant: str
    scratch: str
    policy: Policy | None = None
    runtime: str = ""
    order: int = 0
    access_budget: int = 0
    track: bool = False
    device: str = "cpu"
    defences: Defences = ALL_DEFENCES


@dataclasses.dataclass(frozen=True)
class Begin:
    """Open the device; on a GPU it comes before anything of the candidate's runs.

    `precision` is the class that torch's own products are computed in there.
    """

    precision: str = "default"


@dataclasses.dataclass(frozen=True)
class Import:
    """Import `model_new.py`, one of these files."""

    files: tuple[SourceFile, ...]


@dataclasses.dataclass(frozen=True)
class Construct:
    """Construct `ModelNew(*init_args)` under a seed, in train or eval mode."""

    init_args: tuple[Any, ...]
    seed: int
    train: bool
    dtype: str = "float32"


@dataclasses.dataclass(frozen=True)
class LoadState:
    """The reference's state lies in the buffer sent along; load it before every run.

    `sizes` are the bytes of each buffer sent along.
    """

    slots: tuple[TensorSlot, ...]
    sizes: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Run:
    """Run `forward` once.

    `inputs` are slots in the first buffer sent along, or plain values; outputs go to their slots in
    the second. Where none are sent, the buffers of the run before are used again. `sizes` are the
    bytes of each buffer sent along. With `idle`, launches and library calls on the emulator leave
    everything as it is.
    """

    inputs: tuple[Any, ...]
    seed: int
    outputs: tuple[TensorSlot, ...]
    sizes: tuple[int, ...] = ()
    idle: bool = False


@dataclasses.dataclass(frozen=True)
class Time:
    """Run `forward` once more, between two events, with the buffers of the run before.

    Comes with other inputs each time. `call=False` does all but the call: what that takes by the
    grader's clock is no time of the candidate's. So many blocks of the outputs' sizes are held
    `aside` during the call, so that its outputs lie elsewhere each time.
    """

    inputs: tuple[Any, ...]
    seed: int
    outputs: tuple[TensorSlot, ...]
    flush_bytes: int
    call: bool = True
    aside: int = 0


@dataclasses.dataclass(frozen=True)
class Profile:
    """Run `forward` once more and tell which kernels ran on the GPU."""

    inputs: tuple[Any, ...]
    seed: int


@dataclasses.dataclass(frozen=True)
class FetchReport:
    """Ask for the emulator's report."""


@dataclasses.dataclass(frozen=True)
class Built:
    """Answers `BuildAsked`."""

    result: BuildResult


Command = (
    Setup
    | Begin
    | Import
    | Construct
    | LoadState
    | Run
    | Time
    | Profile
    | Count
    | Repeat
    | FetchReport
    | Built
)


# --- answers, candidate to grader ------------------------------------------------------------


Whole = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class BuildAsked(msgspec.Struct, tag=True, frozen=True):
    """The candidate asks for a build; answered by `Built`."""

    request: BuildRequest


class Begun(msgspec.Struct, tag=True, frozen=True):
    """The device is open."""


class Imported(msgspec.Struct, tag=True, frozen=True):
    """`model_new.py` was imported. `protections` are those active in the process."""

    protections: tuple[str, ...] = ()


class Constructed(msgspec.Struct, tag=True, frozen=True):
    """`ModelNew` was constructed; its state as (key, shape, dtype)."""

    state: tuple[tuple[str, tuple[int, ...], str], ...]


class Loaded(msgspec.Struct, tag=True, frozen=True):
    """The state was loaded."""


class OutputInfo(msgspec.Struct, frozen=True):
    """What one returned tensor is. `written` says whether its values are in the output buffer."""

    kind: str
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    aliases_input: bool
    written: bool


class Operator(msgspec.Struct, frozen=True):
    """A torch operator that ran during `forward`, with the workspace line it came from."""

    name: str
    file: str
    line: Whole
    bytes: Whole
    flops: Whole
    # "create", "move", "compute", "host" (brought values to the host), or "hidden" (computed where
    # the recorder does not look)
    kind: str


class Ran(msgspec.Struct, tag=True, frozen=True):
    """`forward` returned. `changed_flags` names global settings that had to be put back before it."""

    outputs: tuple[OutputInfo, ...]
    operators: tuple[Operator, ...]
    seconds: float
    peak_memory: int
    changed_flags: tuple[str, ...] = ()


class Timed(msgspec.Struct, tag=True, frozen=True):
    """Seconds of one call between its events, and on the process's own clock."""

    seconds: float
    host_seconds: float
    outputs: tuple[OutputInfo, ...] = ()


class KernelTime(msgspec.Struct, frozen=True):
    """Launches of one kernel in one call: its name as the profiler has it, and device seconds."""

    name: str
    launches: int
    seconds: float


class Profiled(msgspec.Struct, tag=True, frozen=True):
    """What ran on the GPU in one call."""

    kernels: tuple[KernelTime, ...]


class Report(msgspec.Struct, tag=True, frozen=True):
    """The emulator's report, JSON text."""

    text: str


class Failed(msgspec.Struct, tag=True, frozen=True):
    """The candidate's code raised. `build` is set when it was a build that failed."""

    phase: str
    kind: str
    message: str
    traceback: str
    diagnostics: tuple[Diagnostic, ...] = ()
    build: BuildResult | None = None
    output: str = ""


Answer = (
    BuildAsked
    | Begun
    | Imported
    | Constructed
    | Loaded
    | Ran
    | Timed
    | Profiled
    | Counted
    | Repeated
    | Report
    | Failed
)
_DECODER: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


class Channel:
    """A stream socket that carries length-prefixed messages and file descriptors."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    # grader's side
    def command(self, message: Command, fds: tuple[int, ...] = ()) -> None:
        """Sends a command.

        Raises:
            CandidateGone: Nobody listens any more.
        """
        # One that does not read may not keep the grader waiting.
        self._socket.settimeout(_SEND_SECONDS)
        self._send(pickle.dumps(message), fds)

    def answer(self, timeout: float) -> Answer:
        """Waits for an answer.

        Raises:
            CandidateTimeout: None came in `timeout` seconds.
            CandidateGone: The other end closed, or sent something else than an answer.
        """
        deadline = time.monotonic() + timeout
        (length,) = _HEADER.unpack(self._receive(_HEADER.size, deadline))
        if length > MAX_ANSWER_BYTES:
            raise CandidateGone(f"expected at most {MAX_ANSWER_BYTES} bytes, {length} announced")
        try:
            return _DECODER.decode(self._receive(length, deadline))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CandidateGone(f"expected an answer, got {error}") from error

    # candidate's side
    def reply(self, message: Answer) -> None:
        """Sends an answer."""
        self._send(msgspec.json.encode(message), ())

    def next_command(self) -> tuple[Command, tuple[int, ...]]:
        """Waits for a command and the descriptors sent along.

        Raises:
            CandidateGone: The grader has closed the channel.
        """
        header, fds, _, _ = socket.recv_fds(self._socket, _HEADER.size, 8)
        while header and len(header) < _HEADER.size:
            header += self._socket.recv(_HEADER.size - len(header))
        if len(header) < _HEADER.size:
            raise CandidateGone("the grader closed the channel")
        (length,) = _HEADER.unpack(header)
        command = pickle.loads(self._receive(length, None))
        return command, tuple(fds)

    def _send(self, payload: bytes, fds: tuple[int, ...]) -> None:
        try:
            header = _HEADER.pack(len(payload))
            if fds:
                socket.send_fds(self._socket, [header], list(fds))
            else:
                self._socket.sendall(header)
            self._socket.sendall(payload)
        except OSError as error:
            raise CandidateGone(f"the channel is closed: {error}") from error

    def _receive(self, count: int, deadline: float | None) -> bytes:
        chunks = bytearray()
        while len(chunks) < count:
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise CandidateTimeout
                self._socket.settimeout(left)
            else:
                self._socket.settimeout(None)
            try:
                chunk = self._socket.recv(min(count - len(chunks), 2**20))
            except TimeoutError as error:
                raise CandidateTimeout from error
            except OSError as error:
                raise CandidateGone(str(error)) from error
            if not chunk:
                raise CandidateGone("the process closed the channel")
            chunks += chunk
        self._socket.settimeout(None)
        return bytes(chunks)
