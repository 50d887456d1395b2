"""The C++ and CUDA texts that a build request means, ready for the compilers.

As `torch.utils.cpp_extension.load_inline` does it: all `cpp_sources` make `main.cpp`, which gets
`<torch/extension.h>` in front and the generated bindings behind; all `cuda_sources` make `cuda.cu`,
a translation unit of its own. `#line` directives make messages count in the texts as they were
given, under the names `cpp_sources[0]`, `cuda_sources[1]`, …; files keep their own path. Where such a
text stands in the workspace is not said here, so that moving it there changes no binary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kernelgym.errors import UsageError
from kernelgym.toolchain.build import BuildRequest, SourceFile

__all__ = ["GENERATED", "translation_units"]

GENERATED = "<load_inline>"
"""The file name that messages about generated lines (headers, bindings) carry."""

_CPP_HEADERS = ("torch/extension.h",)
_CUDA_HEADERS = ("torch/types.h", "cuda.h", "cuda_runtime.h")

# torch's own headers include most of the standard library, and candidates lean on that. The
# stand-in's include little, so each header comes in when a name of it is seen.
_STANDARD_HEADERS = {
    "algorithm": r"std::(?:sort|stable_sort|find|find_if|fill_n|copy_n|any_of|all_of|none_of|count|"
    r"transform|reverse|rotate|unique|remove|nth_element|partial_sort|clamp|minmax|lower_bound|"
    r"upper_bound|max_element|min_element|for_each|generate|shuffle|binary_search)\b",
    "array": r"std::array\b",
    "atomic": r"std::(?:atomic|memory_order)",
    "cassert": r"\bassert\s*\(",
    "cfloat": r"\b(?:FLT|DBL)_[A-Z_]+\b",
    "chrono": r"std::chrono\b",
    "climits": r"\b(?:U?(?:CHAR|SHRT|INT|LONG|LLONG)_MAX|(?:CHAR|SHRT|INT|LONG|LLONG)_MIN)\b",
    "cmath": r"\bM_[A-Z0-9_]+\b|std::(?:sqrt|exp|log|pow|fabs|abs|sin|cos|tan|tanh|floor|ceil|round)",
    "complex": r"std::complex\b",
    "cstring": r"\bmem(?:cpy|set|cmp|move)\s*\(",
    "cublas_v2.h": r"\bcublas[A-Z]",
    "deque": r"std::deque\b",
    "fstream": r"std::[io]?fstream\b",
    "functional": r"std::(?:function|plus|multiplies|minus|greater|less|bind|hash|ref)\b",
    "iomanip": r"std::set(?:w|precision|fill)\b",
    "iostream": r"std::(?:cout|cerr|endl|clog)\b",
    "list": r"std::list\b",
    "map": r"std::(?:multi)?map\b",
    "memory": r"std::(?:unique_ptr|shared_ptr|make_unique|make_shared|weak_ptr)\b",
    "mutex": r"std::(?:mutex|lock_guard|unique_lock|once_flag|call_once|recursive_mutex)\b",
    "numeric": r"std::(?:accumulate|iota|inner_product|partial_sum|gcd|lcm|reduce)\b",
    "queue": r"std::(?:priority_)?queue\b",
    "random": r"std::(?:mt19937|uniform_\w+_distribution|normal_distribution|random_device)\b",
    "set": r"std::(?:multi)?set\b",
    "sstream": r"std::[io]?stringstream\b",
    "stdexcept": r"std::(?:runtime_error|invalid_argument|logic_error|out_of_range|domain_error)\b",
    "string_view": r"std::string_view\b",
    "thread": r"std::(?:thread|this_thread)\b",
    "unordered_map": r"std::unordered_map\b",
    "unordered_set": r"std::unordered_set\b",
    "variant": r"std::(?:variant|visit|holds_alternative)\b",
}
_NAMES = {header: re.compile(pattern) for header, pattern in _STANDARD_HEADERS.items()}


def translation_units(request: BuildRequest) -> tuple[SourceFile, ...]:
    """The translation units of a request, in the order of the link.

    Args:
        request: What is to be built.

    Returns:
        `main.cpp`, and `cuda.cu` if there are CUDA sources, for an inline request; then each file
        of `request.sources` under its own path.

    Raises:
        UsageError: A path of `request.sources` is not one of the workspace's files.
    """
    units: list[SourceFile] = []
    if request.cpp_sources or request.cuda_sources or request.functions or not request.sources:
        units.append(SourceFile("main.cpp", _main(request)))
    if request.cuda_sources:
        headers = () if request.no_implicit_headers else _CUDA_HEADERS
        text = "\n".join(
            [
                *_implicit(headers, request.cuda_sources),
                *_named("cuda_sources", request.cuda_sources),
            ]
        )
        units.append(SourceFile("cuda.cu", text + "\n"))
    texts = {file.path: file.text for file in request.files}
    for path in request.sources:
        if path not in texts:
            raise UsageError(f"expected one of the workspace's files {sorted(texts)}, got {path!r}")
        # nvcc includes its runtime by itself in a .cu file.
        own = ("cuda_runtime.h",) if path.endswith(".cu") else ()
        text = "\n".join([*_implicit(own, [texts[path]]), f'#line 1 "{path}"', texts[path]])
        units.append(SourceFile(path, text))
    return tuple(units)


def _main(request: BuildRequest) -> str:
    headers = () if request.no_implicit_headers else _CPP_HEADERS
    lines = [
        *_implicit(headers, request.cpp_sources),
        *_named("cpp_sources", request.cpp_sources),
    ]
    if request.functions:
        lines += [f'#line 1 "{GENERATED}"', "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
        lines += [
            f'm.def("{name}", torch::wrap_pybind_function({name}), {_c_string(doc)});'
            for name, doc in request.functions
        ]
        lines.append("}")
    return "\n".join(lines) + "\n"


def _implicit(headers: Iterable[str], texts: Sequence[str]) -> list[str]:
    """The generated head of a translation unit."""
    wanted = [name for name, names in _NAMES.items() if any(names.search(text) for text in texts)]
    lines = [f"#include <{header}>" for header in (*headers, *wanted)]
    return [f'#line 1 "{GENERATED}"', *lines] if lines else []


def _c_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _named(argument: str, texts: Sequence[str]) -> Iterable[str]:
    """The texts, each led by the name that messages are to know it by."""
    for index, text in enumerate(texts):
        yield from (f'#line 1 "{argument}[{index}]"', text)
