"""The stored baselines as a table, and the speedup that physics leaves for each task."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from kernelgym.judge.baseline_store import BaselineRecord
from kernelgym.judge.gpus import Work, light_of
from kernelgym.judge.physics import DeviceModel
from kernelgym.judge.verdict import Speedup

__all__ = ["Row", "geometric_means", "markdown", "rows"]


@dataclasses.dataclass(frozen=True)
class Row:
    """One task's baselines, in one size, mode and precision class.

    Attributes:
        task: Task id.
        mode: `"train"` or `"eval"`.
        eager: Seconds in eager mode; None where it did not run.
        compiled: Seconds under `torch.compile`.
        ratio: compiled / eager, measured side by side.
        autotuned: max-autotune over eager.
        peak_memory: Device bytes of an eager call at most.
        ceiling: eager / speed of light: no candidate can be faster than eager by more; None where
            the card's rates are not known.
        bound: What decides the ceiling: `"memory"` or `"arithmetic"`.
        problem: Why a time is missing.
    """

    task: str
    mode: str
    eager: float | None
    compiled: float | None
    ratio: Speedup | None
    autotuned: Speedup | None
    peak_memory: int | None
    ceiling: float | None
    bound: str
    problem: str

    @property
    def level(self) -> str:
        """The task's level, as `"L1"`."""
        return self.task.split("/")[0]


def rows(
    records: Iterable[BaselineRecord], model: DeviceModel | None, *, size: str, precision: str
) -> list[Row]:
    """The table of one size and precision class, in the order of tasks.

    Args:
        records: Of one card; of two with the same key the first counts.
        model: The card's rates, for the ceilings.
        size: The preset.
        precision: The precision class.
    """
    by_task: dict[tuple[str, str], dict[str, BaselineRecord]] = {}
    for record in records:
        if (record.size, record.precision) == (size, precision):
            kinds = by_task.setdefault((record.task, record.mode), {})
            kinds.setdefault(record.kind, record)
    found = [_row(task, mode, kinds, model) for (task, mode), kinds in by_task.items()]
    return sorted(found, key=lambda row: (_order(row.task), row.mode))


def geometric_means(table: Sequence[Row]) -> dict[str, tuple[float | None, float | None]]:
    """By level, and over all (`"all"`): those of the ceilings, and of eager over compile."""
    levels = [*sorted({row.level for row in table}), "all"]
    means = {}
    for level in levels:
        chosen = [row for row in table if level in (row.level, "all")]
        ceilings = [row.ceiling for row in chosen if row.ceiling is not None]
        gains = [1 / row.ratio.value for row in chosen if row.ratio is not None]
        means[level] = (_geometric_mean(ceilings), _geometric_mean(gains))
    return means


def markdown(table: Sequence[Row], records: Sequence[BaselineRecord], size: str) -> str:
    """The page of the documentation, whole."""
    settings = sorted({_setting_line(record) for record in records})
    lines = [
        "# Baselines",
        "",
        "Times of the references, measured as the judge measures (see [gpu.md](gpu.md)): medians of "
        "batches after an L2 flush, eager and `torch.compile` in turns. Written by `kernelgym "
        "baselines export --markdown`; the numbers are those of the store that comes with kernelgym.",
        "",
        *(f"* {line}, size `{size}`" for line in settings),
        "",
        '*Ceiling* is eager time over the speed of light ([gpu.md](gpu.md), "Device facts"): the '
        "speedup over eager that physics leaves. *Compile* is `torch.compile` over eager, with its "
        "95 % interval; below 1 it is faster.",
        "",
        "## Geometric means",
        "",
        "| level | ceiling of the speedup over eager | eager / compile |",
        "|---|---|---|",
    ]
    for level, (ceiling, gain) in geometric_means(table).items():
        lines.append(f"| {level} | {_times(ceiling)} | {_times(gain)} |")
    lines += [
        "",
        "## Tasks",
        "",
        "| task | mode | eager, ms | compile | max-autotune | peak memory, MB | ceiling | bound by |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in table:
        cells = [
            row.task,
            row.mode,
            f"{row.eager * 1e3:.4g}" if row.eager is not None else row.problem,
            _ratio(row.ratio) if row.compiled is not None or not row.problem else row.problem,
            _ratio(row.autotuned),
            f"{row.peak_memory / 1e6:.0f}" if row.peak_memory is not None else "",
            _times(row.ceiling),
            row.bound,
        ]
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _row(task: str, mode: str, kinds: dict[str, BaselineRecord], model: DeviceModel | None) -> Row:
    eager, compiled = kinds.get("eager"), kinds.get("compile")
    autotuned = kinds.get("compile_max_autotune")
    ceiling, bound = None, ""
    if eager is not None and eager.median is not None and model is not None:
        flops, convolutions = eager.flops, eager.convolution_flops
        light = light_of(
            model, Work(eager.min_bytes, flops - convolutions, convolutions), eager.precision
        )
        if light.seconds > 0:
            ceiling = eager.median / light.seconds
            bound = "memory" if light.traffic >= light.arithmetic else "arithmetic"
    problems = [record.error for record in (eager, compiled) if record is not None and record.error]
    return Row(
        task=task,
        mode=mode,
        eager=eager.median if eager is not None else None,
        compiled=compiled.median if compiled is not None else None,
        ratio=compiled.ratio if compiled is not None else None,
        autotuned=autotuned.ratio if autotuned is not None else None,
        peak_memory=eager.peak_memory if eager is not None else None,
        ceiling=ceiling,
        bound=bound,
        problem=problems[0] if problems else "",
    )


def _order(task: str) -> tuple[str, int, str]:
    level, _, number = task.partition("/")
    return level, int(number) if number.isdigit() else 0, task


def _geometric_mean(values: Sequence[float]) -> float | None:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _times(value: float | None) -> str:
    return f"{value:.2f}x" if value is not None else ""


def _ratio(ratio: Speedup | None) -> str:
    return f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio is not None else ""


def _setting_line(record: BaselineRecord) -> str:
    made = record.setting
    return (
        f"{made.device}, driver {made.driver}, CUDA {made.cuda}, torch {made.torch}, Triton "
        f"{made.triton}, {record.date}"
    )
