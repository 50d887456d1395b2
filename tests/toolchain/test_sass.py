from __future__ import annotations

import pathlib
import subprocess

import pytest

from kernelgym.toolchain import sass
from kernelgym.toolchain.build import BuildResult, SassSummary
from kernelgym.toolchain.cache import ContentCache
from kernelgym.toolchain.cuda import find_nvcc
from kernelgym.toolchain.sass import find_disassembler, parse_sass, summarise_build

HERE = pathlib.Path(__file__).parent
SHOWN = (HERE / "sass_sm90.txt").read_text()
COPY = """
__global__ void copy4(const float4* x, float4* y) { y[threadIdx.x] = x[threadIdx.x]; }
"""


def by_name(text: str) -> dict[str, SassSummary]:
    return {one.name: one for one in parse_sass(text)}


def build(library: pathlib.Path, key: str = "0" * 64) -> BuildResult:
    return BuildResult(key, "ok", "fast", libraries=(("fast", str(library)),))


def test_each_kernel_is_summarised() -> None:
    kernels = by_name(SHOWN)
    assert set(kernels) == {
        "_Z6stagedPK6float4PS_",
        "_Z7indexedPKfPfi",
        "_Z6tensorPK6__halfS1_Pf",
        "_Z5scaleIdEvPKT_PS0_S0_",
        "_Z5copy4PK6float4PS_i",
    }
    copy = kernels["_Z5copy4PK6float4PS_i"]
    # Without the 15 instructions that pad its end.
    assert copy.instructions == 17
    assert copy.mix == (
        ("constant", 6),
        ("integer", 4),
        ("control", 3),
        ("move", 2),
        ("global memory", 2),
    )
    assert (copy.global_loads, copy.global_loads_16) == (1, 1)
    assert (copy.global_stores, copy.global_stores_16) == (1, 1)
    double = kernels["_Z5scaleIdEvPKT_PS0_S0_"]
    assert (double.global_loads, double.global_loads_16) == (1, 0)
    assert dict(double.mix)["fp64"] == 1


def test_only_products_of_tensor_cores_count_as_such() -> None:
    kernels = by_name(SHOWN)
    assert kernels["_Z6tensorPK6__halfS1_Pf"].tensor == 2
    # It has an HFMA2.MMA, which is none: the compiler's way to make a zero.
    assert "HFMA2.MMA" in SHOWN
    assert kernels["_Z7indexedPKfPfi"].tensor == 0


def test_local_memory_and_copies_past_registers_are_seen() -> None:
    kernels = by_name(SHOWN)
    indexed = kernels["_Z7indexedPKfPfi"]
    assert (indexed.local_loads, indexed.local_stores) == (1, 1)
    # ATOMG belongs to global memory; REDUX, VOTEU and SHFL exchange values inside a warp.
    mix = dict(indexed.mix)
    assert mix["global memory"] == 3
    assert mix["exchange"] == 3
    staged = kernels["_Z6stagedPK6float4PS_"]
    assert staged.async_copies == 1
    assert staged.global_loads == 0
    # Three loads under @!PT never run.
    assert "@!PT LDS" in SHOWN
    assert staged.instructions == 21


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("UTCHMMA", "tensor"),
        ("QGMMA", "tensor"),
        ("HFMA2", "fp16"),
        ("ATOMS", "shared memory"),
        ("LDSM", "shared memory"),
        ("REDG", "global memory"),
        ("UTMALDG", "async copy"),
        ("UFADD", "fp32"),
        ("DSETP", "fp64"),
        ("UIADD3", "integer"),
        ("S2UR", "move"),
        ("BREV", "integer"),
        ("XYZZY", "other"),
    ],
)
def test_an_opcode_has_one_class(opcode: str, expected: str) -> None:
    assert sass._class_of(opcode) == expected


def test_a_summary_is_kept_and_a_failure_is_not(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shown").write_text(SHOWN)
    tool = tmp_path / "nvdisasm"
    tool.write_text("#!/bin/sh\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setattr(sass, "find_disassembler", lambda name="nvdisasm": str(tool))
    (tmp_path / "kg_0.so").write_bytes(b"no device code")
    (tmp_path / "kg_0.one.cubin").write_bytes(b"")
    (tmp_path / "kg_1.one.cubin").write_bytes(b"")
    cache = ContentCache(tmp_path / "cache")
    made = build(tmp_path / "kg_0.so")
    assert summarise_build(made, cache) == ()
    tool.write_text(f"#!/bin/sh\ncat {tmp_path}/shown\n")
    found = summarise_build(made, cache)
    assert [one.name for one in found][-2:] == ["scale<double>", "copy4"]
    assert len(found) == 5
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert summarise_build(made, cache) == found
    failed = BuildResult("0" * 64, "compile_error", "fast")
    assert summarise_build(failed, cache) == ()
    assert summarise_build(build(tmp_path / "dropped.so", "1" * 64), cache) == ()


def test_without_the_tools_there_is_no_summary(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sass, "find_disassembler", lambda name="nvdisasm": None)
    assert summarise_build(build(tmp_path / "absent.so"), ContentCache(tmp_path)) == ()


@pytest.mark.parametrize("form", ["library", "cubin"])
def test_machine_code_is_found_in_a_library_or_beside_it(form: str, tmp_path: pathlib.Path) -> None:
    nvcc = find_nvcc()
    if nvcc is None or None in (find_disassembler(), find_disassembler("cuobjdump")):
        pytest.skip("needs nvcc, nvdisasm and cuobjdump")
    source = tmp_path / "copy.cu"
    source.write_text(COPY)
    library = tmp_path / "kg_copy.so"
    if form == "library":
        how, out = ["-shared", "-cudart=none", "-Xcompiler=-fPIC"], library
    else:
        library.write_bytes(b"host code alone")
        how, out = ["-cubin"], tmp_path / "kg_copy.cuda_cu.cubin"
    subprocess.run(
        [nvcc, "-arch=sm_90", *how, str(source), "-o", str(out)], check=True, capture_output=True
    )
    (copy,) = summarise_build(build(library), ContentCache(tmp_path / "cache"))
    assert copy.name == "copy4"
    assert (copy.global_loads_16, copy.global_stores_16) == (1, 1)
    assert 5 < copy.instructions < 40
