"""Root's process keeps the one privilege that counting on a GPU takes, and what it brings is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelgym.config import JudgeConfig
from kernelgym.judge import confinement
from kernelgym.judge.confinement import candidate_policy

PERFMON = 38
# Confines itself with only its own scratch folder to write, then tells what it still may.
SCRIPT = """
import ctypes, errno, json, os, re, sys
from kernelgym.toolchain.confinement import Policy, confine
from kernelgym.toolchain.confinement.seccomp import _NUMBERS
calls = {name: _NUMBERS[name][os.uname().machine == "aarch64"] for name in ("bpf", "perf_event_open")}
libc = ctypes.CDLL(None, use_errno=True)
level, keep, scratch = sys.argv[1], sys.argv[2] == "keep", sys.argv[3]
policy = Policy(level, ("/usr", "/lib", "/lib64", "/proc"), (scratch,), performance_counters=keep)
told = {"protections": confine(policy, namespaces=())}
status = open("/proc/self/status").read()
told["effective"] = int(re.search(r"CapEff:\\s*(\\w+)", status)[1], 16)
told["permitted"] = int(re.search(r"CapPrm:\\s*(\\w+)", status)[1], 16)
for name, number in calls.items():
    libc.syscall(number, None, 0, 0, 0, 0)
    told[name] = errno.errorcode[ctypes.get_errno()]
print(json.dumps(told))
"""


def confined(level: str, how: str, scratch: Path) -> dict[str, object]:
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, level, how, str(scratch)],
        capture_output=True,
        text=True,
        check=True,
        cwd=scratch,
    )
    told: dict[str, object] = json.loads(done.stdout)
    return told


def may_count() -> bool:
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("CapEff"))
    return os.geteuid() == 0 and bool(int(line.split()[1], 16) >> PERFMON & 1)


@pytest.mark.skipif(not may_count(), reason="needs root with CAP_PERFMON")
@pytest.mark.parametrize("level", ["standard", "hardened"])
def test_only_the_right_to_count_is_kept(level: str, tmp_path: Path) -> None:
    told = confined(level, "keep", tmp_path / "scratch")
    assert told["effective"] == told["permitted"] == 1 << PERFMON
    assert "only_performance_counters" in told["protections"]  # type: ignore[operator]
    assert "no_capabilities" not in told["protections"]  # type: ignore[operator]
    assert (told["bpf"], told["perf_event_open"]) == ("EPERM", "EPERM")


def test_nothing_is_kept_unasked(tmp_path: Path) -> None:
    told = confined("standard", "drop", tmp_path / "scratch")
    assert told["effective"] == told["permitted"] == 0
    assert "no_capabilities" in told["protections"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("restricted", "counters", "gpu", "kept"),
    [
        (True, True, True, True),
        # The driver does not tell: it may.
        (None, True, True, True),
        (False, True, True, False),
        (True, False, True, False),
        (True, True, False, False),
    ],
)
def test_it_is_kept_where_it_is_needed(
    restricted: bool | None,
    counters: bool,
    gpu: bool,
    kept: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(confinement, "profiling_restricted", lambda: restricted)
    policy = candidate_policy(JudgeConfig(counters=counters), tmp_path, (), gpu=gpu)
    assert policy.performance_counters is kept
