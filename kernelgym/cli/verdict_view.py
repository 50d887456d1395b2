"""A verdict for a person at a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kernelgym.feedback import (
    clip,
    counter_texts,
    energy_text,
    format_bytes,
    format_seconds,
    printable,
    sass_text,
    summary,
)
from kernelgym.judge.reasons import REASONS
from kernelgym.judge.verdict import (
    Correctness,
    Diagnostic,
    KernelCounters,
    Measurement,
    Outcome,
    Verdict,
)

__all__ = ["STYLES", "one_line", "panel"]

STYLES = {
    Outcome.REJECTED: "magenta",
    Outcome.COMPILE_ERROR: "red",
    Outcome.RUNTIME_ERROR: "red",
    Outcome.TIMEOUT: "yellow",
    Outcome.INCORRECT: "red",
    Outcome.CORRECT: "green",
    Outcome.UNSUPPORTED: "yellow",
}
_SEVERITIES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_MAX_OUTPUT = 2000
_MAX_KERNELS = 8


def one_line(verdict: Verdict, first: str = "") -> Text:
    """Outcome, speedups and what comes first among the problems, on one line."""
    text = Text(first)
    text.append(summary(verdict), style=STYLES[verdict.outcome])
    if verdict.timing is not None:
        time = verdict.timing.candidate
        text.append(f"  {format_seconds(time.median)} {time.source}", style="dim")
    elif verdict.diagnostics:
        problem = verdict.diagnostics[0]
        text.append(f"  {_place(problem)} {printable(problem.text)}")
    elif verdict.message:
        text.append(f"  {printable(verdict.message.splitlines()[0])}")
    return text


def panel(
    verdict: Verdict, least_bytes: int | None = None, *, framed: bool = True
) -> RenderableType:
    """Everything that helps with the next edit.

    Args:
        verdict: What to show.
        least_bytes: The task's compulsory traffic, which the counted bytes are compared with.
        framed: Whether to draw a frame; without it, the text suits files and pipes.
    """
    style = STYLES[verdict.outcome]
    parts: list[RenderableType] = []
    if verdict.message:
        parts.append(Text(printable(verdict.message)))
    reason = REASONS.get(verdict.reason)
    if reason is not None:
        parts.append(Text(f"What to do: {reason.remedy}", style="italic"))
    parts.extend(_diagnostic(problem) for problem in verdict.diagnostics)
    if verdict.build is not None:
        parts.extend(_diagnostic(problem) for problem in verdict.build.warnings)
    facts = _facts(verdict, least_bytes)
    if facts:
        parts.append(_table(facts) if framed else _lines(facts))
    if verdict.output:
        parts.append(Text("The candidate printed:", style="bold"))
        parts.append(Text(printable(clip(verdict.output, _MAX_OUTPUT)), style="dim"))
    where = verdict.provenance
    title = Text(f"{verdict.task}  {verdict.outcome}", style=f"bold {style}")
    if verdict.reason:
        title.append(f"  {verdict.reason}", style="not bold")
    footer = f"{where.device}, size {where.size}, {where.protocol}, {where.ruleset}"
    took = sum(seconds for _, seconds in verdict.seconds)
    foot = Text(f"{footer}; judged in {took:.1f} s", style="dim")
    if not framed:
        return Group(title, *parts, foot)
    # The foot stands inside, where it wraps: in the frame, a narrow terminal would cut it.
    return Panel(
        Group(*parts or [Text("No problem found.")], foot),
        title=title,
        title_align="left",
        border_style=style,
    )


def _diagnostic(problem: Diagnostic) -> Text:
    text = Text("\n")
    place = _place(problem)
    if place:
        text.append(place + " ", style="bold")
    text.append(f"{problem.severity}: ", style=_SEVERITIES.get(problem.severity, "bold"))
    text.append(printable(problem.text))
    if problem.code:
        text.append(f" [{problem.code}]", style="dim")
    for line in problem.excerpt.splitlines():
        caret = not line.strip(" ^~")
        text.append(f"\n    {printable(line)}", style="bold green" if caret else "")
    return text


def _place(problem: Diagnostic) -> str:
    if not problem.file:
        return ""
    numbers = [str(number) for number in (problem.line, problem.column) if number]
    return printable(":".join([problem.file, *numbers]) + ":")


def _table(facts: list[tuple[str, Text]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, value)
    return table


def _lines(facts: list[tuple[str, Text]]) -> Text:
    width = max(len(name) for name, _ in facts)
    return Text("\n").join(Text(f"{name:{width}}  ") + value for name, value in facts)


def _facts(verdict: Verdict, least_bytes: int | None) -> list[tuple[str, Text]]:
    facts: list[tuple[str, Text]] = []

    def add(name: str, value: str | Text) -> None:
        facts.append((name, Text(value) if isinstance(value, str) else value))

    if verdict.correctness is not None:
        for name, value in _correctness(verdict.correctness):
            add(name, value)
    if verdict.timing is not None:
        timing = verdict.timing
        add("time", _time(timing.candidate))
        for name, baseline, speedup in (
            ("eager", timing.eager, timing.speedup_eager),
            ("compile", timing.compile, timing.speedup_compile),
        ):
            if baseline is not None:
                row = Text(_time(baseline))
                if speedup is not None:
                    style = "bold green" if speedup.low > 1 else "bold red"
                    row.append(f"  {speedup.value:.2f}x", style=style)
                    row.append(f" [{speedup.low:.2f}, {speedup.high:.2f}]", style="dim")
                add(f"  against {name}", row)
        if timing.light_fraction is not None:
            add("speed of light", f"{timing.light_fraction:.1%} of what physics allows")
        for note in timing.notes:
            add("note", printable(note))
    if verdict.coverage is not None:
        share = verdict.coverage
        add(
            "device time",
            f"own {share.own:.0%}, library {share.library:.0%}, foreign {share.foreign:.0%}",
        )
    if verdict.counters is not None:
        total = verdict.counters.total
        if least_bytes:
            add("traffic", _traffic(total, least_bytes))
        for kernel in sorted(verdict.counters.kernels, key=lambda one: -one.time)[:_MAX_KERNELS]:
            add(printable(clip(kernel.name, 64)), _kernel(kernel))
        source = verdict.counters.source + (" (sampled)" if verdict.counters.sampled else "")
        note = f"; {verdict.counters.note}" if verdict.counters.note else ""
        add("counted by", printable(source + note))
    if verdict.build is not None:
        for resources in verdict.build.kernels[:_MAX_KERNELS]:
            add(
                printable(clip(resources.name, 64)),
                f"registers {resources.registers}, shared {resources.shared_bytes} B, "
                f"spills {resources.spill_store_bytes} B (nvcc)",
            )
        for sass in verdict.build.sass[:_MAX_KERNELS]:
            add(printable(clip(sass.name, 64)), f"{sass_text(sass)} (machine code)")
        add("build", verdict.build.path + (" (cached)" if verdict.build.cached else ""))
    if verdict.peak_memory is not None:
        eager = verdict.peak_memory_eager
        against = "" if eager is None else f" (eager {format_bytes(eager)})"
        add("peak memory", format_bytes(verdict.peak_memory) + against)
    if verdict.energy is not None:
        eager_energy = verdict.energy_eager
        against = "" if eager_energy is None else f" (eager {energy_text(eager_energy)})"
        add("energy", energy_text(verdict.energy) + against)
    return facts


def _correctness(check: Correctness) -> list[tuple[str, str]]:
    passed = f"{check.passed} of {check.draws} draws within the error budget"
    if check.error is not None:
        passed += (
            "; exact" if check.error == 0 else f"; largest error {check.error:.3g} of the budget"
        )
    rows = [("check", passed)]
    if check.bad_elements:
        rows.append(("wrong", f"{check.bad_elements} of {check.elements} elements"))
    if check.worst is not None:
        index = ", ".join(map(str, check.worst.index))
        expected, got = (
            "not finite" if value is None else f"{value:.7g}"
            for value in (check.worst.expected, check.worst.got)
        )
        rows.append(("worst", f"output[{index}] expected {expected}, got {got}"))
    if check.pattern:
        rows.append(("pattern", check.pattern))
    if check.generalises is not None:
        rows.append(("second shape", "passed too" if check.generalises else "did not pass"))
    return rows


def _time(time: Measurement) -> str:
    text = f"{format_seconds(time.median)} {time.source}"
    if time.low < time.high:
        text += f" [{format_seconds(time.low)}, {format_seconds(time.high)}]"
    return text


def _traffic(total: KernelCounters, least: int) -> str:
    read, written = total.get("dram_bytes_read"), total.get("dram_bytes_written")
    if read is None or written is None:
        return f"not counted; at least {format_bytes(least)}"
    moved = read + written
    return f"{format_bytes(moved)} moved, {moved / least:.2f} x the least ({format_bytes(least)})"


def _kernel(kernel: KernelCounters) -> str:
    values = "".join(f", {text}" for text in counter_texts(kernel))
    launches = f"{kernel.launches} launch" + ("" if kernel.launches == 1 else "es")
    return f"{kernel.share:.0%} of the time, {launches}{values}"
