"""`kernelgym tasks synthesize` and `kernelgym tasks load`: training tasks, tasks from elsewhere."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from kernelgym.cli import catalogue
from kernelgym.cli.console import errors, output
from kernelgym.cli.exits import guarded
from kernelgym.feedback import printable
from kernelgym.writing import writing

__all__ = ["add_to", "audit", "confirm", "load", "synthesize"]

_GROUP_HELP = (
    "List the tasks, or get more of them.\n\nInto a pipe, the list is a line for each task, its "
    "columns separated by tabs: id, name, inputs, FLOP of matrix products and convolutions (- "
    "without any), least bytes moved."
)
_SIZE_HELP = "Which shapes: small, medium or full (KernelBench's)."


def add_to(app: typer.Typer) -> None:
    """Adds the group `tasks`, which lists the tasks when it is called without a command."""
    group = typer.Typer(invoke_without_command=True, help=_GROUP_HELP)

    @group.callback()
    def tasks(
        context: typer.Context,
        level: Annotated[int | None, typer.Option(help="Only this level: 1, 2 or 3.")] = None,
        size: Annotated[str, typer.Option(help=_SIZE_HELP)] = "small",
        as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
    ) -> None:
        if context.invoked_subcommand is None:
            guarded(catalogue.tasks)(level, size, as_json)

    group.command()(guarded(synthesize))
    group.command()(guarded(confirm))
    group.command()(guarded(load))
    # The audit reads its own options: it can also be started without typer, on a bare GPU machine.
    group.command(
        context_settings={
            "allow_extra_args": True,
            "ignore_unknown_options": True,
            "help_option_names": [],
        }
    )(guarded(audit))
    app.add_typer(group, name="tasks")


def audit(context: typer.Context) -> None:
    """Find tasks that accept an answer without the work; see `kernelgym tasks audit --help`."""
    from kernelgym.judge import audit as auditing

    raise typer.Exit(auditing.main(context.args))


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
    from kernelgym.judge.device_models import H200
    from kernelgym.judge.synthesis import manifest_path
    from kernelgym.judge.synthesis import synthesize as run
    from kernelgym.judge.synthesis_filters import Criteria

    with writing(out), _bar("tasks", count) as advance:
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
    console = output()
    console.print(f"{out}: {manifest.count} tasks ({splits}) of {manifest.examined} candidates")
    console.print(f"dropped: {dropped or 'none'}; details in {manifest_path(out)}")


def confirm(
    file: Annotated[pathlib.Path, typer.Argument(help="A file that `synthesize` wrote.")],
    out: Annotated[pathlib.Path, typer.Option(help="Write the tasks that pass here.")],
    device: Annotated[str, typer.Option(help="Where they run, such as cuda or cpu.")] = "cuda",
    size: Annotated[str, typer.Option(help=_SIZE_HELP)] = "full",
    min_ms: Annotated[float, typer.Option(help="Least measured eager time.")] = 1.0,
    max_ms: Annotated[float, typer.Option(help="Most measured eager time.")] = 100.0,
) -> None:
    """Measure synthesised tasks on a device, and compile each with inductor.

    What `synthesize` models, this measures: tasks outside of the times wanted are left out.
    """
    from rich.text import Text

    from kernelgym.judge.confirm import confirm_record
    from kernelgym.tasks.records import encode, read_records

    records = read_records(file)
    kept: list[bytes] = []
    console = output()
    with _bar("confirming", len(records)) as advance:
        for number, record in enumerate(records, 1):
            found = confirm_record(record, device, size, min_ms / 1e3, max_ms / 1e3)
            if found.problem:
                console.print(Text(printable(f"{record.id}: {found.problem}")))
            else:
                kept.append(encode(found.record))
            advance(number)
    with writing(out):
        out.write_bytes(b"".join(kept))
    console.print(f"{out}: {len(kept)} of {len(records)} tasks")


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
    from rich.text import Text

    from kernelgym import tasks
    from kernelgym.judge.vet import vet
    from kernelgym.tasks.records import TaskRecord, encode

    loaded = tasks.load(source)
    with _bar("vetting", len(loaded)) as advance:
        report = vet(loaded, size=size, seconds=seconds, workers=workers, progress=advance)
    console = output()
    for row in report.rejected:
        console.print(Text(printable(f"{row.where}: {row.reason}: {row.message}")))
    if out is not None:
        lines = (TaskRecord(id=task.id, text=task.text, name=task.name) for task in report.accepted)
        with writing(out):
            out.write_bytes(b"".join(map(encode, lines)))
    console.print(f"{len(report.accepted)} fit, {len(report.rejected)} rejected")


@contextlib.contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr; gives what to call with the number done."""
    from rich.progress import Progress

    with Progress(console=errors()) as progress:
        bar = progress.add_task(what, total=total)
        yield lambda done: progress.update(bar, completed=done)
