"""Rewrites declarations of shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgym.toolchain.lexer import (
    CLOSING,
    OPENING,
    Edit,
    Token,
    is_name,
    matching_closing,
    matching_opening,
    replaced,
    text_at,
)

__all__ = ["function_bodies", "rewrite_shared"]

_ALIGNMENTS = frozenset({"__align__", "alignas", "__attribute__"})
# Types without constructors, which may stay variables of thread storage duration.
_ARITHMETIC = frozenset(
    [
        "const",
        "volatile",
        "signed",
        "unsigned",
        "char",
        "short",
        "int",
        "long",
        "float",
        "double",
        "bool",
        "size_t",
        "int8_t",
        "uint8_t",
        "int16_t",
        "uint16_t",
        "int32_t",
        "uint32_t",
        "int64_t",
        "uint64_t",
    ]
)
# What may stand before the brace that opens a function's body, or a block in one.
_BODY_STARTS = frozenset({")", "const", "noexcept", "mutable", "override", "else", "do", "try"})
_LONGEST = 1000  # tokens in a declaration
_STATEMENT_STARTS = frozenset({";", "{", "}", ":", ")", "#"})


def function_bodies(code: Sequence[Token]) -> list[bool]:
    """Whether each token lies in the body of a function."""
    inside = False
    enclosing: list[bool] = []
    result = []
    for index, token in enumerate(code):
        if token.text == "}" and enclosing:
            inside = enclosing.pop()
        result.append(inside)
        if token.text == "{":
            enclosing.append(inside)
            inside = inside or text_at(code, index - 1) in _BODY_STARTS
    return result


def rewrite_shared(
    stream: Sequence[Token], index: int, in_function: bool, edits: list[Edit]
) -> None:
    """Adds the edits for the declaration around the `__shared__` at `index`."""
    first = index
    while (
        index - first < _LONGEST and first > 0 and stream[first - 1].text not in _STATEMENT_STARTS
    ):
        first -= 1
    # An alignment may come first, and ends with a parenthesis.
    while first > 0 and stream[first - 1].text == ")":
        opening = matching_opening(stream, first - 1)
        if opening is None or text_at(stream, opening - 1) not in _ALIGNMENTS:
            break
        first = opening - 1
        while first > 0 and stream[first - 1].text not in _STATEMENT_STARTS:
            first -= 1
    last = index
    depth = 0
    while last < len(stream) and (depth > 0 or stream[last].text not in {";", "}"}):
        if last - index > _LONGEST:
            return
        depth += (stream[last].text == "{") - (stream[last].text == "}")
        last += 1
    statement = stream[first:last]
    texts = {token.text for token in statement}
    if "extern" in texts:
        _rewrite_dynamic(statement, in_function, edits)
    elif in_function and last < len(stream) and not texts & {"#", "define"}:
        _rewrite_static(statement, stream[last], edits)
    elif text_at(stream, index - 1) == "static":  # the macro brings its own
        edits.append(replaced(stream[index - 1]))


def _specifiers(statement: Sequence[Token], end: int, edits: list[Edit]) -> list[str]:
    """Blanks what only says where a variable lies; returns what remains of its type."""
    remains = []
    position = 0
    while position < end:
        token = statement[position]
        if token.text in {"extern", "static", "__shared__"}:
            edits.append(replaced(token))
        elif token.text in _ALIGNMENTS and text_at(statement, position + 1) == "(":
            close = matching_closing(statement, position + 1)
            edits += [replaced(part) for part in statement[position : close + 1]]
            position = close
        else:
            remains.append(token.text)
        position += 1
    return remains


def _rewrite_static(statement: Sequence[Token], end: Token, edits: list[Edit]) -> None:
    """`__shared__ T a[n], b;` to a type for each name, its storage, and a reference to that."""
    names = _declared_names(statement)
    if not names:
        return
    blanks: list[Edit] = []
    remains = _specifiers(statement, names[0], blanks)
    if set(remains) <= _ARITHMETIC:
        for position, token in enumerate(statement):
            if token.text == "static":
                edits.append(replaced(token))
            elif token.text == "alignas":  # not allowed amid specifiers; the attribute is
                edits.append(replaced(statement[position], "__align__"))
        return
    edits += blanks
    edits.append(Edit(statement[0].start, statement[0].start, "typedef "))
    declarations = []
    for position in names:
        name = statement[position]
        edits.append(replaced(name, f"kgemu_type_{name.text}"))
        declarations.append(
            f" static __thread ::kgemu::StaticShared<kgemu_type_{name.text}> "
            f"kgemu_shared_{name.text}; kgemu_type_{name.text}& {name.text} = "
            f"kgemu_shared_{name.text}.get();"
        )
    edits.append(Edit(end.end, end.end, "".join(declarations)))


def _declared_names(statement: Sequence[Token]) -> list[int]:
    """Indices of the names that a declaration without initialisers declares."""
    names: list[int] = []
    depth = angles = 0
    for position, token in enumerate(statement):
        text = token.text
        following = text_at(statement, position + 1)
        depth += (text in OPENING) - (text in CLOSING)
        if depth == 0 and not names:  # template arguments of the type
            angles += (text == "<") - (text == ">")
        if (
            depth == 0
            and angles == 0
            and following in {"", ",", "["}
            and is_name(statement, position)
        ):
            names.append(position)
    return names


def _rewrite_dynamic(statement: Sequence[Token], in_function: bool, edits: list[Edit]) -> None:
    """`extern __shared__ T name[][N];` to `T (* const name)[N] = …;`."""
    brackets = [position for position, token in enumerate(statement) if token.text == "["]
    empty = next((at for at in brackets if text_at(statement, at + 1) == "]"), None)
    if empty is None or not is_name(statement, empty - 1):
        return  # not an array of unknown size: g++ says what is wrong with it
    name = statement[empty - 1]
    multi = text_at(statement, empty + 2) == "["
    _specifiers(statement, empty - 1, edits)
    edits += [replaced(statement[empty]), replaced(statement[empty + 1])]
    if not in_function and not multi:
        # No block runs when such a variable is set up: its address is asked for at each use.
        edits += [
            Edit(statement[0].start, statement[0].start, "static ::kgemu::DynamicShared<"),
            Edit(name.start, name.start, "> "),
        ]
        return
    value = f" = static_cast<decltype({name.text})>(::kgemu::dynamic_shared())"
    edits += [
        Edit(name.start, name.start, "(* const " if multi else "* const "),
        Edit(name.end, name.end, ")" if multi else value),
    ]
    if multi:
        edits.append(Edit(statement[-1].end, statement[-1].end, value))
