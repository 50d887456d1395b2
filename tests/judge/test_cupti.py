"""CUPTI's records, held against its headers; what is planned with it, where the library is there."""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from kernelgym.judge import counter_plans, cupti, range_profiler
from kernelgym.judge.counter_plans import PlanFailed, plan_for, stored_plan
from kernelgym.judge.cupti import RECORDS, Cupti, CuptiError, KernelNames, demangler, find_cupti
from kernelgym.judge.metrics import ALTERNATIVES, METRICS
from kernelgym.judge.range_profiler import make_plan, profiling_restricted
from kernelgym.toolchain.cache import ContentCache
from kernelgym.toolchain.cuda import find_nvcc

HEADERS = (
    "cuda",
    "cupti_result",
    "cupti_callbacks",
    "cupti_driver_cbid",
    "cupti_target",
    "cupti_profiler_target",
    "cupti_profiler_host",
    "cupti_range_profiler",
)
# What the library's functions take and give as plain numbers, by the headers' names.
CONSTANTS = {
    "CUPTI_PROFILER_TYPE_RANGE_PROFILER": range_profiler._RANGE_PROFILER,
    "CUPTI_AutoRange": range_profiler._AUTO_RANGE,
    "CUPTI_KernelReplay": range_profiler._KERNEL_REPLAY,
    "CUPTI_CB_DOMAIN_DRIVER_API": cupti._DRIVER_API,
    "CUPTI_API_ENTER": cupti._API_ENTER,
    "CUPTI_ERROR_INVALID_METRIC_NAME": 17,
    "CUPTI_ERROR_HARDWARE_BUSY": 26,
    "CUPTI_ERROR_NOT_SUPPORTED": 27,
    "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES": cupti._INSUFFICIENT_PRIVILEGES[0],
    "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES": cupti._INSUFFICIENT_PRIVILEGES[1],
    "CUPTI_ERROR_INVALID_CHIP_NAME": 46,
    **{
        f"CUPTI_DRIVER_TRACE_CBID_cu{call}{variant}": identifier
        for (call, variant), identifier in zip(
            [
                (call, variant)
                for call in (
                    "LaunchKernel",
                    "LaunchCooperativeKernel",
                    "LaunchKernelEx",
                    "GraphLaunch",
                )
                for variant in ("", "_ptsz")
            ],
            cupti._LAUNCHES,
            strict=True,
        )
    },
}
_CALLBACK = "CUpti_CallbackData"


class Row(NamedTuple):
    """Two numbers: in C, and ours."""

    name: str
    theirs: tuple[str, str]
    ours: tuple[int, int]


def include_dir() -> pathlib.Path | None:
    nvcc = find_nvcc()
    kits = [pathlib.Path(os.path.realpath(nvcc)).parents[1]] if nvcc else []
    kits += sorted(pathlib.Path("/usr/local").glob("cuda*"))
    folders = (kit / place for kit in kits for place in ("include", "extras/CUPTI/include"))
    return next((one for one in folders if (one / "cupti_range_profiler.h").is_file()), None)


def fields(name: str, record: type[Any]) -> Iterator[Row]:
    for field, _ in record._fields_:
        ours = getattr(record, field)
        yield Row(
            f"{name}.{field}",
            (f"offsetof({name}, {field})", f"sizeof((({name}*)nullptr)->{field})"),
            (ours.offset, ours.size),
        )


def rows() -> Iterator[Row]:
    for record in RECORDS.values():
        name = record.__name__
        sizes = cupti._stated_size(record), ctypes.sizeof(record)
        yield Row(name, (f"{name}_STRUCT_SIZE", f"sizeof({name})"), sizes)
        yield from fields(name, record)
    yield from fields(_CALLBACK, cupti._CallbackData)
    for name, value in CONSTANTS.items():
        yield Row(name, (name, "0"), (value, 0))


def test_records_are_laid_out_as_in_the_headers(tmp_path: pathlib.Path) -> None:
    headers, compiler = include_dir(), shutil.which("g++")
    if headers is None or compiler is None:
        pytest.skip("needs g++ and the headers of CUPTI 12.6 or newer")
    expected = list(rows())
    prints = "\n".join(
        'std::printf("{} %zu %zu\\n", size_t({}), size_t({}));'.format(row.name, *row.theirs)
        for row in expected
    )
    includes = "".join(f"#include <{name}.h>\n" for name in HEADERS)
    source = tmp_path / "layout.cpp"
    source.write_text(
        f"#include <cstddef>\n#include <cstdio>\n{includes}int main() {{\n{prints}\n}}\n"
    )
    program = str(tmp_path / "layout")
    subprocess.run([compiler, "-w", f"-I{headers}", str(source), "-o", program], check=True)
    told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    theirs = {name: (int(a), int(b)) for name, a, b in map(str.split, told.splitlines())}
    assert theirs == {row.name: row.ours for row in expected}


@pytest.fixture(scope="module")
def library() -> Cupti:
    path = find_cupti()
    if path is None:
        pytest.skip("needs CUPTI")
    return Cupti(path)


def test_a_plan_needs_no_gpu(library: Cupti) -> None:
    plan = make_plan(library, "GH100")
    assert set(plan.names) == set(METRICS)
    assert all(
        metric in ALTERNATIVES[name] for name, metric in zip(plan.names, plan.metrics, strict=True)
    )
    # Each pass runs every kernel once more.
    assert plan.passes <= 8
    assert len(plan.image) > 1000


def test_plans_are_made_elsewhere_and_kept(
    library: Cupti, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ContentCache(tmp_path)
    made = stored_plan(cache, library.path, "NVIDIA H200 580", (9, 0), 0)
    assert made == make_plan(library, "GH100")
    monkeypatch.setattr(counter_plans.subprocess, "run", None)
    assert stored_plan(cache, library.path, "NVIDIA H200 580", (9, 0), 0) == made


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kill -SEGV $$", "libcupti.so.* crashed with signal 11"),
        ("echo no such chip >&2; exit 1", "no such chip"),
        ("exit 3", "status 3"),
        ("echo '{}'", "status 0"),
        ("exec sleep 60", "no plan in 0 s"),
    ],
)
def test_a_library_that_crashes_takes_nobody_along(
    script: str, message: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(counter_plans.sys, "executable", str(python))
    if "sleep" in script:
        monkeypatch.setattr(counter_plans, "_PLAN_SECONDS", 0.2)
    with pytest.raises(PlanFailed, match=message):
        plan_for("libcupti.so", "GH100")


def test_a_chip_that_has_less_is_counted_less(library: Cupti) -> None:
    plan = make_plan(library, "GH100", ("dram_bytes_read", "occupancy"))
    assert plan.names == ("dram_bytes_read", "occupancy")
    assert plan.passes <= 2
    with pytest.raises(CuptiError, match="cuptiProfilerHostInitialize") as failed:
        make_plan(library, "XX999")
    assert not failed.value.forbidden


class FakeLibrary:
    """Answers as CUPTI does; what it does not have, it does not have."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.asked: list[int] = []
        self.enabled: list[int] = []
        self.subscribed = False
        self.launch: Any = None

    def cuptiProfilerInitialize(self, reference: Any) -> int:
        self.asked.append(reference._obj.structSize)
        return self.code

    def cuptiSubscribe(self, subscriber: Any, callback: Any, user: Any) -> int:
        self.subscribed, self.launch = self.code == 0, callback
        return self.code

    def cuptiEnableCallback(self, on: Any, subscriber: Any, domain: int, call: int) -> int:
        self.enabled.append(call)
        return 0

    def cuptiUnsubscribe(self, subscriber: Any) -> int:
        self.subscribed = False
        return 0


def with_library(fake: FakeLibrary) -> Cupti:
    made = Cupti.__new__(Cupti)
    made.path, made.library = "", fake  # type: ignore[assignment]
    return made


def test_a_failure_says_what_it_means() -> None:
    fake = FakeLibrary()
    made = with_library(fake)
    made.call("cuptiProfilerInitialize")
    assert fake.asked == [16]
    fake.code = 35
    with pytest.raises(CuptiError, match="ERR_NVGPUCTRPERM") as failed:
        made.call("cuptiProfilerInitialize")
    assert failed.value.forbidden
    with pytest.raises(CuptiError, match=r"cuptiRangeProfilerEnable: not supported"):
        made.call("cuptiRangeProfilerEnable", ctx=1)


def test_launches_are_noted_by_name_once_each() -> None:
    fake = FakeLibrary()
    with KernelNames(with_library(fake)) as seen:
        assert seen.active
        for site, symbol in ((0, b"_Z4reluPf"), (1, b"_Z4reluPf"), (0, None)):
            data = cupti._CallbackData(callbackSite=site, symbolName=symbol)
            fake.launch(None, 1, 307, ctypes.pointer(data))
    assert seen.names == ["_Z4reluPf", ""]
    assert fake.enabled == list(cupti._LAUNCHES)
    assert not fake.subscribed
    with KernelNames(with_library(FakeLibrary(39))) as other:
        assert not other.active


def test_names_are_read_as_they_are_written() -> None:
    readable = demangler()
    assert readable("_Z5copy4PK6float4PS_i") == "copy4(float4 const*, float4*, int)"
    assert readable("triton_poi_fused_0") == "triton_poi_fused_0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A: 1\nRmProfilingAdminOnly: 1\n", True),
        ("RmProfilingAdminOnly: 0\n", False),
        ("A: 1\n", False),
    ],
)
def test_the_driver_tells_who_may_count(text: str, expected: bool, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "params"
    assert profiling_restricted(file) is None
    file.write_text(text)
    assert profiling_restricted(file) is expected
