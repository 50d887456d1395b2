"""What compilers and Python say, as records that point into the workspace.

`parse_compiler_output` reads g++, the linker, nvcc, ptxas and NVRTC; `parse_python` a traceback.
Both map places back to the files that an agent edits, cut template noise, and `tidy` the rest.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence

from kernelgym.toolchain.build import Diagnostic
from kernelgym.toolchain.sourcemap import Place, SourceMap

__all__ = [
    "MAX_DIAGNOSTICS",
    "SourceMap",
    "parse_compiler_output",
    "parse_python",
    "place_at",
    "resolve",
    "tidy",
]

MAX_DIAGNOSTICS = 20
_MAX_TEXT = 400
_MAX_EXCERPT = 160
_MAX_LINE = 4000
_PLAIN_QUOTES = {0x2018: "'", 0x2019: "'"}
_SEVERITIES = ("error", "warning", "note")

_GNU = re.compile(
    r"(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:(?P<column>\d+):)?\s+"
    r"(?P<severity>fatal error|sorry, unimplemented|internal compiler error|error|warning|note):\s+"
    r"(?P<text>.*)"
)
_GNU_REQUIRED = re.compile(
    r"(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:(?P<column>\d+):)?\s+(?:recursively )?required (?:from|by)"
)
_EDG = re.compile(
    r"(?P<file>[^\s(][^(]*)\((?P<line>\d+)\): "
    r"(?P<severity>catastrophic error|internal error|error|warning|remark|note)"
    r"(?: #(?P<number>[\w-]+))?: (?P<text>.*)"
)
_EDG_INSTANTIATED = re.compile(
    r"\s+(?:detected during|instantiation of) .*?at line (?P<line>\d+)"
    r"(?: of (?P<file>\S+))?"
)
_PTXAS = re.compile(
    r"(?P<tool>ptxas|nvlink|nvcc|cudafe\+\+|fatbinary|cicc)\b(?: [^:;]*;)?\s*"
    r"(?P<severity>error|fatal|warning)\s*:\s*(?P<text>.*)"
)
_PROGRAM = re.compile(
    r"(?:\S*/)?(?P<tool>[a-z][\w+-]*?(?:-\d+)?): (?P<severity>fatal error|error|internal compiler error"
    r"|out of memory)(?::\s*(?P<text>.*)|(?P<rest> .*))"
)
_UNDEFINED = re.compile(r"undefined reference to [`'](?P<name>[^']+)'")
_LIBRARY = re.compile(r"cannot find (?P<name>-l[^\s:]+)")
_MISSING = re.compile(r"expected (?:(?:',' or )?';'|a \";\")")
_NOISE = re.compile(r"collect2: error|compilation terminated|^ninja: |Remark: The warnings can be")
_TRACEBACK_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
_EXCEPTION = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?$")
_TEMPORARY = re.compile(r"(?:/tmp|/var/tmp|/dev/shm)/(?:[^\s/:'\",;()]+/)*([^\s/:'\",;()]+)")


def parse_compiler_output(
    text: str,
    *,
    tool: str,
    source_map: SourceMap,
    sources: Mapping[str, str] | None = None,
    root: str = "",
) -> tuple[Diagnostic, ...]:
    """Reads the messages of a compiler, an assembler or a linker.

    A message about a header that the workspace does not own is moved to the line of the workspace
    that instantiated it, where the compiler names one. Notes about such headers are dropped.

    Args:
        text: What it wrote; g++ with `-fdiagnostics-column-unit=byte` and without carets.
        tool: `"g++"`, `"nvcc"` or `"nvrtc"`.
        source_map: The workspace.
        sources: Texts by the file name that the compiler knew them by (through `#line`).
        root: The folder that it ran in, removed from file names and texts.

    Returns:
        Diagnostics, tidied.
    """
    reader = _Reader(tool, source_map, sources or {}, root.rstrip("/"))
    lines = [line[:_MAX_LINE] for line in text.translate(_PLAIN_QUOTES).splitlines()]
    for index, line in enumerate(lines):
        reader.read(line, lines[index + 1 : index + 4])
    return tidy(reader.found)


def parse_python(text: str, *, source_map: SourceMap, root: str = "") -> tuple[Diagnostic, ...]:
    """Reads a Python traceback: the exception, at the innermost frame inside the workspace.

    Args:
        text: The traceback as Python prints it; of several that are chained, the last one counts.
        source_map: The workspace.
        root: The folder that the workspace was written to, removed from file names.

    Returns:
        One diagnostic, or none when the text holds no exception.
    """
    reader = _Reader("python", source_map, {}, root.rstrip("/"))
    place, found = Place("", 0, 0), None
    exception: re.Match[str] | None = None
    lines = [line[:_MAX_LINE] for line in text.splitlines()]
    for index, line in enumerate(lines):
        if line.startswith("Traceback (most recent call last)"):
            place, found, exception = Place("", 0, 0), None, None
        elif frame := _TRACEBACK_FRAME.match(line):
            found = reader.place(frame["file"], int(frame["line"]), 0)
            place = found or place
        elif found is not None and "^" in line and not line.strip(" ^~"):
            written = source_map.line_text(found.file, found.line)
            place = found._replace(column=_caret_column(line, lines[index - 1], written))
        elif exception is None and line[:1].strip():
            # Lines after it are the rest of its message.
            exception = _EXCEPTION.match(line)
    if exception is None:
        return ()
    message = ": ".join(part for part in exception.group("type", "text") if part)
    return (place_at(source_map, place, "error", reader.clean(message), tool="python"),)


def resolve(
    name: str,
    line: int,
    column: int = 0,
    *,
    source_map: SourceMap,
    sources: Mapping[str, str],
) -> Place | None:
    """Where in the workspace a place is that a compiler, or a binary at run time, names.

    Args:
        name: A file's name as `#line` gave it, or a path in the workspace.
        line: 1-based.
        column: 1-based in characters, or 0.
        source_map: The workspace.
        sources: Texts by name, see `kernelgym.toolchain.units.source_texts`.

    Returns:
        The place; its file is `""` when the text is known and stands nowhere in the workspace.
        `None` for a file that is neither.
    """
    name = name.removeprefix("./")
    if name in sources:
        return source_map.locate(sources[name], line, column) or Place("", line, 0)
    return Place(name, line, column) if source_map.has_file(name) else None


def place_at(
    source_map: SourceMap, place: Place, severity: str, text: str, *, tool: str = "", code: str = ""
) -> Diagnostic:
    """A diagnostic at a place of the workspace, with its excerpt."""
    return Diagnostic(
        file=place.file,
        line=place.line,
        column=place.column,
        severity=severity,
        text=text,
        excerpt=_excerpt(source_map.line_text(place.file, place.line), place.column),
        tool=tool,
        code=code,
    )


def tidy(diagnostics: Iterable[Diagnostic], limit: int = MAX_DIAGNOSTICS) -> tuple[Diagnostic, ...]:
    """Drops duplicates and puts errors first; what is over the limit is counted in the last text.

    A note stays behind the message that it belongs to.
    """
    groups: list[list[Diagnostic]] = []
    seen: set[tuple[object, ...]] = set()
    for diagnostic in diagnostics:
        if diagnostic.severity != "note" or not groups:
            groups.append([])
        identity = (diagnostic.file, diagnostic.line, diagnostic.severity, diagnostic.text)
        if identity not in seen:
            seen.add(identity)
            groups[-1].append(diagnostic)
    kept = [group for group in groups if group]
    kept.sort(key=lambda group: _SEVERITIES.index(group[0].severity))
    flat = [diagnostic for group in kept for diagnostic in group]
    if len(flat) <= limit:
        return tuple(flat)
    left_out = len(flat) - limit
    last = flat[limit - 1]
    counted = f"{last.text} (and {left_out} more {'message' if left_out == 1 else 'messages'})"
    return (*flat[: limit - 1], dataclasses.replace(last, text=counted))


class _Reader:
    """Collects the diagnostics of one compiler run, line by line."""

    def __init__(
        self, tool: str, source_map: SourceMap, sources: Mapping[str, str], root: str
    ) -> None:
        self.found: list[Diagnostic] = []
        self._tool = tool
        self._map = source_map
        self._sources = sources
        self._root = root
        self._required: Place | None = None
        self._drop_notes = False

    def read(self, line: str, following: Sequence[str]) -> None:
        """Reads one line; `following` are those after it, where an excerpt may stand."""
        if not line or _NOISE.search(line):
            return
        if match := _GNU_REQUIRED.match(line):
            column = int(match["column"] or 0)
            self._required = self._place_of(match, column) or self._required
        elif ": In instantiation of" in line or ": In substitution of" in line:
            self._required = None
        elif match := _GNU.match(line):
            column = int(match["column"] or 0)
            self._add(match, self._place_of(match, column), match["text"])
        elif match := _EDG.match(line):
            self._read_edg(match, following)
        elif match := _EDG_INSTANTIATED.match(line):
            self._move_last(match)
        elif match := _PTXAS.match(line):
            self._say("warning" if match["severity"] == "warning" else "error", match["text"])
        elif match := _UNDEFINED.search(line):
            self._say("error", f"undefined reference to '{match['name']}'")
        elif match := _LIBRARY.search(line):
            self._say("error", f"cannot find library {match['name']}")
        elif match := _PROGRAM.match(line):
            self._say("error", match["text"] or match["severity"] + match["rest"])

    def place(self, file: str, line: int, column: int) -> Place | None:
        """Where in the workspace a place of the compiler's is; `None` for others' files."""
        name = (file.removeprefix(self._root + "/") if self._root else file).removeprefix("./")
        if column:
            text = self._sources.get(name)
            shown = self._map.line_text(name, line) if text is None else _line(text, line)
            column = _characters(shown, column)
        return resolve(name, line, column, source_map=self._map, sources=self._sources)

    def clean(self, text: str) -> str:
        """A message without temporary paths and without template noise, on one line."""
        if self._root:
            text = text.replace(self._root + "/", "").replace(self._root, ".")
        text = _TEMPORARY.sub(r"\1", text)
        return _fold(" ".join(text.split()))

    def _place_of(self, match: re.Match[str], column: int = 0) -> Place | None:
        return self.place(match["file"], int(match["line"]), column)

    def _read_edg(self, match: re.Match[str], following: Sequence[str]) -> None:
        place = self._place_of(match)
        caret = next((row for row in following[1:3] if row.strip() == "^"), None)
        if place is not None and caret is not None:
            written = self._map.line_text(place.file, place.line)
            # nvcc shows the line after preprocessing: find the rest of it in what was written.
            place = place._replace(column=_caret_column(caret, following[0], written))
        number = f" [#{match['number']}]" if match["number"] else ""
        self._add(match, place, match["text"] + number)

    def _move_last(self, match: re.Match[str]) -> None:
        """Moves an error inside foreign templates to the line that instantiated them."""
        if not self.found or self.found[-1].line or self.found[-1].severity == "note":
            return
        if match["file"]:
            place = self.place(match["file"].strip('"'), int(match["line"]), 0)
            if place is not None:
                last = self.found.pop()
                self._append(place, last.severity, last.text)

    def _add(self, match: re.Match[str], place: Place | None, text: str) -> None:
        severity = match["severity"]
        severity = severity if severity in _SEVERITIES else "error"
        if match["severity"] == "remark":
            severity = "note"
        if severity == "note":
            if place is not None and place.file and not self._drop_notes:
                self._append(place, "note", self.clean(text))
            return
        # Warnings inside headers that the workspace does not own are nobody's business.
        self._drop_notes = place is None
        if place is None and severity == "warning":
            return
        if place is None and self._required is not None:
            place = self._required
        if place is not None and (missing := _MISSING.match(text)):
            place, text = self._before(place), missing.group()
        where = "" if place is not None else f"{match['file'].rpartition('/')[2]}: "
        self._append(place or Place("", 0, 0), severity, where + self.clean(text))

    def _before(self, place: Place) -> Place:
        """Where something is missing that the compiler noticed only at the next token."""
        if self._map.line_text(place.file, place.line)[: max(0, place.column - 1)].strip():
            return place
        for line in range(place.line - 1, 0, -1):
            code = self._map.line_text(place.file, line).partition("//")[0].rstrip()
            if code:
                return Place(place.file, line, len(code) + 1)
        return place

    def _say(self, severity: str, text: str) -> None:
        self._append(Place("", 0, 0), severity, self.clean(text))

    def _append(self, place: Place, severity: str, text: str) -> None:
        self.found.append(place_at(self._map, place, severity, text, tool=self._tool))


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    return lines[number - 1] if 1 <= number <= len(lines) else ""


def _characters(line: str, byte_column: int) -> int:
    """A column counted in characters, from one counted in bytes of UTF-8; both 1-based."""
    return len(line.encode("utf-8", "replace")[: byte_column - 1].decode("utf-8", "ignore")) + 1


def _caret_column(caret: str, shown: str, written: str) -> int:
    """The 1-based column in `written` of what a caret marks in `shown`; 0 when it is not there."""
    rest = shown[caret.index("^") :].rstrip()
    at = written.rstrip().rfind(rest) if rest else len(written.rstrip())
    return at + 1


def _excerpt(line: str, column: int) -> str:
    line = line.expandtabs(1).rstrip()
    if not line:
        return ""
    start = 0
    if len(line) > _MAX_EXCERPT:
        start = max(0, min(column - _MAX_EXCERPT // 2, len(line) - _MAX_EXCERPT))
        line = line[start : start + _MAX_EXCERPT]
    if not 0 < column <= start + len(line) + 1:
        return line
    return f"{line}\n{' ' * (column - 1 - start)}^"


_STRING_TYPE = re.compile(
    r"std::(?:__cxx11::)?basic_string<char(?:, std::char_traits<char>, std::allocator<char> ?)?>"
)
_DEFAULTED = re.compile(
    r", (?:std::)?(?:allocator|less|hash|equal_to|default_delete|char_traits)<[^<>]*(?:<[^<>]*>)?[^<>]*>"
)
_WITH = re.compile(r" \[with [^\]]{80,}\]")
_CLOSING = re.compile(r"(?:(?<=>)|(?<=std::string)) >")
_INLINE_NAMESPACE = re.compile(r"std::__cxx11::|__gnu_cxx::")


def _fold(text: str) -> str:
    """Shortens long template names, then the whole."""
    text = _STRING_TYPE.sub("std::string", text)
    text = _DEFAULTED.sub("", text)
    text = _INLINE_NAMESPACE.sub(lambda match: "std::" if "std" in match.group() else "", text)
    text = _WITH.sub("", text)
    text = _CLOSING.sub(">", text)
    if len(text) > _MAX_TEXT // 2:
        text = _fold_arguments(text)
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _fold_arguments(text: str) -> str:
    """Replaces template arguments nested in template arguments by an ellipsis."""
    out: list[str] = []
    depth = 0
    for index, character in enumerate(text):
        # Only after a name does "<" open arguments; "operator<" and "a < b" do not.
        opens = character == "<" and re.search(r"(?<!operator)\w$", text[max(0, index - 9) : index])
        if opens:
            depth += 1
            if depth == 2:
                out.append("<…>")
        if depth < 2:
            out.append(character)
        if character == ">" and depth:
            depth -= 1
    return "".join(out)
