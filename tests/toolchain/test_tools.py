"""Compilers' tools that packages call as processes: what is refused, and real runs."""

import dataclasses
import os
import subprocess
import sys
import sysconfig

import pytest

from kernelgym.toolchain import subprocesses
from kernelgym.toolchain.build import BuildRequest, BuildResult, ToolCall, ToolOutcome
from kernelgym.toolchain.cuda import find_nvcc
from kernelgym.toolchain.service import BuildService
from kernelgym.toolchain.tools import refused_arguments, tool_key

needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
PTX = b"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 x)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [x];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.f32 %f1, [%rd2];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd2], %f2;
    ret;
}
"""
ASSEMBLE = ToolCall(
    "ptxas", ("-v", "--gpu-name=sm_90", "a.ptx", "-o", "a.o"), (("a.ptx", PTX),), ("a.o",)
)


@pytest.fixture
def service(tmp_path):
    with BuildService(tmp_path / "cache") as service:
        yield service


def ask(service, call):
    return service.build(BuildRequest(call.tool, "sm_90", tool=call), timeout=60.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ToolCall("bash", ("-c", "id")), "one of the tools"),
        (ToolCall("cc", ("-fplugin=evil.so",)), "'-fplugin=evil.so' is not allowed"),
        (ToolCall("cc", ("-wrapper", "id")), "'-wrapper' is not allowed"),
        (ToolCall("cc", ("/etc/passwd",)), "'/etc/passwd' is not allowed"),
        (ToolCall("cc", ("-Wl,-rpath,/x",)), "not allowed"),
        (ToolCall("cc", ("-o", "/tmp/x")), "after -o"),
        (ToolCall("ptxas", ("--options-file", "x")), "not allowed"),
        (ToolCall("nvcc", ("--cubin", "-ccbin=/tmp/evil", "a.cu"), (("a.cu", b""),)), "-ccbin"),
        (ToolCall("nvcc", ("-run",)), "-run"),
        (ToolCall("cc", (), (("../a.c", b""),)), "plain file names"),
        (ToolCall("cc", (), (("a.c", b""), ("a.c", b""))), "distinct"),
    ],
)
def test_what_could_do_more_than_compile_is_refused(service, call, words):
    assert words in refused_arguments(call)
    result = ask(service, call)
    assert result.status == "compile_error"
    assert words in result.why


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("ptxas", ("--version",)),
        ToolCall("cc", ("a.c", "-O3", "-shared", "-fPIC", "-Wno-psabi", "-o", "a.so",
                        "-l:libcuda.so.1", "-L/usr/lib", "-I/usr/include"),
                 (("a.c", b""),), ("a.so",)),
        ToolCall("nvcc", ("--cubin", "-arch", "sm_90", "-I/site/pycuda/cuda", "a.cu"),
                 (("a.cu", b""),), ("a.cubin",)),
        ASSEMBLE,
    ],
)  # fmt: skip
def test_what_the_packages_ask_for_is_allowed(call):
    assert refused_arguments(call) == ""


def test_folders_that_are_nobodys_business_change_no_key():
    call = ToolCall("cc", ("a.c", "-I/tmp/a"), (("a.c", b""),))
    other = dataclasses.replace(call, arguments=("a.c", "-I/tmp/b"))
    own = dataclasses.replace(call, arguments=("a.c", f"-I{sysconfig.get_path('include')}"))
    keys = [tool_key(one, sys.executable) for one in (call, other, own)]
    assert keys[0] == keys[1] != keys[2]


def test_a_c_stub_is_compiled_and_kept(service):
    source = b"#include <Python.h>\nint answer(void) { return 42; }\n"
    include = f"-I{sysconfig.get_path('include')}"
    arguments = ("a.c", "-shared", "-fPIC", include, "-o", "a.so")
    call = ToolCall("cc", arguments, (("a.c", source),), ("a.so",))
    result = ask(service, call)
    assert (result.status, result.path, result.cached) == ("ok", "cc", False)
    assert dict(result.outcome.outputs)["a.so"].startswith(b"\x7fELF")
    again = ask(service, call)
    assert again.cached
    assert again.outcome == result.outcome


def test_a_stub_that_does_not_compile_says_where(service):
    call = ToolCall("cc", ("a.c", "-o", "a.so"), (("a.c", b"int x\n"),), ("a.so",))
    result = ask(service, call)
    assert result.status == "compile_error"
    assert result.outcome.returncode != 0
    assert result.diagnostics[0].severity == "error"


def test_the_emulator_runs_no_tools(service):
    request = BuildRequest("cc", "emulator", tool=ToolCall("cc", ("--version",)))
    assert service.build(request, timeout=10.0).status == "compile_error"


@needs_nvcc
def test_what_is_assembled_is_known_by_name(service):
    result = ask(service, ASSEMBLE)
    assert result.status == "ok", result.outcome
    assert [kernel.name for kernel in result.kernels] == ["twice"]
    assert result.kernels[0].registers > 0


@needs_nvcc
def test_a_cubin_of_nvccs_is_known_by_name(service):
    source = b'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }\n'
    call = ToolCall(
        "nvcc", ("--cubin", "-arch", "sm_90", "a.cu"), (("a.cu", source),), ("a.cubin",)
    )
    result = ask(service, call)
    assert result.status == "ok", result.outcome
    assert [kernel.name for kernel in result.kernels] == ["twice"]


# --- as a candidate's process has them --------------------------------------------------------


@pytest.fixture
def calls():
    """Tools that are asked for while `subprocess.Popen` is a request; each writes its output."""
    asked = []

    def build(request):
        call = request.tool
        asked.append(call)
        status = 1 if call.arguments[:1] == ("-fail",) else 0
        outcome = ToolOutcome(
            status, "out\n", "err\n", tuple((name, b"made") for name in call.outputs)
        )
        return BuildResult("k", "ok", call.tool, outcome=outcome)

    restore = subprocesses.install(build, "sm_90")
    yield asked
    restore()


def test_triton_assembles_by_a_request(calls, tmp_path):
    source, log = tmp_path / "random.ptx", tmp_path / "log"
    source.write_bytes(b'.file 1 "' + os.getcwd().encode() + b'/model_new.py"')
    with log.open("r+" if log.exists() else "w+") as stream:
        command = ["/x/ptxas", "-v", "--gpu-name=sm_90a", str(source), "-o", f"{source}.o"]
        subprocess.run(command, check=True, close_fds=False, stderr=stream)
    assert (tmp_path / "random.ptx.o").read_bytes() == b"made"
    assert log.read_text() == "err\n"
    arguments = ("-v", "--gpu-name=sm_90a", "input0.ptx", "-o", "output0.o")
    inputs = (("input0.ptx", b'.file 1 "model_new.py"'),)
    assert calls == [ToolCall("ptxas", arguments, inputs, ("output0.o",))]


def test_versions_and_failures_come_back(calls):
    said = subprocess.check_output(["/x/ptxas", "--version"], stderr=subprocess.STDOUT)
    assert said == b"out\nerr\n"
    assert subprocess.run(["gcc", "--version"], capture_output=True, text=True).stdout == "out\n"
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.check_call(["gcc", "-fail"], stdout=subprocess.DEVNULL)


def test_nvccs_output_goes_where_nvcc_would_put_it(calls, tmp_path):
    (tmp_path / "kernel.cu").write_text("x")
    with subprocess.Popen(
        ["nvcc", "--cubin", "-arch", "sm_90", "kernel.cu"],
        cwd=str(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.communicate() == (b"out\n", b"err\n")
    assert process.returncode == 0
    assert (tmp_path / "kernel.cubin").read_bytes() == b"made"


@pytest.mark.parametrize(
    "command", [["id"], ["bash", "-c", "id"], ["/bin/sh", "x"], [sys.executable, "-c", "0"]]
)
def test_any_other_process_is_refused(calls, command):
    with pytest.raises(PermissionError, match="may start no process"):
        subprocess.run(command)
    with pytest.raises(PermissionError):
        subprocess.run("gcc --version", shell=True)
    assert calls == []


def test_the_original_comes_back(calls):
    replaced = subprocess.Popen
    restore = subprocesses.install(lambda request: None, "sm_90")
    restore()
    assert subprocess.Popen is replaced
