"""The `kernelgym` command. Commands import what is heavy when they run, so that help is quick."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kernelgym._version import __version__
from kernelgym.cli import candidates, catalogue, episodes, machine
from kernelgym.cli.exits import guarded

__all__ = ["app", "main"]

_HELP = (
    "Judge CUDA kernels for KernelBench tasks, and let agents write them.\n\n"
    "Exit codes: 0 correct (or done), 1 no (unsolved, or unfit machine), 2 usage, 3 rejected, "
    "4 compile error, 5 runtime error, 6 timeout, 7 incorrect, 8 unsupported, 9 the harness or "
    "the machine failed, 130 interrupted."
)

app = typer.Typer(
    name="kernelgym", help=_HELP, no_args_is_help=True, pretty_exceptions_enable=False
)

for _command in (
    catalogue.tasks,
    catalogue.show,
    candidates.evaluate,
    candidates.watch,
    candidates.workspace,
    episodes.run,
    episodes.report,
    machine.doctor,
    machine.demo,
):
    app.command()(guarded(_command))


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
    app()
