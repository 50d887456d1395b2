"""Advice for a person at a terminal."""

from __future__ import annotations

from rich.text import Text

from kernelgym.feedback import printable
from kernelgym.judge.advice import Advice, top_stall
from kernelgym.judge.verdict import Verdict

__all__ = ["advice_text"]


def advice_text(verdict: Verdict, advice: Advice) -> Text:
    """What bounds a kernel, why its warps wait, and what to do next."""
    source = " (modelled by the emulator, not measured)" if advice.modelled else ""
    text = Text()
    text.append("What bounds it", style="bold")
    text.append(f"{source}: {printable(advice.limit)}\n")
    rows = verdict.counters.kernels if verdict.counters is not None else ()
    for row in sorted(rows, key=lambda row: -row.time)[:1]:
        stall = top_stall(row)
        if stall is not None:
            text.append("Top stall", style="bold")
            text.append(
                f": {stall[0]}, {stall[1]:.0%} of the time, in {printable(row.name[:60])}\n"
            )
    text.append("Next steps", style="bold")
    for number, step in enumerate(advice.steps, 1):
        text.append(f"\n  {number}. {printable(step.text)}")
    return text
