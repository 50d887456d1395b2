"""Carrying out a plan's NVRTC steps, and finding out what a first run has left to be made."""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path

from kernelgym.toolchain.nvrtc_client import NvrtcServer
from kernelgym.toolchain.plan import SCRATCH, DeviceStep
from kernelgym.toolchain.sandbox import Finished

__all__ = ["missing_instantiations", "run_nvrtc"]

# The class that each kernel's stub declares gives away the stub's mangled name.
_STUB = re.compile(rb"_ZTSZ(\w+)E7kg_here\0")
_KERNEL = re.compile(rb"\.text\.([\w$]+)\0")


def run_nvrtc(
    server: NvrtcServer, step: DeviceStep, scratch: str, timeout: float, protection: str
) -> Finished:
    """Compiles one source and keeps its machine code.

    Args:
        server: Who compiles.
        step: What.
        scratch: What `SCRATCH` stands for.
        timeout: Wall-clock limit, in seconds.
        protection: How the compiler is confined.

    Returns:
        How it ended; its messages name kernels as they are written.
    """
    started = time.monotonic()
    places = {
        name: getattr(step.asked, name).replace(SCRATCH, scratch)
        for name in ("source", "folder", "temporary")
    }
    asked = dataclasses.replace(step.asked, **places)
    Path(asked.temporary).mkdir(exist_ok=True)
    compiled = server.compile(asked, timeout=timeout, protection=protection)
    log = compiled.log
    for mangled, written in compiled.names:
        log = log.replace(f"'{mangled}'", f"'{written}'").replace(
            f"properties for {mangled}\n", f"properties for {written}\n"
        )
    if compiled.done:
        Path(step.cubin.replace(SCRATCH, scratch)).write_bytes(compiled.cubin)
    return Finished(
        returncode=0 if compiled.done else 1,
        stdout="",
        stderr=log,
        timed_out=compiled.timed_out,
        truncated=False,
        seconds=time.monotonic() - started,
        cpu_seconds=0.0,
        peak_memory=0,
        protections=(),
    )


def missing_instantiations(step: DeviceStep, scratch: str) -> DeviceStep | None:
    """The step with the instantiations that the host's half launches and that were not made.

    Args:
        step: A step that has been carried out, as has its `host`.
        scratch: What `SCRATCH` stands for.

    Returns:
        `None` when nothing is missing.
    """
    host = Path(scratch, "work", step.host).read_bytes()
    cubin = Path(step.cubin.replace(SCRATCH, scratch)).read_bytes()
    made = {name.decode() for name in _KERNEL.findall(cubin)}
    launched = {"_Z" + name.decode() for name in _STUB.findall(host)}
    # A template's function is known by the result type in its name; other kernels are always made.
    missing = sorted(name for name in launched - made if re.search(r"I.+Ev", name))
    if not missing:
        return None
    return dataclasses.replace(
        step, asked=dataclasses.replace(step.asked, instantiations=tuple(missing))
    )
