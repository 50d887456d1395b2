"""An emulator shared by this package's tests: built once, candidates compiled on demand."""

from __future__ import annotations

import ctypes
import dataclasses
import subprocess
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kernelgym.toolchain.emulated import Emulated
from kernelgym.toolchain.emulator import EmulatorKit, Variant
from kernelgym.toolchain.emulator_report import EmulatorReport, parse_report
from kernelgym.toolchain.emulator_runtime import EmulatorRuntime
from kernelgym.toolchain.rewrite import rewrite

# Runs a kernel on n floats of device memory, zero at first, and hands them back.
PRELUDE = """\
#define KERNEL_ENTRY(name, kernel, grid, block)                       \\
  extern "C" int name(float* host, int n) {                           \\
    float* device;                                                    \\
    cudaMalloc(&device, n * sizeof(float));                           \\
    cudaMemset(device, 0, n * sizeof(float));                         \\
    kernel<<<grid, block>>>(device);                                  \\
    cudaError_t error = cudaDeviceSynchronize();                      \\
    cudaMemcpy(host, device, n * sizeof(float), cudaMemcpyDeviceToHost); \\
    cudaFree(device);                                                 \\
    return error;                                                     \\
  }
"""


def run_command(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@dataclasses.dataclass
class Emulator:
    """A kit, its runtime in this process, and a folder for modules."""

    kit: EmulatorKit
    runtime: EmulatorRuntime
    folder: Path
    count: int = 0

    def compile(self, source: str, variant: Variant, flags: tuple[str, ...] = ()) -> Path:
        """Compiles a CUDA text; returns the module's path."""
        result = rewrite(textwrap.dedent(source))
        assert result.unsupported == ()
        self.count += 1
        path = self.folder / f"module{self.count}.cu"
        path.write_text(result.text)
        output = path.with_suffix(f".{variant}.so")
        for command in self.kit.compile_commands([path], output, variant, flags=flags):
            run_command(command)
        return output

    def load(self, source: str, flags: tuple[str, ...] = ()) -> dict[Variant, ctypes.CDLL]:
        """Compiles a CUDA text after `PRELUDE` in both variants and loads both."""
        text = PRELUDE + textwrap.dedent(source)
        with ThreadPoolExecutor(2) as pool:
            paths = list(pool.map(lambda variant: self.compile(text, variant, flags), Variant))
        return {
            variant: ctypes.CDLL(str(path)) for variant, path in zip(Variant, paths, strict=True)
        }

    def call(self, library: ctypes.CDLL, name: str, count: int) -> np.ndarray:
        """Runs an entry made by `KERNEL_ENTRY`; a finding or an error fails the test."""
        self.runtime.reset()
        values = np.full(count, np.nan, np.float32)
        error = library[name](values.ctypes.data_as(ctypes.c_void_p), count)
        report = self.report()
        assert report.findings == ()
        assert error == 0
        return values

    def report(self) -> EmulatorReport:
        """What the runtime saw since its last reset."""
        return parse_report(self.runtime.report(), hidden=[self.kit.directory])


@pytest.fixture(scope="session")
def emulated_toolchain(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    """The toolchain whose kit, which takes long to build, all tests share."""
    return Emulated(tmp_path_factory.mktemp("kits"))


@pytest.fixture(scope="session")
def emulator(emulated_toolchain: Emulated, tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    kit = emulated_toolchain.kit()
    return Emulator(kit, EmulatorRuntime(kit.runtime), tmp_path_factory.mktemp("modules"))
