"""Fixes for what a run shows at a line: races, bad addresses, unwritten memory, stuck barriers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kernelgym.agents.fixes.fix import Fix, insert_line, line_span, splice
from kernelgym.toolchain.build import Diagnostic

__all__ = ["of_finding"]

_OTHER_LINE = re.compile(r"in line (\d+)")
_BARRIER = "__syncthreads();"
_COMPOUND = re.compile(r"([\w\]\)\.>-]+(?:\[[^;=]*\])?|\*\s*\([^;=]*\)|\*\s*\w+)\s*\+=\s*([^;]+);")
_DECLARED = re.compile(r"\b(float|double|int|float4|long|half)\s+(\w+)\s*;")
_INDEX = re.compile(r"\[([^\[\]]+)\]")
_EMPTY = re.compile(r"\btorch::empty(_like)?\b")
_CONDITION = re.compile(r"^\s*(?:if|for|while|else)\b")


def of_finding(files: Mapping[str, str], one: Diagnostic) -> Iterator[Fix]:
    """Fixes for one finding of the emulator, or of a GPU's checker."""
    text = files.get(one.file)
    if text is None or not one.line:
        return
    if one.code == "race.shared":
        yield from _barriers(text, one, (0.95, 0.85))
    elif one.code == "race.global":
        yield from _atomics(text, one)
    elif one.code == "memory.uninitialised":
        yield from _initial_values(text, one)
        yield from _barriers(text, one, (0.6, 0.5))
    elif one.code == "memory.out_of_bounds":
        yield from _guards(text, one)
    elif one.code in ("barrier.divergent", "barrier.deadlock"):
        yield from _moved_barrier(text, one)


def _barriers(text: str, one: Diagnostic, weights: tuple[float, float]) -> Iterator[Fix]:
    """A barrier between the two accesses: before either, and at the end of a loop's body."""
    other = _OTHER_LINE.search(one.text)
    lines = [one.line] + ([int(other[1])] if other else [])
    first, second = max(lines), min(lines)
    places = {_statement(text, first): weights[0]}
    places.setdefault(_after(text, second), weights[1])
    places.setdefault(_after(text, first), weights[1] - 0.1)
    places.setdefault(_statement(text, second), weights[1] - 0.15)
    closing = _block_end(text, first)
    if closing:
        places.setdefault(closing, weights[1] - 0.05)
    for line, weight in places.items():
        if _BARRIER not in text[slice(*line_span(text, line))]:
            yield insert_line(one.file, text, line, _BARRIER, f"barrier at line {line}", weight)


def _statement(text: str, line: int) -> int:
    """The first line of the statement at a line: heads without braces before it belong to it."""
    while line > 1:
        before = text[slice(*line_span(text, line - 1))]
        if not _CONDITION.match(before) or before.rstrip().endswith(("{", ";", "}")):
            return line
        line -= 1
    return line


def _after(text: str, line: int) -> int:
    """The line that follows the statement at a line."""
    count = text.count("\n") + 1
    while line < count and not text[slice(*line_span(text, line))].rstrip().endswith((";", "}")):
        line += 1
    return line + 1


def _block_end(text: str, line: int) -> int:
    """The line of the brace that closes the block around a line; 0: there is none."""
    depth = 0
    for number, row in enumerate(text.split("\n")[line:], line + 1):
        depth += row.count("{") - row.count("}")
        if depth < 0:
            return number
    return 0


def _atomics(text: str, one: Diagnostic) -> Iterator[Fix]:
    other = _OTHER_LINE.search(one.text)
    for line in dict.fromkeys([one.line] + ([int(other[1])] if other else [])):
        start, end = line_span(text, line)
        for match in _COMPOUND.finditer(text[start:end]):
            target = match[1].strip()
            address = target[1:].strip() if target.startswith("*") else f"&{target}"
            a, b = start + match.start(), start + match.end()
            new = f"atomicAdd({address}, {match[2].strip()});"
            yield splice(one.file, text, a, b, new, f"atomicAdd at line {line}", 0.97)


def _initial_values(text: str, one: Diagnostic) -> Iterator[Fix]:
    for match in _EMPTY.finditer(text):
        new = f"torch::zeros{match[1] or ''}"
        yield splice(one.file, text, match.start(), match.end(), new, "zeros for empty", 0.7)
    for match in _DECLARED.finditer(text):
        at = match.end() - 1
        yield splice(one.file, text, at, at, " = 0", f"initialise {match[2]}", 0.8)


def _guards(text: str, one: Diagnostic) -> Iterator[Fix]:
    """A bounds check around the line, by each extent that the kernel is given."""
    start, end = line_span(text, one.line)
    row = text[start:end]
    indices = [m[1].strip() for m in _INDEX.finditer(row)]
    head = text.rfind("__global__", 0, start)
    if head < 0 or not indices:
        return
    opening = text.find("(", head)
    parameters = text[opening : text.find(")", opening)]
    extents = re.findall(r"\b(?:int|long|int64_t|size_t|unsigned|long long)\s+(\w+)", parameters)
    ranked = sorted(extents, key=lambda name: name not in ("n", "N", "size", "numel", "total"))
    body = row.strip()
    if not body.endswith(";") or re.match(r"(const\s+)?(float|int|double|long|auto)\b", body):
        return
    for rank, name in enumerate(ranked[:3]):
        for index in dict.fromkeys(i for i in indices if re.fullmatch(r"\w+", i)):
            at = start + len(row) - len(row.lstrip())
            guard = f"if ({index} < {name}) "
            yield splice(one.file, text, at, at, guard, guard.strip(), 0.9 - 0.1 * rank)


def _moved_barrier(text: str, one: Diagnostic) -> Iterator[Fix]:
    """The barrier behind the block that it stands in, or an early return turned around."""
    start, end = line_span(text, one.line)
    row = text[start:end]
    if _BARRIER in row:
        without = text[:start] + row.replace(_BARRIER, "", 1) + text[end:]
        closing = _block_end(without, one.line)
        if closing:
            moved = insert_line(one.file, without, closing + 1, _BARRIER, "", 0.9)
            yield Fix(one.file, moved.text, "barrier behind its block", 0.9, closing + 1)
        yield Fix(one.file, without, "leave the barrier out", 0.4, one.line)
