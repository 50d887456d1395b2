"""A lexer for CUDA C++: enough to tell code from comments, strings and preprocessor lines.

It does not preprocess. Every character of the text belongs to exactly one token, so that edits made
at token boundaries leave everything else, and all line numbers, as they were.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "CLOSING",
    "OPENING",
    "Edit",
    "Kind",
    "Token",
    "code_tokens",
    "is_name",
    "matching_closing",
    "matching_opening",
    "replaced",
    "text_at",
    "tokenize",
]

# Keywords that may stand directly before an expression and are no part of it.
_KEYWORDS = frozenset(
    [
        "return",
        "else",
        "do",
        "case",
        "co_return",
        "co_yield",
        "co_await",
        "throw",
        "goto",
        "and",
        "or",
        "not",
        "xor",
        "in",
        "new",
        "delete",
    ]
)


class Kind(enum.IntEnum):
    """What a token is. Everything up to `NEWLINE` is without meaning for a parser."""

    SPACE = 0
    COMMENT = 1
    NEWLINE = 2
    IDENTIFIER = 3
    NUMBER = 4
    STRING = 5
    CHARACTER = 6
    PUNCTUATION = 7


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: What it is.
        text: Its spelling.
        start: Offset of its first character.
        line: 1-based line of its first character.
        directive: 0 in code; otherwise the number of the preprocessor line it belongs to.
    """

    kind: Kind
    text: str
    start: int
    line: int
    directive: int

    @property
    def end(self) -> int:
        """Offset past its last character."""
        return self.start + len(self.text)


_TOKEN = re.compile(
    r"""
      (?P<COMMENT>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<STRING>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z)
               |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    | (?P<CHARACTER>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    | (?P<NUMBER>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[.\w])*)
    | (?P<IDENTIFIER>(?:[^\W\d]|\$)[\w$]*)
    | (?P<NEWLINE>\n)
    | (?P<SPACE>(?:[^\S\n]|\\\r?\n)+)
    | (?P<PUNCTUATION><<<|::|->|\.\.\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)


def tokenize(text: str) -> list[Token]:
    """Splits a text into tokens; their spellings joined give the text again.

    `<<<` is one token, closing angle brackets are always single ones: which of them belong together
    depends on what was opened.
    """
    tokens: list[Token] = []
    line = 1
    directive = 0  # number of the current preprocessor line, 0 outside
    directives = 0
    line_start = True
    for match in _TOKEN.finditer(text):
        kind = Kind[match.lastgroup or "PUNCTUATION"]
        spelling = match.group()
        if kind is Kind.NEWLINE:
            directive = 0
            line_start = True
        elif kind > Kind.NEWLINE:
            if line_start and spelling == "#":
                directives += 1
                directive = directives
            line_start = False
        tokens.append(Token(kind, spelling, match.start(), line, directive))
        line += spelling.count("\n")
    return tokens


def code_tokens(tokens: Sequence[Token]) -> list[list[Token]]:
    """Significant tokens as separate streams: the code first, then each preprocessor line.

    A launch may stand in the code, with preprocessor lines in its midst, or in one macro's body.
    """
    streams: dict[int, list[Token]] = {0: []}
    for token in tokens:
        if token.kind > Kind.NEWLINE:
            streams.setdefault(token.directive, []).append(token)
    return list(streams.values())


# --- moving about in a stream of significant tokens ----------------------------------------------

OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {closing: opening for opening, closing in OPENING.items()}


def text_at(stream: Sequence[Token], index: int) -> str:
    """The spelling of the token at `index`, `""` where there is none."""
    return stream[index].text if 0 <= index < len(stream) else ""


def is_name(stream: Sequence[Token], index: int) -> bool:
    """Whether an identifier stands at `index` that can belong to an expression."""
    return (
        0 <= index < len(stream)
        and stream[index].kind is Kind.IDENTIFIER
        and stream[index].text not in _KEYWORDS
    )


def matching_opening(stream: Sequence[Token], index: int) -> int | None:
    """Index of the bracket that the closing one at `index` closes.

    No launch is looked across, so that the work stays proportional to the text.
    """
    expected: list[str] = []
    for position in range(index, -1, -1):
        text = stream[position].text
        if text in CLOSING:
            expected.append(CLOSING[text])
        elif text in OPENING:
            if not expected or expected.pop() != text:
                return None
            if not expected:
                return position
        elif text == "<<<":
            return None
    return None


def matching_closing(stream: Sequence[Token], index: int) -> int:
    """Index of the bracket that closes the one at `index`; of the last token if nothing does."""
    depth = 0
    for position in range(index, len(stream)):
        depth += (stream[position].text in OPENING) - (stream[position].text in CLOSING)
        if depth == 0:
            return position
    return len(stream) - 1


# --- edits --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Edit:
    """A replacement of the characters from `start` up to `end` by `text`."""

    start: int
    end: int
    text: str


def replaced(token: Token, text: str = "") -> Edit:
    """An edit that puts `text` in a token's place."""
    return Edit(token.start, token.end, text)
