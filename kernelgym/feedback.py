"""Feedback: a verdict as text, with what a language model (or a person) needs for the next edit."""

from __future__ import annotations

import re

from kernelgym.judge.metrics import SHARES, STALLS, top_stall
from kernelgym.judge.reasons import REASONS
from kernelgym.judge.verdict import (
    Correctness,
    Counters,
    Diagnostic,
    KernelCounters,
    KernelResources,
    Measurement,
    SassSummary,
    Speedup,
    Timing,
    Verdict,
)

__all__ = [
    "MAX_FEEDBACK",
    "clip",
    "counter_texts",
    "energy_text",
    "format_bytes",
    "format_seconds",
    "printable",
    "render_feedback",
    "sass_text",
    "summary",
]

MAX_FEEDBACK = 32 * 1024
"""Most characters of a feedback text."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_MAX_DIAGNOSTICS = 20
_MAX_KERNELS = 8
_MAX_OUTPUT = 2000
_BYTE_COUNTERS = ("dram_bytes_read", "dram_bytes_written")


def render_feedback(verdict: Verdict) -> str:
    """The verdict as text, compact, in a fixed order; the same verdict gives the same text.

    Wall-clock times of the judgement itself are left out: they are no matter of the candidate.
    """
    parts = [f"Outcome: {verdict.outcome}" + (f" ({verdict.reason})" if verdict.reason else "")]
    if verdict.message:
        parts.append(verdict.message)
    if verdict.reason in REASONS:
        parts.append(f"Remedy: {REASONS[verdict.reason].remedy}")
    parts.extend(_diagnostic(one) for one in verdict.diagnostics[:_MAX_DIAGNOSTICS])
    if verdict.correctness is not None:
        parts.extend(_correctness(verdict.correctness))
    if verdict.timing is not None:
        parts.extend(_timing(verdict.timing))
    if verdict.coverage is not None:
        share = verdict.coverage
        parts.append(
            f"Device time: own {share.own:.0%}, library {share.library:.0%}, "
            f"foreign {share.foreign:.0%}"
        )
    if verdict.counters is not None:
        parts.extend(_counters(verdict.counters))
    if verdict.build is not None:
        parts.extend(_resources(one) for one in verdict.build.kernels[:_MAX_KERNELS])
        parts.extend(
            f"Machine code of {one.name}: {sass_text(one)}"
            for one in verdict.build.sass[:_MAX_KERNELS]
        )
        parts.extend(_diagnostic(one) for one in verdict.build.warnings[:_MAX_DIAGNOSTICS])
    if verdict.peak_memory is not None:
        eager = verdict.peak_memory_eager
        beside = f" (eager {format_bytes(eager)})" if eager is not None else ""
        parts.append(f"Peak memory: {format_bytes(verdict.peak_memory)}{beside}")
    if verdict.energy is not None:
        beside = f" (eager {energy_text(verdict.energy_eager)})" if verdict.energy_eager else ""
        parts.append(f"Energy per call: {energy_text(verdict.energy)}{beside}")
    if verdict.output:
        parts.append(f"The candidate printed:\n{clip(verdict.output, _MAX_OUTPUT)}")
    return clip(printable("\n".join(parts)), MAX_FEEDBACK)


def summary(verdict: Verdict) -> str:
    """The verdict in a few words: outcome, and speedups where there are any."""
    words = str(verdict.outcome)
    if verdict.reason:
        words += f" ({verdict.reason})"
    if verdict.correct and verdict.timing is not None:
        pairs = _speedups(verdict.timing)
        words += "".join(f", {speed.value:.2f}x {name}" for name, speed in pairs)
    return words


def printable(text: str) -> str:
    """The text with what could confuse a terminal, or cannot be written to one, replaced.

    Control characters other than tab and newline, lone surrogates, and overrides of the direction
    of writing become U+FFFD: a candidate chooses what it prints.
    """
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def clip(text: str, limit: int) -> str:
    """The text, cut in its middle to at most `limit` characters (at least 64)."""
    if len(text) <= limit:
        return text
    note = f"\n… {len(text) - limit} or more characters left out …\n"
    head = (limit - len(note)) * 2 // 3
    return text[:head] + note + text[len(text) - (limit - len(note) - head) :]


def format_seconds(seconds: float) -> str:
    """Seconds in the unit that reads best, such as `12.3 us`."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def format_bytes(count: float) -> str:
    """Bytes in the decimal unit that reads best, such as `4.19 MB`."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def energy_text(energy: Measurement) -> str:
    """Joules in the unit that reads best, with their interval, such as `12.3 mJ [12.1, 12.6]`."""
    unit, factor = next(
        (pair for pair in (("J", 1.0), ("mJ", 1e3)) if energy.median * pair[1] >= 1), ("uJ", 1e6)
    )
    low, middle, high = (
        f"{value * factor:.4g}" for value in (energy.low, energy.median, energy.high)
    )
    return f"{middle} {unit} [{low}, {high}]"


def counter_texts(kernel: KernelCounters) -> list[str]:
    """A kernel's counters, each as a few words; of all stalls, the longest.

    What did not happen is left out, but for tensor cores: that they were idle says something.
    """
    texts = []
    for name, value in kernel.values:
        if name.startswith("stall_") or (value == 0 and name != "tensor_activity"):
            continue
        if name in _BYTE_COUNTERS:
            shown = format_bytes(value)
        else:
            shown = f"{value:.1%}" if name in SHARES else f"{value:.6g}"
        texts.append(f"{name} {shown}")
    stall = top_stall(dict(kernel.values))
    if stall is not None:
        texts.append(f"top stall {stall[0]} {stall[1]:.1%} ({STALLS[stall[0]]})")
    return texts


def sass_text(sass: SassSummary) -> str:
    """What a kernel's machine code is made of, in one line."""
    mix = ", ".join(f"{name} {count}" for name, count in sass.mix)
    parts = [f"{sass.instructions} instructions ({mix})"]
    for what, count, wide in (
        ("loads", sass.global_loads, sass.global_loads_16),
        ("stores", sass.global_stores, sass.global_stores_16),
    ):
        if count:
            parts.append(f"{wide} of {count} global {what} of 16 bytes")
    if sass.local_loads or sass.local_stores:
        parts.append(f"local memory: {sass.local_loads} loads, {sass.local_stores} stores")
    if sass.async_copies:
        parts.append(f"{sass.async_copies} asynchronous copies")
    parts.append(f"{sass.tensor or 'none'} on tensor cores")
    return "; ".join(parts)


def _diagnostic(one: Diagnostic) -> str:
    where = one.file
    if one.line:
        where += f":{one.line}" + (f":{one.column}" if one.column else "")
    code = f" [{one.code}]" if one.code else ""
    head = f"{where}: {one.severity}: {one.text}{code}".removeprefix(": ")
    return f"{head}\n{one.excerpt}" if one.excerpt else head


def _correctness(check: Correctness) -> list[str]:
    line = f"Check: {check.passed} of {check.draws} input draws within the error budget"
    if check.error is not None:
        line += (
            "; exact" if check.error == 0 else f"; largest error {check.error:.3g} of the budget"
        )
    parts = [line]
    if check.bad_elements:
        parts.append(f"Wrong: {check.bad_elements} of {check.elements} elements")
    if check.worst is not None:
        index = ", ".join(map(str, check.worst.index))
        parts.append(
            f"Worst: output[{index}] expected {_number(check.worst.expected)}, "
            f"got {_number(check.worst.got)}"
        )
    if check.pattern:
        parts.append(f"Pattern: {check.pattern}")
    if check.deterministic is False:
        parts.append("Two runs on one input differed by more than the budget")
    if check.generalises is False:
        parts.append("A second shape did not pass")
    return parts


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.7g}"


def _speedups(timing: Timing) -> list[tuple[str, Speedup]]:
    pairs = (("eager", timing.speedup_eager), ("compile", timing.speedup_compile))
    return [(name, speed) for name, speed in pairs if speed is not None]


def _timing(timing: Timing) -> list[str]:
    parts = [f"Time per call: {_measurement(timing.candidate)}"]
    baselines: tuple[tuple[str, Measurement | None], ...] = (
        ("eager", timing.eager),
        ("compile", timing.compile),
    )
    parts.extend(
        f"Baseline {name}: {_measurement(time)}" for name, time in baselines if time is not None
    )
    parts.extend(
        f"Speedup against {name}: {speed.value:.3f}x"
        + (f" [{speed.low:.3f}, {speed.high:.3f}]" if speed.low < speed.high else "")
        for name, speed in _speedups(timing)
    )
    if timing.light_fraction is not None:
        parts.append(f"Fraction of the speed of light: {timing.light_fraction:.1%}")
    return parts


def _measurement(time: Measurement) -> str:
    text = format_seconds(time.median)
    if time.low < time.high:
        text += f" [{format_seconds(time.low)}, {format_seconds(time.high)}]"
    return f"{text}, {time.source}"


def _counters(counters: Counters) -> list[str]:
    note = ", sampled" if counters.sampled else ""
    note += f"; {counters.note}" if counters.note else ""
    parts = [f"Counters ({counters.source}{note}): {_values(counters.total)}"]
    ranked = sorted(counters.kernels, key=lambda kernel: -kernel.time)
    if len(ranked) == 1:
        return [f"{parts[0]} (all in {ranked[0].name}, {ranked[0].owner})"]
    for kernel in ranked[:_MAX_KERNELS]:
        parts.append(
            f"  {kernel.name} ({kernel.owner}): {kernel.share:.0%} of device time, "
            f"launches {kernel.launches}, {_values(kernel)}"
        )
    if len(ranked) > _MAX_KERNELS:
        parts.append(f"  and {len(ranked) - _MAX_KERNELS} more kernels")
    return parts


def _values(kernel: KernelCounters) -> str:
    return ", ".join([f"device time {format_seconds(kernel.time)}", *counter_texts(kernel)])


def _resources(kernel: KernelResources) -> str:
    facts = (
        ("registers", kernel.registers),
        ("spill store bytes", kernel.spill_store_bytes),
        ("spill load bytes", kernel.spill_load_bytes),
        ("shared bytes", kernel.shared_bytes),
        ("local bytes", kernel.local_bytes),
    )
    known = ", ".join(f"{name} {value}" for name, value in facts if value is not None)
    return f"Kernel {kernel.name}: {known or 'no resources known'}"
