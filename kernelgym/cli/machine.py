"""`kernelgym doctor` and `kernelgym demo`: what this machine can do, and a first look."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from kernelgym.cli.console import Progress, output, plain
from kernelgym.cli.exits import Exit, finish

__all__ = ["demo", "doctor"]

_STYLES = {"ok": "green", "missing": "bold red", "optional": "yellow"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """Say what is here and what is missing; exit code 0 when judging works on this machine."""
    from kernelgym.doctor import examine, fit

    with Progress("Judging a tiny kernel end to end…"):
        findings = examine()
    if as_json:
        plain(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=1))
    else:
        console = output()
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            style = _STYLES[finding.status]
            console.print(
                f"[{style}]{finding.status:8}[/] [bold]{finding.name:{width}}[/]", end=" "
            )
            console.print(finding.detail, markup=False)
            if finding.remedy:
                console.print(f"{'':{9 + width}} → {finding.remedy}", markup=False)
    finish(Exit.CORRECT if fit(findings) else Exit.NO)


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the run; made anew.")] = Path("runs/demo"),
) -> None:
    """Watch two agents edit CUDA code until it is correct; every step is really judged."""
    from kernelgym.demo import play_demo

    if not play_demo(out, output()):
        finish(Exit.NO)
