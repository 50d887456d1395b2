"""What `torch.cuda` and `device="cuda"` mean in a candidate's process on the emulator.

There a "CUDA" tensor is a CPU tensor, on which the emulated kernels work. Candidates are written
for a GPU, so asking for the device `cuda` gives the CPU, `tensor.is_cuda` is true, and the usual
calls of `torch.cuda` do what they would where everything is synchronous.
"""

from __future__ import annotations

import contextlib
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["CudaIsCpu", "emulated_cuda"]


def _names_the_cpu(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    devices = (*args[1:], kwargs.get("device"))
    return any(str(d) == "cpu" for d in devices if isinstance(d, (str, torch.device)))


def _is_cuda_device(value: Any) -> bool:
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))


_IS_CUDA = vars(torch._C.TensorBase)["is_cuda"].__get__
_DEVICE = vars(torch._C.TensorBase)["device"].__get__
# What brings a tensor's values to the host.
_TO_HOST: frozenset[Any] = frozenset({torch.Tensor.cpu, torch.Tensor.tolist})
_HAS_EXCHANGE_API = hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
_TO_NUMPY = frozenset({"numpy", "__array__"})


class CudaIsCpu(TorchFunctionMode):
    """Replaces the device `cuda` by the CPU in every call of torch.

    Attributes:
        to_host: Names of the calls so far that brought a tensor's values to the host.
    """

    def __init__(self) -> None:
        super().__init__()
        self.to_host: list[str] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            return args[0]
        if getattr(func, "__name__", "") == "__dlpack__" and _HAS_EXCHANGE_API:
            self.to_host.append("__dlpack__")  # the stand-in headers take another way
        if getattr(func, "__name__", "") in _TO_NUMPY:
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        if func in _TO_HOST or (func is torch.Tensor.to and _names_the_cpu(args, kwargs)):
            self.to_host.append(getattr(func, "__name__", "to"))
        if func == _IS_CUDA:
            return True
        if func == _DEVICE:
            return torch.device("cuda", 0)
        if any(map(_is_cuda_device, args)):
            args = tuple("cpu" if _is_cuda_device(arg) else arg for arg in args)
        if _is_cuda_device(kwargs.get("device")):
            kwargs = {**kwargs, "device": "cpu"}
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        return func(*args, **kwargs)


class _Event:
    """A moment; what is between two of them is the host's time, for everything is synchronous."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._time = time.perf_counter()

    def record(self, stream: Any = None) -> None:
        self._time = time.perf_counter()

    def elapsed_time(self, end: _Event) -> float:
        return (end._time - self._time) * 1e3

    def synchronize(self) -> None:
        return

    def wait(self, stream: Any = None) -> None:
        return

    def query(self) -> bool:
        return True


class _Stream:
    """The one stream there is."""

    cuda_stream = 0
    device = torch.device("cpu")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        return

    def synchronize(self) -> None:
        return

    wait_stream = wait_event = record_event = lambda self, other=None: other

    def query(self) -> bool:
        return True

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        return


def _properties(device: Any = None) -> types.SimpleNamespace:
    return types.SimpleNamespace(
        name="kernelgym emulator",
        major=9,
        minor=0,
        total_memory=8 * 2**30,
        multi_processor_count=16,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=227 * 1024,
        L2_cache_size=4 * 2**20,
    )


def _constant(value: Any) -> Callable[..., Any]:
    """A function of its own that returns a value: torch's compiler wants no function twice."""
    return lambda *args, **kwargs: value


@contextlib.contextmanager
def emulated_cuda() -> Iterator[CudaIsCpu]:
    """Within the block, the CPU answers for the GPU."""
    replaced: dict[str, Any] = {
        "is_available": _constant(True),
        "is_initialized": _constant(True),
        "init": _constant(None),
        "device_count": _constant(1),
        "current_device": _constant(0),
        "set_device": _constant(None),
        "synchronize": _constant(None),
        "empty_cache": _constant(None),
        "current_stream": lambda device=None: _Stream(),
        "default_stream": lambda device=None: _Stream(),
        "stream": lambda stream=None: contextlib.nullcontext(),
        "device": lambda device=None: contextlib.nullcontext(),
        "Stream": _Stream,
        "Event": _Event,
        "get_device_name": _constant("kernelgym emulator"),
        "get_device_capability": _constant((9, 0)),
        "get_device_properties": _properties,
        "is_current_stream_capturing": _constant(False),
        "manual_seed": _constant(None),
        "manual_seed_all": _constant(None),
    }
    before = {name: getattr(torch.cuda, name) for name in replaced}
    for name, value in replaced.items():
        setattr(torch.cuda, name, value)
    try:
        with CudaIsCpu() as mode:
            yield mode
    finally:
        for name, value in before.items():
            setattr(torch.cuda, name, value)
