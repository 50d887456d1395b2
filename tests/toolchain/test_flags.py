"""Which flags pass, and which are refused by name."""

from __future__ import annotations

import pytest

from kernelgym.toolchain.build import BuildRequest
from kernelgym.toolchain.flags import Flags, screen_flags


def screen(**flags: tuple[str, ...]) -> Flags:
    return screen_flags(BuildRequest("m", "emulator", **flags))


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (("-O3", "-ffast-math", "-std=c++17"), ("-O3", "-ffast-math", "-std=c++17")),
        (("-O3 -march=native",), ("-O3", "-march=native")),
        (("-D", "N=4", "-DTEXT='a b'", "-UX"), ("-DN=4", "-DTEXT=a b", "-UX")),
        (("-Wall", "-Wno-unused", "-w", "-g"), ("-Wall", "-Wno-unused", "-w", "-g")),
        (("-I/usr/local/cuda/include", "-I", "."), ()),
    ],
)
def test_host_flags_pass(flags: tuple[str, ...], kept: tuple[str, ...]) -> None:
    screened = screen(extra_cflags=flags)
    assert (screened.host, screened.refused) == (kept, ())


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (("-O3", "--use_fast_math"), ("-O3", "--use_fast_math")),
        (("-arch", "sm_90a"), ("-arch=sm_90a",)),
        (
            ("-gencode", "arch=compute_90,code=sm_90"),
            ("-gencode=arch=compute_90,code=sm_90",),
        ),
        (("-Xptxas", "-O3,-v"), ("-Xptxas=-O3,-v",)),
        (("-Xcompiler", "-fPIC"), ("-Xcompiler=-fPIC",)),
        (("--maxrregcount=64", "-lineinfo"), ("--maxrregcount=64", "-lineinfo")),
        (("--expt-relaxed-constexpr", "-std=c++17"), ("--expt-relaxed-constexpr", "-std=c++17")),
    ],
)
def test_device_flags_pass(flags: tuple[str, ...], kept: tuple[str, ...]) -> None:
    screened = screen(extra_cuda_cflags=flags)
    assert (screened.device, screened.refused) == (kept, ())


def test_libraries_and_folders() -> None:
    screened = screen(
        extra_ldflags=("-lcublas", "-l", "cudnn", "-L/usr/local/cuda/lib64"),
        extra_cflags=("-Iinclude/mine",),
    )
    assert screened.link == ("-lcublas", "-lcudnn")
    assert screened.include_dirs == ("include/mine",)
    assert screened.refused == ()


@pytest.mark.parametrize(
    "flag",
    [
        "-fplugin=evil.so",
        "-B/tmp/bin",
        "-wrapper sh,-c,id",
        "@/etc/passwd",
        "-include /etc/passwd",
        "-imacros /etc/passwd",
        "-o /tmp/x",
        "-specs=/tmp/s",
        "--sysroot=/tmp",
        "-I/etc",
        "-I../..",
        "-Ia/../../b",
        "-isystem /etc",
        "-Wl,-rpath,/tmp",
        "-Wa,--listing",
        "-Wp,-MD,/tmp/x",
        "-x assembler",
        "-save-temps",
        "-fdump-tree-all=/tmp/x",
        "-fprofile-use=/etc/passwd",
        "-MD",
        "-E",
        "main.cpp",
        "/etc/passwd",
        "-DX=1\n#include",
        "-O3 'open quote",
        "",
        "-fdiagnostics-format=json-file",
    ],
)
@pytest.mark.parametrize("option", ["extra_cflags", "extra_cuda_cflags", "extra_ldflags"])
def test_others_are_refused_by_name(option: str, flag: str) -> None:
    screened = screen(**{option: (flag,)})
    if not flag:
        assert screened.refused == ()
        return
    assert screened.refused, flag
    assert all(d.severity == "error" and d.code == "build.flag" for d in screened.refused)
    assert screened.refused[0].text.startswith(f"{option}: the flag ")
    assert not (screened.host or screened.device or screened.link) or "quote" not in flag


@pytest.mark.parametrize(
    "flag",
    [
        "-ccbin=/tmp/cc",
        "--compiler-bindir /tmp",
        "-Xcompiler=-fplugin=x",
        "-Xcompiler -O3,-B/tmp",
        "-Xptxas=--output-file,x",
        "-Xlinker -rpath",
        "--options-file=/etc/passwd",
        "-optf /etc/passwd",
        "--run",
        "-dc",
        "--keep-dir=/tmp",
        "--pre-include=/etc/passwd",
    ],
)
def test_nvcc_flags_are_refused_too(flag: str) -> None:
    assert screen(extra_cuda_cflags=(flag,)).refused


def test_libraries_of_others_are_refused() -> None:
    assert "-levil" in screen(extra_ldflags=("-levil",)).refused[0].text
