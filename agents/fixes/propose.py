"""All fixes for one verdict, the likeliest first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kernelgym.agents.fixes.compile_errors import of_diagnostic
from kernelgym.agents.fixes.findings import of_finding
from kernelgym.agents.fixes.fix import Fix
from kernelgym.agents.fixes.suspects import of_values
from kernelgym.judge.verdict import Verdict

__all__ = ["propose"]

_NEAR = 3  # lines
_NEAR_WEIGHT, _FAR_WEIGHT = 0.3, -0.1
_SAID = ("build.compile", "import.error", "construct.error", "run.error", "weights.keys")


def propose(files: Mapping[str, str], verdict: Verdict, reference: str) -> list[Fix]:
    """Fixes for what a verdict says, each a different text, the likeliest first.

    Args:
        files: The workspace that was judged, path to text.
        verdict: What the judge said of it.
        reference: The task's source.
    """
    ranked = sorted(_all(files, verdict, reference), key=lambda fix: (-fix.weight, fix.line))
    unique: dict[tuple[str, str], Fix] = {}
    for fix in ranked:
        if fix.text != files[fix.file]:
            unique.setdefault((fix.file, fix.text), fix)
    return list(unique.values())


def _all(files: Mapping[str, str], verdict: Verdict, reference: str) -> Iterator[Fix]:
    for diagnostic in verdict.diagnostics:
        yield from of_diagnostic(files, diagnostic)
        yield from of_finding(files, diagnostic)
    if verdict.reason in ("check.input_mutated", "check.output_aliases_input"):
        yield from _own_output(files)
    if verdict.reason.startswith(("check.", "memory.", "run.", "race.")):
        yield from _contiguous(files)
    if verdict.reason in _SAID:
        return
    lines = [(one.file, one.line) for one in verdict.diagnostics if one.line]
    for fix in of_values(files, verdict.reason, reference):
        if not lines:
            yield fix
            continue
        near = any(fix.file == file and abs(fix.line - line) <= _NEAR for file, line in lines)
        weight = fix.weight + (_NEAR_WEIGHT if near else _FAR_WEIGHT)
        yield Fix(fix.file, fix.text, fix.says, weight, fix.line)


def _contiguous(files: Mapping[str, str]) -> Iterator[Fix]:
    """`forward` hands its tensors on as they come: kernels that index plainly want them dense."""
    for file, text in files.items():
        if not file.endswith(".py"):
            continue
        for match in re.finditer(r"def forward\(self, (\w+)[^)]*\)[^:]*:\n(\s+)", text):
            name, indent = match[1], match[2]
            if f"{name}.contiguous()" in text or f"{name}=" in text:
                continue
            new = f"{name} = {name}.contiguous()\n{indent}"
            changed = text[: match.end()] + new + text[match.end() :]
            line = text.count("\n", 0, match.end()) + 1
            dense = ".t()" in text or ".transpose(" in text or ".permute(" in text
            yield Fix(file, changed, f"{name}.contiguous()", 0.7 if dense else 0.2, line)


def _own_output(files: Mapping[str, str]) -> Iterator[Fix]:
    """`auto out = x;` becomes a tensor of its own."""
    for file, text in files.items():
        for match in re.finditer(r"((?:auto|torch::Tensor) (\w+) = )(\w+)(?=;)", text):
            new = f"{match[1]}torch::empty_like({match[3]})"
            changed = text[: match.start()] + new + text[match.end() :]
            line = text.count("\n", 0, match.start()) + 1
            yield Fix(file, changed, f"a tensor of its own for {match[2]}", 0.9, line)
