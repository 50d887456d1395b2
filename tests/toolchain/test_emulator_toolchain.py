"""The emulator's kit: how it is built and keyed, its command lines, its reports, its speed."""

import dataclasses
import json
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelgym.errors import RecordError, ToolchainFault
from kernelgym.toolchain.emulated import Emulated
from kernelgym.toolchain.emulator import EmulatorToolchain, Variant
from kernelgym.toolchain.emulator_report import parse_report
from kernelgym.toolchain.nvcc_flags import translate_flags
from kernelgym.toolchain.rewrite import rewrite

KERNEL = """\
#include <cuda_runtime.h>
template <int Tile>
__global__ void product_{n}(const float* a, const float* b, float* c, int n) {{
  __shared__ float left[Tile][Tile + 1], right[Tile][Tile + 1];
  const int row = blockIdx.y * Tile + threadIdx.y, column = blockIdx.x * Tile + threadIdx.x;
  float sum = {n}.0f;
  for (int start = 0; start < n; start += Tile) {{
    left[threadIdx.y][threadIdx.x] =
        row < n && start + threadIdx.x < n ? a[row * n + start + threadIdx.x] : 0.0f;
    right[threadIdx.y][threadIdx.x] =
        column < n && start + threadIdx.y < n ? b[(start + threadIdx.y) * n + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < Tile; ++k) sum = fmaf(left[threadIdx.y][k], right[k][threadIdx.x], sum);
    __syncthreads();
  }}
  if (row < n && column < n) c[row * n + column] = sum;
}}
extern "C" void run_{n}(const float* a, const float* b, float* c, int n) {{
  dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
  product_{n}<16><<<grid, block>>>(a, b, c, n);
}}
"""


def run(command: list[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stderr


def build(emulator, source: str, name: str, variant: Variant) -> None:
    path = emulator.folder / f"{name}.cu"
    path.write_text(rewrite(source).text)
    output = path.with_suffix(f".{variant}.so")
    for command in emulator.kit.compile_commands([path], output, variant):
        run(command)


def test_a_kernel_compiles_in_time(emulator) -> None:
    seconds = []
    for n in range(5):
        start = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda v, n=n: build(emulator, KERNEL.format(n=n), f"p{n}", v), Variant))
        seconds.append(time.perf_counter() - start)
    assert statistics.median(seconds) <= 3.0, seconds


@pytest.mark.parametrize("variant", list(Variant), ids=str)
def test_the_precompiled_header_is_used(emulator, variant) -> None:
    source = emulator.folder / "used.cu"
    source.write_text("int x;\n")
    command = emulator.kit.compile_command(source, emulator.folder / "used.o", variant)
    opened = run([*command, "-H"])
    assert f"! {emulator.kit.directory}/{variant}/kgemu_prefix.h.gch" in opened


def test_no_sanitizer_library_is_linked(emulator) -> None:
    build(emulator, KERNEL.format(n=99), "linked", Variant.CHECKED)
    dynamic = run_stdout(["readelf", "-d", str(emulator.folder / "linked.checked.so")])
    assert "libkgemu.so" in dynamic
    assert "libtsan" not in dynamic


def run_stdout(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_errors_name_the_line_of_the_source(emulator) -> None:
    source = emulator.folder / "wrong.cu"
    text = "__global__ void k(int* p) {\n  *p = 1\n}\nvoid f() {\n  k<<<1, 2>>>(missing);\n}\n"
    source.write_text(rewrite(text).text)
    command = emulator.kit.compile_command(source, emulator.folder / "wrong.o", Variant.FAST)
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert f"{source}:2:9: error: expected " in result.stderr
    assert f"{source}:5:" in result.stderr


def test_a_kit_is_built_once_and_keyed_by_what_it_is_made_of(emulator) -> None:
    cache = emulator.kit.directory.parent
    changed = emulator.kit.runtime.stat().st_mtime_ns
    assert Emulated(cache).kit() == emulator.kit
    assert emulator.kit.runtime.stat().st_mtime_ns == changed
    toolchain = EmulatorToolchain(cache)
    version = toolchain._version()
    for other in (
        dataclasses.replace(toolchain, defines=("A=1",)),
        dataclasses.replace(toolchain, prefix_headers=("cuda_runtime.h",)),
    ):
        assert other._key(version) != toolchain._key(version) == toolchain._key(version)


def test_a_missing_or_old_compiler_is_a_fault(tmp_path) -> None:
    with pytest.raises(ToolchainFault, match="expected a working g"):
        EmulatorToolchain(tmp_path, compiler=str(tmp_path / "g++")).kit()
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho 9.4.0\n")
    old.chmod(0o755)
    with pytest.raises(ToolchainFault, match=r"expected g\+\+ 11 or later, got 9.4.0"):
        EmulatorToolchain(tmp_path, compiler=str(old)).kit()


def test_several_sources_become_one_module(emulator) -> None:
    commands = emulator.kit.compile_commands(
        ["a.cu", "b.cpp"], "m.so", Variant.CHECKED, flags=["-DX=1"], link_flags=["-lcublas", "-lm"]
    )
    assert len(commands) == 3
    assert all("-DX=1" in command for command in commands[:2])
    assert {"m.so.0.o", "m.so.1.o", "-lm"} <= set(commands[2])
    assert "-lcublas" not in commands[2]
    assert "-fsanitize=thread" not in commands[2]


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (["-O3", "--use_fast_math", "-lineinfo", "--expt-relaxed-constexpr"], ()),
        (["-arch=sm_90", "-gencode", "arch=compute_90,code=sm_90", "-Xptxas", "-v"], ()),
        (["-std=c++14"], ("-std=c++17",)),
        (["-std=c++20"], ("-std=c++20",)),
        (["-std", "c++20"], ("-std=c++20",)),
        (["-DN=4", "-D", "M", "-I", "inc", "-Iother"], ("-DN=4", "-DM", "-Iinc", "-Iother")),
        (["-Xcompiler", "-fPIC,-O3,-DQ", "-Xcompiler=-DR"], ("-DQ", "-DR")),
        (["-maxrregcount=64", "--threads", "4", "-Xcompiler"], ()),
        (["-march=native", "-ffast-math", "-funroll-loops"], ("-funroll-loops",)),
    ],
)
def test_flags(flags, kept) -> None:
    assert translate_flags(flags).flags == kept


def test_flags_that_change_results_are_noted() -> None:
    notes = translate_flags(["--use_fast_math", "--strange"]).notes
    assert notes == (
        "--use_fast_math: computed in IEEE arithmetic here",
        "--strange: without meaning here",
    )


def test_a_report_is_mapped_to_the_workspace() -> None:
    launch = {
        "kernel": "k<4>", "file": "/tmp/x.cu", "line": 7, "grid": [1, 2, 3], "block": [4, 5, 6],
        "shared_static": 8, "shared_dynamic": 9, "owner": "own", "flops": 0, "checked": True,
        "completed": True, "sampled": False, "counts": {"accesses": 12},
    }  # fmt: skip
    finding = {
        "code": "race.shared", "kernel": "k<4>", "block": [0, 0, 0], "thread": [1, 0, 0],
        "text": "write of __shared__ kgemu_shared_tile", "where": None,
        "other": {"block": [0, 0, 0], "thread": [2, 0, 0], "access": "read", "where": None},
    }  # fmt: skip
    text = json.dumps(
        {"launches": [launch], "findings": [finding], "last_error": 719, "printf": "hello"}
    )
    report = parse_report(text, map_place=lambda file, line: ("model_new.py", line + 100))
    assert (report.launches[0].file, report.launches[0].line) == ("model_new.py", 107)
    assert report.launches[0].counts == {"accesses": 12}
    assert (report.last_error, report.printf) == (719, "hello")
    assert report.findings[0].text == (
        "write of __shared__ tile (kernel k<4>, block (0, 0, 0), thread (1, 0, 0)); conflicts with "
        "the read by block (0, 0, 0), thread (2, 0, 0)"
    )


def test_what_is_no_report_is_refused() -> None:
    with pytest.raises(RecordError, match="expected the emulator's report"):
        parse_report('{"launches": 3}')
