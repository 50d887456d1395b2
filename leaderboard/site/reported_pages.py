"""The page of figures that others have published: a table for each protocol, none of them ranked."""

from __future__ import annotations

import dataclasses

import msgspec

from kernelgym._version import __version__
from kernelgym.leaderboard.reported import Figures, Reported, ReportedProtocol
from kernelgym.leaderboard.site.rendering import environment
from kernelgym.leaderboard.site.tables import csv_text, json_text

__all__ = ["reported_pages"]

# Field, label, whether it is a share; in the order of the columns.
_COLUMNS = (
    ("correct", "Correct", True),
    ("faster_eager", "Faster than eager", True),
    ("faster_compile", "Faster than compile", True),
    ("fast_1_2", "1.2× eager", True),
    ("fast_1_5", "1.5× eager", True),
    ("fast_2", "2× eager", True),
    ("geomean_eager", "Geometric mean vs eager", False),
    ("geomean_compile", "Geometric mean vs compile", False),
    ("mean_eager", "Mean vs eager", False),
    ("median_eager", "Median vs eager", False),
    ("mean_compile", "Mean vs compile", False),
)
_SETS = {"all": "All levels", "L1": "Level 1", "L2": "Level 2", "L3": "Level 3"}


@dataclasses.dataclass(frozen=True)
class _Row:
    """What one system is said to have come to on one set of tasks."""

    name: str
    model: str
    where: str
    tasks: str
    figures: Figures


@dataclasses.dataclass(frozen=True)
class _Section:
    """A protocol with its rows, and those columns that it has figures for."""

    protocol: ReportedProtocol
    columns: tuple[tuple[str, str, bool], ...]
    rows: tuple[_Row, ...]

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Each system, and where in the publication its figures stand."""
        return tuple(dict.fromkeys((row.name, row.where) for row in self.rows))


def reported_pages(reported: Reported) -> dict[str, str]:
    """The page of published figures with its data, by path."""
    sections = [_section(reported, name) for name in reported.protocols]
    fields = [name for name, _, _ in _COLUMNS]
    header = ("protocol", "system", "model", "where", "source", "tasks", *fields)
    rows = [
        (section.protocol.title, row.name, row.model, row.where, section.protocol.source,
         row.figures.tasks, *(getattr(row.figures, name) for name in fields))
        for section in sections
        for row in section.rows
    ]  # fmt: skip
    return {
        "reported/index.html": environment()
        .get_template("reported.html.j2")
        .render(root="../", here="reported", version=__version__, sections=sections),
        "reported/index.json": json_text({"verified": False, **msgspec.to_builtins(reported)}),
        "reported/index.csv": csv_text(header, rows),
    }


def _section(reported: Reported, name: str) -> _Section:
    rows = tuple(
        _Row(system.name, system.model, system.where, _SETS.get(one.tasks, one.tasks), one)
        for system in reported.systems
        if system.protocol == name
        for one in system.results
    )
    columns = tuple(
        column
        for column in _COLUMNS
        if any(getattr(row.figures, column[0]) is not None for row in rows)
    )
    return _Section(reported.protocols[name], columns, rows)
