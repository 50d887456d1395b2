"""Renders a run's page with Jinja; everything from a run is escaped, and can do nothing."""

from __future__ import annotations

import os
from pathlib import Path

from kernelgym._version import __version__
from kernelgym.errors import UsageError
from kernelgym.feedback import (
    clip,
    format_seconds,
    render_feedback,
    summary,
)
from kernelgym.judge.verdict import Verdict
from kernelgym.report import plots
from kernelgym.report.content import RunView, collect
from kernelgym.report.rendering import page_environment, read_style

__all__ = ["render_report", "write_report"]

_MAX_ACTION = 20_000


def write_report(folder: str | os.PathLike[str], out: str | os.PathLike[str]) -> Path:
    """Writes the page of a run.

    Args:
        folder: The run's folder: `trace.jsonl`, and `run.json` where there is one.
        out: The page.

    Returns:
        The page's path.

    Raises:
        UsageError: There is no run in the folder, or the page cannot be written.
    """
    page = render_report(collect(Path(folder)))
    path = Path(out)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--out: expected a file that can be written, got {path}: {error}"
        ) from error
    return path


def render_report(run: RunView) -> str:
    """The page as text: one HTML document that loads nothing and runs no script."""
    environment = page_environment("kernelgym.report")
    environment.filters.update(
        summary=summary,
        feedback=render_feedback,
        clipped=lambda text: clip(text, _MAX_ACTION),
        milliseconds=_phases,
    )
    return environment.get_template("report.html.j2").render(
        run=run,
        styles=read_style("tokens.css") + read_style("report.css"),
        progress=plots.progress,
        roofline=plots.roofline,
        version=__version__,
    )


def _phases(verdict: Verdict) -> str:
    return ", ".join(f"{phase} {format_seconds(seconds)}" for phase, seconds in verdict.seconds)
