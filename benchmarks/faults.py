"""Faults for correct CUDA kernels: small changes of the kind that programmers make.

`faults_of` lists every fault that it can put into a candidate; `sample` takes some of each kind.
A fault changes one place of the C++ text, found by kernelgym's lexer, so comments, strings and the
Python around it stay as they are. Kinds:

============== ==================================================================================
`off_by_one`   `<` for `<=` and back, a loop that starts at 1, a subscript one too high or too low
`dropped_term` `=` for `+=`, a summand or a factor left out
`wrong_axis`   `.x` for `.y`, `size(0)` for `size(1)`, subscripts swapped
`tail`         no bounds check, a grid that is rounded down, an extent one too small
`barrier`      a `__syncthreads()` or `__syncwarp()` left out
`atomic`       a plain `+=` in the place of an `atomicAdd`
`precision`    a stored value rounded to TF32's, bfloat16's or half's mantissa
`constant`     a number that is slightly or entirely another one, a wrong initial value
`function`     `fminf` for `fmaxf`, `-` for `+`, `sqrtf` for `rsqrtf`, another shuffle, …
============== ==================================================================================
"""

from __future__ import annotations

import ast
import dataclasses
import random
import re
from collections.abc import Iterator, Mapping, Sequence

from kernelgym.toolchain.lexer import (
    Kind,
    Token,
    code_tokens,
    is_name,
    matching_closing,
    text_at,
    tokenize,
)

__all__ = ["KINDS", "Fault", "faults_of", "sample"]

KINDS = (
    "off_by_one",
    "dropped_term",
    "wrong_axis",
    "tail",
    "barrier",
    "atomic",
    "precision",
    "constant",
    "function",
)
_CPP_SUFFIXES = (".cu", ".cuh", ".cpp", ".h", ".hpp")
_QUOTES = re.compile(r"[rRbBuUfF]*('''|\"\"\"|'|\")")
_COMPARISONS = {"<": "<=", ">": ">="}
_FUNCTIONS = {
    "fmaxf": "fminf",
    "fminf": "fmaxf",
    "max": "min",
    "min": "max",
    "expf": "exp2f",
    "exp": "exp2",
    "__expf": "exp2f",
    "rsqrtf": "sqrtf",
    "sqrtf": "rsqrtf",
    "logf": "log2f",
    "tanhf": "sinf",
    "erff": "tanhf",
    "fabsf": "expf",
    "__shfl_xor_sync": "__shfl_down_sync",
    "__shfl_down_sync": "__shfl_up_sync",
    "__shfl_up_sync": "__shfl_down_sync",
    "greater": "less",
}
_AXES = {"x": "y", "y": "x", "z": "y"}
_INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
# Bits of a float's mantissa that are kept: TF32 and half 10, bfloat16 7.
_MASKS = {"tf32": "0xffffe000u", "bf16": "0xffff0000u"}


@dataclasses.dataclass(frozen=True)
class Fault:
    """One change to one candidate.

    Attributes:
        candidate: The candidate's name.
        kind: One of `KINDS`.
        file: The changed file.
        start: Offset of the first changed character.
        end: Offset past the last one.
        text: What stands there now.
        line: 1-based line of the change.
        says: The change in words: `before -> after`.
    """

    candidate: str
    kind: str
    file: str
    start: int
    end: int
    text: str
    line: int
    says: str

    @property
    def name(self) -> str:
        """A name that no other fault has."""
        return f"{self.candidate}:{self.file}:{self.start}-{self.end}:{self.kind}:{self.says}"

    def apply(self, files: Mapping[str, str]) -> dict[str, str]:
        """The candidate's files with the change."""
        text = files[self.file]
        return {**files, self.file: text[: self.start] + self.text + text[self.end :]}


def faults_of(candidate: str, files: Mapping[str, str]) -> list[Fault]:
    """Every fault of one candidate, in order of place."""
    found = {}
    for file, text in files.items():
        for start, end in _cpp_regions(file, text):
            for stream in code_tokens(tokenize(text[start:end]))[:1]:
                device = _device_bodies(stream)
                for kind, first, last, new in _changes(stream, device, text[start:end]):
                    begin, stop = start + first, start + last
                    before = text[begin:stop]
                    if new == before:
                        continue
                    line = text.count("\n", 0, begin) + 1
                    says = f"{_short(before)} -> {_short(_precision(new) or new) or 'nothing'}"
                    fault = Fault(candidate, kind, file, begin, stop, new, line, says)
                    found.setdefault((file, begin, stop, new), fault)
    return sorted(found.values(), key=lambda f: (f.file, f.start, f.end, f.says))


def sample(faults: Sequence[Fault], count: int, seed: int) -> list[Fault]:
    """At most `count` faults, taken from the kinds in turn, the same ones for the same seed."""
    queues = []
    for number, kind in enumerate(KINDS):
        queue = [fault for fault in faults if fault.kind == kind]
        random.Random(1000 * seed + number).shuffle(queue)
        queues.append(queue)
    taken: list[Fault] = []
    while len(taken) < count and any(queues):
        for queue in queues:
            if queue and len(taken) < count:
                taken.append(queue.pop())
    return taken


# --- where -----------------------------------------------------------------------------------


def _cpp_regions(file: str, text: str) -> Iterator[tuple[int, int]]:
    """Offsets of the C++ in a file: all of it, or the strings of Python that launch kernels."""
    if file.endswith(_CPP_SUFFIXES):
        yield 0, len(text)
    if not file.endswith(".py"):
        return
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if "__global__" in node.value and node.end_lineno is not None and text.isascii():
            first = lines[node.lineno - 1] + node.col_offset
            last = lines[node.end_lineno - 1] + (node.end_col_offset or 0)
            opening = _QUOTES.match(text, first)
            if opening is not None:
                yield opening.end(), last - len(opening[1])


def _device_bodies(stream: Sequence[Token]) -> list[bool]:
    """For each token, whether it stands in a kernel's or a device function's body."""
    inside = [False] * len(stream)
    for index, token in enumerate(stream):
        if token.text not in ("__global__", "__device__"):
            continue
        position = index + 1
        while position < len(stream) and stream[position].text not in ("{", ";"):
            position += 1
        if text_at(stream, position) == "{":
            for at in range(position, matching_closing(stream, position) + 1):
                inside[at] = True
    return inside


# --- what ------------------------------------------------------------------------------------

Change = tuple[str, int, int, str]  # kind, first and last offset, new text


def _changes(stream: Sequence[Token], device: Sequence[bool], text: str) -> Iterator[Change]:
    for index, token in enumerate(stream):
        if device[index]:
            yield from _comparisons(stream, index)
            yield from _subscripts(stream, index, text)
            yield from _terms(stream, index, text)
            yield from _names(stream, index, text)
            yield from _numbers(stream, index)
            yield from _stores(stream, index, text)
        else:
            yield from _host(stream, index)
        if token.text in ("__syncthreads", "__syncwarp") and device[index]:
            closing = matching_closing(stream, index + 1)
            yield "barrier", token.start, stream[closing].end, ""


def _comparisons(stream: Sequence[Token], index: int) -> Iterator[Change]:
    token = stream[index]
    if token.text not in _COMPARISONS or not _is_comparison(stream, index):
        return
    following = stream[index + 1]
    if following.text == "=" and following.start == token.end:
        yield "off_by_one", token.start, following.end, token.text
        return
    if text_at(stream, index + 1) == "0" and text_at(stream, index + 2) == ";":
        return  # `step >= 0` for a step that is halved: a loop that never ends
    yield "off_by_one", token.start, token.end, _COMPARISONS[token.text]
    bound = stream[index + 1]
    if token.text == "<" and bound.kind is Kind.IDENTIFIER and text_at(stream, index + 2) != "(":
        end = index + 1
        while text_at(stream, end + 1) == "." and is_name(stream, end + 2):
            end += 2
        if text_at(stream, end + 1) in (")", ";", "&", "?", "|"):
            yield "tail", stream[end].end, stream[end].end, " - 1"
            if _encloses_if(stream, index):
                # The whole condition of an if, with nothing else in it.
                yield "tail", token.end, stream[end].end, f" {bound.text} + 100000"


def _is_comparison(stream: Sequence[Token], index: int) -> bool:
    """Whether `<` or `>` compares: it stands in a condition, not around template arguments."""
    before, after = stream[index - 1], stream[index + 1]
    if before.text in ("template", "static_cast", "reinterpret_cast", "<", ">", "-", "operator"):
        return False
    if after.text in ("<", ">", "typename", "int", "float", "class", "const", "bool"):
        return False
    depth, statement = 0, True  # whether it is still the same statement, looking back
    for position in range(index, max(index - 60, -1), -1):
        text = stream[position].text
        if text in ("{", "}"):
            break
        statement = statement and text != ";"
        depth += (text == ")") - (text == "(")
        if text in ("if", "while", "return", "?", "=") and statement and depth <= 0:
            return True
        if text == "for" and depth < 0:
            return True
    for position in range(index, min(index + 12, len(stream))):
        if stream[position].text == "?":
            return True
        if stream[position].text in (";", "{"):
            break
    return False


def _encloses_if(stream: Sequence[Token], index: int) -> bool:
    position = index
    while position > 0 and stream[position].text != "(":
        position -= 1
    return text_at(stream, position - 1) == "if"


def _subscripts(stream: Sequence[Token], index: int, text: str) -> Iterator[Change]:
    token = stream[index]
    if token.text != "[" or not is_name(stream, index - 1):
        return
    closing = matching_closing(stream, index)
    if text_at(stream, closing - 1).isdigit() and closing == index + 2:
        return
    if _is_declaration(stream, index):
        return
    inner = text[token.end : stream[closing].start]
    yield "off_by_one", stream[closing].start, stream[closing].start, " + 1"
    if text_at(stream, closing + 1) == "[":
        second = matching_closing(stream, closing + 1)
        other = text[stream[closing + 1].end : stream[second].start]
        if inner != other:
            yield "wrong_axis", token.start, stream[second].end, f"[{other}][{inner}]"


def _is_declaration(stream: Sequence[Token], index: int) -> bool:
    """Whether `name[` declares an array: a type stands before the name."""
    position = index - 2
    while text_at(stream, position) == "]":
        while position >= 0 and stream[position].text != "[":
            position -= 1
        position -= 2
    previous = stream[position] if position >= 0 else None
    if previous is None:
        return False
    if previous.kind is Kind.IDENTIFIER and previous.text not in ("return", "else", "case"):
        return True
    return previous.text in (">", ",") and _in_shared(stream, position)


def _in_shared(stream: Sequence[Token], index: int) -> bool:
    for position in range(index, max(index - 30, -1), -1):
        if stream[position].text in (";", "{", "}", "("):
            return False
        if stream[position].text == "__shared__":
            return True
    return False


def _terms(stream: Sequence[Token], index: int, text: str) -> Iterator[Change]:
    token, following = stream[index], stream[min(index + 1, len(stream) - 1)]
    adjacent = following.start == token.end
    if token.text == "+" and following.text == "=" and adjacent:
        if _in_increment(stream, index):
            return  # a loop that never ends; the time limit finds those
        yield "dropped_term", token.start, token.end, ""
        yield "function", token.start, token.end, "-"
        return
    if token.text not in ("+", "*", "-") or (adjacent and following.text in ("+", "-", "=", ">")):
        return
    before = stream[index - 1]
    binary = (
        before.kind in (Kind.NUMBER,) or before.text in (")", "]") or is_name(stream, index - 1)
    )
    if not binary or before.text in ("float", "double", "int", "char", "T", "const", "scalar_t"):
        return
    if before.end == token.start and before.text == "+":
        return
    if token.text in ("+", "-"):
        yield "function", token.start, token.end, "-" if token.text == "+" else "+"
    end = _operand_end(stream, index + 1)
    if end is not None and text_at(stream, end + 1) not in (".", "(", "[", "*", "/", "-"):
        if text[before.end : token.start] == "" and text_at(stream, index - 2) in ("(", ",", ";"):
            return
        yield "dropped_term", token.start, stream[end].end, ""


def _in_increment(stream: Sequence[Token], index: int) -> bool:
    """Whether the token stands in the last part of a for statement's head."""
    depth = 0
    for token in stream[index:]:
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0:
            return True
        if token.text == ";":
            return False
    return False


def _operand_end(stream: Sequence[Token], index: int) -> int | None:
    """Index of the last token of a simple operand: a name, a number, or one with subscripts."""
    if not (is_name(stream, index) or stream[index].kind is Kind.NUMBER):
        return None
    end = index
    while text_at(stream, end + 1) in ("[", ".", "("):
        if stream[end + 1].text == ".":
            end += 2
        else:
            end = matching_closing(stream, end + 1)
    return end


def _names(stream: Sequence[Token], index: int, text: str) -> Iterator[Change]:
    token = stream[index]
    if token.text in _FUNCTIONS and text_at(stream, index + 1) in ("(", "<"):
        yield "function", token.start, token.end, _FUNCTIONS[token.text]
    if token.text in _INDICES and text_at(stream, index + 1) == ".":
        axis = stream[index + 2]
        if axis.text in _AXES:
            yield "wrong_axis", axis.start, axis.end, _AXES[axis.text]
    if token.text == "atomicAdd":
        closing = matching_closing(stream, index + 1)
        comma = next((i for i in range(index, closing) if stream[i].text == ","), None)
        plain = text_at(stream, index - 1) in (";", "{", "}", ")")
        if comma is not None and plain:
            target = text[stream[index + 1].end : stream[comma].start]
            added = text[stream[comma].end : stream[closing].start]
            yield "atomic", token.start, stream[closing].end, f"*({target}) += {added}"
    if token.text in ("INFINITY", "FLT_MAX", "CUDART_INF_F") and text_at(stream, index - 1) == "-":
        yield "constant", stream[index - 1].start, token.end, "0.0f"


def _numbers(stream: Sequence[Token], index: int) -> Iterator[Change]:
    token = stream[index]
    if token.kind is not Kind.NUMBER or token.text.startswith("0x") or _in_shared(stream, index):
        return
    if re.fullmatch(r"[0-9]*\.[0-9]*(e[+-]?[0-9]+)?f?|[0-9]+e-?[0-9]+f?", token.text):
        value = float(token.text.rstrip("f"))
        yield "constant", token.start, token.end, f"{value * 1.001 if value else 1e-3:.9g}f"
        yield "constant", token.start, token.end, f"{value + 1:.9g}{'' if value % 1 else '.0'}f"
    elif token.text.isdigit() and text_at(stream, index - 1) not in ("[", "<", "sync"):
        value = int(token.text)
        initial = text_at(stream, index - 1) == "=" and text_at(stream, index + 1) == ";"
        kind = "off_by_one" if initial and value in (0, 1) else "constant"
        if value <= 1 or value in (16, 31):
            yield kind, token.start, token.end, str(value + 1)
        if value in (16, 32, 64, 128, 256):
            yield kind, token.start, token.end, str(value // 2)


def _stores(stream: Sequence[Token], index: int, text: str) -> Iterator[Change]:
    """`name[…] = value;` with the value rounded to fewer bits."""
    if stream[index].text != "=" or text_at(stream, index - 1) != "]":
        return
    following, end = stream[index + 1], index + 1
    if following.text == "=" or stream[index - 1].end == stream[index].start:
        return
    while end < len(stream) and stream[end].text not in (";", "{"):
        end += 1
    if text_at(stream, end) != ";" or _in_shared(stream, index):
        return
    value = text[following.start : stream[end].start]
    for mask in _MASKS.values():
        new = f"__uint_as_float(__float_as_uint({value}) & {mask})"
        yield "precision", following.start, stream[end].start, new


def _host(stream: Sequence[Token], index: int) -> Iterator[Change]:
    token = stream[index]
    if token.text == "size" and text_at(stream, index + 1) == "(":
        number = stream[index + 2]
        if number.text in ("0", "1", "2"):
            yield "wrong_axis", number.start, number.end, "1" if number.text != "1" else "0"
    # (n + 255) / 256: rounded down, a tail is left out.
    if token.text == "/" and text_at(stream, index - 1) == ")":
        opening = index - 1
        depth = 0
        while opening >= 0:
            depth += (stream[opening].text == ")") - (stream[opening].text == "(")
            if depth == 0:
                break
            opening -= 1
        inner = stream[opening + 1 : index - 1]
        plus = next((t for t in inner if t.text == "+"), None)
        if plus is not None and inner[0].text != "(":
            yield "tail", plus.start, stream[index - 1].start, ""


def _precision(text: str) -> str:
    """`the same in tf32` for a value that is cut down to that."""
    found = [name for name, mask in _MASKS.items() if f"& {mask}" in text]
    return f"the same in {found[0]}" if found else ""


def _short(text: str) -> str:
    return " ".join(text.split())[:60]
