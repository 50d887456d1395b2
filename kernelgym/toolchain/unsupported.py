"""Finds what the emulator cannot do, so that it is named instead of failing to compile."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from kernelgym.toolchain.lexer import Kind, Token

__all__ = ["Unsupported", "find_unsupported"]

# What the emulated device says of itself to the preprocessor; anything else is not known here.
_KNOWN_MACROS = {"__CUDA_ARCH__": 900, "__CUDACC__": 1, "KGEMU": 1}

_HEADERS = (
    (re.compile(r"mma\.h|crt/mma.*"), "tensor core instructions (nvcuda::wmma)"),
    (re.compile(r"cuda_pipeline.*"), "asynchronous copies (cp.async)"),
    (re.compile(r"cooperative_groups/memcpy_async\.h"), "asynchronous copies (cg::memcpy_async)"),
    (re.compile(r"cuda/std/.*|cuda/.*|nv/.*"), "libcu++"),
    (re.compile(r"cudnn.*"), "cuDNN"),
    (re.compile(r"(cutlass|cute)/.*"), "CUTLASS/CuTe"),
    (re.compile(r"thrust/.*"), "Thrust"),
    (re.compile(r"cub/.*"), "CUB"),
    (re.compile(r"cublasLt\.h"), "cuBLASLt"),
    (re.compile(r"curand.*"), "cuRAND"),
    (re.compile(r"cufft.*|cusparse.*|cusolver.*|nccl.*|nvrtc.*|npp.*"), "this CUDA library"),
    (re.compile(r"cuda_fp8\.h|cuda_fp4\.h|cuda_fp6\.h"), "8-bit and narrower floats"),
    (re.compile(r"(texture|surface)_.*"), "textures and surfaces"),
)

_NAMES = (
    (re.compile(r"nvcuda|wmma"), "tensor core instructions (nvcuda::wmma)"),
    (re.compile(r"__pipeline_\w+"), "asynchronous copies (cp.async)"),
    (re.compile(r"memcpy_async"), "asynchronous copies (cg::memcpy_async)"),
    (re.compile(r"cudnn[A-Z]\w*"), "cuDNN"),
    (re.compile(r"cutlass|cute"), "CUTLASS/CuTe"),
    (re.compile(r"cublasLt\w+"), "cuBLASLt"),
    (re.compile(r"curand[A-Z_]\w*"), "cuRAND"),
    (re.compile(r"CUtensorMap|cuTensorMap\w+"), "TMA"),
    (re.compile(r"__cluster_dims__|cluster_group|this_cluster"), "thread block clusters"),
    (
        re.compile(r"cuda(Texture|Surface)Object_t|cudaCreate(Texture|Surface)Object|"
                   r"tex[123]D(Lod|Grad|fetch|Layered)?|tex1Dfetch|surf[123]D(read|write)"),
        "textures and surfaces",
    ),
    (re.compile(r"cudaGraph\w*|cudaStream(Begin|End)Capture"), "CUDA graphs"),
    (re.compile(r"cuLaunchKernel|cuModule\w+|nvrtc[A-Z]\w*"), "modules of the driver API"),
)  # fmt: skip
_NAMESPACES = {"thrust": "Thrust", "cub": "CUB", "cuda": "libcu++"}


@dataclasses.dataclass(frozen=True)
class Unsupported:
    """A construct that the emulator cannot run, and the 1-based line where it stands."""

    construct: str
    line: int


def find_unsupported(streams: Sequence[Sequence[Token]]) -> Iterator[Unsupported]:
    """Finds constructs in the streams of `code_tokens`; the code's stream comes first.

    What is switched off by `#if` on a condition that is known here, such as
    `__CUDA_ARCH__ < 800`, does not count.
    """
    code, directives = streams[0], streams[1:]
    off = _lines(_switched_off(directives))
    for stream in streams:
        kept = [token for token in stream if token.line not in off]
        yield from _names(kept)
        if stream is code:
            yield from _nested_launches(kept)
        else:
            yield from _include(kept)


def _include(stream: Sequence[Token]) -> Iterator[Unsupported]:
    texts = [token.text for token in stream]
    if texts[:2] != ["#", "include"] or len(texts) < 3:
        return
    header = texts[2].strip('"') if texts[2] != "<" else "".join(texts[3:-1])
    for pattern, construct in _HEADERS:
        if pattern.fullmatch(header):
            yield Unsupported(f"{construct}: #include <{header}>", stream[0].line)
            return


def _names(stream: Sequence[Token]) -> Iterator[Unsupported]:
    if [token.text for token in stream[:2]] == ["#", "include"]:
        return
    for index, token in enumerate(stream):
        if token.kind is not Kind.IDENTIFIER:
            continue
        following = stream[index + 1].text if index + 1 < len(stream) else ""
        before = stream[index - 1].text if index else ""
        if token.text in {"asm", "__asm__", "__asm"}:
            if _has_instructions(stream, index):
                yield Unsupported("inline PTX (asm)", token.line)
        elif token.text in _NAMESPACES:
            if following == "::" and before not in {"::", ".", "->"}:
                yield Unsupported(f"{_NAMESPACES[token.text]} ({token.text}::)", token.line)
        elif before not in {".", "->"}:
            for pattern, construct in _NAMES:
                if pattern.fullmatch(token.text) and _is_meant(token.text, before, following):
                    yield Unsupported(f"{construct}: {token.text}", token.line)
                    break


def _is_meant(name: str, before: str, following: str) -> bool:
    """Whether a short, ordinary word really is the namespace of that name."""
    if name in {"wmma", "cute", "cutlass"}:
        return following == "::" or before == "namespace"
    if name == "memcpy_async" or name.startswith(("tex", "surf")):
        return following in {"(", "<"}
    return True


def _has_instructions(stream: Sequence[Token], index: int) -> bool:
    """Whether an asm statement holds text: an empty one only orders memory accesses."""
    for token in stream[index + 1 :]:
        if token.kind is Kind.STRING:
            return token.text != '""'
        if token.text in {";", ":"}:
            return False
        if token.kind is Kind.IDENTIFIER and token.text not in {
            "volatile", "__volatile__", "inline", "goto",
        }:  # fmt: skip
            return True  # a macro that brings the text
    return False


def _nested_launches(code: Sequence[Token]) -> Iterator[Unsupported]:
    """Launches inside functions that run only on the device."""
    device = host = False  # what the specifiers of the declaration at hand say
    depth = 0  # of parentheses and brackets before the body
    body = 0  # of braces inside a device function's body, 0 outside
    for token in code:
        text = token.text
        if body > 0:
            body += (text == "{") - (text == "}")
            if text == "<<<":
                yield Unsupported("dynamic parallelism (a launch in a kernel)", token.line)
        elif text in {"__global__", "__device__"}:
            device, depth = True, 0
        elif text == "__host__":
            host = True
        elif depth == 0 and text == "{":
            body = 1 if device and not host else 0
            device = host = False
        elif (depth == 0 and text in {";", "=", "}"}) or depth < 0:
            device = host = False
            depth = 0
        else:
            depth += (text in {"(", "["}) - (text in {")", "]"})


# --- conditional compilation --------------------------------------------------------------------


def _lines(ranges: Sequence[tuple[int, int]]) -> set[int]:
    """The lines between the bounds of any of the ranges."""
    lines: set[int] = set()
    reached = 0
    for first, last in sorted(ranges):
        lines.update(range(max(first + 1, reached), last))
        reached = max(reached, last)
    return lines


def _switched_off(directives: Sequence[Sequence[Token]]) -> list[tuple[int, int]]:
    """Lines (exclusive bounds) that the preprocessor is known to drop."""
    off: list[tuple[int, int]] = []
    open_parts: list[tuple[int, bool | None, bool]] = []  # line, condition, a branch was taken
    for stream in directives:
        texts = [token.text for token in stream]
        word = texts[1] if len(texts) > 1 else ""
        line = stream[0].line
        if word in {"if", "ifdef", "ifndef"}:
            condition = _condition(word, texts[2:])
            open_parts.append((line, condition, condition is True))
        elif word in {"elif", "else", "endif"} and open_parts:
            first, condition, taken = open_parts.pop()
            if condition is False:
                off.append((first, line))
            if word == "endif":
                continue
            unknown = condition is None
            condition = True if word == "else" else _condition("if", texts[2:])
            if taken:
                condition = False
            elif unknown:
                condition = None
            open_parts.append((line, condition, taken or condition is True))
    return off


def _condition(word: str, texts: Sequence[str]) -> bool | None:
    """The value of a condition, or None when it depends on what is not known here."""
    if word != "if":
        known = bool(texts) and texts[0] in _KNOWN_MACROS
        return (word == "ifdef") if known else None
    text = " ".join(texts)
    text = text.replace("& &", "&&").replace("| |", "||")
    if re.search(r"!\s*\(", text):  # and both operators at once: not worth a parser
        return None
    if ("&&" in text) != ("||" in text):
        ends = "||" in text  # the value that decides
        parts = [_condition("if", part.split()) for part in text.split("||" if ends else "&&")]
        return ends if ends in parts else None if None in parts else not ends
    text = re.sub(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))", _defined, text)
    for name, value in _KNOWN_MACROS.items():
        text = re.sub(rf"\b{name}\b", str(value), text)
    # Parentheses around one comparison change nothing.
    match = re.fullmatch(r"[\s(]*(!)?[\s(]*(\d+)[\s)]*(?:([<>=!]\s*=?)\s*(\d+))?[\s)]*", text)
    if match is None:
        return None
    left, right, operator = int(match[2]), int(match[4] or 0), (match[3] or "").replace(" ", "")
    holds = {
        "": left != 0, "<": left < right, ">": left > right, "<=": left <= right,
        ">=": left >= right, "==": left == right, "!=": left != right,
    }.get(operator)  # fmt: skip
    return holds if holds is None or not match[1] else not holds


def _defined(match: re.Match[str]) -> str:
    return "1" if (match[1] or match[2]) in _KNOWN_MACROS else match[0].replace("defined", "?")
