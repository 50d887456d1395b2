"""Reads the emulator's report: launches with their counts, and findings as diagnostics."""

from __future__ import annotations

import collections
import dataclasses
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from kernelgym.errors import RecordError, ToolchainFault
from kernelgym.toolchain.build import Diagnostic

__all__ = ["EmulatorReport", "Launch", "locate", "parse_report"]

# A report comes out of a candidate's process: numbers are bounded before anything is made of them.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Triple = tuple[Count, Count, Count]


@dataclasses.dataclass(frozen=True)
class Launch:
    """One kernel launch, or one call of a library.

    Attributes:
        kernel: As written at the launch: `"softmax<float, 256>"`.
        file: File of the launch, `""` when unknown.
        line: Its line, 0 when unknown.
        grid: Blocks along x, y, z.
        block: Threads along x, y, z.
        shared_static: Bytes of static shared memory.
        shared_dynamic: Bytes of dynamic shared memory.
        owner: `"own"` for a kernel of the candidate's, `"library"` for a call of cuBLAS.
        flops: Floating-point operations of a library's call; 0 for a kernel.
        checked: Whether accesses were watched; without, `counts` is empty.
        completed: Whether it ran to its end.
        sampled: Whether only some of its blocks were watched, and counts are scaled up.
        repeats: How many equal launches this one stands for; `counts` is their sum.
        counts: Counts by name, such as `"global_load_sectors"`; of a library's call, the bytes that
            it has to move.
    """

    kernel: str
    file: str
    line: int
    grid: Triple
    block: Triple
    shared_static: int
    shared_dynamic: int
    owner: str
    flops: Count
    checked: bool
    completed: bool
    sampled: bool
    counts: dict[str, Count]
    repeats: Count = 1


@dataclasses.dataclass(frozen=True)
class EmulatorReport:
    """What the emulator saw between two resets.

    Attributes:
        launches: In order.
        findings: What is wrong with the kernels, in the order found; `tool` is `"emulator"`.
        last_error: A `cudaError_t`, 0 when all is well.
        printf: What kernels printed.
    """

    launches: tuple[Launch, ...]
    findings: tuple[Diagnostic, ...]
    last_error: int = 0
    printf: str = ""


class _Where(msgspec.Struct, frozen=True):
    module: str
    offset: Count


class _Other(msgspec.Struct):
    block: Triple
    thread: Triple
    access: str
    where: _Where | None


class _Finding(msgspec.Struct):
    code: str
    kernel: str
    block: Triple
    thread: Triple
    text: str
    where: _Where | None
    other: _Other | None


class _Report(msgspec.Struct):
    launches: tuple[Launch, ...]
    findings: list[_Finding]
    last_error: int
    printf: str


Place = tuple[str, int]
_MAX_FINDINGS = 20


def parse_report(
    text: str | bytes,
    *,
    map_place: Callable[[str, int], Place] | None = None,
    hidden: Iterable[Path | str] = (),
    modules: Collection[str] | None = None,
) -> EmulatorReport:
    """Reads a report and finds the source lines of its findings.

    Args:
        text: What `EmulatorRuntime.report` gave.
        map_place: Turns a compiled file and line into those of the workspace.
        hidden: Directories whose files are not a candidate's, such as the kit's: a finding inside a
            function from there is placed at the call.
        modules: The libraries that may be looked into; by default all that the report names. A
            report is a candidate's word, and `addr2line` reads whatever it is given.

    Raises:
        RecordError: The text is not a report.
        ToolchainFault: `addr2line` is missing.
    """
    try:
        report = msgspec.json.decode(text, type=_Report)
    except msgspec.DecodeError as error:
        raise RecordError(f"expected the emulator's report as JSON, got: {error}") from error
    del report.findings[_MAX_FINDINGS:]
    for finding in report.findings:
        for part in (finding, finding.other):
            if part is not None and part.where is not None and modules is not None:
                part.where = part.where if part.where.module in modules else None
    wanted = [finding.where for finding in report.findings]
    wanted += [finding.other.where for finding in report.findings if finding.other]
    places = locate({where for where in wanted if where}, hidden=hidden)
    if map_place is not None:
        places = {
            where: map_place(*place) if place[0] else place for where, place in places.items()
        }
    return EmulatorReport(
        launches=tuple(_mapped(launch, map_place) for launch in report.launches),
        findings=tuple(_diagnostic(finding, places) for finding in report.findings),
        last_error=report.last_error,
        printf=report.printf,
    )


def _mapped(launch: Launch, map_place: Callable[[str, int], Place] | None) -> Launch:
    if map_place is None or not launch.file:
        return launch
    file, line = map_place(launch.file, launch.line)
    return dataclasses.replace(launch, file=file, line=line)


def _diagnostic(finding: _Finding, places: Mapping[_Where, Place]) -> Diagnostic:
    file, line = places[finding.where] if finding.where else ("", 0)
    # Storage that the rewriter made for a shared variable bears the name of that variable.
    text = finding.text.replace("kgemu_shared_", "")
    if finding.kernel:
        text += f" (kernel {finding.kernel}, block {finding.block}, thread {finding.thread})"
    if finding.other:
        other = finding.other
        text += f"; conflicts with the {other.access} by block {other.block}, thread {other.thread}"
        other_line = places[other.where][1] if other.where else 0
        if other_line:
            text += f" in line {other_line}"
    return Diagnostic(
        file=file,
        line=line,
        column=0,
        severity="error",
        text=text,
        tool="emulator",
        code=finding.code,
    )


def locate(wheres: Iterable[_Where], *, hidden: Iterable[Path | str] = ()) -> dict[_Where, Place]:
    """Source file and line of offsets in modules; `("", 0)` where debug information says nothing.

    One call of `addr2line` for each module. Of functions inlined into each other, the innermost one
    that is not in a hidden directory counts.
    """
    prefixes = tuple(str(directory) for directory in hidden)
    by_module: dict[str, list[_Where]] = collections.defaultdict(list)
    for where in wheres:
        by_module[where.module].append(where)
    places: dict[_Where, Place] = {}
    for module, group in by_module.items():
        command = ["addr2line", "-a", "-i", "-e", module, *(hex(where.offset) for where in group)]
        try:
            result = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=60
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ToolchainFault(f"expected addr2line of binutils to run, got: {error}") from error
        frames: dict[int, list[Place]] = collections.defaultdict(list)
        address = -1
        for row in result.stdout.splitlines():
            if row.startswith("0x") and ":" not in row:
                address = int(row, 16)
                continue
            file, _, line = row.partition(" (")[0].rpartition(":")
            if line.isdigit() and file != "??":
                frames[address].append((file, int(line)))
        for where in group:
            own = [place for place in frames[where.offset] if not place[0].startswith(prefixes)]
            places[where] = (own or frames[where.offset] or [("", 0)])[0]
    return places
