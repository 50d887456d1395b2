"""Rewrites CUDA C++ to C++ that g++ compiles against the emulation headers.

Only what no header can express is rewritten, in place, so that every line keeps its number:

* a launch, `kernel<<<grid, block, shared, stream>>>(args)`, becomes
  `::kgemu::prepare("kernel", __FILE__, __LINE__, [=](auto... a) { kernel(a...); }).on(grid, block,
  shared, stream)(args)`: arguments are evaluated once and copied for every thread, as on the device;
* `extern __shared__ T name[];` becomes a pointer to the block's dynamic shared memory;
* `__shared__ T name[n];` becomes bare storage and a reference to it, where T may have constructors;
* `memcpy`, `memmove`, `memset` and `printf` become `kgemu_device_…`, which the checks can see;
* casts to `void*` of a kernel's address are dropped where the runtime functions that take them have
  typed overloads;
* `__noinline__` becomes an attribute: as a macro it would break the standard library's headers.

All other words of the language (`__global__`, `__shared__`, …) are macros of the headers.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from kernelgym.toolchain.lexer import (
    CLOSING,
    OPENING,
    Edit,
    Token,
    code_tokens,
    is_name,
    matching_opening,
    replaced,
    text_at,
    tokenize,
)
from kernelgym.toolchain.shared_memory import function_bodies, rewrite_shared
from kernelgym.toolchain.unsupported import Unsupported, find_unsupported

__all__ = ["Rewritten", "Unsupported", "launch_parts", "rewrite"]

_DEVICE_FUNCTIONS = frozenset({"memcpy", "memmove", "memset", "printf"})
_CALLED_SPECIFIERS = frozenset({"__launch_bounds__", "__attribute__", "__align__", "__maxnreg__"})
_KERNEL_ADDRESS_FUNCTIONS = frozenset(
    {
        "cudaLaunchKernel",
        "cudaLaunchCooperativeKernel",
        "cudaFuncSetAttribute",
        "cudaFuncGetAttributes",
        "cudaFuncSetCacheConfig",
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
        "cudaOccupancyMaxPotentialBlockSize",
    }
)


@dataclasses.dataclass(frozen=True)
class Rewritten:
    """A translation unit for g++.

    Attributes:
        text: C++; its line n comes from line n of the CUDA text.
        unsupported: What the emulator cannot do, in the order of lines; not empty means that
            compiling `text` is of no use.
        edits: How the CUDA text became `text`, in order.
    """

    text: str
    unsupported: tuple[Unsupported, ...] = ()
    edits: tuple[Edit, ...] = ()

    def original_column(self, line: int, column: int) -> int:
        """The 1-based column in the CUDA text of what stands at `line` and `column` of `text`."""
        start = 0
        for _ in range(line - 1):
            start = self.text.find("\n", start) + 1
        return self._original(start + column - 1) - self._original(start) + 1

    def _original(self, offset: int) -> int:
        shift = 0
        for edit in self.edits:
            begin = edit.start + shift
            if offset < begin:
                break
            if offset < begin + len(edit.text):
                return edit.start
            shift += len(edit.text) - (edit.end - edit.start)
        return offset - shift


def rewrite(text: str) -> Rewritten:
    """Rewrites one CUDA C++ source or header."""
    tokens = tokenize(text)
    streams = code_tokens(tokens)
    edits: list[Edit] = []
    unsupported = list(find_unsupported(streams))
    kernels = _kernel_names(streams[0])
    bodies = function_bodies(streams[0])
    for stream in streams:
        for index, token in enumerate(stream):
            if token.text == "<<<":
                _rewrite_launch(stream, index, kernels, edits, unsupported)
            elif token.text == "__shared__":
                in_function = token.directive > 0 or bodies[index]
                rewrite_shared(stream, index, in_function, edits)
            elif token.text in _DEVICE_FUNCTIONS and _is_call_of_library(stream, index):
                edits.append(Edit(token.start, token.start, "kgemu_device_"))
            elif token.text == "__noinline__" and text_at(stream, index - 1) != "(":
                edits.append(replaced(token, "__attribute__((noinline))"))
            elif token.text in _KERNEL_ADDRESS_FUNCTIONS:
                _drop_void_cast(stream, index, edits)
    edits.sort(key=lambda edit: (edit.start, edit.end))
    return Rewritten(
        text=_apply(text, edits),
        edits=tuple(edits),
        unsupported=tuple(sorted(set(unsupported), key=lambda item: (item.line, item.construct))),
    )


def _apply(text: str, edits: Sequence[Edit]) -> str:
    pieces = []
    position = 0
    for edit in edits:
        pieces += [text[position : edit.start], edit.text]
        position = edit.end
    pieces.append(text[position:])
    return "".join(pieces)


def _is_call_of_library(stream: Sequence[Token], index: int) -> bool:
    """Whether the name at `index` is called, and is not a member or another namespace's."""
    if text_at(stream, index + 1) != "(":
        return False
    before = text_at(stream, index - 1)
    if before == "::":
        return index < 2 or text_at(stream, index - 2) == "std" or not is_name(stream, index - 2)
    return before not in {".", "->"}


# --- launches -----------------------------------------------------------------------------------


def _kernel_names(code: Sequence[Token]) -> frozenset[str]:
    """Names of the kernels that a text declares."""
    names = set()
    for start, token in enumerate(code):
        if token.text != "__global__":
            continue
        for index in range(start + 1, len(code) - 1):
            if code[index].text in {";", "{", "__global__"}:
                break
            if code[index + 1].text == "(" and code[index].text not in _CALLED_SPECIFIERS:
                names.add(code[index].text)
                break
    return frozenset(names)


def _rewrite_launch(
    stream: Sequence[Token],
    index: int,
    kernels: frozenset[str],
    edits: list[Edit],
    unsupported: list[Unsupported],
) -> None:
    token = stream[index]
    if text_at(stream, index - 1) == "operator":
        return  # operator<< <T>, spelled without the space
    parts = launch_parts(stream, index)
    if parts is None:
        unsupported.append(Unsupported("kernel launch put together by macros", token.line))
        return
    first, close = parts
    spelling = _spelling(stream[first:index])
    name = f"KGEMU_NAME({spelling})" if token.directive else json.dumps(spelling)
    if spelling not in kernels and not spelling.endswith(">"):
        # Perhaps a pointer: limits and shared memory go by the kernel it points to.
        probe = f"[=](auto kgemu_take) -> decltype(kgemu_take({spelling}))"
        name = f"::kgemu::name_of({name}, {probe} {{ return kgemu_take({spelling}); }}, 0)"
    edits += [
        Edit(
            stream[first].start,
            stream[first].start,
            f"::kgemu::prepare({name}, __FILE__, __LINE__, [=](auto... kgemu_arguments) {{ ",
        ),
        replaced(token, "(kgemu_arguments...); }).on("),
        Edit(stream[close].start, stream[close + 2].end, ")"),
    ]
    edits += [replaced(null, "nullptr") for null in _null_arguments(stream, close + 3)]


def launch_parts(stream: Sequence[Token], index: int) -> tuple[int, int] | None:
    """What belongs to the launch whose `<<<` stands at `index`.

    Returns:
        Indices of the first token of the kernel's expression and of the first `>` of the `>>>`, or
        `None` where macros hide them.
    """
    first = _expression_start(stream, index - 1)
    close = _configuration_end(stream, index + 1)
    if first is None or close is None or text_at(stream, close + 3) != "(":
        return None
    return first, close


def _expression_start(stream: Sequence[Token], index: int) -> int | None:
    """Index of the first token of the postfix expression that ends at `index`."""
    while True:
        # One primary: a name with or without template arguments, or something in parentheses.
        while text_at(stream, index) in {")", "]"}:
            opening = matching_opening(stream, index)
            if opening is None:
                return None
            index = opening - 1
            if not is_name(stream, index) and text_at(stream, index) not in {")", "]", ">"}:
                return opening
            if stream[opening].text == "(" and text_at(stream, index) == ")":
                return opening  # `if (condition) (kernel)<<<…`
        if text_at(stream, index) == ">":
            opening = _template_opening(stream, index)
            if opening is None:
                return None
            index = opening - 1
        if not is_name(stream, index):
            return None
        if text_at(stream, index) in {"if", "while", "for", "switch"}:
            return index + 1  # what was taken for a call is a condition
        if text_at(stream, index - 1) == "template":
            index -= 1
        linked = text_at(stream, index - 1)
        if linked == "::":
            if not (is_name(stream, index - 2) or text_at(stream, index - 2) == ">"):
                return index - 1
            index -= 2
        elif linked in {".", "->"}:
            index -= 2
        else:
            return index


def _template_opening(stream: Sequence[Token], index: int) -> int | None:
    """Index of the `<` whose template arguments end with the `>` at `index`."""
    depth = 0
    position: int | None = index
    while position is not None and position >= 0:
        text = stream[position].text
        if text in CLOSING:
            position = matching_opening(stream, position)
            if position is None:
                return None
        elif text == ">":
            depth += 1
        elif text == "<":
            depth -= 1
            if depth == 0:
                return position
        elif text in {";", "{", "(", "<<<"}:
            return None
        position -= 1
    return None


def _configuration_end(stream: Sequence[Token], index: int) -> int | None:
    """Index of the first `>` of the `>>>` that ends a launch configuration."""
    depth = 0
    for position in range(index, len(stream)):
        text = stream[position].text
        if text in OPENING:
            depth += 1
        elif text in CLOSING:
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0 and text == ">" and _adjacent(stream, position, 3):
            # `vec<T>>>>(`: the last three of a run are the launch's.
            while _adjacent(stream, position + 1, 3):
                position += 1
            return position
        elif text in {";", "<<<"}:
            return None
    return None


def _adjacent(stream: Sequence[Token], index: int, count: int) -> bool:
    run = stream[index : index + count]
    return len(run) == count and all(
        token.text == ">" and token.start == run[0].start + offset
        for offset, token in enumerate(run)
    )


def _spelling(tokens: Sequence[Token]) -> str:
    """The tokens on one line, with spaces only where two words would run together."""
    pieces: list[str] = []
    for token in tokens:
        if pieces and (pieces[-1][-1].isalnum() or pieces[-1] == ",") and token.text[0].isalnum():
            pieces.append(" ")
        pieces.append(token.text)
    return "".join(pieces)


def _null_arguments(stream: Sequence[Token], index: int) -> list[Token]:
    """Arguments that are just `NULL`, which as a copy would be an integer."""
    depth = 0
    found = []
    for position in range(index, len(stream)):
        text = stream[position].text
        if text in OPENING:
            depth += 1
        elif text in CLOSING:
            depth -= 1
            if depth == 0:
                break
        elif text == "<<<":
            break
        elif (
            depth == 1
            and text == "NULL"
            and text_at(stream, position - 1) in {"(", ","}
            and text_at(stream, position + 1) in {")", ","}
        ):
            found.append(stream[position])
    return found


# --- kernel addresses ---------------------------------------------------------------------------


def _drop_void_cast(stream: Sequence[Token], index: int, edits: list[Edit]) -> None:
    """Blanks `(void*)` and `reinterpret_cast<const void*>` before a kernel's name."""
    if text_at(stream, index + 1) == "<":  # explicit template arguments: nothing is cast
        return
    # The kernel is the first argument that starts with such a cast.
    for position in range(index + 2, min(index + 12, len(stream))):
        if stream[position].text == ";":
            return
        rest = [token.text for token in stream[position : position + 6]]
        for cast in (
            ["(", "void", "*", ")"],
            ["(", "const", "void", "*", ")"],
            ["reinterpret_cast", "<", "void", "*", ">"],
            ["reinterpret_cast", "<", "const", "void", "*", ">"],
        ):
            if rest[: len(cast)] == cast:
                edits += [replaced(token) for token in stream[position : position + len(cast)]]
                return
