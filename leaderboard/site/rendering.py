"""The templates' environment: what entries say is escaped, and leads nowhere but to the web."""

from __future__ import annotations

import functools
import urllib.parse
from typing import TYPE_CHECKING

from kernelgym.feedback import format_bytes
from kernelgym.judge.verdict import Speedup, Verdict
from kernelgym.leaderboard.loading import task_folder
from kernelgym.leaderboard.site.plots import interval_bar
from kernelgym.report.rendering import page_environment
from kernelgym.resampling import Estimate

if TYPE_CHECKING:
    import jinja2

__all__ = ["environment", "ratio", "safe_url", "share", "span"]


@functools.cache
def environment() -> jinja2.Environment:
    """The environment of all pages of the site."""
    made = page_environment("kernelgym.leaderboard.site")
    made.filters.update(
        safe_url=safe_url,
        task_file=task_folder,
        readable=_readable,
        ratio=ratio,
        share=share,
        span=span,
        share_span=_share_span,
        bar=lambda figure, ends: interval_bar(figure, *ends),
        counter=_counter,
        evidence=_evidence,
    )
    return made


def safe_url(address: str) -> str | None:
    """The address if it leads to a page on the web (http or https, no user in it), else None."""
    try:
        parts = urllib.parse.urlsplit(address)
        named = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not named or "@" in parts.netloc:
        return None
    # Browsers drop some characters and turn others round: such an address is not what it seems.
    if any(sign <= " " or sign in '\\<>"`' or sign == "\x7f" for sign in address):
        return None
    return address


def ratio(value: float) -> str:
    """A ratio with two decimals, or none from 100 on."""
    return f"{value:.2f}" if value < 99.5 else f"{value:.0f}"


def share(value: float) -> str:
    """A fraction in per cent with one decimal, without the sign."""
    return f"{value * 100:.1f}"


def span(figure: Estimate | Speedup) -> str:
    """The interval of a ratio."""
    return f"{ratio(figure.low)}–{ratio(figure.high)}"


def _readable(name: str) -> str:
    """A task's name in words, so that a narrow column can break it."""
    return " ".join(name.replace("_", " ").split())


def _share_span(figure: Estimate | Speedup) -> str:
    return f"{share(figure.low)}–{share(figure.high)}"


def _counter(value: float, name: str) -> str:
    if "bytes" in name:
        return format_bytes(value)
    return f"{value:,.0f}" if value.is_integer() and value < 1e9 else f"{value:.4g}"


def _evidence(verdict: Verdict) -> list[tuple[str, str]]:
    """What a verdict says beside times and counters, as labels and texts."""
    pairs = []
    check, timing, owners = verdict.correctness, verdict.timing, verdict.coverage
    if check is not None:
        said = f"{check.passed} of {check.draws} input draws"
        if check.error is not None:
            said += f", largest error {check.error:.3g} of the budget"
        pairs.append(("Correct on", said))
        if check.bad_elements:
            pairs.append(("Wrong elements", f"{check.bad_elements} of {check.elements}"))
        if check.generalises is not None:
            pairs.append(("Second shape", "passes" if check.generalises else "fails"))
    if timing is not None and timing.light_fraction is not None:
        pairs.append(("Of the speed of light", f"{timing.light_fraction:.1%}"))
    if owners is not None:
        pairs.append(
            ("Device time", f"own {owners.own:.0%}, library {owners.library:.0%}, "
             f"foreign {owners.foreign:.0%}")
        )  # fmt: skip
    if verdict.peak_memory is not None:
        said = format_bytes(verdict.peak_memory)
        if verdict.peak_memory_eager is not None:
            said += f" (eager {format_bytes(verdict.peak_memory_eager)})"
        pairs.append(("Peak memory", said))
    if verdict.build is not None:
        pairs.append(("Built by", verdict.build.path))
        pairs.extend(
            (f"Kernel {one.name}", f"{one.registers} registers, {one.shared_bytes or 0} B shared")
            for one in verdict.build.kernels
            if one.registers is not None
        )
    origin = verdict.provenance
    pairs.append(("Judged on", f"{origin.device}, {origin.size} shapes, {origin.protocol} protocol, "
                  f"{origin.ruleset} rules, {origin.precision} precision"))  # fmt: skip
    versions = [("kernelgym", origin.kernelgym), ("torch", origin.torch), ("CUDA", origin.cuda),
                ("driver", origin.driver)]  # fmt: skip
    pairs.append(("Versions", ", ".join(f"{name} {said}" for name, said in versions if said)))
    pairs.append(("Source hash", verdict.source_hash))
    return pairs
