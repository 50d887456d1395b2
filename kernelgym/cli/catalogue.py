"""`kernelgym tasks` and `kernelgym show`: what there is to solve."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelgym.cli.console import Progress, output, plain
from kernelgym.feedback import format_bytes

if TYPE_CHECKING:
    from kernelgym.tasks import Task
    from kernelgym.tasks.laws import InputSpec, Law

__all__ = ["find_task", "show", "tasks"]

_LAWS = {
    "mixed": "U[0,1), then zero-centred, heavy-tailed, shifted, small and negative",
    "mixed_unit": "U[0,1), then zero-centred, heavy-tailed, shifted",
    "uniform": "U[{0:g}, {1:g})",
    "signed_uniform": "U[{0:g}, {1:g}) with a random sign",
    "normal": "N({0:g}, {1:g}), cut at 6 deviations",
    "probabilities": "softmax over the last dimension",
    "symmetric": "(u + uT) / 2 of mixed values u",
    "upper_triangular": "mixed values on and above the diagonal, else 0",
    "lower_triangular": "mixed values on and below the diagonal, else 0",
    "integers": "whole numbers in [{0:g}, {1:g})",
    "bernoulli": "1 with probability {0:g}, else 0",
    "sign": "-1 or +1",
    "given": "what the task's own get_inputs makes",
}
_SIZE_HELP = "Which shapes: small, medium or full (KernelBench's)."


def find_task(name: str) -> Task:
    """A task by id, or by the path of a file in KernelBench's form.

    Raises:
        UsageError: There is none.
    """
    from kernelgym import tasks

    return tasks.load_file(name) if name.endswith(".py") else tasks.get(name)


def tasks(
    level: Annotated[int | None, typer.Option(help="Only this level: 1, 2 or 3.")] = None,
    size: Annotated[str, typer.Option(help=_SIZE_HELP)] = "small",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """List the tasks: shapes, work and compulsory traffic of each.

    Into a pipe: a line for each task, its columns separated by tabs: id, name, inputs, FLOP of
    matrix products and convolutions (- without any), least bytes moved.
    """
    from kernelgym import tasks as registry

    rows = []
    ids = registry.ids(level)
    with Progress("Tracing the references…") as status:
        for number, task_id in enumerate(ids, 1):
            rows.append(_row(registry.get(task_id), size))
            status.update(f"Tracing the references: {number} of {len(ids)}")
    if as_json:
        plain(json.dumps(rows, indent=1))
        return
    _print_table(rows, size)


def show(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task id, or a path.")],
    size: Annotated[str, typer.Option(help=_SIZE_HELP)] = "small",
) -> None:
    """Show a task: the source that an agent is shown, its facts, and the laws of its inputs."""
    from rich.syntax import Syntax

    found = find_task(task)
    facts = found.facts(size)
    console = output()
    console.print(f"{found.id} {found.name}, size {size}", markup=False, style="bold")
    source = found.source(size)
    if console.is_terminal:
        console.print(Syntax(source, "python", theme="ansi_dark", background_color="default"))
    else:
        console.print(source, markup=False)
    for spec in found.input_specs(size):
        law = "" if spec.law is None else f", {_law(spec.law)}"
        console.print(f"input   {spec.name}: {_spec(spec)}{law}", markup=False)
    for shape, dtype in facts.outputs:
        console.print(f"output  {dtype}[{_shape(shape)}], rule {facts.output_rule}", markup=False)
    for name, text in (
        ("work", _work(facts.flops)),
        ("traffic", f"{format_bytes(facts.min_bytes)} at least (inputs, parameters, outputs once)"),
        ("memory", f"{format_bytes(facts.memory_bytes)} held by one eager forward pass"),
        ("mode", "training and evaluation differ" if facts.mode_matters else "any"),
        ("weights", facts.weights),
    ):
        console.print(f"{name:7} {text}", markup=False)
    if facts.unscorable:
        console.print(f"unscorable: {facts.unscorable}", markup=False)


def _row(task: Task, size: str) -> dict[str, Any]:
    facts = task.facts(size)
    return {
        "id": task.id,
        "name": task.name,
        "level": task.level,
        "size": size,
        "sizes": task.sizes,
        "inputs": [_spec(spec) for spec in task.input_specs(size)],
        "outputs": [f"{dtype}[{_shape(shape)}]" for shape, dtype in facts.outputs],
        "flops": facts.flops,
        "min_bytes": facts.min_bytes,
        "memory_bytes": facts.memory_bytes,
        "unscorable": facts.unscorable,
    }


def _print_table(rows: list[dict[str, Any]], size: str) -> None:
    from rich.table import Table

    console = output()
    if not console.is_terminal:
        for row in rows:
            work = f"{_si(row['flops'])}FLOP" if row["flops"] else "-"
            traffic = format_bytes(row["min_bytes"])
            inputs = " ".join(row["inputs"])
            plain(f"{row['id']}\t{row['name']}\t{inputs}\t{work}\t{traffic}")
        return
    table = Table("id", "name", "inputs", box=None, header_style="bold")
    table.add_column("FLOP", justify="right")
    table.add_column("bytes", justify="right")
    for row in rows:
        note = " [dim](unscorable)[/]" if row["unscorable"] else ""
        inputs = "\n".join(text.replace("[", r"\[") for text in row["inputs"])
        table.add_row(
            row["id"],
            row["name"] + note,
            inputs,
            _si(row["flops"]).strip() if row["flops"] else "-",
            format_bytes(row["min_bytes"]),
        )
    console.print(table)
    console.print(f"[dim]{len(rows)} tasks, size {size}; FLOP of products and convolutions only[/]")


def _spec(spec: InputSpec) -> str:
    if spec.dtype is None:
        return repr(spec.value)
    return f"{str(spec.dtype).removeprefix('torch.')}[{_shape(spec.shape)}]"


def _law(law: Law) -> str:
    return f"{law.kind}: {_LAWS[law.kind].format(*law.parameters)}"


def _work(flops: float) -> str:
    if not flops:
        return "no matrix product and no convolution: what counts is the traffic"
    return f"{_si(flops)}FLOP in matrix products and convolutions"


def _shape(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))


def _si(count: float) -> str:
    """A count with an SI prefix, such as `"4.19 G"`."""
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {prefix}"
    return f"{count:g} "
