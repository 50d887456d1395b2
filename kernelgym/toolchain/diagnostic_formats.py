"""Diagnostics as editors and code hosts read them: gcc's lines, and SARIF 2.1.0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kernelgym._version import __version__
from kernelgym.toolchain.build import Diagnostic

__all__ = ["to_gcc", "to_sarif"]


def to_gcc(diagnostics: Iterable[Diagnostic]) -> str:
    """One `file:line:column: severity: text` a line, each with its excerpt, as gcc prints them."""
    lines = []
    for diagnostic in diagnostics:
        numbers = [number for number in (diagnostic.line, diagnostic.column) if number]
        place = ":".join([diagnostic.file, *map(str, numbers)]) if diagnostic.file else "kernelgym"
        code = f" [{diagnostic.code}]" if diagnostic.code else ""
        lines.append(f"{place}: {diagnostic.severity}: {diagnostic.text}{code}")
        lines += [f"  {line}" for line in diagnostic.excerpt.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def to_sarif(diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """A SARIF 2.1.0 log with one run; serialise it with `json.dumps`."""
    results = [_result(diagnostic) for diagnostic in diagnostics]
    rules = sorted({result["ruleId"] for result in results})
    driver = {"name": "kernelgym", "version": __version__, "rules": [{"id": id} for id in rules]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
        ],
    }


def _result(diagnostic: Diagnostic) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": diagnostic.code or diagnostic.tool or "kernelgym",
        "level": diagnostic.severity,
        "message": {"text": diagnostic.text},
    }
    if diagnostic.file:
        place: dict[str, Any] = {"artifactLocation": {"uri": diagnostic.file}}
        if diagnostic.line:
            place["region"] = {"startLine": diagnostic.line}
            if diagnostic.column:
                place["region"]["startColumn"] = diagnostic.column
            if diagnostic.excerpt:
                place["region"]["snippet"] = {"text": diagnostic.excerpt.split("\n")[0]}
        result["locations"] = [{"physicalLocation": place}]
    return result
