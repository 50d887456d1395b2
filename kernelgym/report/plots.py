"""The report's plots, as inline SVG that needs no script; colours come from the page's style."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from markupsafe import Markup

from kernelgym.judge.physics import EMULATED_DEVICE, DeviceModel
from kernelgym.judge.verdict import Verdict
from kernelgym.report.axes import Axis, si
from kernelgym.report.content import EpisodeView
from kernelgym.report.svg import frame, line, picture, text

__all__ = ["progress", "roofline"]

_WIDTH, _HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 16, 16, 46


@dataclasses.dataclass(frozen=True)
class _Point:
    """A verdict in a plot: its turn and place."""

    turn: int
    x: float
    y: float
    label: str
    best: bool


def progress(episode: EpisodeView) -> Markup | None:
    """Best speedup against eager after each turn; None for an episode without turns."""
    if not episode.turns:
        return None
    speeds = [(turn.number, _speedup(turn.verdict)) for turn in episode.turns]
    known = [speed for _, speed in speeds if speed is not None]
    values = [*known, 1.0]
    last = episode.turns[-1].number
    x = Axis(0.5, last + 0.5, _LEFT, _WIDTH - _RIGHT)
    log = min(values) > 0 and max(values) / min(values) > 8
    floor = [] if log else [0.0]
    y = Axis.around([*values, *floor], _HEIGHT - _BOTTOM, _TOP, logarithmic=log)
    parts = [frame(x, y, [float(turn.number) for turn in episode.turns], "turn", "speedup")]
    parts.append(line([(x.start, y(1.0)), (x.end, y(1.0))], "baseline"))
    parts.append(text(x.end - 4, y(1.0) - 5, "eager", "note", "end"))
    steps: list[tuple[float, float]] = []
    for turn in episode.turns:
        if turn.best is not None:
            height = y(turn.best)
            steps += [(x(turn.number - 0.5), height), (x(turn.number + 0.5), height)]
    if steps:
        parts.append(line(steps, "best"))
    for turn in episode.turns:
        if turn.verdict is not None or turn.edit_error:
            parts.append(_mark(turn.number, turn.verdict, x, y))
    said = ", ".join(
        f"turn {turn.number}: {turn.verdict.outcome if turn.verdict else 'no verdict'}"
        + (f" at {speed:.2f}x" if speed is not None else "")
        for turn, (_, speed) in zip(episode.turns, speeds, strict=True)
    )
    return picture(
        parts,
        f"Best speedup against eager after each turn of {episode.task_id}",
        said,
        _WIDTH,
        _HEIGHT,
    )


def roofline(episode: EpisodeView) -> tuple[Markup | None, str]:
    """Where the candidates stand below the device's ceilings.

    A task with counted FLOPs gets the usual roofline: FLOP per byte moved, and FLOP per second.
    Where only traffic counts (elementwise work, reductions), the plot shows the bytes moved as a
    multiple of the least, and the least bytes over the time.

    Returns:
        The plot or None, and a sentence: what it shows, or why there is none.
    """
    facts = episode.facts
    if facts is None:
        return None, "No roofline: what the task costs is not known."
    measured = [
        (turn.number, turn.verdict, turn.is_best)
        for turn in episode.turns
        if turn.verdict is not None and turn.verdict.correct and _moved(turn.verdict)
    ]
    if not measured:
        return None, "No roofline: no candidate that was correct, timed and counted."
    sources = {verdict.timing.candidate.source for _, verdict, _ in measured if verdict.timing}
    if sources != {"modelled"}:
        return None, "No roofline: the ceilings of this device are not known."
    device = EMULATED_DEVICE
    if facts.flops:
        points = [_flop_point(*one, facts.flops) for one in measured]
        plot = _flop_plot(points, facts.flops / facts.min_bytes, device, episode.task_id)
        return plot, (
            f"Ceilings of the modelled device ({device.name}); times and points are modelled. "
            f"The dotted line is the task's intensity if each byte moves once."
        )
    points = [_byte_point(*one, facts.min_bytes) for one in measured]
    plot = _byte_plot(points, device, episode.task_id)
    return plot, (
        f"The task has no matrix products, so memory bounds it: useful bandwidth (least bytes over "
        f"time) against the bytes moved. Ceilings of the modelled device ({device.name}); times are "
        f"modelled."
    )


def _flop_plot(points: Sequence[_Point], ideal: float, device: DeviceModel, task_id: str) -> Markup:
    ridge = device.fp32_rate / device.dram_bandwidth
    span = [point.x for point in points] + [ideal, ridge]
    x = Axis.around([min(span) / 2, max(span) * 2], _LEFT, _WIDTH - _RIGHT, logarithmic=True)
    roof = [x.low * device.dram_bandwidth, device.fp32_rate]
    y = Axis.around(
        [*(point.y for point in points), *roof], _HEIGHT - _BOTTOM, _TOP, logarithmic=True
    )
    parts = [frame(x, y, x.ticks(), "FLOP per byte moved", "FLOP/s")]
    top = [(x(x.low), y(roof[0])), (x(ridge), y(device.fp32_rate)), (x.end, y(device.fp32_rate))]
    parts.append(line(top, "ceiling"))
    parts.append(text(x.end - 4, y(device.fp32_rate) - 5, si(device.fp32_rate, "FLOP/s fp32"),
                       "note", "end"))  # fmt: skip
    parts.append(text(x.start + 8, y(roof[0]) + 16, si(device.dram_bandwidth, "B/s"), "note"))
    parts.append(line([(x(ideal), y.start), (x(ideal), y.end)], "ideal"))
    return _with_points(parts, points, x, y, f"Roofline of {task_id}")


def _byte_plot(points: Sequence[_Point], device: DeviceModel, task_id: str) -> Markup:
    most = max([2.0, *(point.x for point in points)])
    x = Axis.around([0.8, most], _LEFT, _WIDTH - _RIGHT, logarithmic=True)
    peak = device.dram_bandwidth
    y = Axis.around(
        [*(point.y for point in points), peak, peak / x.high], _HEIGHT - _BOTTOM, _TOP,
        logarithmic=True,
    )  # fmt: skip
    parts = [frame(x, y, x.ticks(), "bytes moved / least bytes", "useful bytes/s")]
    parts.append(line([(x.start, y(peak)), (x(1.0), y(peak)), (x.end, y(peak / x.high))],
                       "ceiling"))  # fmt: skip
    parts.append(text(x.end - 4, y(peak) + 12, f"memory: {si(peak, 'B/s')}", "note", "end"))
    parts.append(line([(x(1.0), y.start), (x(1.0), y.end)], "ideal"))
    return _with_points(parts, points, x, y, f"Bandwidth of {task_id}")


def _with_points(
    parts: list[Markup], points: Sequence[_Point], x: Axis, y: Axis, title: str
) -> Markup:
    turns: dict[tuple[int, int], list[int]] = {}
    for point in points:
        kind = "point chosen" if point.best else "point"
        parts.append(
            Markup(
                '<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="5"><title>{}</title></circle>'
            ).format(kind, x(point.x), y(point.y), point.label)
        )
        # Points that lie on one another share a label.
        turns.setdefault((round(x(point.x) / 8), round(y(point.y) / 8)), []).append(point.turn)
    for (column, row), numbers in turns.items():
        parts.append(text(column * 8 + 10, row * 8 + 4, ", ".join(map(str, numbers)), "note"))
    return picture(parts, title, "; ".join(point.label for point in points), _WIDTH, _HEIGHT)


def _flop_point(turn: int, verdict: Verdict, best: bool, flops: int) -> _Point:
    intensity = flops / _moved(verdict)
    rate = flops / _seconds(verdict)
    label = f"turn {turn}: {intensity:.3g} FLOP/B, {si(rate, 'FLOP/s')}"
    return _Point(turn, intensity, rate, label, best)


def _byte_point(turn: int, verdict: Verdict, best: bool, least: int) -> _Point:
    ratio = _moved(verdict) / least
    rate = least / _seconds(verdict)
    return _Point(
        turn, ratio, rate, f"turn {turn}: {ratio:.2f} x the least, {si(rate, 'B/s')}", best
    )


def _moved(verdict: Verdict) -> float:
    """Bytes to and from device memory in one call; 0 when not counted."""
    if verdict.counters is None or verdict.timing is None:
        return 0.0
    total = verdict.counters.total
    return (total.get("dram_bytes_read") or 0.0) + (total.get("dram_bytes_written") or 0.0)


def _seconds(verdict: Verdict) -> float:
    assert verdict.timing is not None  # such verdicts were left out before
    return verdict.timing.candidate.median


def _speedup(verdict: Verdict | None) -> float | None:
    if verdict is None or not verdict.correct or verdict.timing is None:
        return None
    speedup = verdict.timing.speedup_eager
    return speedup.value if speedup is not None else None


def _mark(turn: int, verdict: Verdict | None, x: Axis, y: Axis) -> Markup:
    speed = _speedup(verdict)
    said = f"turn {turn}: {verdict.outcome if verdict is not None else 'no verdict'}"
    if speed is not None:
        return Markup(
            '<circle class="point" cx="{:.1f}" cy="{:.1f}" r="4"><title>{}</title></circle>'
        ).format(x(turn), y(speed), f"{said} at {speed:.2f}x")
    left, top, size = x(turn), y.start - 9, 4
    return Markup(
        '<path class="cross" d="M{:.1f} {:.1f}l{} {}m0 -{}l-{} {}"><title>{}</title></path>'
    ).format(left - size, top - size, 2 * size, 2 * size, 2 * size, 2 * size, 2 * size, said)
