"""Pieces of inline SVG: frames, lines, texts; colours come from the page's style sheet."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from kernelgym.report.axes import Axis, si

__all__ = ["frame", "line", "picture", "text"]

_MOST_TICKS = 12


def frame(
    x: Axis, y: Axis, x_ticks: Iterable[float], x_label: str, y_label: str, *, percent: bool = False
) -> Markup:
    """Both axes with ticks, labels and a horizontal grid.

    Args:
        x: The horizontal axis.
        y: The vertical axis; its `start` is the bottom.
        x_ticks: Where the horizontal axis has ticks; thinned to twelve.
        x_label: Below the axis.
        y_label: Beside the axis, turned.
        percent: Whether the vertical axis holds fractions to be shown in per cent.
    """
    parts = [line([(x.start, y.end), (x.start, y.start), (x.end, y.start)], "axis")]
    ticks = list(x_ticks)
    every = max(1, -(-len(ticks) // _MOST_TICKS))
    for value in ticks[::every]:
        parts.append(line([(x(value), y.start), (x(value), y.start + 4)], "axis"))
        parts.append(text(x(value), y.start + 18, f"{value:g}", "tick", "middle"))
    for value in y.ticks():
        parts.append(line([(x.start, y(value)), (x.end, y(value))], "grid"))
        shown = f"{value:.3g}" if value < 1e4 else si(value, "")
        shown = f"{value * 100:.3g} %" if percent else shown
        parts.append(text(x.start - 8, y(value) + 4, shown, "tick", "end"))
    middle = (y.start + y.end) / 2
    parts.append(text((x.start + x.end) / 2, y.start + 38, x_label, "label", "middle"))
    parts.append(
        Markup('<text class="label" text-anchor="middle" transform="translate(16 {:.0f}) rotate(-90)">'
               "{}</text>").format(middle, y_label)
    )  # fmt: skip
    return Markup("").join(parts)


def line(points: Iterable[tuple[float, float]], kind: str) -> Markup:
    """A line through points in pixels; `kind` is its class."""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline class="{}" points="{}"/>').format(kind, places)


def text(x: float, y: float, said: str, kind: str, anchor: str = "start") -> Markup:
    """A text at a pixel; `kind` is its class, `anchor` start, middle or end."""
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        kind, x, y, anchor, said
    )


def picture(
    parts: Iterable[Markup], title: str, description: str, width: int, height: int
) -> Markup:
    """The whole plot, `width` by `height` pixels, with a title and a description for readers."""
    return Markup(
        '<svg role="img" viewBox="0 0 {} {}" xmlns="http://www.w3.org/2000/svg">'
        "<title>{}</title><desc>{}</desc>{}</svg>"
    ).format(width, height, title, description, Markup("").join(parts))
