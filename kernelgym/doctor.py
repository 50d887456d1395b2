"""What this machine has for judging, what it lacks, and the command that brings what is missing."""

from __future__ import annotations

import dataclasses
import importlib.resources
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kernelgym.config import PROTECTIONS, JudgeConfig
from kernelgym.errors import KernelGymError, SandboxFault, ToolchainFault
from kernelgym.feedback import format_bytes

__all__ = ["Finding", "examine", "fit"]

_OLDEST_GCC = 11
_PROBE_TASK = "L1/19"
_ALWAYS = frozenset({"rlimits", "no_new_privileges", "environment", "process_group"})
_STANDARD = _ALWAYS | {
    "no_network",
    "pidns",
    "ipcns",
    "landlock",
    "unprivileged",
    "no_capabilities",
}
_EXPECTED = {"basic": _ALWAYS, "standard": _STANDARD, "hardened": _STANDARD | {"seccomp"}}
_NAMESPACES = (
    "allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1 (Debian), "
    "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), "
    "or start the container with --security-opt seccomp=unconfined"
)
_REMEDIES = {
    "pidns": _NAMESPACES,
    "ipcns": _NAMESPACES,
    "no_network": _NAMESPACES,
    "landlock": "Linux 5.13 or newer with landlock among the lsm= modules",
    "unprivileged": "run as an ordinary user, not as root",
    "no_capabilities": "run as an ordinary user, not as root",
    "seccomp": "a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or aarch64",
}
_CAP_PERFMON = 38
_ALLOW_COUNTERS = (
    "on the machine itself, for all users: echo 'options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf, "
    "then sudo update-initramfs -u (Debian, Ubuntu) or sudo dracut -f (Fedora, RHEL), and restart; "
    "in Docker instead, as root, with driver 565 or newer: docker run --cap-add=PERFMON; "
    "under Slurm: ask for nodes with that option; where DCGM watches the GPU: "
    "dcgmi profile --pause before the job and dcgmi profile --resume after it"
)


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        name: What.
        status: `"ok"`, `"missing"` (judging needs it) or `"optional"` (absent, and not needed).
        detail: What was found, with versions, paths and seconds.
        remedy: The exact command, or what else brings it; `""` when nothing is missing.
    """

    name: str
    status: str
    detail: str
    remedy: str = ""


def fit(findings: tuple[Finding, ...]) -> bool:
    """Whether judging works on this machine: nothing that it needs is missing."""
    return all(finding.status != "missing" for finding in findings)


def examine(config: JudgeConfig | None = None) -> tuple[Finding, ...]:
    """Looks at the machine, and judges a tiny candidate end to end.

    Args:
        config: How the candidate is judged; for the emulator by default.
    """
    config = config or JudgeConfig(device="cpu")
    probes: tuple[Callable[[], Finding], ...] = (
        _machine,
        _python,
        _torch,
        _compiler,
        _emulator,
        _gpu,
        _nvcc,
        _gpu_judging,
        _counters,
        _machine_code,
        _energy,
        _cache,
    )
    from kernelgym.ways import ways

    found = [probe() for probe in probes]
    return (*found, *ways(), *_protections(), _judging(config))


def _machine() -> Finding:
    detail = f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} CPUs"
    if platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64"):
        return Finding("machine", "ok", detail)
    remedy = "use Linux on x86-64 or aarch64; on Windows: wsl --install"
    return Finding("machine", "missing", detail, remedy)


def _python() -> Finding:
    return Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def _torch() -> Finding:
    import torch

    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU build"
    return Finding("torch", "ok", f"{torch.__version__} ({build})")


def _compiler() -> Finding:
    remedy = _install({"apt-get": "g++", "dnf": "gcc-c++", "zypper": "gcc-c++", "pacman": "gcc"})
    path = shutil.which("g++")
    if path is None:
        return Finding("g++", "missing", f"not on the PATH; {_OLDEST_GCC} or newer", remedy)
    version = _first_line([path, "-dumpfullversion"])
    if not version or int(version.split(".")[0]) < _OLDEST_GCC:
        detail = f"{version or 'does not run'} at {path}; expected {_OLDEST_GCC} or newer"
        return Finding("g++", "missing", detail, remedy)
    return Finding("g++", "ok", f"{version} at {path}")


def _emulator() -> Finding:
    from kernelgym.toolchain.cache import default_cache_root
    from kernelgym.toolchain.emulated import Emulated

    start = time.perf_counter()
    try:
        # The very folder that the build service uses.
        kit = Emulated(default_cache_root() / "kits").kit()
    except ToolchainFault as fault:
        return Finding("emulator", "missing", str(fault), "get g++ (above) first")
    except OSError as error:
        return Finding("emulator", "missing", str(error), "see the cache, below")
    took = time.perf_counter() - start
    # Building it takes seconds, finding it milliseconds.
    how = f"built in {took:.1f} s" if took > 1 else "built before"
    return Finding("emulator", "ok", f"{how}, {kit.directory}")


def _gpu() -> Finding:
    import torch

    if torch.cuda.is_available():
        names = {torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())}
        driver = _first_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
        detail = f"{torch.cuda.device_count()} x {', '.join(sorted(names))}, driver {driver}"
        return Finding("GPU", "ok", detail)
    listed = _first_line(["nvidia-smi", "-L"])
    if listed:
        detail = f"{listed}, which this torch cannot use"
        return Finding("GPU", "optional", detail, "pip install --force-reinstall torch")
    return Finding(
        "GPU", "optional", "none: kernels run on the emulator, and times are modelled",
        "for measured times: a machine with an NVIDIA GPU and its driver",
    )  # fmt: skip


def _nvcc() -> Finding:
    from kernelgym.toolchain.cuda import find_nvcc, nvcc_version

    path = find_nvcc()
    if path is None:
        detail = "none: no errors, registers or spills as nvcc reports them"
        return Finding("nvcc", "optional", detail, _pip("cuda"))
    try:
        return Finding("nvcc", "ok", f"{nvcc_version(path)} at {path}")
    except (ToolchainFault, SandboxFault) as fault:
        return Finding("nvcc", "optional", str(fault), _pip("cuda"))


def _gpu_judging() -> Finding:
    import torch

    from kernelgym.toolchain.cuda import find_nvcc

    parts = (("a GPU that torch can use", torch.cuda.is_available()), ("nvcc", bool(find_nvcc())))
    lacking = [name for name, found in parts if not found]
    if not lacking:
        detail = "device='cuda' (and 'auto') builds, checks and times on the GPU; docs/gpu.md"
        return Finding("GPU judging", "ok", detail)
    detail = f"needs {' and '.join(lacking)}; until then device='auto' is the emulator"
    return Finding("GPU judging", "optional", detail, "see docs/gpu.md, and the lines above")


def _counters() -> Finding:
    from kernelgym.judge.cupti import find_cupti
    from kernelgym.judge.range_profiler import profiling_restricted

    library = find_cupti()
    if library is None:
        detail = "emulator only; no CUPTI, which counts on a GPU"
        return Finding("counters", "optional", detail, _pip_package("nvidia-cuda-cupti"))
    restricted = profiling_restricted()
    if restricted and not _has_capability(_CAP_PERFMON):
        detail = (
            "emulator only; the driver keeps its counters from this process (ERR_NVGPUCTRPERM: "
            "RmProfilingAdminOnly is 1, and it has no CAP_PERFMON)"
        )
        return Finding("counters", "optional", detail, _ALLOW_COUNTERS)
    return Finding("counters", "ok", f"emulator; CUPTI at {library}")


def _machine_code() -> Finding:
    from kernelgym.toolchain.sass import find_disassembler

    found = [find_disassembler(name) for name in ("nvdisasm", "cuobjdump")]
    if all(found):
        return Finding("machine code", "ok", f"nvdisasm at {found[0]}, cuobjdump at {found[1]}")
    detail = "no nvdisasm or cuobjdump: verdicts do not tell what instructions a kernel has"
    return Finding("machine code", "optional", detail, _pip("cuda"))


def _energy() -> Finding:
    if importlib.util.find_spec("pynvml") is not None:
        return Finding("energy", "ok", "the module pynvml reads a GPU's counter of joules")
    detail = "no module pynvml, which reads a GPU's counter of joules (energy=True)"
    return Finding("energy", "optional", detail, _pip_package("nvidia-ml-py"))


def _has_capability(number: int) -> bool:
    """Whether this process has one of the kernel's privileges in effect."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return False
    match = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    return match is not None and bool(int(match[1], 16) >> number & 1)


def _cache() -> Finding:
    from kernelgym.toolchain.cache import default_cache_root

    root = default_cache_root()
    try:
        # Tried, for permissions do not tell: of a file system, of a quota, of root.
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            size = sum(path.stat().st_size for path in _files_below(root))
    except OSError as error:
        remedy = f"a HOME (or XDG_CACHE_HOME) that can be written, or sudo chown -R $USER {root}"
        return Finding("cache", "missing", f"cannot write {root}: {error.strerror}", remedy)
    return Finding("cache", "ok", f"{format_bytes(size)} in {root}")


def _protections() -> Iterator[Finding]:
    from kernelgym.toolchain.sandbox import protections

    for level in PROTECTIONS:
        name = f"confinement {level}"
        try:
            active = set(protections(level))
        except SandboxFault as fault:
            status = "missing" if level == JudgeConfig().protection else "optional"
            yield Finding(name, status, str(fault), "judge with --protection basic")
            continue
        # A root of bind mounts stands in for Landlock where the kernel has none.
        stands_in = {"landlock"} if "mountns" in active else set()
        lacking = sorted(_EXPECTED[level] - active - stands_in)
        remedies = dict.fromkeys(_REMEDIES[one] for one in lacking if one in _REMEDIES)
        if lacking:
            detail = f"without {', '.join(lacking)}; active: {', '.join(sorted(active))}"
            yield Finding(name, "optional", detail, "; ".join(remedies))
        else:
            yield Finding(name, "ok", ", ".join(sorted(active)))


def _judging(config: JudgeConfig) -> Finding:
    from kernelgym.judge.judge import Judge
    from kernelgym.judge.verdict import to_json

    text = (importlib.resources.files("kernelgym") / "templates" / "doctor_candidate.py").read_text(
        "utf-8"
    )
    try:
        with Judge(config) as judge:
            start = time.perf_counter()
            first = judge.evaluate(_PROBE_TASK, text)
            between = time.perf_counter()
            judge.evaluate(_PROBE_TASK, text)
            end = time.perf_counter()
    except (KernelGymError, OSError) as error:
        return Finding("judging", "missing", f"{type(error).__name__}: {error}", "see above")
    if not first.correct:
        remedy = "please report this with the output of kernelgym doctor --json"
        return Finding("judging", "missing", f"a correct kernel got {to_json(first)}", remedy)
    detail = (
        f"a correct ReLU got 'correct' in {between - start:.1f} s, again in {end - between:.1f} s"
    )
    return Finding("judging", "ok", detail)


def _install(packages: dict[str, str]) -> str:
    for manager, package in packages.items():
        if shutil.which(manager):
            verb = "-S" if manager == "pacman" else "install"
            return f"sudo {manager} {verb} {package}"
    return f"install {' or '.join(dict.fromkeys(packages.values()))} with the system's packages"


def _pip(extra: str) -> str:
    return f"{sys.executable} -m pip install 'kernelgym[{extra}]'"


def _pip_package(name: str) -> str:
    return f"{sys.executable} -m pip install {name}"


def _first_line(command: list[str]) -> str:
    """The first line that a command prints; `""` when it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().split("\n")[0] if done.returncode == 0 else ""


def _files_below(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder) / name
            # Another process may drop an entry meanwhile.
            if path.exists():
                yield path
