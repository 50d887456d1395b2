"""The `kernelgym` command. Commands import what is heavy when they run, so that help is quick."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from kernelgym._version import __version__
from kernelgym.cli import (
    candidates,
    catalogue,
    compare,
    device_data,
    episodes,
    leaderboard,
    machine,
    service,
    tape,
    task_sets,
)
from kernelgym.cli.console import problem
from kernelgym.cli.exits import Exit, guarded

__all__ = ["app", "main"]

_HELP = (
    "Judge CUDA kernels for KernelBench tasks, and let agents write them.\n\n"
    "Exit codes: 0 correct (or done), 1 no (unsolved, or unfit machine), 2 usage, 3 rejected, "
    "4 compile error, 5 runtime error, 6 timeout, 7 incorrect, 8 unsupported, 9 the harness or "
    "the machine failed, 10 the agent failed, 130 interrupted."
)

# What typer raises for a wrong call: the name of its module differs between versions of typer.
_WRONG_CALL: Any = typer.BadParameter.__base__

app = typer.Typer(
    name="kernelgym", help=_HELP, no_args_is_help=True, pretty_exceptions_enable=False
)

for _command in (
    catalogue.show,
    candidates.evaluate,
    candidates.watch,
    compare.compare,
    candidates.workspace,
    episodes.run,
    episodes.report,
    episodes.scores,
    machine.doctor,
    machine.demo,
    service.serve,
):
    app.command()(guarded(_command))
task_sets.add_to(app)
device_data.add_to(app)
tape.add_to(app)
leaderboard.add_to(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"kernelgym {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the console script."""
    try:
        guarded(_call)()
    except typer.Exit as end:
        sys.exit(end.exit_code)
    except typer.Abort:
        sys.exit(Exit.INTERRUPTED)
    except _WRONG_CALL as error:
        problem(" ".join(error.format_message().split()))
        sys.exit(Exit.USAGE)


def _call() -> None:
    # Not standalone: typer would draw a box of five lines around one of text.
    code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    raise typer.Exit(code or 0)
