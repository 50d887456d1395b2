"""The way through torch's real headers, for what the stand-in does not have.

Taken by itself when a build on the quick way fails over a name of torch's that its own headers have
(`wanted_of_torch`). It takes most of a minute where the quick way takes a second or two: the headers
are that large. The result is linked to the torch at hand, as `torch.utils.cpp_extension` does it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import platform
import re
import shutil
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from kernelgym.errors import ToolchainFault, UsageError
from kernelgym.toolchain.build import BuildRequest
from kernelgym.toolchain.cuda import MISSING_NVCC, find_nvcc, nvcc_version
from kernelgym.toolchain.flags import Flags
from kernelgym.toolchain.gpu import code_generation
from kernelgym.toolchain.plan import SCRATCH, Finding, Plan, Step, Variant
from kernelgym.toolchain.translation import translation_units
from kernelgym.toolchain.units import flat_name, is_cuda

__all__ = ["TorchHeaders", "wanted_of_torch"]

# torch's headers ask for it from 2.12 on, and take it before.
_STANDARD = "-std=c++20"
_CHOSEN_ELSEWHERE = re.compile(
    r"--?std=.*|--?(?:gpu-)?(?:arch(?:itecture)?|code)=.*|--?(?:gencode|generate-code)=.*"
)
# As torch's own build passes them.
_NVCC = (
    *("-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__"),
    *("-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"),
    *("-Xptxas=-v", "--expt-relaxed-constexpr", "--expt-extended-lambda", "-Xcompiler=-fPIC"),
)
_GXX = (
    *("-O2", "-fPIC", "-pipe", "-fdiagnostics-color=never", "-fmax-errors=20"),
    *("-fno-diagnostics-show-caret", "-fdiagnostics-column-unit=byte"),
)
_LIBRARIES = ("c10", "torch", "torch_cpu", "torch_python", "c10_cuda", "torch_cuda")
_CUDA_LIBRARIES = {
    "cudart": re.compile(""),
    "cublas": re.compile(r"\bcublas(?!Lt)[A-Z]"),
    "cublasLt": re.compile(r"\bcublasLt"),
    "cudnn": re.compile(r"\bcudnn[A-Z]"),
}

_SPACE = r"(?:at|c10|torch)(?:::\w+)*"
# What compilers say of a name that is not there. The group `name` is looked up in torch's headers;
# where there is none, the message alone is enough.
_LACKING = tuple(
    re.compile(pattern)
    for pattern in (
        rf"error: '(?P<name>\w+)' is not a member of '{_SPACE}'",
        rf"error: '(?:class|struct) {_SPACE}(?:<.*>)?' has no member named '(?P<name>\w+)'",
        rf'error: (?:namespace|class|struct) "{_SPACE}(?:<.*>)?" has no member "(?P<name>\w+)"',
        r"error: '(?:at|c10|torch)::(?P<name>\w+)' has not been declared",
        r"error: '(?P<name>(?:TORCH|AT|C10)_\w+)' was not declared in this scope",
        r'error: identifier "(?P<name>(?:TORCH|AT|C10)_\w+)" is undefined',
        r"error: (?P<header>(?:torch|ATen|c10|caffe2|pybind11)/[\w./-]+): No such file",
        r"cannot open source file \"(?P<header>(?:torch|ATen|c10|caffe2|pybind11)/[\w./-]+)\"",
        rf"error: no matching function for call to '{_SPACE}::\w+\(",
        rf"error: no instance of (?:overloaded )?(?:function|function template|constructor)"
        rf'(?: template)? "{_SPACE}',
        rf"undefined reference to [`']{_SPACE}::",
    )
)
_QUALIFIER = re.compile(r'error: name followed by "::" must be a class or namespace name')
_QUALIFIED = re.compile(r"\b(?:at|c10|torch)::(?P<name>[a-z]\w+)::")
_QUOTES = str.maketrans(
    {"\N{LEFT SINGLE QUOTATION MARK}": "'", "\N{RIGHT SINGLE QUOTATION MARK}": "'"}
)
_OWN_CODE = ("torch_headers.py", "translation.py", "flags.py", "units.py")


class TorchHeaders:
    """Builds for a GPU with torch's own headers, in the one variant `"fast"`.

    Args:
        nvcc: Path of nvcc; found on first use when not given.
    """

    path = "torch"

    def __init__(self, nvcc: str | None = None) -> None:
        self._asked = nvcc
        self._lock = threading.Lock()
        self._identity: str | None = None
        self._nvcc = ""
        self._folders: tuple[Path, ...] = ()

    def identity(self) -> str:
        """See `Toolchain.identity`."""
        with self._lock:
            if self._identity is None:
                self._identity = self._found()
            return self._identity

    def plan(self, request: BuildRequest, flags: Flags, module: str) -> Plan:
        """See `Toolchain.plan`."""
        self.identity()
        try:
            generation = code_generation(request.target, flags.device)
            units = translation_units(request)
        except UsageError as error:
            return Plan(findings=(Finding("compile_error", "", 0, str(error), "kernelgym"),))
        parents = (str(PurePosixPath(unit.path).parent) for unit in units)
        own = dict.fromkeys([".", *flags.include_dirs, *parents])
        include_dirs = [f"-I{path}" for path in own]
        include_dirs += [f"-isystem={path}" for path in _headers()]
        system = [Path(sysconfig.get_path("include")), *(f / "include" for f in self._folders)]
        include_dirs += [f"-isystem={path}" for path in system if path.is_dir()]
        steps, objects = [], []
        for unit in units:
            name = flat_name(unit.path)
            objects.append(f"../out/{name}.o")
            defines = (f"-DTORCH_EXTENSION_NAME={module}", "-DTORCH_API_INCLUDE_EXTENSION_H")
            common = [*defines, *include_dirs, "-c", f"../units/{name}", "-o", objects[-1]]
            if is_cuda(unit.path):
                kept = _others(flags.device)
                command = [self._nvcc, generation, *_NVCC, *kept, _STANDARD, *common]
                steps.append(Step(tuple(command), "nvcc"))
            else:
                place = f"-fdebug-prefix-map={SCRATCH}/work=."
                common = [word.replace("-isystem=", "-isystem") for word in common]
                command = ["g++", *_GXX, place, *_others(flags.host), _STANDARD, *common]
                steps.append(Step(tuple(command)))
        library = f"{module}.fast.so"
        texts = [unit.text for unit in units]
        linked = [*self._linked(texts), *(f for f in flags.link if not f.startswith("-l"))]
        link = ["g++", "-shared", "-Wl,-O1", *objects, *linked, "-o", f"../out/{library}"]
        return Plan(
            units={flat_name(unit.path): unit.text for unit in units},
            variants=(Variant("fast", tuple(steps), Step(tuple(link)), library),),
            readable=(
                str(_torch_folder()),
                sysconfig.get_path("include"),
                *map(str, self._folders),
            ),
        )

    def _found(self) -> str:
        nvcc = self._asked or find_nvcc()
        if nvcc is None:
            raise ToolchainFault(MISSING_NVCC)
        if shutil.which("g++") is None:
            raise ToolchainFault("expected g++ 11 or later on the PATH, got none")
        self._nvcc = nvcc
        self._folders = tuple(dict.fromkeys(_toolkit_folders(nvcc)))
        code = hashlib.sha256()
        for name in _OWN_CODE:
            code.update(Path(__file__).with_name(name).read_bytes())
        torch = importlib.metadata.version("torch")
        python = sysconfig.get_config_var("SOABI")
        return (
            f"torch {torch} {_torch_folder()} {nvcc} {nvcc_version(nvcc)} {platform.libc_ver()} "
            f"{python} {code.hexdigest()}"
        )

    def _linked(self, texts: Iterable[str]) -> Iterator[str]:
        folder = _torch_folder() / "lib"
        for name in _LIBRARIES:
            if (folder / f"lib{name}.so").exists():
                yield str(folder / f"lib{name}.so")
        yield f"-Wl,-rpath,{folder}"
        texts = list(texts)
        for name, used in _CUDA_LIBRARIES.items():
            library = self._library(name) if any(map(used.search, texts)) else None
            if library is not None:
                yield str(library)
                yield f"-Wl,-rpath,{library.parent}"

    def _library(self, name: str) -> Path | None:
        # Those of torch's wheels first, which it has loaded already.
        for folder in reversed(self._folders):
            for place in ("lib", "lib64", f"targets/{platform.machine()}-linux/lib"):
                found = sorted((folder / place).glob(f"lib{name}.so*"))
                if found:
                    return found[0]
        return None


def wanted_of_torch(messages: Iterable[str], sources: Iterable[str]) -> str:
    """What a failed build on the quick way lacked that torch's own headers have.

    Args:
        messages: What the compilers and the linker wrote.
        sources: The texts that were compiled.

    Returns:
        The first such message, or `""`: nothing of torch's was missing, or something that torch
        does not have either (a misspelt name), which no other headers would mend.
    """
    first = ""
    for line in (line for text in messages for line in text.translate(_QUOTES).splitlines()):
        for pattern in _LACKING:
            match = pattern.search(line)
            if match is None:
                continue
            groups = match.groupdict()
            if groups.get("header") is not None and not _has_header(groups["header"]):
                return ""
            if groups.get("name") is not None and not _declares(groups["name"]):
                return ""
            first = first or line[match.start() :].removeprefix("error: ")
        if _QUALIFIER.search(line):
            names = {m["name"] for text in sources for m in _QUALIFIED.finditer(text)}
            if names and all(map(_declares, names)):
                first = first or f"{', '.join(sorted(names))}: a namespace of torch's"
    return first[:300]


def _torch_folder() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise ToolchainFault("expected torch to be installed, got none")
    return Path(next(iter(spec.submodule_search_locations)))


def _headers() -> list[Path]:
    include = _torch_folder() / "include"
    return [include, include / "torch" / "csrc" / "api" / "include"]


def _has_header(name: str) -> bool:
    return any((folder / name).is_file() for folder in _headers())


def _declares(name: str) -> bool:
    """Whether the name stands in torch's headers; operators have a file each."""
    include = _headers()[0]
    if (include / "ATen" / "ops" / f"{name}.h").is_file():
        return True
    word = re.compile(rb"\b" + name.encode() + rb"\b")
    places = ("c10", "torch/csrc/api", "torch/csrc/utils", "torch/headeronly", "ATen/core")
    files = [file for place in places for file in (include / place).rglob("*.h")]
    files += [*(include / "ATen").glob("*.h"), *(include / "ATen" / "cuda").glob("*.*h")]
    return any(word.search(file.read_bytes()) for file in files)


def _others(flags: Iterable[str]) -> list[str]:
    return [flag for flag in flags if not _CHOSEN_ELSEWHERE.fullmatch(flag)]


def _toolkit_folders(nvcc: str) -> Iterator[Path]:
    """Folders that hold `include` and `lib`: the compiler's own, then those of Python packages."""
    for toolkit in (Path(nvcc).resolve().parent.parent, Path("/usr/local/cuda").resolve()):
        if (toolkit / "include" / "cuda_runtime.h").is_file():
            yield toolkit
    # torch's wheels may lie in another environment that this one is layered over.
    for packages in dict.fromkeys([sysconfig.get_path("purelib"), *filter(None, sys.path)]):
        for wheels in sorted(Path(packages, "nvidia").glob("*")):
            if (wheels / "include").is_dir() or (wheels / "lib").is_dir():
                yield wheels
