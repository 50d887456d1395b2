from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from kernelgym import doctor
from kernelgym.cli import app
from kernelgym.cli.exits import Exit
from kernelgym.doctor import Finding, fit
from kernelgym.judge import cupti, range_profiler
from kernelgym.toolchain import cache, cuda, sandbox, sass


def test_this_machine_can_judge() -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    findings = {one["name"]: one for one in json.loads(result.stdout)}
    assert result.exit_code == Exit.CORRECT, findings
    assert findings["judging"]["status"] == "ok"
    assert " in " in findings["judging"]["detail"]
    assert {"Python", "torch", "g++", "emulator", "GPU", "nvcc", "GPU judging", "cache"} <= set(
        findings
    )
    assert {"counters", "machine code", "energy"} <= set(findings)
    assert {f"confinement {level}" for level in ("basic", "standard", "hardened")} <= set(findings)
    for one in findings.values():
        assert one["status"] in ("ok", "optional")
        assert bool(one["remedy"]) == (one["status"] == "optional")


def test_what_is_missing_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    found = (Finding("a", "ok", ""), Finding("b", "optional", "", "x"))
    assert fit(found)
    broken = (*found, Finding("g++", "missing", "not [here]", "sudo apt-get install g++"))
    assert not fit(broken)
    monkeypatch.setattr(doctor, "examine", lambda: broken)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == Exit.NO
    assert "not [here]" in result.stdout
    assert "→ sudo apt-get install g++" in result.stdout


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "sudo apt-get install g++"),
        ("dnf", "sudo dnf install gcc-c++"),
        ("pacman", "sudo pacman -S gcc"),
        ("", "install g++ or gcc-c++ or gcc with the system's packages"),
    ],
)
def test_a_missing_compiler_comes_with_its_command(
    manager: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        shutil, "which", lambda name: f"/usr/bin/{name}" if name == manager else None
    )
    finding = doctor._compiler()
    assert (finding.status, finding.remedy) == ("missing", command)


def test_an_old_compiler_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "g++"
    old.write_text("#!/bin/sh\necho 9.4.0\n")
    old.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(old) if name == "g++" else None)
    finding = doctor._compiler()
    assert finding.status == "missing"
    assert "9.4.0" in finding.detail
    assert "expected 11 or newer" in finding.detail


def test_a_missing_nvcc_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "find_nvcc", lambda: None)
    nvcc = doctor._nvcc()
    assert nvcc.status == "optional"
    assert "pip install 'kernelgym[cuda]'" in nvcc.remedy


def test_the_gpu_can_judge_only_with_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(cuda, "find_nvcc", lambda: "/usr/bin/nvcc")
    assert doctor._gpu_judging().status == "ok"
    monkeypatch.setattr(cuda, "find_nvcc", lambda: None)
    without = doctor._gpu_judging()
    assert without.status == "optional"
    assert without.detail.startswith("needs nvcc;")
    assert "docs/gpu.md" in without.remedy


def test_a_cache_that_cannot_be_written_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "file" / "kernelgym"
    place.parent.write_text("")
    monkeypatch.setattr(cache, "default_cache_root", lambda: place)
    found = doctor._cache()
    assert found.status == "missing"
    assert found.detail == f"cannot write {place}: Not a directory"
    assert doctor._emulator().status == "missing"


def test_weaker_confinement_says_what_lacks_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    always = ("rlimits", "no_new_privileges", "environment", "process_group")
    monkeypatch.setattr(sandbox, "protections", lambda level: always)
    basic, standard, hardened = doctor._protections()
    assert basic.status == "ok"
    assert standard.detail.startswith(
        "without ipcns, landlock, no_capabilities, no_network, pidns, unprivileged;"
    )
    assert "user namespaces" in standard.remedy
    assert "5.13" in standard.remedy
    assert "CONFIG_SECCOMP_FILTER" in hardened.remedy


@pytest.mark.parametrize(
    ("restricted", "capable", "allowed"),
    [(True, False, False), (True, True, True), (False, False, True), (None, False, True)],
)
def test_counters_that_the_driver_keeps_come_with_commands(
    restricted: bool | None, capable: bool, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cupti, "find_cupti", lambda: "/usr/lib/libcupti.so.13")
    monkeypatch.setattr(range_profiler, "profiling_restricted", lambda: restricted)
    monkeypatch.setattr(doctor, "_has_capability", lambda number: capable)
    found = doctor._counters()
    assert (found.status == "ok") is allowed
    if not allowed:
        assert "ERR_NVGPUCTRPERM" in found.detail
        for command in (
            "options nvidia NVreg_RestrictProfilingToAdminUsers=0",
            "/etc/modprobe.d/",
            "docker run --cap-add=PERFMON",
            "Slurm",
            "dcgmi profile --pause",
        ):
            assert command in found.remedy


def test_what_counts_nothing_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupti, "find_cupti", lambda: None)
    assert doctor._counters().remedy.endswith("-m pip install nvidia-cuda-cupti")
    monkeypatch.setattr(sass, "find_disassembler", lambda name="nvdisasm": None)
    assert "kernelgym[cuda]" in doctor._machine_code().remedy
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    assert doctor._energy().remedy.endswith("-m pip install nvidia-ml-py")


def test_privileges_are_read_from_the_kernel() -> None:
    effective = next(
        int(line.split()[1], 16)
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("CapEff")
    )
    for number in (0, 21, 38):
        assert doctor._has_capability(number) is bool(effective >> number & 1)
    assert not doctor._has_capability(63)
