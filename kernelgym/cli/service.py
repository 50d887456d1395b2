"""`kernelgym serve`: the judge for callers in other processes and on other machines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kernelgym.cli.console import plain, problem
from kernelgym.cli.options import judging
from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError

__all__ = ["serve"]


@judging
def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; one that others reach needs --tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 8765,
    tokens: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Accounts, one a line: NAME TOKEN [BUDGET]."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=0, help="Verdicts for each account without one of its own.")
    ] = None,
    journal: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Jobs and verdicts; default: the user's state folder."),
    ] = None,
    devices: Annotated[
        list[str] | None,
        typer.Option(help="What to judge on: 0, 1, …, or cpu. May be repeated; default: --device."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="CPU threads; default: the cores to spare.")
    ] = None,
    capacity: Annotated[
        int, typer.Option(min=1, help="Jobs that may be unfinished at a time.")
    ] = 256,
    max_bytes: Annotated[int, typer.Option(min=1, help="Longest body of a request.")] = 8 * 2**20,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds for running judgements at the end.")
    ] = 30.0,
    allow_config: Annotated[
        bool, typer.Option("--allow-config", help="Let jobs say how they are judged.")
    ] = False,
    allow_tasks: Annotated[
        bool,
        typer.Option(
            "--allow-tasks", help="Let jobs bring tasks, which run with the judge's rights."
        ),
    ] = False,
    *,
    config: JudgeConfig,
) -> None:
    """Judge for others over HTTP until SIGTERM or Ctrl-C; see docs/service.md."""
    try:
        from kernelgym.service.server import serve as run
    except ImportError as error:
        raise UsageError(f"expected pip install 'kernelgym[serve]': {error}") from error
    import platformdirs

    from kernelgym.service.access import Access, read_accounts

    access = read_accounts(tokens, budget) if tokens is not None else Access(budget=budget)
    where = (
        Path(journal) if journal else platformdirs.user_state_path("kernelgym") / "service.jsonl"
    )
    run(
        config,
        access,
        where,
        host=host,
        port=port,
        devices=[int(d) if d.isdigit() else d for d in devices] if devices else None,
        workers=workers,
        capacity=capacity,
        max_bytes=max_bytes,
        grace=grace,
        allow_config=allow_config,
        allow_tasks=allow_tasks,
        started=_announce,
    )
    problem("stopped; jobs without a verdict are judged after the next start")


def _announce(address: str) -> None:
    plain(address)
    sys.stdout.flush()  # whoever started it may wait for this line
