"""Fixes for wrong values: places that look unlike what correct kernels have there.

A mismatch names no line, so these rules read the code: a bound that is one too small, a start value
that no maximum begins with, a number that is nearly a round one, a plain store where a loop adds up.
What the reference computes tells which functions belong.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping

from kernelgym.agents.fixes.fix import Fix, splice

__all__ = ["of_values"]

# Reasons by what they suggest. Weights below are for the kinds named; others get a third of them.
_TAIL = frozenset(("check.tail", "check.not_finite", "memory.uninitialised"))
_BOUNDS = frozenset(("memory.out_of_bounds", "memory.misaligned"))
_VALUES = frozenset(("check.values", "check.constant", "check.not_finite", "check.unstable"))
_ANY = _TAIL | _BOUNDS | _VALUES | {"run.timeout", "race.global", "race.shared"}

_Rule = tuple[re.Pattern[str], "str | Callable[[re.Match[str]], str]", float, frozenset[str], str]

_NAME = r"[A-Za-z_]\w*"

_RULES: tuple[_Rule, ...] = (
    # Extents: what is left out at the end, or goes past it.
    (re.compile(rf"(<\s*(?:{_NAME}\.)*{_NAME}) - 1(?=\s*[);&|?])"), r"\1", 0.9, _TAIL, "bound n"),
    (re.compile(rf"(<\s*(?:{_NAME}\.)*{_NAME}) \+ \d{{3,}}"), r"\1", 0.95, _BOUNDS, "bound n"),
    (
        re.compile(
            rf"(?<![+\-*/(\w] )\(?\b({_NAME}(?:\.numel\(\))?)\)? / (\d+|{_NAME})(?=\s*[,;)])"
        ),
        r"(\1 + \2 - 1) / \2",
        0.8,
        _TAIL,
        "round the grid up",
    ),
    (re.compile(r"(?<=[^<>])<=(?=\s*[A-Za-z_(])"), "<", 0.85, _BOUNDS, "< for <="),
    (re.compile(r"(?<=[^<>])<=(?=\s*[A-Za-z_(\d])"), "<", 0.6, _VALUES, "< for <="),
    (re.compile(r"(\w )>=(?= 0;)"), r"\1>", 0.6, _ANY, "> for >="),
    (re.compile(r"(?<=\w )>=(?= 1;)"), ">", 0.3, _VALUES, "> for >="),
    (re.compile(r"(?<=\w )<(?= [A-Za-z_]\w*[;)])"), "<=", 0.15, _TAIL | _VALUES, "<= for <"),
    (re.compile(r" \+ 1\](?!\s*\[)"), "]", 0.75, _ANY, "subscript without + 1"),
    (
        re.compile(r"(for \((?:int|long|unsigned|size_t) \w+ = )1(?=;)"),
        r"\g<1>0",
        0.7,
        _ANY,
        "start at 0",
    ),
    (re.compile(rf"(\b{_NAME} = )2(?=;)"), r"\g<1>1", 0.3, _ANY, "start at 1"),
    # What a loop adds up.
    (
        re.compile(
            r"(\b(?:acc|sum|total|s|dot|result|local_sum|partial|value)\w*(?:\[\w+\])* )= (?=[^;=]*\*)"
        ),
        r"\1+= ",
        0.55,
        _VALUES,
        "+= for =",
    ),
    (re.compile(rf"(\b{_NAME}(?:\[[^\]]*\])? )-= "), r"\1+= ", 0.6, _VALUES, "+= for -="),
    # Start values of extrema.
    (
        re.compile(r"(\b\w*(?:max|best|mx|m)\w* = )0(?:\.0?f?)?(?=;)"),
        r"\g<1>-INFINITY",
        0.85,
        _VALUES,
        "-inf",
    ),
    (
        re.compile(r"(\b\w*(?:min|mn)\w* = )0(?:\.0?f?)?(?=;)"),
        r"\g<1>INFINITY",
        0.8,
        _VALUES,
        "inf",
    ),
    (re.compile(r"([?:,] )0\.0f(?=\s*[;)])"), r"\1-INFINITY", 0.25, _VALUES, "-inf"),
    # A sum starts at zero.
    (
        re.compile(
            r"(\b\w*(?:acc|sum|total|count|loss|dot)\w* = )(?:1(?:\.0?f?)?|0?\.001f?|1e-0?3f?)(?=[;,])"
        ),
        r"\g<1>0.0f",
        0.85,
        _VALUES,
        "start a sum at 0",
    ),
    # Lost digits.
    (
        re.compile(r"__uint_as_float\(__float_as_uint\((.+)\) & 0x[0-9a-f]+u\)(?=;)"),
        r"\1",
        0.95,
        _VALUES,
        "keep all digits",
    ),
    (re.compile(r"__float2half\((.+?)\)(?=;)"), r"\1", 0.4, _VALUES, "keep all digits"),
    # Indices of a block with one dimension.
    (re.compile(r"\b(threadIdx|blockIdx|blockDim|gridDim)\.y\b"), r"\1.x", 0.5, _ANY, "x for y"),
    (re.compile(r"\b(threadIdx|blockIdx|blockDim|gridDim)\.x\b"), r"\1.y", 0.12, _ANY, "y for x"),
    # Warps have 32 lanes.
    (
        re.compile(r"\b(\w+ [%&] )(?:32|30)\b"),
        lambda m: m[1] + ("32" if "%" in m[1] else "31"),
        0.6,
        _ANY,
        "lane",
    ),
    (
        re.compile(r"(offset|mask|delta|o|s|step) = (?:8|17)(?=;)"),
        r"\1 = 16",
        0.8,
        _ANY,
        "half a warp",
    ),
    (re.compile(r"(>> )(?:4|6)\b"), r"\g<1>5", 0.4, _ANY, "warps of 32"),
    # Swapped subscripts.
    (re.compile(r"\[(\w+)\]\[(\w+)\]"), r"[\2][\1]", 0.2, _VALUES, "subscripts the other way"),
    (re.compile(r"\.size\(1\)"), ".size(0)", 0.25, _ANY, "size(0)"),
    (re.compile(r"\.size\(0\)"), ".size(1)", 0.25, _ANY, "size(1)"),
)

_FLOAT = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e-?\d+)(f?)\b")
_INTEGER = re.compile(r"(?<![\w.\[])(\d{1,4})(?![\w.])")
_BLOCKS = (8, 16, 32, 64, 128, 256, 512, 1024)

# Functions that are taken for each other, and what a reference that means the first one holds.
_CONFUSED: tuple[tuple[str, str, str], ...] = (
    ("fminf", "fmaxf", r"max|relu|clamp|softmax|logsumexp|hardtanh"),
    ("fmaxf", "fminf", r"min\b|clamp|hardtanh|relu6"),
    ("min", "max", r"max"),
    ("exp2f", "expf", r"exp|softmax|sigmoid|silu|elu|gelu|mish|softplus|tanh"),
    ("log2f", "logf", r"log|softplus|mish|kl_div|entropy|Entropy"),
    ("sqrtf", "rsqrtf", r"[Nn]orm|std|var"),
    ("rsqrtf", "sqrtf", r"sqrt|norm|std|Frobenius"),
    ("sinf", "tanhf", r"tanh|GELU|gelu|mish"),
    ("tanhf", "erff", r"GELU|gelu|erf"),
    ("expf", "fabsf", r"abs|L1|smooth"),
    ("less", "greater", r"max|topk"),
    ("__shfl_up_sync", "__shfl_down_sync", r""),
    ("__shfl_down_sync", "__shfl_xor_sync", r""),
)


def of_values(files: Mapping[str, str], reason: str, reference: str) -> Iterator[Fix]:
    """Fixes for an output with a reason that names no line."""
    for file, text in files.items():
        for pattern, new, weight, reasons, says in _RULES:
            likely = weight if reason in reasons else weight / 3
            for match in pattern.finditer(text):
                made = match.expand(new) if isinstance(new, str) else new(match)
                if made != match[0]:
                    yield splice(file, text, *match.span(), made, says, likely)
        yield from _functions(file, text, reference)
        yield from _numbers(file, text, reference)
        yield from _repeated_sizes(file, text)


def _functions(file: str, text: str, reference: str) -> Iterator[Fix]:
    for used, meant, evidence in _CONFUSED:
        found = list(re.finditer(rf"(?<![\w:]){re.escape(used)}(?=\s*[(<])", text))
        if not found:
            continue
        fits = bool(evidence) and re.search(evidence, reference) is not None
        misfit = not re.search(re.escape(used.strip("_f").removesuffix("2")), reference)
        weight = 0.2 + 0.25 * fits + 0.2 * misfit
        for match in found:
            before = text[max(0, match.start() - 40) : match.start()].lower()
            named = ("max" in before and meant == "fmaxf") or ("min" in before and meant == "fminf")
            yield splice(
                file, text, *match.span(), meant, f"{meant} for {used}", weight + 0.3 * named
            )
    for match in re.finditer(r"(?<=[\w\])] )- (?=[\w(])", text):
        yield splice(file, text, *match.span(), "+ ", "+ for -", 0.15)


def _numbers(file: str, text: str, reference: str) -> Iterator[Fix]:
    """Numbers that are nearly round, or nearly one that stands in the reference."""
    targets = {float(m[1]) for m in _FLOAT.finditer(reference)} | {0.0, 0.5, 1.0, 2.0, 3.0, 6.0}
    for match in _FLOAT.finditer(text):
        value = float(match[1])
        for target in targets:
            near = target and 0 < abs(value / target - 1) < 0.005
            if near or (target and value == target + 1 and value not in targets):
                weight = 0.9 if near else 0.5
                new = f"{target:.9g}"
                new += ("" if "." in new or "e" in new else ".0") + match[2]
                yield splice(file, text, *match.span(), new, f"{new} for {match[0]}", weight)
        if value == 0.001 and 0.001 not in targets:
            yield splice(file, text, *match.span(), "0.0f", f"0 for {match[0]}", 0.6)
    for match in _INTEGER.finditer(text):
        value = int(match[1])
        for block in _BLOCKS:
            if abs(value - block) == 1 and value not in (7, 9, 15, 31):
                new = str(block)
                weight = 0.2 if value in (63, 127, 255, 511, 1023) else 0.6
                yield splice(file, text, *match.span(), new, f"{new} for {value}", weight)


def _repeated_sizes(file: str, text: str) -> Iterator[Fix]:
    """`int rows = x.size(0), cols = x.size(0);`: one of them is another dimension."""
    for row in re.finditer(r"[^\n;]*;", text):
        sizes = list(re.finditer(r"(\w+)\.size\((\d)\)", row[0]))
        for one, other in itertools.pairwise(sizes):
            if one[0] != other[0]:
                continue
            for match in (other, one):
                digit = "1" if match[2] == "0" else "0"
                a = row.start() + match.end(2) - 1
                yield splice(file, text, a, a + 1, digit, f"size({digit})", 0.85)
