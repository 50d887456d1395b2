"""The toolchain of targets such as `"sm_90"`: nvcc for device code, g++ for the rest.

No header of torch's is read: its stand-in (`include/torch`) declares what candidates use of it and
exchanges tensors through DLPack, so that a small candidate takes a second or two instead of most of
a minute. Every translation unit compiles beside the others; g++ links them against CUDA's runtime
alone. The same library works with every torch that has the exchange API.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from kernelgym.errors import ToolchainFault, UsageError
from kernelgym.toolchain.build import BuildRequest, SourceFile
from kernelgym.toolchain.cuda import MISSING_NVCC, find_nvcc, nvcc_version
from kernelgym.toolchain.flags import Flags
from kernelgym.toolchain.plan import SCRATCH, Finding, Plan, Step, Variant
from kernelgym.toolchain.translation import translation_units
from kernelgym.toolchain.units import TORCH_HEADERS, flat_name, is_cuda

__all__ = ["Gpu", "code_generation"]

_TARGET = re.compile(r"sm_(?P<number>\d{2,3})(?P<features>[af]?)")
_ARCHITECTURE_FLAG = re.compile(
    r"--?(?:gpu-)?(?:arch(?:itecture)?|code)=.*|--?(?:gencode|generate-code)=.*"
)
_STANDARD = re.compile(r"--?std=")
_MESSAGES = ("-fno-diagnostics-show-caret", "-fdiagnostics-column-unit=byte")
# As torch's own build passes them; lambdas in device code are common enough to allow them always.
_NVCC = ("-Xptxas=-v", "--expt-relaxed-constexpr", "--expt-extended-lambda", "-Xcompiler=-fPIC")
_GXX = ("-O2", "-fPIC", "-pipe", "-fdiagnostics-color=never", "-fmax-errors=20", *_MESSAGES)
# What a module linked by torch itself would find among torch's own libraries.
_LIBRARIES = {
    "cublas": re.compile(r"\bcublas(?!Lt)[A-Z]"),
    "cublasLt": re.compile(r"\bcublasLt"),
    "cudnn": re.compile(r"\bcudnn[A-Z]"),
}
_OF_TORCH = re.compile(r"-l(?:c10|torch)\w*")
_OWN_CODE = ("gpu.py", "translation.py", "flags.py", "units.py")


class Gpu:
    """Builds for a GPU, in the one variant `"fast"`; needs nvcc and no GPU.

    Args:
        nvcc: Path of nvcc; found on first use when not given.
    """

    path = "fast"

    def __init__(self, nvcc: str | None = None) -> None:
        self._asked = nvcc
        self._lock = threading.Lock()
        self._identity: str | None = None
        self._nvcc = self._version = ""
        self._folders: tuple[Path, ...] = ()

    def identity(self) -> str:
        """See `Toolchain.identity`."""
        self._find()
        assert self._identity is not None
        return self._identity

    def compiler(self) -> str:
        """The path of nvcc, and its version.

        Raises:
            ToolchainFault: There is none.
        """
        self._find()
        return f"{self._nvcc} {self._version}"

    def plan(self, request: BuildRequest, flags: Flags, module: str) -> Plan:
        """See `Toolchain.plan`."""
        self._find()
        try:
            generation = code_generation(request.target, flags.device)
            units = translation_units(request)
        except UsageError as error:
            return Plan(findings=(Finding("compile_error", "", 0, str(error), "kernelgym"),))
        steps, objects = [], []
        include_dirs = self._include_dirs(units, flags)
        for unit in units:
            objects.append(f"../out/{flat_name(unit.path)}.o")
            source = f"../units/{flat_name(unit.path)}"
            defines = [f"-DTORCH_EXTENSION_NAME={module}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
            common = [*defines, *include_dirs, "-c", source, "-o", objects[-1]]
            if is_cuda(unit.path):
                own = [flag for flag in flags.device if not _ARCHITECTURE_FLAG.fullmatch(flag)]
                command = [self._nvcc, generation, *_NVCC, *_with_standard(own), *common]
                steps.append(Step(tuple(command), "nvcc"))
            else:
                place = f"-fdebug-prefix-map={SCRATCH}/work=."
                command = ["g++", *_GXX, place, *_with_standard(flags.host), *common]
                steps.append(Step(tuple(command)))
        library = f"{module}.fast.so"
        link = ["g++", "-shared", "-Wl,-O1", *objects, *self.linked(units, flags)]
        variant = Variant("fast", tuple(steps), Step((*link, "-o", f"../out/{library}")), library)
        return Plan(
            units={flat_name(unit.path): unit.text for unit in units},
            variants=(variant,),
            readable=(
                str(TORCH_HEADERS),
                sysconfig.get_path("include"),
                *(str(folder) for folder in self._folders),
            ),
        )

    def _find(self) -> None:
        with self._lock:
            if self._identity is not None:
                return
            nvcc = self._asked or find_nvcc()
            if nvcc is None:
                raise ToolchainFault(MISSING_NVCC)
            if shutil.which("g++") is None:
                raise ToolchainFault(
                    "expected g++ 11 or later on the PATH, got none; "
                    "sudo apt-get install g++ brings it"
                )
            self._nvcc, self._version = nvcc, nvcc_version(nvcc)
            self._folders = tuple(dict.fromkeys(_toolkit_folders(nvcc)))
            code = hashlib.sha256()
            headers = sorted(path for path in TORCH_HEADERS.rglob("*") if path.is_file())
            for path in (*headers, *(Path(__file__).with_name(name) for name in _OWN_CODE)):
                code.update(path.name.encode() + b"\0" + path.read_bytes())
            python = sysconfig.get_config_var("SOABI")
            self._identity = (
                f"{nvcc} {self._version} {platform.libc_ver()} {python} {code.hexdigest()}"
            )

    def _include_dirs(self, units: Sequence[SourceFile], flags: Flags) -> list[str]:
        # A unit lies in another folder than the file that it was made from: quoted includes are
        # looked for in that file's folder.
        parents = (str(PurePosixPath(unit.path).parent) for unit in units)
        own = dict.fromkeys([".", *flags.include_dirs, *parents])
        system = [TORCH_HEADERS, Path(sysconfig.get_path("include"))]
        system += [folder / "include" for folder in self._folders]
        return [*(f"-I{path}" for path in own), *(f"-I{p}" for p in system if p.is_dir())]

    def linked(self, units: Sequence[SourceFile], flags: Flags) -> Iterator[str]:
        """CUDA's libraries by their path, then what else was asked for; torch's are not needed."""
        wanted = ["cudart"]
        wanted += [n for n, used in _LIBRARIES.items() if any(used.search(u.text) for u in units)]
        for flag in flags.link:
            if flag.startswith("-lcu") and flag != "-lcuda":
                wanted.append(flag[2:])
            elif not _OF_TORCH.fullmatch(flag) and flag != "-lcuda":
                yield flag
        for name in dict.fromkeys(wanted):
            library = self.library(name)
            yield str(library) if library is not None else f"-l{name}"
            if library is not None:
                yield f"-Wl,-rpath,{library.parent}"
        if "-lcuda" in flags.link:
            yield from (f"-L{stubs}" for stubs in self._subfolders("stubs"))
            yield "-lcuda"

    def folders(self) -> tuple[Path, ...]:
        """Folders of CUDA's that hold `include` and libraries.

        Raises:
            ToolchainFault: There is no nvcc.
        """
        self._find()
        return self._folders

    def library(self, name: str) -> Path | None:
        """Where one of CUDA's shared libraries lies: `"cudart"`."""
        self._find()
        for folder in self._subfolders(""):
            found = sorted(folder.glob(f"lib{name}.so*"))
            if found:
                return found[0]
        return None

    def _subfolders(self, name: str) -> list[Path]:
        machine = platform.machine()
        places = ("lib64", "lib", f"targets/{machine}-linux/lib")
        folders = (folder / place / name for folder in self._folders for place in places)
        return [folder for folder in folders if folder.is_dir()]


def code_generation(target: str, flags: Sequence[str] = ()) -> str:
    """The flag that makes nvcc generate machine code for one architecture.

    Candidates name architectures out of habit, and mean the GPU that they run on. Only the features
    that exist on one architecture alone (`sm_90a`) must be asked for, so those are heard.

    Args:
        target: `"sm_90"` and the like.
        flags: The candidate's flags for nvcc.

    Raises:
        UsageError: The target is not an architecture.
    """
    match = _TARGET.fullmatch(target)
    if match is None:
        raise UsageError(f"target: expected an architecture such as 'sm_90', got {target!r}")
    number, features = match["number"], match["features"]
    if not features and any(re.search(rf"_{number}a\b", flag) for flag in flags):
        features = "a"
    return f"-gencode=arch=compute_{number}{features},code=sm_{number}{features}"


def _with_standard(flags: Sequence[str]) -> list[str]:
    return [*flags] if any(map(_STANDARD.match, flags)) else ["-std=c++17", *flags]


def _toolkit_folders(nvcc: str) -> Iterator[Path]:
    """Folders that hold `include` and `lib`: the compiler's own, then those of Python packages."""
    # The second is for an nvcc that is a script which starts the real one.
    for toolkit in (Path(nvcc).resolve().parent.parent, Path("/usr/local/cuda").resolve()):
        if (toolkit / "include" / "cuda_runtime.h").is_file():
            yield toolkit
    # torch's wheels may lie in another environment that this one is layered over.
    for packages in dict.fromkeys([sysconfig.get_path("purelib"), *filter(None, sys.path)]):
        for wheels in sorted(Path(packages, "nvidia").glob("*")):
            if (wheels / "include").is_dir() or (wheels / "lib").is_dir():
                yield wheels
