"""Splits a CUDA source in two: device code for NVRTC, host code for g++.

nvcc does the same, and takes seconds for it, most of them spent on reading host headers as device
code. Here the two halves are made from the text, so that NVRTC sees no header of the host's:

* the *device* text loses every function that is the host's alone, and host variables;
* the *host* text loses the bodies of device functions; a kernel's body becomes a launch of the
  kernel of that name, and `k<<<grid, block>>>(args)` a call (see `include/kgjit/kgjit.h`).

Both keep every line in its place. What this cannot tell apart (kernels made by macros, lambdas on
the device, …) is declined, with a reason; the caller then leaves the source to nvcc.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from kernelgym.toolchain.lexer import (
    CLOSING,
    OPENING,
    Edit,
    Kind,
    Token,
    code_tokens,
    matching_closing,
    text_at,
    tokenize,
)
from kernelgym.toolchain.rewrite import launch_parts

__all__ = ["Declined", "Split", "split"]

_SPECIFIERS = frozenset({"__global__", "__device__", "__host__", "__constant__", "__managed__"})
_CALLED = frozenset(
    {"__launch_bounds__", "__attribute__", "__align__", "__maxnreg__", "alignas", "decltype",
     "__cluster_dims__", "__block_size__", "noexcept", "__declspec", "requires"}
)  # fmt: skip
_TYPES = frozenset({"struct", "class", "union", "enum"})
_BUILTIN = frozenset(
    {"void", "bool", "char", "short", "int", "long", "float", "double", "unsigned", "signed",
     "const", "volatile", "__restrict__", "__restrict", "auto"}
)  # fmt: skip
# Host namespaces: what mentions them is no device code.
_HOST_SPACES = frozenset({"torch", "at", "c10", "pybind11", "py"})
_DEVICE_STD = frozenset(
    {"numeric_limits", "min", "max", "is_same", "is_same_v", "conditional", "conditional_t",
     "enable_if", "enable_if_t", "integral_constant", "true_type", "false_type", "index_sequence",
     "make_index_sequence", "size_t", "forward", "move", "declval", "is_integral_v",
     "is_floating_point_v", "remove_reference_t", "decay_t"}
)  # fmt: skip
_ANONYMOUS = "inline namespace kg_anonymous "


class Declined(Exception):
    """The source cannot be split; the message says why."""


@dataclasses.dataclass(frozen=True)
class Split:
    """The two halves of a source.

    Attributes:
        device: For NVRTC.
        host: For g++.
        launched: The kernels that are launched, as written, one for each launch.
        constants: Names of constants and types that the whole source may use.
    """

    device: str
    host: str
    launched: tuple[str, ...]
    constants: frozenset[str]


@dataclasses.dataclass(frozen=True)
class _Declaration:
    """Tokens `first` to `last` of a stream; a function's `parameters` and `body` are brackets."""

    first: int
    last: int
    words: frozenset[str]
    parameters: tuple[int, int] | None = None
    body: tuple[int, int] | None = None
    initialisers: int | None = None  # the colon of a constructor
    members: tuple[int, int] | None = None  # of a class


def split(text: str) -> Split:
    """Splits one CUDA source or header.

    Raises:
        Declined: It cannot be told which of it is for which compiler.
    """
    tokens = tokenize(text)
    streams = code_tokens(tokens)
    code = streams[0]
    macros = _specifier_macros(streams[1:])
    host: list[Edit] = []
    device: list[Edit] = []
    for stream in streams[1:]:
        if _is_function_macro(stream) and any(token.text == "__global__" for token in stream):
            raise Declined("a macro defines a kernel")
    splitter = _Splitter(text, code, macros, host, device)
    splitter.scope(0, len(code))
    launched: list[str] = []
    for stream in streams:
        for index, token in enumerate(stream):
            if token.text == "<<<" and text_at(stream, index - 1) != "operator":
                parts = launch_parts(stream, index)
                if parts is None:
                    raise Declined("a launch is put together by macros")
                host += _launch(stream, index, *parts)
                launched.append(" ".join(token.text for token in stream[parts[0] : index]))
            elif token.text in ("__device__", "__host__") and text_at(stream, index - 1) == "]":
                raise Declined("a lambda runs on the device")
    return Split(
        _apply(text, device), _apply(text, host), tuple(launched), frozenset(splitter.constants)
    )


class _Splitter:
    """Walks the declarations of a source's code and collects edits for both halves."""

    def __init__(
        self,
        text: str,
        code: Sequence[Token],
        macros: dict[str, frozenset[str]],
        host: list[Edit],
        device: list[Edit],
    ) -> None:
        self._text = text
        self._code = code
        self._macros = macros
        self._host = host
        self._device = device
        self.constants: set[str] = set()

    def scope(self, index: int, end: int, *, members: bool = False) -> None:
        """Edits the declarations between two tokens."""
        code = self._code
        while index < end:
            word = code[index].text
            if word == ";":
                index += 1
            elif members and word in ("public", "private", "protected"):
                index += 2
            elif word == "namespace" or (word == "inline" and self._is(index + 1, "namespace")):
                index = self._namespace(index, end)
            elif word == "extern" and self._kind(index + 1) is Kind.STRING:
                if self._is(index + 2, "{"):
                    close = matching_closing(code, index + 2)
                    self.scope(index + 3, close)
                    index = close + 1
                else:
                    index = self._declaration(index, index + 2, end, members)
            else:
                index = self._declaration(index, index, end, members)

    def _namespace(self, index: int, end: int) -> int:
        code = self._code
        start = index
        while index < end and code[index].text not in ("{", ";"):
            index += 1
        if self._is(index, ";"):
            if _HOST_SPACES & {token.text for token in code[start:index]}:
                self._drop(self._device, start, index)
            return index + 1
        if code[index - 1].text == "namespace":
            for edits in (self._host, self._device):
                edits.append(Edit(code[start].start, code[index].start, _ANONYMOUS))
        close = matching_closing(code, index)
        self.scope(index + 1, close)
        return close + 1

    def _declaration(self, first: int, index: int, end: int, members: bool) -> int:
        found = self._parsed(first, index, end, members)
        if found.parameters is not None and found.body is not None:
            self._function(found, members)
        elif found.members is not None:
            self.scope(found.members[0] + 1, found.members[1], members=True)
            if not members and self._is_hosts(found.first, found.last):
                self._drop(self._device, found.first, found.last)
        elif not members and not self._is_for_device(found):
            self._drop(self._device, found.first, found.last)
        elif not members and "constexpr" in found.words:
            self.constants.update(
                token.text
                for token, after in zip(
                    self._code[found.first : found.last],
                    self._code[found.first + 1 : found.last + 1],
                    strict=True,
                )
                if token.kind is Kind.IDENTIFIER and after.text in ("=", "{")
            )
        return found.last + 1

    def _function(self, found: _Declaration, members: bool) -> None:
        assert found.parameters is not None
        assert found.body is not None
        if "__global__" in found.words:
            names = self._parameter_names(*found.parameters)
            stub = (
                "{ struct kg_here {}; static ::kgjit::Kernel kg_kernel(typeid(kg_here).name(), "
                f"kg_library); void* kg_arguments[] = {{{''.join(map(_address, names))}nullptr}}; "
                "::kgjit::launch(kg_kernel, kg_arguments); "
            )
            start, end = (self._code[index].start for index in found.body)
            self._host.append(Edit(start, end, stub + _blank(self._text[start:end])))
            for index in range(found.first, found.parameters[0]):
                if self._is(index, "static"):
                    for edits in (self._host, self._device):
                        self._drop(edits, index, index)
        elif "__device__" in found.words and "__host__" not in found.words:
            begin = found.body[0] if found.initialisers is None else found.initialisers
            self._drop(self._host, begin, found.body[1])
            place = self._code[found.body[1]].end
            self._host.append(Edit(place, place, ";"))
        elif not members and not (found.words & {"__device__", "constexpr", "consteval"}):
            self._drop(self._device, found.first, found.last)

    def _parsed(self, first: int, index: int, end: int, members: bool) -> _Declaration:
        code = self._code
        index = self._after_template(index, end)
        words: set[str] = set()
        parameters: tuple[int, int] | None = None
        initialisers: int | None = None
        initialised = False
        type_word = False
        while index < end:
            text = code[index].text
            words.update(self._macros.get(text, (text,)))
            if text == ";":
                return _Declaration(first, index, frozenset(words), parameters)
            if text in ("(", "["):
                close = matching_closing(code, index)
                before = text_at(code, index - 1)
                if (
                    text == "("
                    and parameters is None
                    and not initialised
                    and self._kind(index - 1) is Kind.IDENTIFIER
                    and before not in _CALLED
                ) or (text == "(" and parameters is None and self._is_operator(index)):
                    if before == "operator" and close == index + 1:
                        index = close + 1  # operator()
                        continue
                    parameters = (index, close)
                index = close + 1
                continue
            if text == "=":
                initialised = True
            elif text == ":" and parameters is not None and members and initialisers is None:
                initialisers = index
            elif text in _TYPES and parameters is None:
                type_word = True
            elif text == "{":
                close = matching_closing(code, index)
                named = self._kind(index - 1) is Kind.IDENTIFIER or self._is(index - 1, ">")
                if initialised and parameters is None:
                    index = close + 1
                    continue
                if initialisers is not None and named:
                    index = close + 1  # a member's initialiser
                    continue
                if parameters is not None and not initialised:
                    return _Declaration(
                        first, close, frozenset(words), parameters, (index, close), initialisers
                    )
                if type_word:
                    last = close
                    while last + 1 < end and not self._is(last, ";"):
                        last += 1
                    if "enum" in words:
                        return _Declaration(first, last, frozenset(words | {"using"}))
                    return _Declaration(first, last, frozenset(words), members=(index, close))
                index = close + 1  # brace initialisation
                continue
            index += 1
        return _Declaration(first, max(end - 1, first), frozenset(words), parameters)

    def _after_template(self, index: int, end: int) -> int:
        while self._is(index, "template") and self._is(index + 1, "<"):
            depth = 0
            index += 1
            while index < end:
                text = self._code[index].text
                if text in OPENING:
                    index = matching_closing(self._code, index)
                elif text == "<":
                    depth += 1
                elif text == ">":
                    depth -= 1
                    if depth == 0:
                        break
                index += 1
            index += 1
        return index

    def _parameter_names(self, opening: int, closing: int) -> Iterator[str]:
        """The names of a kernel's parameters; a pack's ends with three dots."""
        group: list[Token] = []
        depth = 0
        tokens = [*self._code[opening + 1 : closing], self._code[closing]]
        for position, token in enumerate(tokens):
            last = position == len(tokens) - 1
            if last or (token.text == "," and depth == 0):
                if group and not (len(group) == 1 and group[0].text == "void"):
                    yield self._parameter_name(group)
                group = []
                continue
            depth += (token.text in OPENING or token.text == "<") - (
                token.text in CLOSING or token.text == ">"
            )
            group.append(token)

    def _parameter_name(self, group: Sequence[Token]) -> str:
        words = []
        for token in group:
            if token.text in ("=", "["):
                break
            words.append(token)
        name = words[-1] if words else group[0]
        plain = name.kind is Kind.IDENTIFIER and name.text not in _BUILTIN and len(words) > 1
        if not plain or any(t.text in "()" for t in words) or words[-2].text == "::":
            spelling = " ".join(token.text for token in group)
            raise Declined(f"a kernel's parameter has no plain name: {spelling}")
        return name.text + ("..." if any(t.text == "..." for t in words) else "")

    def _is_for_device(self, found: _Declaration) -> bool:
        """Whether a declaration without a body belongs into the device text."""
        words = found.words
        if words & _SPECIFIERS:
            return True
        if self._is_hosts(found.first, found.last):
            return False
        if found.parameters is not None:  # a host function's prototype
            return False
        kept = {"constexpr", "const", "using", "typedef", "static_assert", "template"} | _TYPES
        return bool(words & kept) or self._is(found.first, "template")

    def _is_hosts(self, first: int, last: int) -> bool:
        """Whether something that exists on the host alone is mentioned."""
        code = self._code
        for index in range(first, last):
            word, after = code[index].text, text_at(code, index + 1)
            if after == "::" and text_at(code, index - 1) != "::":
                if word in _HOST_SPACES:
                    return True
                if word == "std" and text_at(code, index + 2) not in _DEVICE_STD:
                    return True
            if word == "namespace" and after in _HOST_SPACES:
                return True
            if word in ("cudaStream_t", "cudaEvent_t", "cublasHandle_t"):
                return True
        return False

    def _is_operator(self, index: int) -> bool:
        return any(self._is(before, "operator") for before in range(max(index - 4, 0), index))

    def _is(self, index: int, text: str) -> bool:
        return text_at(self._code, index) == text

    def _kind(self, index: int) -> Kind | None:
        return self._code[index].kind if 0 <= index < len(self._code) else None

    def _drop(self, edits: list[Edit], first: int, last: int) -> None:
        """Blanks tokens, but no line's end and no preprocessor line among them."""
        start, end = self._code[first].start, self._code[last].end
        edits.append(Edit(start, end, _blank(self._text[start:end])))


def _address(name: str) -> str:
    """The address of a parameter, or of each of a pack, as an element of an array."""
    return f"(void*)&{name}, "


_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)


def _blank(text: str) -> str:
    pieces = []
    position = 0
    for match in _DIRECTIVE.finditer(text):
        pieces += ["\n" * text.count("\n", position, match.start()), match.group()]
        position = match.end()
    pieces.append("\n" * text.count("\n", position))
    return "".join(pieces) or " "


def _launch(stream: Sequence[Token], index: int, first: int, close: int) -> Iterator[Edit]:
    start = stream[first].start
    yield Edit(start, start, "::kgjit::on([&](auto&&... kg_a) { ")
    token = stream[index]
    forwarded = "static_cast<decltype(kg_a)&&>(kg_a)..."
    yield Edit(token.start, token.end, f"({forwarded}); }}, ")
    yield Edit(stream[close].start, stream[close + 2].end, ")")


def _specifier_macros(directives: Sequence[Sequence[Token]]) -> dict[str, frozenset[str]]:
    """Macros without parameters that stand for specifiers: `#define HD __host__ __device__`."""
    found = {}
    for stream in directives:
        if _defines(stream):
            words = frozenset(token.text for token in stream[3:])
            if words & (_SPECIFIERS | {"constexpr"}) and not _is_function_macro(stream):
                found[stream[2].text] = words | {stream[2].text}
    return found


def _defines(stream: Sequence[Token]) -> bool:
    return len(stream) > 2 and stream[1].text == "define"


def _is_function_macro(stream: Sequence[Token]) -> bool:
    if not _defines(stream) or len(stream) < 4:
        return False
    return stream[3].text == "(" and stream[3].start == stream[2].end


def _apply(text: str, edits: Sequence[Edit]) -> str:
    """The text with edits made; of nested ones the outer counts."""
    pieces = []
    position = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end > e.start, -e.end)):
        if edit.start < position:
            continue
        pieces += [text[position : edit.start], edit.text]
        position = edit.end
    pieces.append(text[position:])
    return "".join(pieces)
