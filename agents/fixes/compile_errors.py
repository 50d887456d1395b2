"""Fixes for what a compiler, or Python, says of a source."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from kernelgym.agents.fixes.fix import Fix, line_span, splice
from kernelgym.toolchain.build import Diagnostic

__all__ = ["of_diagnostic"]

_HEADERS = {
    "FLT_MAX": "cfloat",
    "FLT_EPSILON": "cfloat",
    "DBL_MAX": "cfloat",
    "INFINITY": "cmath",
    "INT_MAX": "climits",
    "uint8_t": "cstdint",
    "uint32_t": "cstdint",
    "int32_t": "cstdint",
    "int64_t": "cstdint",
    "uint64_t": "cstdint",
    "printf": "cstdio",
    "assert": "cassert",
    "numeric_limits": "limits",
    "vector": "vector",
    "tuple": "tuple",
    "cg": "cooperative_groups.h",
    "cooperative_groups": "cooperative_groups.h",
    "__half": "cuda_fp16.h",
    "half": "cuda_fp16.h",
    "__nv_bfloat16": "cuda_bf16.h",
    "curandState": "curand_kernel.h",
    "torch": "torch/extension.h",
    "at": "torch/extension.h",
}
_CUDA_NAMES = [
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "__syncthreads",
    "__syncwarp",
    "__shfl_down_sync",
    "__shfl_up_sync",
    "__shfl_xor_sync",
    "__shfl_sync",
    "__ballot_sync",
    "atomicAdd",
    "atomicMax",
    "atomicMin",
    "atomicCAS",
    "fmaxf",
    "fminf",
    "expf",
    "logf",
    "sqrtf",
    "rsqrtf",
    "tanhf",
    "erff",
    "powf",
    "fabsf",
    "floorf",
    "__expf",
    "__ldg",
    "data_ptr",
    "numel",
    "size",
    "stride",
    "empty_like",
    "zeros_like",
    "empty",
    "zeros",
    "contiguous",
    "sizes",
    "options",
    "float4",
    "make_float4",
    "int64_t",
    "float",
    "double",
    "unsigned",
    "const",
    "__restrict__",
    "__global__",
    "__device__",
    "__shared__",
    "__forceinline__",
    "reinterpret_cast",
    "static_cast",
    "return",
]
_MODULES = {
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "math": "import math",
    "os": "import os",
    "load_inline": "from torch.utils.cpp_extension import load_inline",
}
_QUOTED = r"['\u2018`\"]([^'\u2019`\"]+)['\u2019`\"]"
_UNKNOWN = (
    re.compile(_QUOTED + r" was not declared"),
    re.compile(_QUOTED + r" has not been declared"),
    re.compile(_QUOTED + r" does not name a type"),
    re.compile(r"identifier " + _QUOTED + " is undefined"),
    re.compile(r"use of undeclared identifier " + _QUOTED),
    re.compile(r"has no member (?:named )?" + _QUOTED),
    re.compile(_QUOTED + r" is not a member of"),
    re.compile(_QUOTED + r" in namespace .* does not name"),
    re.compile(r"name " + _QUOTED + " is not defined"),
    re.compile(r"has no attribute " + _QUOTED),
    re.compile(r"No module named " + _QUOTED),
)
_MEANT = re.compile(r"[Dd]id you mean:? " + _QUOTED)
_EXPECTED = re.compile(r"expected (?:[^\u2018'`]* )?" + _QUOTED)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.M)
_WORD = re.compile(r"[A-Za-z_]\w*")


def of_diagnostic(files: Mapping[str, str], one: Diagnostic) -> Iterator[Fix]:
    """Fixes for one error of a compiler or of Python."""
    text = files.get(one.file)
    if text is None or one.severity not in ("error", "note"):
        return
    yield from _unknown_names(one, text)
    yield from _missing_tokens(one, text)


def _unknown_names(one: Diagnostic, text: str) -> Iterator[Fix]:
    found = next((m for pattern in _UNKNOWN if (m := pattern.search(one.text))), None)
    if found is None:
        return
    name = found[1].rpartition("::")[2].rpartition(".")[2]
    meant = _MEANT.search(one.text)
    weights: dict[str, float] = {}
    if meant is not None:
        weights[meant[1]] = 1.0
    known = dict.fromkeys([*_WORD.findall(text), *_CUDA_NAMES])
    close = [w for w in difflib.get_close_matches(name, known, 6, 0.6) if w != name]
    for rank, word in enumerate(close):
        weights.setdefault(word, 0.9 - 0.1 * rank)
    start, end = line_span(text, one.line)
    for word, weight in weights.items():
        for match in re.finditer(rf"\b{re.escape(name)}\b", text[start:end]):
            a, b = start + match.start(), start + match.end()
            yield splice(one.file, text, a, b, word, f"{name} -> {word}", weight)
    header = _HEADERS.get(name)
    include = f"<{header}>"
    if header is not None and include not in text:
        place = _INCLUDE.search(text)
        at = place.start() if place else _source_start(text, start)
        new = f"#include {include}\n"
        yield splice(one.file, text, at, at, new, f"include {include}", 0.95)
    module = _MODULES.get(name)
    if one.file.endswith(".py") and module is not None and module not in text:
        yield splice(one.file, text, 0, 0, module + "\n", module, 0.97)


def _source_start(text: str, before: int) -> int:
    """Where the C++ begins that holds an offset: past the opening quotes' line, or at 0."""
    opening = max(text.rfind('"""', 0, before), text.rfind("'''", 0, before))
    return 0 if opening < 0 else text.find("\n", opening) + 1


def _missing_tokens(one: Diagnostic, text: str) -> Iterator[Fix]:
    start, end = line_span(text, one.line)
    # What opens in Python is named by its own messages.
    if one.tool == "python":
        if "expected ':'" in one.text:
            yield splice(one.file, text, end, end, ":", "add ':'", 1.0)
        never = re.search(r"'([(\[{])' was never closed", one.text)
        if never is not None:
            new = {"(": ")", "[": "]", "{": "}"}[never[1]]
            yield splice(one.file, text, end, end, new, f"add {new!r}", 0.8)
            last = len(text.rstrip())
            yield splice(one.file, text, last, last, new, f"add {new!r} at the end", 0.3)
        if "unmatched" in one.text:
            for match in re.finditer(r"[)\]}]", text[start:end]):
                a = start + match.start()
                yield splice(one.file, text, a, a + 1, "", f"leave out {match[0]!r}", 0.7)
        return
    wanted = [t for t in _EXPECTED.findall(one.text) if t in (";", ")", "}", "]", ",", "(", "{")]
    if (
        "\u2018,\u2019 or \u2018;\u2019" in one.text
        or "',' or ';'" in one.text
        or 'expected a ";"' in one.text
    ):
        wanted.append(";")
    for token in dict.fromkeys(reversed(wanted)):
        column = start + max(one.column - 1, 0)
        previous = len(text[:start].rstrip())
        places = {min(column, end): 0.95, end: 0.8, previous: 0.85}
        if "before" in one.text:  # the place is the next token: what is missing ends the one before
            places[len(text[: min(column, end)].rstrip())] = 0.97
        for place, weight in places.items():
            says = f"add {token!r}"
            yield splice(one.file, text, place, place, token, says, weight)
    if "stray" in one.text or "expected primary-expression before" in one.text:
        at = start + max(one.column - 1, 0)
        if at < end:
            yield splice(one.file, text, at, at + 1, "", f"leave out {text[at]!r}", 0.5)
