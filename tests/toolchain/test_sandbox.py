"""What a confined command can and cannot do."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgym.errors import SandboxFault
from kernelgym.toolchain import confinement
from kernelgym.toolchain.sandbox import Finished, protections, run_confined

LEVELS = ("basic", "standard", "hardened")
PYTHON = [sys.executable, "-I", "-S", "-c"]
# The interpreter's own folders: it may be a virtual environment's, or lie in somebody's home.
INTERPRETER = [sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))]
files_are_confined = pytest.mark.skipif(
    not {"landlock", "mountns"} & set(protections("standard")),
    reason="this kernel or container allows neither Landlock nor mount namespaces",
)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    # pytest's folders are private to the user, and root's command runs as nobody.
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder.name.startswith("pytest-"):
            folder.chmod(0o755)
    folder = tmp_path / "scratch"
    folder.mkdir()
    tmp_path.chmod(0o755)
    return folder


def shell(script: str, scratch: Path, protection: str = "standard", **limits: float) -> Finished:
    return run_confined(
        ["sh", "-c", script],
        cwd=scratch,
        writable=[str(scratch)],
        protection=protection,
        **limits,  # type: ignore[arg-type]
    )


def python(script: str, scratch: Path, protection: str = "standard", **limits: float) -> Finished:
    return run_confined(
        [*PYTHON, script],
        cwd=scratch,
        readable=INTERPRETER,
        writable=[str(scratch)],
        protection=protection,
        **limits,  # type: ignore[arg-type]
    )


def processes_with(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_an_honest_command_works_at_every_level(level: str, scratch: Path) -> None:
    finished = shell("echo out; echo err >&2; echo kept > file; exit 3", scratch, level)
    assert (finished.returncode, finished.stdout, finished.stderr) == (3, "out\n", "err\n")
    assert (scratch / "file").read_text() == "kept\n"
    assert not finished.timed_out
    assert not finished.truncated
    assert set(finished.protections) >= {"rlimits", "environment", "process_group"}


def test_levels_add_protections() -> None:
    names = [set(protections(level)) for level in LEVELS]
    assert names[0] <= names[1] <= names[2]
    assert "no_network" in names[1]
    assert "seccomp" in names[2] - names[1]


@files_are_confined
def test_files_outside_can_be_neither_read_nor_written(scratch: Path) -> None:
    secret = scratch.parent / "secret"
    secret.write_text("the salt")
    secret.chmod(0o666)
    scratch.parent.chmod(0o777)
    finished = shell(
        f"cat {secret}; cat /etc/passwd; echo x > {secret}; ls {secret.parent}", scratch
    )
    assert "salt" not in finished.stdout + finished.stderr
    assert "root:" not in finished.stdout
    assert finished.returncode != 0
    assert secret.read_text() == "the salt"


@files_are_confined
def test_a_compiler_reveals_no_file(scratch: Path) -> None:
    (scratch / "a.cpp").write_text('#include "/etc/passwd"\n')
    finished = run_confined(["g++", "-c", "a.cpp"], cwd=scratch, writable=[str(scratch)])
    assert finished.returncode == 1
    assert "root" not in finished.stderr
    assert "/etc/passwd" in finished.stderr


def test_no_network(scratch: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)"
        assert python(connect, scratch, "basic").returncode == 0
        assert python(connect, scratch, "standard").returncode != 0


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_outlives_the_command(level: str, scratch: Path) -> None:
    mark = f"86{os.getpid()}{level[0].encode().hex()}"
    finished = shell(f"setsid sleep {mark} & (setsid sleep {mark} &) ; true", scratch, level)
    assert finished.returncode == 0
    assert processes_with(mark) == []


@pytest.mark.parametrize("level", LEVELS)
def test_the_wall_clock_ends_it_whole(level: str, scratch: Path) -> None:
    mark = f"87{os.getpid()}{level[0].encode().hex()}"
    started = time.monotonic()
    finished = shell(f"(setsid sleep {mark} &); sleep {mark}", scratch, level, wall_seconds=0.4)
    assert finished.timed_out
    assert finished.returncode == -9
    assert time.monotonic() - started < 2.0
    assert processes_with(mark) == []


def test_processor_time_is_limited(scratch: Path) -> None:
    finished = shell("while :; do :; done", scratch, cpu_seconds=1, wall_seconds=20)
    assert not finished.timed_out
    assert finished.returncode != 0
    assert finished.cpu_seconds < 4


def test_memory_is_limited(scratch: Path) -> None:
    finished = python("b'x' * 2**30", scratch, memory_bytes=2**29)
    assert finished.returncode == 1
    assert "MemoryError" in finished.stderr


def test_file_size_is_limited(scratch: Path) -> None:
    finished = shell(
        "head -c 2000000 /dev/zero > big || head -c 2000000 /usr/bin/env > big; true",
        scratch,
        file_bytes=1000,
    )
    assert finished.returncode == 0
    assert (scratch / "big").stat().st_size <= 1000


def test_output_is_cut_and_drained(scratch: Path) -> None:
    finished = shell("yes | head -c 3000000; echo end >&2", scratch, output_bytes=1000)
    assert finished.returncode == 0
    assert len(finished.stdout) == 1000
    assert finished.truncated
    assert finished.stderr == "end\n"


def test_a_fork_storm_ends(scratch: Path) -> None:
    started = time.monotonic()
    finished = shell(
        "storm() { while :; do storm & done; }; storm",
        scratch,
        wall_seconds=0.5,
        max_processes=40,
    )
    assert finished.returncode != 0
    assert time.monotonic() - started < 4.0
    assert shell("echo fine", scratch).stdout == "fine\n"


def test_the_environment_is_scrubbed(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    finished = run_confined(["env"], cwd=scratch, writable=[str(scratch)], env={"ADDED": "1"})
    assert "hush" not in finished.stdout
    assert "ADDED=1" in finished.stdout
    assert f"TMPDIR={scratch}" in finished.stdout


def test_a_missing_program_is_an_end_like_others(scratch: Path) -> None:
    finished = run_confined(["no-such-compiler"], cwd=scratch, writable=[str(scratch)])
    assert finished.returncode == 127
    assert "no-such-compiler" in finished.stderr


def test_an_unknown_level_is_a_fault(scratch: Path) -> None:
    with pytest.raises(SandboxFault, match="level: expected one of basic"):
        shell("true", scratch, protection="iron")


def test_hardened_refuses_what_reaches_into_the_kernel(scratch: Path) -> None:
    script = """
import ctypes, errno, platform
libc = ctypes.CDLL(None, use_errno=True)
user = 0x10000000
assert libc.unshare(user) == -1 and ctypes.get_errno() == errno.EPERM
bpf = {"x86_64": 321, "aarch64": 280}[platform.machine()]
assert libc.syscall(bpf, 99, None, 0) == -1 and ctypes.get_errno() == errno.EPERM
assert libc.ptrace(0, 0, None, None) == -1 and ctypes.get_errno() == errno.EPERM
"""
    assert python(script, scratch, "hardened").returncode == 0
    assert python(script, scratch, "basic").returncode != 0


def in_a_child(script: str, scratch: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script that confines itself; `policy` and `confinement` are bound in it."""
    package = os.path.dirname(os.path.dirname(confinement.__file__))
    readable = (*INTERPRETER, "/usr", "/lib", "/lib64", "/bin", package)
    head = f"""
import os, sys
sys.path.append({package!r})
import confinement
policy = confinement.Policy(readable={readable!r}, writable=({str(scratch)!r},))
"""
    return subprocess.run(
        [*PYTHON, head + script], cwd=scratch, capture_output=True, text=True, timeout=30
    )


def test_new_processes_can_be_refused(scratch: Path) -> None:
    script = """
import threading, signal
active = confinement.confine(policy._replace(level="basic", new_processes=False))
assert "no_processes" in active
try: os.fork()
except PermissionError: pass
else: raise SystemExit("forked")
try: os.kill(os.getppid(), 0)
except PermissionError: pass
else: raise SystemExit("signalled")
thread = threading.Thread(target=print, args=("threads work",))
thread.start(); thread.join()
"""
    done = in_a_child(script, scratch)
    assert (done.returncode, done.stdout) == (0, "threads work\n"), done.stderr


@pytest.mark.skipif(
    "landlock" not in protections("standard"), reason="the fallback is what runs already"
)
def test_mounts_stand_in_for_landlock(scratch: Path) -> None:
    secret = scratch.parent / "secret"
    secret.write_text("the salt")
    script = f"""
from confinement import namespaces
confinement.landlock_version = lambda: 0
confinement.restrict_files = lambda policy: False
entered = confinement.enter_namespaces(policy, pid=False)
if "mountns" not in entered:
    raise SystemExit(77)
active = confinement.confine(policy, entered)
assert "mountns" in active, active
assert not os.path.exists({str(secret)!r})
assert not os.path.exists("/etc/passwd")
open("made", "w").close()
try: open("/usr/made", "w")
except OSError: pass
else: raise SystemExit("wrote to /usr")
try: open("/made", "w")
except OSError: pass
else: raise SystemExit("wrote to /")
os.execv("/bin/sh", ["sh", "-c", "echo runs"])
"""
    done = in_a_child(script, scratch)
    if done.returncode == 77:
        pytest.skip("mount namespaces are not allowed here")
    assert (done.returncode, done.stdout) == (0, "runs\n"), done.stderr
    assert (scratch / "made").exists()


def test_no_namespace_at_all_degrades_and_says_so(scratch: Path) -> None:
    script = """
active = confinement.confine(policy, ())
assert "no_network" in active and "pidns" not in active, active
import socket
try: socket.socket(socket.AF_INET)
except OSError: pass
else: raise SystemExit("a socket")
socket.socket(socket.AF_UNIX).close()
"""
    done = in_a_child(script, scratch)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes its user")
def test_root_stays_root_without_powers_where_nobody_could_not_reach(scratch: Path) -> None:
    private = scratch.parent / "private"
    private.mkdir(mode=0o700)
    (private / "header.h").write_text("text\n")
    common = {"cwd": scratch, "readable": [str(private)], "writable": [str(scratch)]}
    command = ["sh", "-c", f"cat {private}/header.h && echo x > made && chown 1:1 made"]
    finished = run_confined(command, **common)  # type: ignore[arg-type]
    assert "unprivileged" not in finished.protections
    assert "no_capabilities" in finished.protections
    assert finished.stdout == "text\n"
    assert (scratch / "made").exists()
    assert finished.returncode != 0  # The capability to change owners is gone.
    finished = shell("cat made && id -u", scratch)
    assert finished.stdout == "x\n65534\n"


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_outlives_a_caller_that_is_killed(level: str, scratch: Path) -> None:
    mark = f"88{os.getpid()}{level[0].encode().hex()}"
    script = (
        "from kernelgym.toolchain.sandbox import run_confined\n"
        f"run_confined(['sleep', '{mark}'], cwd={str(scratch)!r}, writable=[{str(scratch)!r}],"
        f" protection={level!r})"
    )
    (scratch / "caller.py").write_text(script)
    with subprocess.Popen([sys.executable, scratch / "caller.py"]) as caller:
        wait_until(lambda: any(is_sleep(process) for process in processes_with(mark)))
        caller.kill()
    wait_until(lambda: processes_with(mark) == [])


def is_sleep(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/comm").read_text() == "sleep\n"
    except OSError:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes its user")
def test_a_folder_that_is_shared_is_never_given_away(scratch: Path) -> None:
    shared = scratch / "shared"
    shared.mkdir()
    shared.chmod(0o1777)  # as /tmp is
    with pytest.raises(SandboxFault, match="expected a writable folder of the command's own"):
        run_confined(["true"], cwd=scratch, writable=[str(scratch), str(shared)])
    assert shared.stat().st_uid == 0
