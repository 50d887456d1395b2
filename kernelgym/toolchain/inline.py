"""`load_inline` and `load` as a candidate meets them: requests to the build service.

Runs in the candidate's process. `install` puts functions with torch's signatures in the place of
those of `torch.utils.cpp_extension`, without importing that module (it is slow, and most of it is
about compilers that a candidate may not start).
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import pathlib
import sys
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelgym.errors import UsageError
from kernelgym.toolchain import packages
from kernelgym.toolchain.build import BuildRequest, BuildResult, SourceFile
from kernelgym.toolchain.cuda_extension import FLAGS, CudaExtensionFinder, extension_sources

__all__ = ["BuildFailed", "Installed", "install"]

_CPP_EXTENSION = "torch.utils.cpp_extension"


class BuildFailed(RuntimeError):
    """The candidate's extension did not build.

    Attributes:
        result: What the build service answered.
    """

    def __init__(self, name: str, result: BuildResult) -> None:
        """Makes the error of one failed build of the extension `name`."""
        lines = [f"Error building extension {name!r}: {result.status}"]
        if result.why:
            lines.append(result.why)
        lines += [
            f"{d.file}:{d.line}:{d.column}: {d.severity}: {d.text}" for d in result.diagnostics
        ]
        super().__init__("\n".join(lines))
        self.result = result


class Installed:
    """The build functions of one candidate's process.

    Attributes:
        results: What the service answered, in the order of the requests.
        open_library: Loads a library that is no Python module.
    """

    def __init__(
        self,
        build: Callable[[BuildRequest], BuildResult],
        target: str,
        variant: str,
        files: Sequence[SourceFile],
    ) -> None:
        """Prepares the functions; see `install`."""
        self.results: list[BuildResult] = []
        self._ask = build
        self._one_at_a_time = threading.Lock()
        self._target = target
        self._variant = variant
        self._files = tuple(files)
        self._modules: dict[str, types.ModuleType] = {}
        self._restore: list[Callable[[], None]] = []
        self.open_library: Callable[[str], object] = _open_by_torch

    def load_inline(
        self,
        name: str,
        cpp_sources: str | Sequence[str],
        cuda_sources: str | Sequence[str] | None = None,
        sycl_sources: str | Sequence[str] | None = None,
        functions: str | list[str] | dict[str, str] | None = None,
        extra_cflags: Sequence[str] | None = None,
        extra_cuda_cflags: Sequence[str] | None = None,
        extra_sycl_cflags: Sequence[str] | None = None,
        extra_ldflags: Sequence[str] | None = None,
        extra_include_paths: str | Sequence[str] | None = None,
        build_directory: str | None = None,
        verbose: bool = False,
        with_cuda: bool | None = None,
        with_sycl: bool | None = None,
        is_python_module: bool = True,
        with_pytorch_error_handling: bool = True,
        keep_intermediates: bool = True,
        use_pch: bool = False,
        no_implicit_headers: bool = False,
    ) -> Any:
        """Builds and imports an extension from texts, as torch's function of that name.

        Where files are kept and whether a compiler talks is the build service's business, so
        `build_directory`, `verbose`, `keep_intermediates` and `use_pch` have no effect.

        Returns:
            The extension module; with `is_python_module=False`, the path of the loaded library.

        Raises:
            BuildFailed: It does not compile.
            ValueError: `functions` is not a list or dict.
        """
        if sycl_sources or with_sycl:
            raise UsageError("expected C++ or CUDA sources, got sycl_sources")
        cpp = _texts(cpp_sources)
        pairs = _functions(functions)
        if functions is not None and not pairs:
            cpp += ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}",)
        request = BuildRequest(
            name=name,
            target=self._target,
            cpp_sources=cpp,
            cuda_sources=_texts(cuda_sources),
            functions=pairs,
            files=self._files,
            extra_ldflags=tuple(extra_ldflags or ()),
            no_implicit_headers=no_implicit_headers,
            extra_cflags=_flags(extra_cflags, extra_include_paths),
            extra_cuda_cflags=_flags(extra_cuda_cflags, extra_include_paths),
        )
        return self._load(request, is_python_module)

    def load(
        self,
        name: str,
        sources: str | Sequence[str],
        extra_cflags: Sequence[str] | None = None,
        extra_cuda_cflags: Sequence[str] | None = None,
        extra_sycl_cflags: Sequence[str] | None = None,
        extra_ldflags: Sequence[str] | None = None,
        extra_include_paths: str | Sequence[str] | None = None,
        build_directory: str | None = None,
        verbose: bool = False,
        with_cuda: bool | None = None,
        with_sycl: bool | None = None,
        is_python_module: bool = True,
        is_standalone: bool = False,
        keep_intermediates: bool = True,
    ) -> Any:
        """Builds and imports an extension from files, as torch's function of that name.

        `sources` are files of the workspace, or files that the candidate has written itself.

        Returns:
            The extension module; with `is_python_module=False`, the path of the loaded library.

        Raises:
            BuildFailed: It does not compile.
            FileNotFoundError: A source is neither.
        """
        if is_standalone or with_sycl:
            raise UsageError("expected an extension module, got is_standalone or with_sycl")
        files = {file.path: file for file in self._files}
        paths = []
        for source in _texts(sources):
            file = _find(source, self._files)
            files[file.path] = file
            paths.append(file.path)
        request = BuildRequest(
            name=name,
            target=self._target,
            sources=tuple(paths),
            files=tuple(files.values()),
            extra_ldflags=tuple(extra_ldflags or ()),
            extra_cflags=_flags(extra_cflags, extra_include_paths),
            extra_cuda_cflags=_flags(extra_cuda_cflags, extra_include_paths),
        )
        return self._load(request, is_python_module)

    def uninstall(self) -> None:
        """Puts everything back as it was before `install`."""
        while self._restore:
            self._restore.pop()()

    def _build(self, request: BuildRequest) -> BuildResult:
        # Triton compiles in threads, and there is one channel to the grader.
        with self._one_at_a_time:
            return self._ask(request)

    def _load(self, request: BuildRequest, is_python_module: bool) -> Any:
        result = self._build(request)
        self.results.append(result)
        if result.status != "ok":
            raise BuildFailed(request.name, result)
        path = result.library(self._variant)
        if not is_python_module:
            self.open_library(path)
            return path
        if path not in self._modules:
            self._modules[path] = _import_extension(f"kg_{result.key[:24]}", request.name, path)
        return self._modules[path]

    def _cuda_extension(self) -> types.ModuleType:
        """The extension of a workspace in CUDA Agent's form."""
        paths, lacking = extension_sources(self._files)
        request = BuildRequest(
            name="cuda_extension",
            target=self._target,
            sources=paths,
            files=(*self._files, *lacking),
            extra_cuda_cflags=FLAGS,
        )
        module = self._load(request, is_python_module=True)
        assert isinstance(module, types.ModuleType)
        return module

    def _replace(self, module: types.ModuleType) -> None:
        """Puts the two functions into a module, to be taken out by `uninstall`."""
        for name in ("load", "load_inline"):
            self._restore.append(functools.partial(_set, module, name, module.__dict__.get(name)))
            setattr(module, name, getattr(self, name))

    def _install(self) -> None:
        self._restore.append(packages.install(self._build, self._target))
        if extension_sources(self._files)[0]:
            finder = CudaExtensionFinder(self._cuda_extension)
            sys.meta_path.append(finder)
            self._restore.append(lambda: sys.meta_path.remove(finder))
        self._replace(importlib.import_module("kernelgym.toolchain"))
        imported = sys.modules.get(_CPP_EXTENSION)
        if imported is not None:
            self._replace(imported)
            return
        lazy = _LazyCppExtension(self)
        sys.modules[_CPP_EXTENSION] = lazy
        self._restore.append(lambda: _forget(lazy))
        utils = importlib.import_module("torch.utils")
        setattr(utils, "cpp_extension", lazy)  # noqa: B010 - torch.utils declares no such name
        self._restore.append(lambda: _set(utils, "cpp_extension", None))


def install(
    build: Callable[[BuildRequest], BuildResult],
    *,
    target: str,
    variant: str,
    files: Sequence[SourceFile],
) -> Installed:
    """Replaces torch's `load_inline` and `load`, and gives `kernelgym.toolchain` the same two.

    Args:
        build: Sends a request to the build service and waits for its answer.
        target: What to build for: `"emulator"` or an architecture such as `"sm_90"`.
        variant: Which of a result's libraries to import: `"fast"` or `"checked"`.
        files: The workspace's files.

    Returns:
        The functions, and the results of the builds as they come.
    """
    installed = Installed(build, target, variant, files)
    installed._install()
    return installed


class _LazyCppExtension(types.ModuleType):
    """Stands for `torch.utils.cpp_extension`; the real module is run when more of it is wanted."""

    def __init__(self, installed: Installed) -> None:
        super().__init__(_CPP_EXTENSION)
        self.load = installed.load
        self.load_inline = installed.load_inline
        self._real: types.ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {_CPP_EXTENSION!r} has no attribute {name!r}")
        if self._real is None:
            utils = importlib.import_module("torch.utils")
            spec = importlib.machinery.PathFinder.find_spec(_CPP_EXTENSION, utils.__path__)
            if spec is None or spec.loader is None:
                raise ImportError(f"No module named {_CPP_EXTENSION!r}", name=_CPP_EXTENSION)
            real = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(real)
            self._real = real
        return getattr(self._real, name)


def _open_by_torch(path: str) -> object:
    return importlib.import_module("torch").ops.load_library(path)


def _set(module: types.ModuleType, name: str, value: object) -> None:
    if value is None:
        delattr(module, name)
    else:
        setattr(module, name, value)


def _forget(module: types.ModuleType) -> None:
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]


def _import_extension(own: str, asked: str, path: str) -> types.ModuleType:
    """Imports a library under our own name, or the one that its source spells out."""
    try:
        return _import_library(own, path)
    except ImportError as error:
        if "PyInit_" not in str(error):
            raise
        return _import_library(asked, path)


def _import_library(name: str, path: str) -> types.ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ImportError(f"expected an extension module, got {path}", name=name, path=path)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _texts(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    return (value,) if isinstance(value, str) else tuple(str(text) for text in value)


def _functions(functions: object) -> tuple[tuple[str, str], ...]:
    """(name, docstring) pairs, as torch reads its argument."""
    if functions is None:
        return ()
    if isinstance(functions, str):
        functions = [functions]
    if isinstance(functions, list):
        return tuple((name, name) for name in functions)
    if isinstance(functions, Mapping):
        return tuple(functions.items())
    raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(functions)}")


def _flags(
    flags: Sequence[str] | None, include_paths: str | Sequence[str] | None
) -> tuple[str, ...]:
    """A compiler's flags; torch's own include paths are left out, the stand-in replaces them."""
    own = (f"-I{path}" for path in _texts(include_paths) if "torch/include" not in path)
    return tuple(_in_workspace(flag) for flag in (*(flags or ()), *own))


def _in_workspace(flag: str) -> str:
    """`-I/its/own/folder/x` as `-Ix`: a candidate names the folder that its files lie in."""
    if not flag.startswith("-I/"):
        return flag
    folder = pathlib.Path(flag[2:])
    here = pathlib.Path.cwd()
    return f"-I{folder.relative_to(here)}" if folder.is_relative_to(here) else flag


def _find(source: str, files: Sequence[SourceFile]) -> SourceFile:
    """The workspace's file that a path means, whatever directory the candidate thinks it is in."""
    path = pathlib.Path(source)
    written = path.read_text() if path.is_file() else None
    known = {pathlib.PurePosixPath(file.path).parts: file for file in files}
    for start in range(len(path.parts)):
        file = known.get(path.parts[start:])
        if file is not None and written in (None, file.text):
            return file
    if written is None:
        names = ", ".join(sorted(file.path for file in files))
        raise FileNotFoundError(f"expected one of the workspace's files ({names}), got {source!r}")
    return SourceFile(path.name, written)
