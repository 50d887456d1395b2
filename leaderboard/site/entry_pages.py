"""The pages of one entry: its scores and plots, and each solution with its verdict."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from kernelgym import tasks as catalogue
from kernelgym._version import __version__
from kernelgym.judge.reasons import REASONS
from kernelgym.judge.verdict import Speedup
from kernelgym.leaderboard.board import Board
from kernelgym.leaderboard.entry import Entry, TaskResult
from kernelgym.leaderboard.loading import VERDICTS_FILE, task_folder
from kernelgym.leaderboard.scores import score_entry
from kernelgym.leaderboard.site import plots
from kernelgym.leaderboard.site.costs import intensities
from kernelgym.leaderboard.site.listing import listings
from kernelgym.leaderboard.site.records import FIGURES, EntryView, scopes_of
from kernelgym.leaderboard.site.rendering import environment
from kernelgym.leaderboard.site.tables import Cell, csv_text, json_text
from kernelgym.resampling import Estimate
from kernelgym.scores import SetScores, TaskScore
from kernelgym.workspace import MAIN_FILE, Workspace

if TYPE_CHECKING:
    import jinja2

__all__ = [
    "entry_pages",
    "figure_cells",
    "figure_columns",
    "score_document",
    "start_of",
    "task_names",
    "view_of",
]

_TASK_COLUMNS = (
    "task", "name", "outcome", "reason", "seconds",
    "speedup_eager", "speedup_eager_low", "speedup_eager_high",
    "speedup_compile", "speedup_compile_low", "speedup_compile_high",
    "light_fraction", "own", "library", "memory_ratio", "energy_ratio",
)  # fmt: skip


def view_of(entry: Entry) -> EntryView:
    """An entry as pages show it, scored."""
    stamp = entry.verification
    said = ""
    digest = hashlib.sha256(entry.content.encode())
    if stamp is not None:
        digest.update(msgspec.json.encode(stamp))
        said = f"Replayed by {stamp.by} on {stamp.where}, {stamp.when:%Y-%m-%d}."
    return EntryView(
        slug=entry.folder.name,
        info=entry.info,
        status=entry.status,
        stamp=said,
        scores=score_entry(entry),
        content=digest.hexdigest(),
    )


def entry_pages(entry: Entry, view: EntryView) -> dict[str, str | bytes]:
    """Every page of an entry, by its path in the site.

    Args:
        entry: The entry.
        view: The same, as `view_of` gives it.
    """
    folder = f"boards/{entry.board.slug}/entries/{view.slug}"
    pages: dict[str, str | bytes] = {
        f"{folder}/index.html": _overview(view),
        f"{folder}/index.json": json_text(_document(view)),
        f"{folder}/index.csv": csv_text(_TASK_COLUMNS, map(_cells, view.scores.tasks)),
        f"{folder}/{VERDICTS_FILE}": (entry.folder / VERDICTS_FILE).read_bytes(),
    }
    for result in entry.results:
        pages[f"{folder}/{task_folder(result.task)}.html"] = _solution(entry.board, view, result)
    return pages


def figure_columns() -> list[str]:
    """Names of the columns of every figure, with its interval."""
    return [f"{figure.key}{end}" for figure in FIGURES for end in ("", "_low", "_high")]


def figure_cells(score: SetScores, *, reference: bool = False) -> list[Cell]:
    """The cells to those columns; None for what is not known, or means nothing for PyTorch."""
    cells: list[Cell] = []
    for figure in FIGURES:
        cells.extend(_ends(None if reference and not figure.is_speedup else figure.of(score)))
    return cells


def score_document(score: SetScores, *, reference: bool = False) -> dict[str, Any]:
    """A score for JSON: each figure with its interval, or null; speedups alone for PyTorch."""
    figures: dict[str, Any] = {"tasks": score.tasks}
    if not reference:
        figures |= {"attempted": score.attempted, "rejected": score.rejected}
    for figure in FIGURES:
        if reference and not figure.is_speedup:
            continue
        value = figure.of(score)
        figures[figure.key] = None if value is None else msgspec.to_builtins(value)
    return figures


@functools.cache
def task_names() -> Mapping[str, str]:
    """The name of each task of the catalogue."""
    return {task: catalogue.get(task).name for task in catalogue.ids()}


def _overview(view: EntryView) -> str:
    rows = view.scores.tasks
    board = view.info.board
    drawn = [plots.fast_curve(rows), plots.distribution(rows)]
    roof = plots.roofline(rows, intensities(board.size))
    if roof is not None:
        drawn.append(roof)
    return environment().get_template("entry.html.j2").render(
        root="../../../../",
        here="",
        version=__version__,
        board=board,
        entry=view,
        facts=_facts(view),
        figures=FIGURES,
        scopes=[(scope, scope.of(view.scores)) for scope in scopes_of(board)],
        plots=drawn,
        rows=rows,
        outcomes=sorted({row.outcome.value for row in rows if row.outcome is not None}),
        names=task_names(),
        intensities=intensities(board.size),
    )  # fmt: skip


def _solution(board: Board, view: EntryView, result: TaskResult) -> str:
    reason = REASONS.get(result.verdict.reason)
    return _solution_template().render(
        root="../../../../",
        here="",
        version=__version__,
        board=board,
        entry=view,
        verdict=result.verdict,
        name=task_names()[result.task],
        remedy=reason.remedy if reason is not None else "",
        files=listings(result.sources, start_of(result.task, board.size)),
    )


@functools.cache
def _solution_template() -> jinja2.Template:
    return environment().get_template("solution.html.j2")


@functools.lru_cache(maxsize=1024)
def start_of(task: str, size: str) -> str:
    """What `model_new.py` is at the start of an episode: the reference, renamed."""
    return Workspace.initial(catalogue.get(task), size).files[MAIN_FILE]


def _facts(view: EntryView) -> list[tuple[str, str]]:
    info, score = view.info, view.scores.raw["all"]
    used = info.budget
    model = info.model + (f" ({info.model_date})" if info.model_date else "")
    pairs = [
        ("Agent", info.agent),
        ("Model", model),
        ("Harness", info.harness),
        ("Licence", info.licence),
        ("Tasks with a verdict", f"{score.attempted} of {score.tasks}"),
        ("Submitted", str(info.submitted or "")),
        ("Verdicts", f"{used.verdicts:,}" if used.verdicts is not None else ""),
        ("Verdicts a task", f"at most {used.verdicts_per_task}" if used.verdicts_per_task else ""),
        ("Tokens", f"{used.tokens:,}" if used.tokens is not None else ""),
        ("Cost", f"{used.money_usd:,.2f} USD" if used.money_usd is not None else ""),
    ]
    return [(label, text) for label, text in pairs if text]


def _document(view: EntryView) -> dict[str, Any]:
    return {
        "board": view.info.board.slug,
        "modelled": view.info.board.modelled,
        "entry": view.slug,
        "info": msgspec.to_builtins(view.info),
        "status": view.status.value,
        "stamp": view.stamp,
        "content": view.content,
        "scores": {
            scope.slug: score_document(scope.of(view.scores))
            for scope in scopes_of(view.info.board)
        },
        "tasks": [dict(zip(_TASK_COLUMNS, _cells(row), strict=True)) for row in view.scores.tasks],
    }


def _cells(row: TaskScore) -> list[Cell]:
    return [
        row.task,
        task_names()[row.task],
        row.outcome.value if row.outcome is not None else None,
        row.reason or None,
        row.seconds.median if row.seconds is not None else None,
        *_ends(row.eager),
        *_ends(row.compile),
        row.light_fraction,
        row.own,
        row.library,
        row.memory_ratio,
        row.energy_ratio,
    ]


def _ends(figure: Estimate | Speedup | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if figure is None else (figure.value, figure.low, figure.high)
