"""CUDA Agent's workspace: `import cuda_extension` builds `kernels/` and the bindings beside it.

The layout is that of arXiv 2602.24286: kernels and C launchers in `kernels/*.cu`, functions that
take tensors in `kernels/*_binding.cpp`, each registered by `REGISTER_BINDING` of
`binding_registry.h`, and one `binding.cpp` that makes the module of them. The last two are the same
for every candidate, so they are supplied where a workspace lacks them.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import types
from collections.abc import Callable, Sequence
from typing import Any

from kernelgym.toolchain.build import SourceFile

__all__ = ["CudaExtensionFinder", "extension_sources"]

MODULE = "cuda_extension"
FLAGS = ("-O3", "--use_fast_math")
_FOLDER = "kernels/"

_REGISTRY = SourceFile(
    "binding_registry.h",
    """\
// Functions that files of kernels/ register, and that binding.cpp makes a module of.
#pragma once
#include <pybind11/pybind11.h>

#include <utility>
#include <vector>

class BindingRegistry {
 public:
  using BindingFunction = void (*)(pybind11::module&);

  static BindingRegistry& getInstance() {
    static BindingRegistry registry;
    return registry;
  }
  void registerBinding(const char* name, BindingFunction function) {
    bindings_.emplace_back(name, function);
  }
  void applyBindings(pybind11::module& module) {
    for (auto& binding : bindings_) binding.second(module);
  }

 private:
  std::vector<std::pair<const char*, BindingFunction>> bindings_;
};

struct BindingRegistrar {
  BindingRegistrar(const char* name, BindingRegistry::BindingFunction function) {
    BindingRegistry::getInstance().registerBinding(name, function);
  }
};

#define REGISTER_BINDING(NAME, FUNCTION) \\
  static const BindingRegistrar NAME##_registrar(#NAME, FUNCTION)
""",
)
_BINDING = SourceFile(
    "binding.cpp",
    """\
#include <pybind11/pybind11.h>
#include "binding_registry.h"

PYBIND11_MODULE(cuda_extension, m) { BindingRegistry::getInstance().applyBindings(m); }
""",
)


def extension_sources(
    files: Sequence[SourceFile],
) -> tuple[tuple[str, ...], tuple[SourceFile, ...]]:
    """What `import cuda_extension` builds.

    Args:
        files: The workspace's files.

    Returns:
        Paths of the sources, and the files that the workspace lacks; no paths where it has no
        `kernels/` with CUDA or C++ in it.
    """
    paths = [
        file.path
        for file in files
        if file.path.startswith(_FOLDER) and file.path.endswith((".cu", ".cpp"))
    ]
    if not paths:
        return (), ()
    have = {file.path for file in files}
    lacking = tuple(file for file in (_REGISTRY, _BINDING) if file.path not in have)
    return (*sorted(paths), _BINDING.path), lacking


class CudaExtensionFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Builds the extension when a candidate imports it; to be the last finder asked.

    Args:
        build: Builds and loads the extension.
    """

    def __init__(self, build: Callable[[], types.ModuleType]) -> None:
        self._build = build

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A spec for `cuda_extension` alone."""
        if fullname != MODULE:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Builds it.

        Raises:
            BuildFailed: It does not compile.
        """
        return self._build()

    def exec_module(self, module: types.ModuleType) -> None:
        """The extension has initialised itself."""
