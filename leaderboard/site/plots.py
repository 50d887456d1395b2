"""The plots of an entry: fast_p, the distribution of speedups, and all tasks below their roofs."""

from __future__ import annotations

import bisect
import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from kernelgym.report.axes import Axis
from kernelgym.report.svg import frame, line, picture, text
from kernelgym.resampling import Estimate
from kernelgym.scores import TaskScore

__all__ = ["Plot", "distribution", "fast_curve", "interval_bar", "roofline"]

_WIDTH, _HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 20, 20, 46
_LOW_P, _HIGH_P = 0.5, 10.0
_SHOWN_P = (0.5, 0.75, 1.0, 1.05, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_TICKS = (0.5, 1.0, 2.0, 5.0, 10.0)


@dataclasses.dataclass(frozen=True)
class Plot:
    """A plot, and the same as a table.

    Attributes:
        svg: The picture.
        caption: What it shows.
        header: The table's columns.
        rows: Its rows.
    """

    svg: Markup
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def fast_curve(rows: Sequence[TaskScore]) -> Plot:
    """fast_p: the share of all tasks with a correct solution more than p times as fast.

    Args:
        rows: All of a board's tasks, as an entry solved them.
    """
    tasks = len(rows)
    x = Axis(_LOW_P, _HIGH_P, _LEFT, _WIDTH - _RIGHT, logarithmic=True)
    y = Axis(0.0, 1.0, _HEIGHT - _BOTTOM, _TOP)
    parts = [frame(x, y, _TICKS, "p: times as fast as the baseline", "share of all tasks",
                   percent=True)]  # fmt: skip
    parts.append(line([(x(1.0), y.start), (x(1.0), y.end)], "baseline"))
    table = [[f"{p:g}"] for p in _SHOWN_P]
    names: list[str] = []
    for name, kind in (("eager", "first"), ("compile", "second")):
        speeds = sorted(speed.value for row in rows if (speed := getattr(row, name)) is not None)
        if not speeds:
            continue
        parts.append(line(_steps(speeds, tasks, x, y), f"curve {kind}"))
        row = y.end + 10 + 18 * len(names)
        parts.append(line([(x.end - 92, row - 4), (x.end - 72, row - 4)], f"curve {kind}"))
        parts.append(text(x.end - 66, row, name, f"name {kind}"))
        names.append(name)
        for cells, p in zip(table, _SHOWN_P, strict=True):
            cells.append(f"{_share_above(speeds, p, tasks):.1%}")
    said = "; ".join(", ".join(cells) for cells in table)
    return Plot(
        picture(parts, f"fast_p against {' and '.join(names) or 'no baseline'}", said, _WIDTH,
                _HEIGHT),
        "fast_p: share of all tasks with a correct solution more than p times as fast as the "
        "baseline.",
        ("p", *(f"fast_p, {name}" for name in names)),
        tuple(map(tuple, table)),
    )  # fmt: skip


def distribution(rows: Sequence[TaskScore]) -> Plot:
    """How many tasks are how many times as fast as eager, in bins of equal ratio.

    Args:
        rows: All of a board's tasks, as an entry solved them.
    """
    speeds = [row.eager.value for row in rows if row.correct and row.eager is not None]
    edges = [2.0 ** (half / 2) for half in range(-4, 9)]  # 0.25 to 16
    counts = [0] * (len(edges) + 1)
    for speed in speeds:
        counts[sum(speed >= edge for edge in edges)] += 1
    failed = len(rows) - len(speeds)
    x = Axis(edges[0] / 2**1.5, edges[-1] * 2**0.5, _LEFT, _WIDTH - _RIGHT, logarithmic=True)
    y = Axis(0.0, max([*counts, failed, 4]) * 1.08, _HEIGHT - _BOTTOM, _TOP)
    ticks = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
    parts = [frame(x, y, ticks, "times as fast as eager", "tasks")]
    table = [("no correct solution", str(failed))]
    parts.append(text((x(x.low) + x(edges[0] / 2)) / 2, y.start + 18, "none", "tick", "middle"))
    parts.append(
        _bar(x(x.low) + 3, x(edges[0] / 2) - 1, y, failed, "failed", f"not correct: {failed}")
    )
    for index, count in enumerate(counts):
        low = edges[index - 1] if index else edges[0] / 2**0.5
        high = edges[index] if index < len(edges) else edges[-1] * 2**0.5
        label = f"{low:.2f}–{high:.2f}"
        if not index:
            label = f"below {high:.2f}"
        elif index == len(edges):
            label = f"{low:.2f} and more"
        kind = "faster" if low >= 1 else "slower"
        table.append((label, str(count)))
        parts.append(_bar(x(low) + 1, x(high) - 1, y, count, kind, f"{label}: {count}"))
    parts.append(line([(x(1.0), y.start), (x(1.0), y.end)], "baseline"))
    said = "; ".join(f"{label}: {count}" for label, count in table)
    return Plot(
        picture(parts, "Distribution of the speedups against eager", said, _WIDTH, _HEIGHT),
        "Tasks by speedup against eager, in bins of equal ratio; at the left, tasks without a "
        "correct solution.",
        ("speedup", "tasks"),
        tuple(table),
    )


def roofline(rows: Sequence[TaskScore], intensities: Mapping[str, float]) -> Plot | None:
    """All tasks below the device's roof: how near to the speed of light, by FLOP per byte.

    The vertical axis is relative to what the roofline allows at that intensity, so the roof is
    flat. None where no task has the figures.

    Args:
        rows: An entry's tasks.
        intensities: Task id to the least FLOP per byte; 0 without matrix products.
    """
    known = [
        (row.task, intensities[row.task], min(row.light_fraction, 1.0))
        for row in rows
        if row.correct and row.light_fraction and row.task in intensities
    ]
    if not known:
        return None
    dense = [intensity for _, intensity, _ in known if intensity]
    low, high = min([1.0, *dense]), max([100.0, *dense])
    strip = 64.0
    x = Axis(low / 1.6, high * 1.6, _LEFT + strip, _WIDTH - _RIGHT, logarithmic=True)
    least = min([0.01, *(light for _, _, light in known)])
    y = Axis(least / 1.3, 1.35, _HEIGHT - _BOTTOM, _TOP, logarithmic=True)
    parts = [
        frame(dataclasses.replace(x, start=_LEFT), y, (), "least FLOP per byte", "of the roof",
              percent=True)
    ]  # fmt: skip
    parts += [text(x(tick), y.start + 18, f"{tick:g}", "tick", "middle") for tick in x.ticks()]
    parts.append(text(_LEFT + strip / 2, y.start + 18, "no products", "tick", "middle"))
    parts.append(line([(_LEFT + strip, y.start), (_LEFT + strip, y.end)], "grid"))
    parts.append(line([(_LEFT, y(1.0)), (x.end, y(1.0))], "ceiling"))
    parts.append(text(x.end - 4, y(1.0) - 5, "roof", "note", "end"))
    for place, level in enumerate(sorted({task[1:2] for task, _, _ in known})):
        left = x.end - 190 + 66 * place
        parts.append(
            Markup('<circle class="point level{}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>').format(
                level, left, y.start - 14
            )
        )
        parts.append(text(left + 8, y.start - 10, f"level {level}", "note"))
    table = []
    for number, (task, intensity, light) in enumerate(known):
        # Without products there is no intensity: such tasks lie side by side in a strip.
        across = _LEFT + 8 + (number * 0.618 % 1) * (strip - 16)
        if intensity:
            across = x(intensity)
        said = f"{intensity:.3g}" if intensity else "none"
        parts.append(
            Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{}</title></circle>').format(
                f"point level{task[1:2]}", across, y(light),
                f"{task}: {light:.1%} of the roof, {said} FLOP/B",
            )
        )  # fmt: skip
        table.append((task, said, f"{light:.1%}"))
    return Plot(
        picture(parts, "All correct tasks below the roof",
                f"{len(known)} tasks; median "
                f"{statistics.median(light for _, _, light in known):.1%} of the roof", _WIDTH, _HEIGHT),
        "Every correct task below the roofline: the share of what physics allows (bandwidth or "
        "arithmetic, whichever binds), by the least FLOP per byte of the task.",
        ("task", "FLOP per byte", "of the roof"),
        tuple(table),
    )  # fmt: skip


def interval_bar(figure: Estimate, low: float, high: float) -> Markup:
    """A small bar for a table's cell: the figure with its interval on a logarithmic axis.

    Args:
        figure: A ratio above 0.
        low: Left end of the axis.
        high: Right end.
    """
    x = Axis(low, high, 2.0, 94.0, logarithmic=True)
    left, right, middle = (
        x(min(max(value, low), high)) for value in (figure.low, figure.high, figure.value)
    )
    one = Markup('<path class="one" d="M{:.1f} 0V12"/>').format(x(1.0)) if low < 1 < high else ""
    return Markup(
        '<svg class="bar" viewBox="0 0 96 12" width="96" height="12" aria-hidden="true">{}'
        '<path class="whisker" d="M{:.1f} 6H{:.1f}"/><circle cx="{:.1f}" cy="6" r="3"/></svg>'
    ).format(one, left, right, middle)


def _steps(speeds: Sequence[float], tasks: int, x: Axis, y: Axis) -> list[tuple[float, float]]:
    """The curve's corners; `speeds` ascend."""
    corners = [(x.start, y(_share_above(speeds, _LOW_P, tasks)))]
    for speed in speeds:
        if _LOW_P < speed < _HIGH_P:
            corners.append((x(speed), corners[-1][1]))
            corners.append((x(speed), y(_share_above(speeds, speed, tasks))))
    return [*corners, (x.end, corners[-1][1])]


def _share_above(speeds: Sequence[float], p: float, tasks: int) -> float:
    """The share of tasks with more than p; `speeds` ascend."""
    return (len(speeds) - bisect.bisect_right(speeds, p)) / tasks


def _bar(left: float, right: float, y: Axis, count: int, kind: str, said: str) -> Markup:
    return Markup(
        '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
    ).format(kind, left, y(count), right - left, y.start - y(count), said)
