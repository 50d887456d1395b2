"""`kernelgym tasks synthesize` and `kernelgym tasks load`: training tasks, and tasks from elsewhere.

The functions are Typer commands; the command line registers them.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

__all__ = ["load", "synthesize"]


def synthesize(
    count: Annotated[int, typer.Option(help="How many tasks.")],
    out: Annotated[pathlib.Path, typer.Option(help="The file of JSON lines to write.")],
    seed: Annotated[int, typer.Option(help="Determines the tasks.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Processes; by default one for each core.")
    ] = None,
    inductor: Annotated[
        float, typer.Option(help="Share of the candidates compiled with inductor, 0 to 1.")
    ] = 0.01,
    overwrite: Annotated[bool, typer.Option(help="Replace a file that exists.")] = False,
) -> None:
    """Synthesise training tasks: compositions of torch's operators that pass every filter.

    Killed and started again with the same options, it goes on from where it was.
    """
    from rich.console import Console

    from kernelgym.judge.device_models import H200
    from kernelgym.judge.synthesis import Criteria, manifest_path
    from kernelgym.judge.synthesis import synthesize as run

    with _bar("tasks", count) as advance:
        manifest = run(
            count,
            seed,
            out,
            criteria=Criteria(H200, inductor_share=inductor),
            workers=workers,
            progress=lambda accepted, examined: advance(accepted),
            overwrite=overwrite,
        )
    dropped = ", ".join(f"{name} {number}" for name, number in manifest.dropped.items() if number)
    splits = ", ".join(f"{number} {name}" for name, number in manifest.splits.items())
    console = Console()
    console.print(f"{out}: {manifest.count} tasks ({splits}) of {manifest.examined} candidates")
    console.print(f"dropped: {dropped or 'none'}; details in {manifest_path(out)}")


def load(
    source: Annotated[
        str, typer.Argument(help="A folder, .py, .jsonl, .parquet, or a data set of the Hub.")
    ],
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Write the fit tasks here, as JSON lines.")
    ] = None,
    size: Annotated[
        str, typer.Option(help="Which shapes are run: small, medium or full.")
    ] = "small",
    seconds: Annotated[float, typer.Option(help="Time limit of a task.")] = 60.0,
    workers: Annotated[
        int | None, typer.Option(help="Processes; by default one for each core.")
    ] = None,
) -> None:
    """Read tasks from elsewhere, run each in a sandbox, and say which are fit to be judged."""
    from rich.console import Console
    from rich.text import Text

    from kernelgym import tasks
    from kernelgym.judge.vet import vet
    from kernelgym.tasks.records import TaskRecord, encode

    loaded = tasks.load(source)
    with _bar("vetting", len(loaded)) as advance:
        report = vet(loaded, size=size, seconds=seconds, workers=workers, progress=advance)
    console = Console()
    for row in report.rejected:
        console.print(Text(f"{row.where}: {row.reason}: {row.message}"))  # no markup: foreign text
    if out is not None:
        lines = (TaskRecord(id=task.id, text=task.text, name=task.name) for task in report.accepted)
        out.write_bytes(b"".join(map(encode, lines)))
    console.print(f"{len(report.accepted)} fit, {len(report.rejected)} rejected")


@contextlib.contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr; gives what to call with the number done."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task(what, total=total)
        yield lambda done: progress.update(bar, completed=done)
