"""`kernelgym baselines` and `kernelgym calibrate`: what is measured of a card once and stored."""

from __future__ import annotations

import json
import pathlib
from typing import TYPE_CHECKING, Annotated

import typer

from kernelgym import config as settings
from kernelgym.cli.console import errors, output, plain, problem
from kernelgym.cli.exits import Exit, finish, guarded
from kernelgym.errors import UsageError

if TYPE_CHECKING:
    from kernelgym.judge.baseline_report import Row
    from kernelgym.judge.baseline_store import BaselineRecord

__all__ = ["add_to", "calibrate"]

_GROUP_HELP = (
    "Measure the references once, so that each judgement need not.\n\nThe judge measures eager mode "
    "beside every candidate; how much faster or slower `torch.compile` is, it takes from here."
)
_Size = Annotated[str, typer.Option(help="Which shapes: small, medium or full.")]
_Precision = Annotated[
    str, typer.Option(help=f"Precision class: {', '.join(settings.PRECISIONS)}.")
]
_Device = Annotated[
    str | None, typer.Option(help="The card's name; by default that of the GPU here.")
]
_File = Annotated[
    pathlib.Path | None,
    typer.Option(help="A file of records; by default the user's and those shipped."),
]


def add_to(app: typer.Typer) -> None:
    """Adds the group `baselines` and the command `calibrate`."""
    group = typer.Typer(no_args_is_help=True, help=_GROUP_HELP)
    group.command()(guarded(build))
    group.command()(guarded(show))
    group.command()(guarded(export))
    app.add_typer(group, name="baselines")
    app.command()(guarded(calibrate))


def build(
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="[TASK]...", help="Ids; by default all.")
    ] = None,
    size: _Size = "full",
    precision: _Precision = "default",
    protocol: Annotated[str, typer.Option(help="Decides between train and eval mode.")] = "audited",
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="eager, compile or compile_max_autotune; repeatable; by default the first two.",
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(help="So many tasks, spread evenly, instead of all.")
    ] = None,
    device: Annotated[int, typer.Option(help="The GPU's index.")] = 0,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="The file of records; by default the user's.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that compile; by default one less than cores.")
    ] = None,
    limit_seconds: Annotated[
        float | None, typer.Option(help="Stop after so long; started again, it goes on.")
    ] = None,
    task_seconds: Annotated[float, typer.Option(help="Give up on a task after so long.")] = 240.0,
    again: Annotated[bool, typer.Option(help="Measure what the file has already.")] = False,
) -> None:
    """Measure baselines on this machine's GPU; exit code 1 when the limit left some out."""
    from rich.progress import Progress

    from kernelgym.judge import baseline_build as building

    if sample is not None and tasks:
        raise UsageError("expected either tasks or --sample, got both")
    options = building.BuildOptions(
        tasks=building.sample(sample) if sample is not None else tuple(tasks or ()),
        size=size,
        protocol=protocol,
        precision=precision,
        kinds=tuple(kinds or ("eager", "compile")),
        device=device,
        out=out,
        workers=workers,
        limit_seconds=limit_seconds,
        task_seconds=task_seconds,
        again=again,
    )
    with Progress(console=errors()) as progress:
        bar = progress.add_task("starting", total=None)

        def tell(text: str, done: int, total: int) -> None:
            progress.update(bar, description=text, completed=done, total=total)

        summary = building.build(options, tell)
    compiling, measuring = summary.seconds
    plain(
        f"{summary.path}: {summary.measured} measured, {summary.failed} failed, "
        f"{summary.present} tasks present already, {summary.unfinished} unfinished; "
        f"{compiling:.0f} s compiling, {measuring:.0f} s measuring; log in {summary.log}"
    )
    finish(Exit.NO if summary.unfinished else Exit.CORRECT)


def show(
    device: _Device = None,
    file: _File = None,
    size: _Size = "full",
    precision: _Precision = "default",
    level: Annotated[int | None, typer.Option(help="Only this level: 1, 2 or 3.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """Show stored baselines, and the speedup over eager that physics leaves for each task."""
    import dataclasses

    from rich.table import Table

    from kernelgym.judge.baseline_report import geometric_means

    table, _ = _table(device, file, size, precision)
    table = [row for row in table if level is None or row.level == f"L{level}"]
    if as_json:
        plain(json.dumps([dataclasses.asdict(row) for row in table], indent=1))
        return
    shown = Table(box=None, pad_edge=False)
    for name in ("task", "mode", "eager, ms", "compile/eager", "max-autotune/eager", "ceiling"):
        shown.add_column(name, justify="left" if name in ("task", "mode") else "right")
    for row in table:
        shown.add_row(
            row.task,
            row.mode,
            f"{row.eager * 1e3:.4g}" if row.eager is not None else row.problem,
            f"{row.ratio.value:.3f}" if row.ratio else row.problem,
            f"{row.autotuned.value:.3f}" if row.autotuned else "",
            f"{row.ceiling:.2f}x ({row.bound})" if row.ceiling else "",
        )
    console = output()
    console.print(shown)
    for name, (ceiling, gain) in geometric_means(table).items():
        ceilings = f"{ceiling:.2f}x" if ceiling else "not known"
        gains = f"{gain:.2f}x" if gain else "not known"
        console.print(
            f"{name}: geometric mean of the ceilings {ceilings}, of eager/compile {gains}",
            markup=False,
        )


def export(
    device: _Device = None,
    file: _File = None,
    size: _Size = "full",
    precision: _Precision = "default",
    out: Annotated[pathlib.Path | None, typer.Option(help="Write here, not to stdout.")] = None,
    markdown: Annotated[
        bool, typer.Option(help="The page of the documentation, not records.")
    ] = False,
) -> None:
    """Write the stored records as lines of JSON, or as the documentation's page."""
    from kernelgym.judge.baseline_report import markdown as page
    from kernelgym.judge.baseline_store import encode_record
    from kernelgym.writing import writing

    table, records = _table(device, file, size, precision)
    if markdown:
        text = page(table, records, size)
    else:
        text = b"".join(map(encode_record, records)).decode()
    if out is None:
        plain(text)
        return
    with writing(out):
        out.write_text(text)


def calibrate(
    device: Annotated[int, typer.Option(help="The GPU's index.")] = 0,
    graders: Annotated[
        int, typer.Option(help="Processes that judge the known kernel, one after another.")
    ] = 3,
    runs: Annotated[int, typer.Option(help="Judgements of each, at each size.")] = 8,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Write here, not to the user's folder.")
    ] = None,
    limit_seconds: Annotated[
        float | None, typer.Option(help="Judge nothing more after so long.")
    ] = None,
) -> None:
    """Measure what this machine's GPU can do, and how much a judgement's times differ by run.

    The judge uses it from then on: for the speed of light, and for the width of intervals. Exit
    code 1 when something could not be measured.
    """
    from kernelgym.cli.console import Progress
    from kernelgym.judge import calibration
    from kernelgym.judge.calibrate import calibrate as run
    from kernelgym.judge.ceilings import as_table

    with Progress("Measuring ceilings, then judging a known kernel again and again…"):
        found = run(device, graders, runs, limit_seconds)
    path = calibration.save(found, out)
    console = output()
    for name, value in as_table(found.ceilings):
        console.print(f"{name:16} {value}", markup=False)
    for point in found.spread:
        console.print(
            f"spread at {point.seconds * 1e6:.1f} us: time {point.median:.2%}, "
            f"speedup {point.ratio:.2%}",
            markup=False,
        )
    for text in found.problems:
        problem(text)
    plain(f"{path}: {len(found.runs)} judgements")
    finish(Exit.NO if found.problems else Exit.CORRECT)


def _table(
    device: str | None, file: pathlib.Path | None, size: str, precision: str
) -> tuple[list[Row], list[BaselineRecord]]:
    """The rows, and the records they are made of."""
    from kernelgym.judge import calibration
    from kernelgym.judge.baseline_report import rows
    from kernelgym.judge.baseline_store import BaselineStore, read_records

    if file is not None:
        if not file.is_file():
            raise UsageError(f"--file: expected a file of records, got {str(file)!r}")
        records = read_records(file)
        names = {record.setting.device for record in records}
        if device is None and len(names) == 1:
            device = names.pop()
    device = device or _present_device()
    if file is None:
        records = list(BaselineStore.load(device).records)
    records = [
        record
        for record in records
        if (record.size, record.precision, record.setting.device) == (size, precision, device)
    ]
    if not records:
        raise UsageError(
            f"expected stored baselines of {device} at {size} in class {precision}, got none; "
            "`kernelgym baselines build` makes them"
        )
    # A file's table is the same on every machine.
    known = calibration.load(device) if file is None else calibration.shipped(device)
    model = calibration.light_model(device, known)
    return rows(records, model, size=size, precision=precision), records


def _present_device() -> str:
    import torch

    if not torch.cuda.is_available():
        raise UsageError("--device: expected a card's name, for there is no GPU here")
    return str(torch.cuda.get_device_properties(torch.cuda.current_device()).name)
