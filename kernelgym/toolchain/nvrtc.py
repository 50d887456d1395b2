"""The fast toolchain of a GPU: device code by NVRTC, host code by g++, side by side.

A source is split in two (`kernelgym.toolchain.split`). NVRTC reads its half behind headers that it has
precompiled; g++ reads the other behind precompiled headers of ours. What comes out is an extension
module, and beside it a cubin for each source, which the module loads at its first launch. What cannot
be split, or what either compiler refuses, is declined: nvcc has the last word, and its messages are
the ones that an agent reads.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import filelock

from kernelgym.errors import ToolchainFault, UsageError
from kernelgym.toolchain.build import BuildRequest, SourceFile
from kernelgym.toolchain.flags import Flags
from kernelgym.toolchain.gpu import Gpu, code_generation
from kernelgym.toolchain.nvrtc_client import DeviceSource, NvrtcServer
from kernelgym.toolchain.plan import SCRATCH, DeviceStep, Finding, Plan, Step, Variant
from kernelgym.toolchain.split import Declined, Split, split
from kernelgym.toolchain.translation import translation_units
from kernelgym.toolchain.units import TORCH_HEADERS, flat_name, is_cuda

__all__ = ["Nvrtc"]

_PACKAGE = Path(__file__).parent
_HOST_HEADERS = _PACKAGE / "include" / "kgjit"
_DEVICE_HEADERS = _PACKAGE / "include" / "nvrtc"
_OLDEST_CUDA = (12, 8)  # the runtime's functions that load a cubin
_ALWAYS = ("kgdevice.h", "cuda_fp16.h", "cuda_bf16.h")
_PREFIX = (
    "torch/extension.h",
    "ATen/cuda/CUDAContext.h",
    "cuda_runtime.h",
    "cuda_fp16.h",
    "cuda_bf16.h",
    "kgjit.h",
)
# What candidates say of optimisation is meant for computing; this code launches.
# -fno-gnu-unique: templates of two modules in one process must not share their variables.
_GXX = (
    "-std=c++17", "-Og", "-fPIC", "-pipe", "-fno-gnu-unique", "-fdiagnostics-color=never",
    "-fmax-errors=20", "-w",
)  # fmt: skip
# Our headers' inline functions are compiled once, into an object that every module links.
_KIT = "-DKGTORCH_KIT"
_KIT_OBJECT = "kgkit.o"
_KIT_SOURCE = "kgtorch::Overload* kg_kit() { return kgtorch::make_overload(+[] {}); }\n"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")[^\n]*', re.MULTILINE)
_FOR_DEVICE = re.compile(
    r"cuda_(?:fp16|bf16|fp8|pipeline|pipeline_primitives|awbarrier)\.h|mma\.h|math_constants\.h"
    r"|cooperative_groups(?:/\w+)?\.h|curand_kernel\.h|cuda/(?:std/)?\w+"
)
_FOR_HOST = re.compile(
    r"(?:torch|ATen|c10|pybind11)/.*|Python\.h|[a-z_]+|(?:std\w+|math|assert|float|limits|string"
    r"|errno|time|ctype|inttypes)\.h|cuda(?:_runtime(?:_api)?|_device_runtime_api|_profiler_api)?\.h"
    r"|(?:device_launch_parameters|device_functions|vector_types|vector_functions|driver_types"
    r"|device_types|host_defines|device_atomic_functions|cuComplex)\.h|sm_\d+_intrinsics\.h"
    r"|cublas\w*\.h|cudnn\w*\.h|crt/\w+\.h|sys/\w+\.h|unistd\.h"
)
_HEADER = (".cuh", ".h", ".hpp", ".inl", ".inc")
_MACRO = re.compile(r"-D(?P<name>[A-Za-z_]\w*(?:\(\w*\))?)(?:=(?P<value>.*))?", re.DOTALL)
_PASSED_ON = re.compile(
    r"--?(?:use_fast_math|maxrregcount=\d+|(?:fmad|ftz|prec-div|prec-sqrt)=\w+|std=c\+\+\w+|lineinfo"
    r"|restrict|diag-suppress=[\w,-]+)"
)
_SPOKEN = re.compile(r"[\w:<>, ]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_PLAIN_TYPES = frozenset(
    [
        "int",
        "float",
        "double",
        "half",
        "__half",
        "__nv_bfloat16",
        "bool",
        "char",
        "short",
        "long",
        "unsigned",
        "signed",
        "true",
        "false",
        "float2",
        "float4",
        "int2",
        "int4",
        "half2",
        "__half2",
        "size_t",
        "int64_t",
        "int32_t",
        "uint32_t",
        "uint8_t",
    ]
)


class Nvrtc:
    """Builds for a GPU without nvcc, or declines; one variant, `"fast"`.

    Args:
        cache: Folder for precompiled headers of the host's.
        nvcc: The toolchain of nvcc, whose headers and libraries are used.
    """

    path = "nvrtc"

    def __init__(self, cache: Path, nvcc: Gpu) -> None:
        self._cache = cache
        self._gpu = nvcc
        self._lock = threading.Lock()
        self._prefix: Path | None = None
        self._server: NvrtcServer | None = None
        self._missing = ""

    def identity(self) -> str:
        """See `Toolchain.identity`."""
        code = hashlib.sha256()
        for path in (*_files(_HOST_HEADERS), *_files(_DEVICE_HEADERS)):
            code.update(path.read_bytes())
        for path in sorted(_PACKAGE.glob("*.py")):
            code.update(path.read_bytes())
        library = self._libraries()
        return f"nvrtc {library} {self._gpu.identity()} {code.hexdigest()}"

    def start(self, target: str) -> None:
        """Gets everything ready for sources of one architecture.

        Raises:
            ToolchainFault: g++ cannot compile our own headers.
        """
        if self._why_not() is None:
            self._host_prefix()
            self.server(target).start()

    def server(self, target: str) -> NvrtcServer:
        """The process that compiles, for an architecture such as `"sm_90"`."""
        with self._lock:
            if self._server is None:
                found = self._libraries()
                assert found is not None
                self._server = NvrtcServer(
                    *found,
                    headers=_ALWAYS,
                    options=tuple(self._options(target, ())),
                    readable=(str(_DEVICE_HEADERS), *map(str, self._gpu.folders())),
                )
            return self._server

    def close(self) -> None:
        """Ends the process that compiles."""
        with self._lock:
            if self._server is not None:
                self._server.close()
                self._server = None

    def plan(self, request: BuildRequest, flags: Flags, module: str) -> Plan:
        """See `Toolchain.plan`."""
        why = self._why_not()
        if why is not None:
            return _declined(why)
        try:
            units = translation_units(request)
            return self._plan(request, units, flags, module)
        except (Declined, UsageError) as error:
            return _declined(str(error))

    def _plan(
        self, request: BuildRequest, units: Sequence[SourceFile], flags: Flags, module: str
    ) -> Plan:
        prefix = self._host_prefix()
        paths = {file.path for file in request.files}
        texts: dict[str, str] = {}
        files: dict[str, str] = {}
        steps: list[Step | DeviceStep] = []
        cubins: list[str] = []
        constants: set[str] = set()
        headers: set[str] = set()
        for file in request.files:
            if file.path.endswith(_HEADER):
                half = split(file.text)
                files[file.path] = half.host
                hoisted, text = _device_includes(half.device, paths)
                headers |= hoisted
                texts[f"device/{file.path}"] = text
                constants |= half.constants
        macros = [_MACRO.fullmatch(flag) for flag in flags.device]
        defines = "".join(
            f"#define {m['name']} {m['value'] if m['value'] is not None else 1}\n"
            for m in macros
            if m
        )
        folders = _search(units, flags)
        # One run of the compiler is quicker than two and a linker's.
        at_once = len(units) == 1 or _only_declares(request)
        hosts: dict[str, str] = {}
        for unit in units:
            name = flat_name(unit.path)
            hosts[name] = unit.text
            if is_cuda(unit.path):
                half = split(unit.text)
                cubin = f"{module}.{name}.cubin"
                library = f'static ::kgjit::Library kg_library("{cubin}");\n'
                hosts[name] = library + half.host
                hoisted, text = _device_includes(half.device, paths)
                cubins.append(cubin)
                texts[f"device/{name}"] = defines + text
                steps.append(
                    DeviceStep(
                        DeviceSource(
                            source=f"{SCRATCH}/units/device/{name}",
                            folder=f"{SCRATCH}/units/device",
                            temporary=f"{SCRATCH}/nvrtc-{name}",
                            name=unit.path,
                            headers=_precompiled_headers(headers | hoisted),
                            options=tuple(self._device_options(request.target, flags, folders)),
                            expressions=tuple(_expressions(half, constants | half.constants)),
                            precompile=not folders,
                        ),
                        f"{SCRATCH}/out/{cubin}",
                        f"../out/{module}.fast.so" if at_once else f"../out/{name}.o",
                        request.target,
                    )
                )
        library = f"{module}.fast.so"
        given = [flag for flag in flags.host if not re.match(r"-O|-std=c\+\+17$|-W|-g", flag)]
        compiled = (
            "g++", *_GXX, _KIT, *given, *(f"-I{folder}" for folder in (".", *folders)),
            *self._host_includes(), "-include", str(prefix),
            f"-fdebug-prefix-map={SCRATCH}/work=.", f"-DTORCH_EXTENSION_NAME={module}",
            "-DTORCH_API_INCLUDE_EXTENSION_H", "-xc++",
        )  # fmt: skip
        linked = (
            "-xnone", str(prefix.with_name(_KIT_OBJECT)), *self._gpu.linked(units, flags),
            "-o", f"../out/{library}",
        )  # fmt: skip
        if at_once:
            texts["host.cpp"] = "".join(hosts.values())
            steps.append(Step((*compiled, "-shared", *_linker(), "../units/host.cpp", *linked)))
            link = None
        else:
            objects = []
            for name, text in hosts.items():
                texts[name] = text
                objects.append(f"../out/{name}.o")
                steps.append(Step((*compiled, "-c", f"../units/{name}", "-o", objects[-1])))
            link = Step(("g++", "-shared", *_linker(), *objects, *linked))
        variant = Variant("fast", tuple(steps), link, library, tuple(cubins))
        return Plan(
            units=texts,
            files=files,
            variants=(variant,),
            readable=(
                str(TORCH_HEADERS),
                str(prefix.parent),
                str(_HOST_HEADERS),
                sysconfig.get_path("include"),
                *map(str, self._gpu.folders()),
            ),
        )

    def _device_options(self, target: str, flags: Flags, folders: Sequence[str]) -> Iterator[str]:
        passed = [flag for flag in flags.device if _PASSED_ON.fullmatch(flag)]
        yield from self._options(code_generation(target, flags.device), passed)
        # NVRTC runs among the device halves of the workspace's files.
        yield from (f"-I{folder}" for folder in (".", *folders))

    def _options(self, target: str, passed: Sequence[str]) -> Iterator[str]:
        architecture = re.search(r"sm_\d+[af]?", target)
        assert architecture is not None
        yield f"-arch={architecture.group()}"
        if not any("std=" in flag for flag in passed):
            yield "-std=c++17"
        yield from ("-default-device", "--ptxas-options=-v", "-w")
        for flag in passed:
            yield flag if flag.startswith("--") else f"-{flag}"
        yield f"-I{_DEVICE_HEADERS}"
        for folder in self._gpu.folders():
            for include in ("include", "include/cccl"):
                if (folder / include).is_dir():
                    yield f"-I{folder / include}"

    def _why_not(self) -> str | None:
        if self._libraries() is None:
            return self._missing
        version = tuple(map(int, re.findall(r"\d+", self._gpu.compiler().rsplit("V", 1)[-1])[:2]))
        if version < _OLDEST_CUDA:
            needed = ".".join(map(str, _OLDEST_CUDA))
            return f"NVRTC is used from CUDA {needed} on; this is {'.'.join(map(str, version))}"
        return None

    def _libraries(self) -> tuple[str, str] | None:
        """NVRTC's library and its companion."""
        library = self._gpu.library("nvrtc")
        if library is None:
            self._missing = "there is no libnvrtc; pip install nvidia-cuda-nvrtc brings it"
            return None
        companions = sorted(library.parent.glob("libnvrtc-builtins.so*"))
        return str(library), str(companions[0]) if companions else ""

    def _host_includes(self) -> list[str]:
        system = [TORCH_HEADERS, _HOST_HEADERS, Path(sysconfig.get_path("include"))]
        system += [folder / "include" for folder in self._gpu.folders()]
        return [f"-I{path}" for path in system if path.is_dir()]

    def _host_prefix(self) -> Path:
        """The header that every host half starts with, precompiled (some seconds, once)."""
        with self._lock:
            if self._prefix is not None:
                return self._prefix
            key = hashlib.sha256(
                f"{self._gpu.identity()} {_GXX} {_PREFIX} {_KIT_SOURCE} {_gxx_version()}".encode()
            )
            for path in _files(_HOST_HEADERS):
                key.update(path.read_bytes())
            directory = self._cache / f"host-{key.hexdigest()[:24]}"
            header = directory / "kghost.h"
            made = directory / "kghost.h.gch"
            if not made.exists():
                self._cache.mkdir(parents=True, exist_ok=True)
                with filelock.FileLock(self._cache / f"{directory.name}.lock"):
                    if not made.exists():
                        directory.mkdir(exist_ok=True)
                        header.write_text("".join(f"#include <{name}>\n" for name in _PREFIX))
                        self._make_kit(header, made)
            self._prefix = header
            return header

    def _make_kit(self, header: Path, made: Path) -> None:
        """Precompiles the header, and compiles what it leaves out of every module."""
        source = header.with_name("kgkit.cpp")
        source.write_text(f'#include "{header.name}"\n{_KIT_SOURCE}')
        compiled = header.with_name(_KIT_OBJECT)
        common = ("g++", *_GXX, *self._host_includes())
        self._compile([*common, "-fkeep-inline-functions", "-c", str(source)], compiled)
        self._compile([*common, _KIT, "-xc++-header", str(header)], made)

    def _compile(self, command: Sequence[str], made: Path) -> None:
        partial = made.with_suffix(".part")
        result = subprocess.run(
            [*command, "-o", str(partial)], capture_output=True, text=True, check=False
        )
        if result.returncode != 0:
            raise ToolchainFault(f"expected our headers to compile, got: {result.stderr[-4000:]}")
        partial.replace(made)


def _declined(why: str) -> Plan:
    return Plan(findings=(Finding("declined", "", 0, why, "kernelgym"),))


def _linker() -> tuple[str, ...]:
    """The quicker linker, where there is one."""
    return ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()


def _only_declares(request: BuildRequest) -> bool:
    """Whether an inline request's C++ is declarations of what its CUDA source defines."""
    return not request.sources and not any("{" in text for text in request.cpp_sources)


def _files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def _gxx_version() -> str:
    return subprocess.run(
        ["g++", "-dumpfullversion", "-dumpmachine"], capture_output=True, text=True, check=False
    ).stdout


def _search(units: Sequence[SourceFile], flags: Flags) -> list[str]:
    """Folders of the workspace, besides its root, that includes are looked for in."""
    parents = (str(PurePosixPath(unit.path).parent) for unit in units)
    return [folder for folder in dict.fromkeys((*flags.include_dirs, *parents)) if folder != "."]


def _device_includes(text: str, paths: set[str]) -> tuple[set[str], str]:
    """Takes includes out of a device half, apart from the workspace's.

    Returns:
        The headers that NVRTC is to read, and the text.

    Raises:
        Declined: A header is not known to be one that NVRTC reads, nor one that it need not.
    """
    hoisted: set[str] = set()

    def replaced(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if match[2] and any(path == name or path.endswith(f"/{name}") for path in paths):
            return match.group()
        if _FOR_DEVICE.fullmatch(name):
            hoisted.add(name)
        elif not _FOR_HOST.fullmatch(name):
            raise Declined(f"it includes <{name}>")
        return ""

    return hoisted, _INCLUDE.sub(replaced, text)


def _precompiled_headers(names: set[str]) -> tuple[str, ...]:
    return (*_ALWAYS, *sorted(names - set(_ALWAYS)))


def _expressions(half: Split, constants: frozenset[str] | set[str]) -> Iterator[str]:
    """Launched instantiations that mean the same at the end of the source."""
    for spelling in dict.fromkeys(half.launched):
        if spelling.endswith(">") and _SPOKEN.fullmatch(spelling):
            names = _NAME.findall(spelling.partition("<")[2])
            if all(name in _PLAIN_TYPES or name in constants for name in names):
                yield spelling
