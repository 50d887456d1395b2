"""The build service, over a toolchain that compiles plain C++."""

from __future__ import annotations

import ctypes
import dataclasses
import threading
from pathlib import Path

import pytest

from kernelgym.errors import ConfigError, ToolchainFault
from kernelgym.toolchain.build import BuildRequest, BuildResult, SourceFile
from kernelgym.toolchain.flags import Flags
from kernelgym.toolchain.plan import Finding, Plan, Step, Variant
from kernelgym.toolchain.service import BuildService
from kernelgym.toolchain.units import origin


class PlainToolchain:
    """Compiles `cpp_sources[0]` to a shared library, in two variants."""

    path = "plain"

    def __init__(self) -> None:
        self.planned: list[str] = []
        self.version = "1"

    def identity(self) -> str:
        return self.version

    def plan(self, request: BuildRequest, flags: Flags, module: str) -> Plan:
        self.planned.append(module)
        (text,) = request.cpp_sources
        if "wmma" in text:
            line = text[: text.index("wmma")].count("\n") + 1
            found = Finding("unsupported", "cpp_sources[0]", line, "no wmma", "emulator", "u.wmma")
            return Plan(findings=(found,))
        common = ("g++", "-fPIC", "-fno-diagnostics-show-caret", "-I.", *flags.host)
        variants = [
            Variant(
                name,
                (Step((*common, f"-DVARIANT={n}", "-c", "../units/m.cpp", "-o", f"../out/{n}.o")),),
                Step(("g++", "-shared", f"../out/{n}.o", "-o", f"../out/{module}_{name}.so")),
                f"{module}_{name}.so",
            )
            for n, name in enumerate(("fast", "checked"))
        ]
        return Plan({"m.cpp": f'#line 1 "cpp_sources[0]"\n{text}'}, variants=tuple(variants))


@pytest.fixture
def toolchain() -> PlainToolchain:
    return PlainToolchain()


@pytest.fixture
def service(tmp_path: Path, toolchain: PlainToolchain) -> BuildService:
    return BuildService(tmp_path / "cache", jobs=2, toolchains={"emulator": toolchain})


def request(text: str, *, above: int = 0, **changes: object) -> BuildRequest:
    model = "import torch\n" + "# a comment\n" * above + f'source = r"""{text}"""\n'
    asked = BuildRequest("mine", "emulator", (text,), files=(SourceFile("model_new.py", model),))
    return dataclasses.replace(asked, **changes)  # type: ignore[arg-type]


GOOD = '\nextern "C" int answer() { return 40 + VARIANT; }\n'


def answer(result: BuildResult, variant: str) -> int:
    return int(ctypes.CDLL(result.library(variant)).answer())


def test_both_variants_are_built_and_kept(
    service: BuildService, toolchain: PlainToolchain, tmp_path: Path
) -> None:
    result = service.build(request(GOOD), timeout=60)
    assert (result.status, result.path, result.diagnostics) == ("ok", "plain", ())
    assert (answer(result, "fast"), answer(result, "checked")) == (40, 41)
    assert not result.cached
    again = service.build(request(GOOD, name="other name"), timeout=60)
    assert again.cached
    assert again == dataclasses.replace(result, cached=True, seconds=again.seconds)
    with BuildService(tmp_path / "cache", toolchains={"emulator": toolchain}) as other:
        assert other.build(request(GOOD), timeout=60).cached
    assert toolchain.planned == [f"kg_{result.key[:24]}"]


def test_an_error_names_the_line_of_the_file_also_from_the_cache(service: BuildService) -> None:
    bad = "\nint f() {\n  return 1\n}\n"
    first = service.build(request(bad), timeout=60)
    assert first.status == "compile_error"
    assert first.libraries == ()
    (error,) = first.diagnostics
    assert (error.file, error.line, error.column) == ("model_new.py", 4, 11)
    assert error.excerpt == "  return 1\n          ^"
    moved = service.build(request(bad, above=5), timeout=60)
    assert moved.cached
    assert [d.line for d in moved.diagnostics] == [9]


def test_the_key_covers_what_matters(service: BuildService, toolchain: PlainToolchain) -> None:
    header = SourceFile("x.cuh", "#define X 1\n")
    asked = request(GOOD)
    variations = [
        asked,
        request(GOOD + " "),
        request(GOOD, extra_cflags=("-O1",)),
        request(GOOD, files=(*asked.files, header)),
        request(GOOD, files=(*asked.files, dataclasses.replace(header, text="#define X 2\n"))),
        request(GOOD, functions=(("f", ""),)),
    ]
    keys = {service.build(variation, timeout=60).key for variation in variations}
    toolchain.version = "2"
    keys.add(service.build(asked, timeout=60).key)
    assert len(keys) == len(variations) + 1
    assert service.build(request(GOOD, above=9, name="n"), timeout=60).key in keys


def test_a_step_that_variants_share_runs_once(
    service: BuildService, toolchain: PlainToolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = Step(("sh", "-c", "echo ran >> ../out/log"))
    variants = [
        Variant(name, (shared,), Step(("cp", "../out/log", f"../out/{name}")), name)
        for name in ("fast", "checked")
    ]
    monkeypatch.setattr(toolchain, "plan", lambda *_: Plan(variants=tuple(variants)))
    result = service.build(request(GOOD), timeout=60)
    assert [Path(path).read_text() for _, path in result.libraries] == ["ran\n", "ran\n"]


def test_a_compiler_that_is_gone_is_a_fault(
    service: BuildService, toolchain: PlainToolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Variant("fast", (Step(("no-such-g++",)),), Step(("true",)), "x")
    monkeypatch.setattr(toolchain, "plan", lambda *_: Plan(variants=(gone,)))
    with pytest.raises(ToolchainFault, match=r"no-such-g\+\+"):
        service.build(request(GOOD), timeout=60)


@pytest.mark.parametrize("protection", ["basic", "hardened"])
def test_compilers_work_at_other_levels(
    tmp_path: Path, toolchain: PlainToolchain, protection: str
) -> None:
    toolchains = {"emulator": toolchain}
    with BuildService(tmp_path, protection=protection, toolchains=toolchains) as service:
        assert answer(service.build(request(GOOD), timeout=60), "checked") == 41


def test_an_unknown_level_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="protection: expected one of basic"):
        BuildService(tmp_path, protection="iron")


def test_workspace_files_can_be_included(service: BuildService) -> None:
    text = '#include "deep/x.cuh"\nextern "C" int answer() { return X; }\n'
    files = (
        SourceFile("deep/x.cuh", '#include "y.cuh"\n'),
        SourceFile("deep/y.cuh", "#define X 7"),
    )
    result = service.build(request(text, files=files), timeout=60)
    assert answer(result, "fast") == 7
    broken = (files[0], SourceFile("deep/y.cuh", "#define X 7\nint a b;\n"))
    result = service.build(request(text, files=broken), timeout=60)
    assert [(d.file, d.line) for d in result.diagnostics] == [("deep/y.cuh", 2)]


def test_equal_requests_at_once_are_built_once(
    service: BuildService, toolchain: PlainToolchain
) -> None:
    results: list[BuildResult] = []

    def build() -> None:
        results.append(service.build(request(GOOD), timeout=60))

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(result.cached for result in results) == [False, True, True, True]
    assert len(toolchain.planned) == 1


def test_a_damaged_library_is_built_again(service: BuildService) -> None:
    first = service.build(request(GOOD), timeout=60)
    Path(first.library("fast")).write_bytes(b"")
    second = service.build(request(GOOD), timeout=60)
    assert not second.cached
    assert answer(second, "fast") == 40


def test_what_is_unsupported_names_its_line(service: BuildService) -> None:
    result = service.build(request("\nint a;\nusing wmma;\n"), timeout=60)
    assert result.status == "unsupported"
    (found,) = result.diagnostics
    assert (found.file, found.line, found.code) == ("model_new.py", 4, "u.wmma")
    assert service.build(request("\nint a;\nusing wmma;\n"), timeout=60).cached


BOMB = """
template <int D, int I> struct Tree { Tree<D - 1, 2 * I> left; Tree<D - 1, 2 * I + 1> right; };
template <int I> struct Tree<0, I> {};
Tree<24, 1> tree;
"""


def test_a_bomb_ends_at_the_limit_and_is_not_kept(
    service: BuildService, toolchain: PlainToolchain
) -> None:
    result = service.build(request(BOMB), timeout=0.7)
    assert result.status == "timeout"
    assert result.seconds < 4
    assert "time limit" in result.diagnostics[0].text
    service.build(request(BOMB), timeout=0.7)
    assert len(toolchain.planned) == 2


def test_an_array_bomb_ends_at_the_limit_of_its_output(service: BuildService) -> None:
    result = service.build(request("char a[1ul << 34] = {1};\n"), timeout=30)
    assert result.status == "compile_error"
    assert any("reached a limit" in d.text for d in result.diagnostics)


def test_compilers_reveal_no_file(service: BuildService) -> None:
    result = service.build(request('#include "/etc/passwd"\n'), timeout=60)
    assert result.status == "compile_error"
    assert "root" not in " ".join(d.text + d.excerpt for d in result.diagnostics)


def test_a_flag_that_is_not_allowed_is_an_error(
    service: BuildService, toolchain: PlainToolchain
) -> None:
    result = service.build(request(GOOD, extra_cflags=("-fplugin=x.so",)), timeout=60)
    assert result.status == "compile_error"
    assert "'-fplugin=x.so'" in result.diagnostics[0].text
    assert toolchain.planned == []


@pytest.mark.parametrize(
    "path",
    ["../x.h", "/etc/x.h", "a/../../x.h", "-o", "a//b", "./a", "", "a\0b", 'a"b', "a/..", "a\nb"],
)
def test_paths_cannot_leave_the_scratch_folder(
    service: BuildService, toolchain: PlainToolchain, path: str
) -> None:
    for changes in ({"files": (SourceFile(path, ""),)}, {"sources": (path,)}):
        result = service.build(request(GOOD, **changes), timeout=60)
        assert result.status == "compile_error"
        assert "inside the workspace" in result.diagnostics[0].text
    assert toolchain.planned == []


def test_a_file_cannot_be_a_folder_too(service: BuildService) -> None:
    files = (SourceFile("a", ""), SourceFile("a/b", ""))
    assert service.build(request(GOOD, files=files), timeout=60).status == "compile_error"


def test_too_much_source_is_refused(service: BuildService) -> None:
    result = service.build(request("/" * (16 * 2**20 + 1)), timeout=60)
    assert "characters of inline source" in result.diagnostics[0].text


def test_a_target_without_a_toolchain_is_a_fault(tmp_path: Path) -> None:
    with (
        BuildService(tmp_path, toolchains={}) as service,
        pytest.raises(ToolchainFault, match=r"expected one of \[\], got 'sm_90'"),
    ):
        service.build(request(GOOD, target="sm_90"), timeout=60)


def test_origin_follows_line_directives() -> None:
    unit = '#include <a>\n#line 1 "cpp_sources[0]"\nx\ny\n#line 9\nz\n# 5 "m.py"\nw\n'
    assert [origin(unit, line) for line in (1, 3, 4, 6, 8)] == [
        ("", 1),
        ("cpp_sources[0]", 1),
        ("cpp_sources[0]", 2),
        ("cpp_sources[0]", 9),
        ("m.py", 5),
    ]
