"""What a built extension calls of the C library and of the emulator: read from its symbol table.

Source can hide a call behind macros, an assembler label or a pasted token; the dynamic symbol table,
written by a linker of ours, cannot. What no kernel and no binding needs is refused: changing the
protection of memory, finding functions by name, threads, processes, signals, raw system calls, and
those functions of the emulator that its headers never call.
"""

from __future__ import annotations

import functools
import shutil
import subprocess

from kernelgym.errors import ToolchainFault

__all__ = ["refused_calls"]

_REFUSED = frozenset(
    {
        *("dlopen", "dlsym", "dlvsym", "dlmopen", "dl_iterate_phdr", "dlinfo"),
        *("mprotect", "pkey_mprotect", "mmap", "mmap64", "mremap", "munmap", "remap_file_pages"),
        *("ptrace", "process_vm_readv", "process_vm_writev", "syscall", "prctl", "personality"),
        *("fork", "vfork", "clone", "posix_spawn", "posix_spawnp", "system", "popen", "execve"),
        *("execv", "execvp", "execl", "execlp", "execle", "fexecve"),
        *("pthread_create", "thrd_create", "kill", "tgkill", "sigaction", "signal", "sigaltstack"),
        *("socket", "connect", "sendmsg", "recvmsg", "PyRun_SimpleString", "PyRun_String"),
        *("PyRun_SimpleStringFlags", "PyRun_StringFlags", "PyEval_EvalCode", "Py_CompileString"),
    }
)
_REFUSED_PREFIXES = ("_ZNSt6thread15_M_start_thread",)
# The judge's own handles on the emulator.
_JUDGES = frozenset(
    "kgemu_" + name
    for name in (
        *("reset", "report", "watch_host", "guard_device", "begin_device_work", "do_nothing"),
        *("end_device_work", "set_order", "set_access_budget"),
    )
)


# A path of the cache is named by its content, and asked about four times in a judgement.
@functools.lru_cache(maxsize=1024)
def refused_calls(library: str) -> tuple[str, ...]:
    """Names of functions that an extension imports and has no use for, sorted.

    Args:
        library: Path of a shared library that the build service made.

    Raises:
        ToolchainFault: There is no `nm`, which comes with every g++, or it cannot read the library.
    """
    program = shutil.which("nm")
    if program is None:
        raise ToolchainFault("expected nm (of binutils) on the PATH, got none")
    listed = subprocess.run(
        [program, "--dynamic", "--undefined-only", library],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        raise ToolchainFault(f"expected the symbols of {library}, got: {listed.stderr[-500:]}")
    names = {
        line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines() if line.strip()
    }
    return tuple(
        sorted(
            name
            for name in names
            if name in _REFUSED or name in _JUDGES or name.startswith(_REFUSED_PREFIXES)
        )
    )
