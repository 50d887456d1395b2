"""The candidate's side: runs the agent's code, in a process that is thrown away after.

Everything here is untrusted once `Import` has been answered: the agent's code shares the process.
The grader believes nothing that comes back but what it can check itself: output values in memory
that it reads, times on its own clock, builds that it made.
"""

from __future__ import annotations

import contextlib
import ctypes
import linecache
import os
import pathlib
import signal
import socket
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from kernelgym.judge import protocol
from kernelgym.judge.allocations import AllocationTracker
from kernelgym.judge.buffers import Buffer, dtype_name, named_dtype
from kernelgym.judge.device import (
    global_flags,
    open_buffer,
    restore_flags,
    set_arithmetic,
    settle,
)
from kernelgym.judge.emulated_cuda import emulated_cuda
from kernelgym.judge.gpu_call import CacheFlush, blocks_aside, profiled_call, timed_call
from kernelgym.judge.operators import OperatorRecorder
from kernelgym.judge.range_profiler import RangeProfiler
from kernelgym.judge.raw_memory import refuse_raw_memory
from kernelgym.judge.registrations import registered_before, replaced, replaced_operators
from kernelgym.judge.returned import Tail, is_tensor, plain_leaves
from kernelgym.judge.witness import OperatorWitness
from kernelgym.toolchain import inline
from kernelgym.toolchain.build import BuildRequest, BuildResult, SourceFile
from kernelgym.toolchain.confinement import confine
from kernelgym.toolchain.diagnostics import parse_python
from kernelgym.toolchain.emulator_runtime import EmulatorRuntime
from kernelgym.toolchain.sourcemap import SourceMap

__all__ = ["ENTRY_FILE", "main"]

ENTRY_FILE = "model_new.py"
_MAX_OUTPUT = 16 * 1024
_PR_SET_PDEATHSIG = 1
_copy_bytes = ctypes.memmove  # a candidate on the emulator has no ctypes


def main(connection: socket.socket) -> None:
    """Serves the grader's commands until it hangs up."""
    channel = protocol.Channel(connection)
    with contextlib.suppress(protocol.CandidateGone):
        setup, _ = channel.next_command()
        assert isinstance(setup, protocol.Setup)
        _Candidate(channel, setup).serve()


class _Candidate:
    """The state of one candidate's process."""

    def __init__(self, channel: protocol.Channel, setup: protocol.Setup) -> None:
        registered_before()
        self._channel = channel
        self._setup = setup
        self._device = torch.device(setup.device)
        self._defences = setup.defences
        self._output = Tail(_MAX_OUTPUT)
        self._model: Any = None
        self._module: types.ModuleType | None = None
        self._files: tuple[SourceFile, ...] = ()
        self._state: dict[str, torch.Tensor] = {}
        self._io: tuple[Buffer, ...] = ()
        self._flush: CacheFlush | None = None
        self._runtime = EmulatorRuntime(setup.runtime) if setup.runtime else None
        if self._runtime is not None:
            self._runtime.set_order(setup.order)
            self._runtime.set_access_budget(setup.access_budget)
        self._tracker = AllocationTracker(self._runtime) if self._runtime and setup.track else None
        self._protections: tuple[str, ...] = ()
        self._launched: tuple[str, ...] = ()
        self._restored = False
        self._flags = global_flags(self._device)
        self._changed_flags: tuple[str, ...] = ()

    def serve(self) -> None:
        """Answers commands until the channel closes."""
        self._confine()
        handlers: dict[type, Callable[..., protocol.Answer]] = {
            protocol.Begin: self._begin,
            protocol.Import: self._import,
            protocol.Construct: self._construct,
            protocol.LoadState: self._load_state,
            protocol.Run: self._run,
            protocol.Time: self._time,
            protocol.Profile: self._profile,
            protocol.Count: self._count,
            protocol.Repeat: self._repeat,
            protocol.FetchReport: self._report,
        }
        with (
            contextlib.redirect_stdout(self._output),
            contextlib.redirect_stderr(self._output),
            emulated_cuda()
            if self._device.type == "cpu"
            else contextlib.nullcontext() as self._cuda,
            self._tracker or contextlib.nullcontext(),
        ):
            while True:
                command, fds = self._channel.next_command()
                self._channel.reply(self._guarded(handlers[type(command)], command, fds))

    def _guarded(
        self,
        handler: Callable[..., protocol.Answer],
        command: protocol.Command,
        fds: tuple[int, ...],
    ) -> protocol.Answer:
        phase = type(command).__name__.lower()
        try:
            sizes = getattr(command, "sizes", ())
            buffers = [
                open_buffer(self._device, size, fd)
                for size, fd in zip(sizes, fds, strict=False)  # later runs send none again
            ]
            return handler(command, *buffers)
        except protocol.CandidateGone:
            raise
        except inline.BuildFailed as error:
            return protocol.Failed(
                phase, "BuildFailed", str(error), "", build=error.result, output=self._output.text()
            )
        except BaseException as error:  # SystemExit and KeyboardInterrupt are the candidate's too
            return self._failure(phase, error)

    def _failure(self, phase: str, error: BaseException) -> protocol.Failed:
        names = frozenset(file.path for file in self._files)
        summary = traceback.TracebackException.from_exception(error, limit=-30)
        for frame in list(summary.stack):
            if frame.filename not in names:
                summary.stack.remove(frame)
        text = "".join(summary.format())[-8192:]
        return protocol.Failed(
            phase,
            type(error).__name__,
            str(error)[:4096],
            text,
            diagnostics=parse_python(text, source_map=SourceMap(self._files)),
            output=self._output.text(),
        )

    def _write_files(self) -> None:
        root = pathlib.Path(self._setup.scratch)
        for file in self._files:
            path = root / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8", errors="surrogatepass")
            lines = file.text.splitlines(keepends=True)
            linecache.cache[file.path] = (len(file.text), None, lines, file.path)

    def _confine(self) -> None:
        # Files that are candidate's own streams: nothing of the grader's is left open.
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.closerange(3, self._channel.fileno())
        os.closerange(self._channel.fileno() + 1, 4096)
        os.chdir(self._setup.scratch)
        policy = self._setup.policy
        if policy is not None and self._defences.confinement:
            if policy.memory_bytes is not None:
                # Importing torch has mapped gigabytes already.
                with open("/proc/self/statm") as statm:
                    mapped = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
                policy = policy._replace(memory_bytes=policy.memory_bytes + mapped)
            self._protections = confine(policy)
        # Changing the uid has cleared it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def _build(self, request: BuildRequest) -> BuildResult:
        self._channel.reply(protocol.BuildAsked(request))
        command, _ = self._channel.next_command()
        assert isinstance(command, protocol.Built)
        return command.result

    # --- commands ----------------------------------------------------------------------------

    def _begin(self, command: protocol.Begin) -> protocol.Begun:
        if self._device.type == "cuda":
            set_arithmetic(command.precision)
            torch.cuda.set_device(self._device)
            torch.zeros(1, device=self._device)
            self._flags = global_flags(self._device)
        return protocol.Begun()

    def _import(self, command: protocol.Import) -> protocol.Imported:
        self._files = command.files
        self._write_files()
        installed = inline.install(
            self._build,
            target=self._setup.target,
            variant=self._setup.variant,
            files=self._files,
        )
        if self._device.type == "cpu" and self._defences.raw_memory:
            installed.open_library = refuse_raw_memory()
        source = next(f.text for f in self._files if f.path == ENTRY_FILE)
        sys.path.insert(0, self._setup.scratch)
        module = types.ModuleType("model_new")
        module.__file__ = ENTRY_FILE
        source = source.removeprefix("\N{BYTE ORDER MARK}")
        tempfile.tempdir = os.environ["TMPDIR"] = self._setup.scratch
        sys.modules["model_new"] = module
        exec(compile(source, ENTRY_FILE, "exec"), module.__dict__)
        if not isinstance(getattr(module, "ModelNew", None), type):
            raise AttributeError(f"{ENTRY_FILE}: expected a class ModelNew, found none")
        self._module = module
        return protocol.Imported(self._protections)

    def _construct(self, command: protocol.Construct) -> protocol.Constructed:
        assert self._module is not None
        torch.manual_seed(command.seed)
        model = self._module.ModelNew(*command.init_args)
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"ModelNew: expected an nn.Module, got {type(model).__name__}")
        dtype = named_dtype(command.dtype)
        if dtype is not torch.float32:
            model = model.to(dtype)
        self._model = model.to(self._device).train(command.train)
        state = model.state_dict()
        return protocol.Constructed(
            tuple(
                (key, tuple(value.shape), dtype_name(value.dtype)) for key, value in state.items()
            )
        )

    def _load_state(self, command: protocol.LoadState, buffer: Buffer) -> protocol.Loaded:
        self._state = {slot.name: buffer.tensor(slot) for slot in command.slots}
        self._model.load_state_dict(self._state, strict=False)
        return protocol.Loaded()

    def _run(self, command: protocol.Run, *buffers: Buffer) -> protocol.Ran:
        if buffers:
            self._io = buffers
        outputs = self._io[1]
        args = self._prepared(command)
        if self._tracker is not None and self._runtime is not None:
            self._runtime.reset()  # what was launched while the model was made is not this call's
            for index, value in enumerate(args):
                if isinstance(value, torch.Tensor):
                    # Its storage is the whole shared buffer, the gaps between tensors included.
                    self._tracker.register(value, f"input {index}", whole_storage=False)
        already = len(self._taken_to_host())
        recorder = OperatorRecorder((file.path for file in self._files), replaced)
        witness = OperatorWitness() if self._tracker and self._defences.witness else None
        before = self._allocated()
        started = time.perf_counter()
        with (
            torch.no_grad(),
            witness or contextlib.nullcontext(),
            recorder,
            self._watched(idle=command.idle),
        ):
            result = self._model(*args)
            settle(self._device)
        seconds = time.perf_counter() - started
        peak = max(self._allocated(peak=True) - before, 0)
        infos = self._hand_over(result, args, command.outputs, outputs)
        operators = tuple(
            protocol.Operator(c.name, c.file, c.line, c.nbytes, c.flops, c.kind)
            for c in recorder.calls
            if c.kind != "view"
        ) + tuple(
            protocol.Operator(f"Tensor.{name}", "", 0, 0, 0, "host")
            for name in self._taken_to_host()[already:]
        )
        if witness is not None:
            # Kernels above the recorder's place in the dispatcher run before it sees anything.
            hidden = (*witness.hidden, *witness.unrecorded(recorder.calls), *replaced_operators())
            if witness.interrupted:
                hidden = ("an operator after the profiler was stopped", *hidden)
            operators += tuple(protocol.Operator(name, "", 0, 0, 0, "hidden") for name in hidden)
        return protocol.Ran(infos, operators, seconds, peak, self._changed_flags)

    def _time(self, command: protocol.Time) -> protocol.Timed:
        args = self._prepared(command)
        call = (lambda: self._model(*args)) if command.call else (lambda: None)
        if self._flush is None:
            self._flush = CacheFlush(self._device, command.flush_bytes)
        sizes = [slot.nbytes for slot in command.outputs]
        aside = blocks_aside(self._device, sizes, command.aside)
        result, seconds, host_seconds = timed_call(call, self._device, self._flush)
        del aside
        infos: tuple[protocol.OutputInfo, ...] = ()
        if command.call:
            infos = self._hand_over(result, args, command.outputs, self._io[1])
        return protocol.Timed(seconds, host_seconds, infos)

    def _profile(self, command: protocol.Profile) -> protocol.Profiled:
        args = self._prepared(command)
        kernels, self._launched = profiled_call(lambda: self._model(*args), self._device)
        return protocol.Profiled(kernels)

    @torch.no_grad()
    def _count(self, command: protocol.Count) -> protocol.Counted:
        args = self._prepared(command)
        settle(self._device)
        counts = RangeProfiler(command.plan).count(
            lambda: self._model(*args), lambda: settle(self._device), self._launched
        )
        launches = tuple(protocol.CountedLaunch(one.name, one.values) for one in counts.launches)
        return protocol.Counted(launches, counts.complete, counts.seconds)

    @torch.no_grad()
    def _repeat(self, command: protocol.Repeat) -> protocol.Repeated:
        args = self._prepared(command)
        for _ in range(command.calls):
            self._model(*args)
        settle(self._device)
        return protocol.Repeated()

    def _report(self, command: protocol.FetchReport) -> protocol.Report:
        assert self._runtime is not None
        return protocol.Report(self._runtime.report())

    # --- helpers -----------------------------------------------------------------------------

    def _prepared(
        self,
        command: protocol.Run | protocol.Time | protocol.Profile | protocol.Count | protocol.Repeat,
    ) -> list[Any]:
        """`forward`'s arguments, with weights and random numbers as they are before each call."""
        self._restore_state()
        self._changed_flags = restore_flags(self._device, self._flags)
        torch.manual_seed(command.seed)
        return [
            self._io[0].tensor(value) if isinstance(value, protocol.TensorSlot) else value
            for value in command.inputs
        ]

    @torch.no_grad()
    def _restore_state(self) -> None:
        """Puts the weights back without a call of anything that the candidate could override."""
        module = torch.nn.Module
        if self._restored and not self._defences.restored_state:
            return
        self._restored = True
        own: dict[str, torch.Tensor] = {}
        own.update(module.named_parameters(self._model, remove_duplicate=False))
        own.update(module.named_buffers(self._model, remove_duplicate=False))
        for key, value in self._state.items():
            torch.Tensor.copy_(own[key], value)

    def _taken_to_host(self) -> list[str]:
        """Calls that brought values to the host, on the emulator; on a GPU the recorder sees them."""
        return self._cuda.to_host if self._cuda is not None else []

    def _allocated(self, peak: bool = False) -> int:
        """Bytes of torch's on the GPU now, or at most since the last call without `peak`."""
        if self._device.type == "cpu":
            return 0
        if peak:
            return torch.cuda.max_memory_allocated(self._device)
        torch.cuda.reset_peak_memory_stats(self._device)
        return torch.cuda.memory_allocated(self._device)

    def _watched(self, *, idle: bool) -> contextlib.AbstractContextManager[None]:
        """In an instrumented run, finds host code that touches tensors inside the block."""
        if self._runtime is None:
            return contextlib.nullcontext()
        watch = self._tracker is not None and self._defences.host_guard
        return self._runtime.call(watched=watch, idle=idle)

    def _hand_over(
        self,
        result: Any,
        args: list[Any],
        slots: tuple[protocol.TensorSlot, ...],
        buffer: Buffer,
    ) -> tuple[protocol.OutputInfo, ...]:
        """Copies what `forward` returned into the grader's buffer, where it fits."""
        ranges = [
            (a.data_ptr(), a.data_ptr() + a.numel() * a.element_size())
            for a in args
            if isinstance(a, torch.Tensor)
        ]
        infos = []
        plain = self._defences.plain_outputs
        leaves = plain_leaves(result) if plain else tree_leaves(result)
        for index, value in enumerate(leaves):
            if not is_tensor(value, plain=plain):
                name = type(value).__name__
                infos.append(protocol.OutputInfo(name, (), "", (), False, False))
                continue
            if self._device.type != "cpu" and value.device != self._device:
                kind = f"a tensor on {value.device}"
                infos.append(protocol.OutputInfo(kind, (), "", (), False, False))
                continue
            shape, dtype = tuple(value.shape), dtype_name(value.dtype)
            slot = slots[index] if index < len(slots) else None
            fits = slot is not None and slot.shape == shape and slot.dtype == dtype
            if fits and slot is not None and slot.nbytes:
                target = buffer.tensor(slot)
                if self._device.type == "cpu":
                    source = value.detach().contiguous()
                    _copy_bytes(target.data_ptr(), source.data_ptr(), slot.nbytes)
                else:
                    target.copy_(value.detach())
            pointer = value.data_ptr() if value.numel() else 0
            aliases = any(low <= pointer < high for low, high in ranges)
            infos.append(
                protocol.OutputInfo("Tensor", shape, dtype, value.stride(), aliases, bool(fits))
            )
        settle(self._device)
        return tuple(infos)
