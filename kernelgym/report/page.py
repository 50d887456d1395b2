"""Renders a run's page with Jinja; everything from a run is escaped, and can do nothing."""

from __future__ import annotations

import importlib.resources
import os
from pathlib import Path

from kernelgym._version import __version__
from kernelgym.errors import UsageError
from kernelgym.feedback import (
    clip,
    format_bytes,
    format_seconds,
    printable,
    render_feedback,
    summary,
)
from kernelgym.judge.verdict import Verdict
from kernelgym.report import plots
from kernelgym.report.content import RunView, collect

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
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kernelgym.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Whatever a run's texts hold, control characters never reach the page.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters.update(
        bytes=format_bytes,
        seconds=format_seconds,
        summary=summary,
        feedback=render_feedback,
        clipped=lambda text: clip(text, _MAX_ACTION),
        milliseconds=_phases,
    )
    styles = (importlib.resources.files(__package__) / "templates" / "report.css").read_text(
        "utf-8"
    )
    return environment.get_template("report.html.j2").render(
        run=run,
        styles=styles,
        progress=plots.progress,
        roofline=plots.roofline,
        version=__version__,
    )


def _phases(verdict: Verdict) -> str:
    return ", ".join(f"{phase} {format_seconds(seconds)}" for phase, seconds in verdict.seconds)
