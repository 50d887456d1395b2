"""The pages that gather entries: the list of boards, a board, and a task with all its solutions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from kernelgym._version import __version__
from kernelgym.feedback import format_seconds, printable
from kernelgym.judge.verdict import Speedup
from kernelgym.leaderboard.board import Board
from kernelgym.leaderboard.entry import Status
from kernelgym.leaderboard.loading import SOLUTIONS, task_folder
from kernelgym.leaderboard.reference_rows import ReferenceRow
from kernelgym.leaderboard.site.entry_pages import (
    figure_cells,
    figure_columns,
    score_document,
    start_of,
    task_names,
)
from kernelgym.leaderboard.site.listing import Listing, listings
from kernelgym.leaderboard.site.records import (
    FIGURES,
    BoardView,
    EntryView,
    Scope,
    scopes_of,
)
from kernelgym.leaderboard.site.rendering import environment, ratio, share, span
from kernelgym.leaderboard.site.tables import csv_text, json_text
from kernelgym.scores import SetScores, TaskScore

__all__ = ["TaskPage", "TaskRow", "board_pages", "fastest_first", "index_pages", "task_pages"]

_GROUPS = (
    ("Measured", False, "Every solution was timed on the GPU that the board names."),
    ("Modelled", True, "Times follow from counts and a model of an imaginary device. They are no "
     "measurements, and never stand beside any."),
)  # fmt: skip
_ENTRY_COLUMNS = ("rank", "rank_with_unverified", "entry", "name", "authors", "status", "submitted",
                  "tasks", "attempted", "rejected")  # fmt: skip
_TASK_COLUMNS = ("entry", "name", "status", "outcome", "reason", "seconds", "speedup_eager",
                 "speedup_eager_low", "speedup_eager_high", "speedup_compile",
                 "light_fraction")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class TaskRow:
    """An entry's solution in a task's table."""

    slug: str
    name: str
    status: Status
    score: TaskScore


@dataclasses.dataclass(frozen=True)
class TaskPage:
    """What a task's page is made from.

    Attributes:
        board: Whose task.
        task: Its id.
        rows: The entries that have a verdict on it, the fastest first.
        best: The row whose source is shown, or None.
        folder: That entry's folder.
        clean: Whether no trivial answer passes its check.
    """

    board: Board
    task: str
    rows: tuple[TaskRow, ...]
    best: TaskRow | None
    folder: Path | None
    clean: bool


def index_pages(boards: Sequence[BoardView]) -> dict[str, str]:
    """The list of boards, by path."""
    listed: list[tuple[str, str, list[dict[str, Any]]]] = []
    for title, modelled, note in _GROUPS:
        some = [_listed(view) for view in boards if view.board.modelled is modelled]
        listed.append((title, note, some))
    page = environment().get_template("index.html.j2").render(
        root="", here="boards", version=__version__, groups=listed
    )  # fmt: skip
    columns = ("board", "device", "modelled", "protocol", "ruleset", "precision", "task_set",
               "size", "budget", "entries", "verified", "leader")  # fmt: skip
    rows = []
    for view in boards:
        board, said = view.board, _listed(view)
        leader = said["leader"].slug if said["leader"] else None
        rows.append(
            (board.slug, board.device, board.modelled, board.protocol, board.ruleset,
             board.precision, board.task_set, board.size, board.budget.value, len(view.entries),
             said["verified"], leader)
        )  # fmt: skip
    document = {"boards": [dict(zip(columns, row, strict=True)) for row in rows]}
    return {
        "index.html": page,
        "index.json": json_text(document),
        "index.csv": csv_text(columns, rows),
    }


def board_pages(view: BoardView) -> dict[str, str]:
    """The pages of a board, one for each part of its tasks, by path."""
    pages: dict[str, str] = {}
    for scope in scopes_of(view.board):
        stem = f"boards/{view.board.slug}/{scope.slug}"
        rows = [
            (view.entries[slug], *view.ranks[scope.slug][slug])
            for slug in view.order.get(scope.slug, ())
        ]
        reference = _reference(view, scope)
        pages[f"{stem}.html"] = _board_page(view, scope, rows, reference)
        pages[f"{stem}.json"] = json_text(_board_document(view.board, scope, rows, reference))
        table = [
            (rank, of_all, entry.slug, entry.info.name, entry.authors, entry.status.value,
             str(entry.info.submitted or ""), scope.of(entry.scores).tasks,
             scope.of(entry.scores).attempted, scope.of(entry.scores).rejected,
             *figure_cells(scope.of(entry.scores)))
            for entry, rank, of_all in rows
        ]  # fmt: skip
        table += [
            (None, None, row.kind, row.name, "", "reference", "", scopes_of(view.board)[scope],
             score.tasks, 0,
             *figure_cells(score, reference=True))
            for row, score in reference
        ]  # fmt: skip
        pages[f"{stem}.csv"] = csv_text((*_ENTRY_COLUMNS, *figure_columns()), table)
    return pages


def task_pages(page: TaskPage) -> dict[str, str]:
    """The pages of a task on a board, by path."""
    board, task = page.board, page.task
    files: tuple[Listing, ...] = ()
    if page.best is not None and page.folder is not None:
        sources = _sources(page.folder / SOLUTIONS / task_folder(task))
        files = listings(sources, start_of(task, board.size))
    stem = f"boards/{board.slug}/tasks/{task_folder(task)}"
    cells = [
        (row.slug, row.name, row.status.value, str(row.score.outcome), row.score.reason,
         row.score.seconds.median if row.score.seconds else None,
         *((row.score.eager.value, row.score.eager.low, row.score.eager.high)
           if row.score.eager else (None, None, None)),
         row.score.compile.value if row.score.compile else None, row.score.light_fraction)
        for row in page.rows
    ]  # fmt: skip
    document = {
        "board": board.slug,
        "modelled": board.modelled,
        "task": task,
        "name": task_names()[task],
        "entries": [dict(zip(_TASK_COLUMNS, row, strict=True)) for row in cells],
    }
    return {
        f"{stem}.html": environment().get_template("task.html.j2").render(
            root="../../../",
            here="",
            version=__version__,
            board=board,
            task=task,
            name=task_names()[task],
            clean=page.clean,
            rows=Markup("\n").join(_task_row(row, task_folder(task)) for row in page.rows),
            best=page.best,
            files=files,
        ),
        f"{stem}.json": json_text(document),
        f"{stem}.csv": csv_text(_TASK_COLUMNS, cells),
    }  # fmt: skip


def _listed(view: BoardView) -> dict[str, Any]:
    ranks = view.ranks.get("index", {})
    ranked = [slug for slug in view.order.get("index", ()) if ranks[slug][0] is not None]
    leader = view.entries[ranked[0]] if ranked else None
    return {
        "board": view.board,
        "entries": len(view.entries),
        "verified": sum(entry.verified for entry in view.entries.values()),
        "leader": leader,
    }


def _board_page(
    view: BoardView,
    scope: Scope,
    rows: Sequence[tuple[EntryView, int | None, int | None]],
    reference: Sequence[tuple[ReferenceRow, SetScores]],
) -> str:
    board, scopes = view.board, scopes_of(view.board)
    shown = [figure for figure in FIGURES if figure.on_board]
    scores = [*(scope.of(entry.scores) for entry, _, _ in rows), *(one for _, one in reference)]
    means = [mean for score in scores if (mean := FIGURES[0].of(score)) is not None]
    low = min([0.8, *(mean.low for mean in means)])
    high = max([1.5, *(mean.high for mean in means)])
    facts = [
        ("Tasks", f"{board.task_set}, {board.size} shapes"),
        ("Protocol", board.protocol),
        ("Rules", board.ruleset),
        ("Precision", board.precision),
        ("Verdicts a task", "open" if board.budget.limit is None else f"at most {board.budget}"),
        ("Entries", str(len(rows))),
    ]
    return environment().get_template("board.html.j2").render(
        root="../../",
        here="",
        version=__version__,
        board=board,
        facts=facts,
        scope=scope,
        parts=[other for other in scopes if other.clean is scope.clean],
        kinds=[other for other in scopes if other.part == scope.part],
        tasks=scopes[scope],
        rows=[(entry, scope.of(entry.scores), rank, of_all) for entry, rank, of_all in rows],
        reference=reference,
        figures=shown,
        more=[figure for figure in FIGURES if not figure.on_board],
        axis=(low, high),
        task_rows=_solved(view) if scope.slug == "index" else [],
    )  # fmt: skip


def _solved(view: BoardView) -> list[tuple[str, str, int, int]]:
    """Each task that some entry has a verdict on: id, name, correct solutions, all solutions."""
    names = task_names()
    entries = list(view.entries.values())
    found = []
    for place, task in enumerate(view.board.tasks):
        rows = [entry.scores.tasks[place] for entry in entries]
        judged = sum(row.outcome is not None for row in rows)
        if judged:
            found.append((task, names[task], sum(row.correct for row in rows), judged))
    return found


def _reference(view: BoardView, scope: Scope) -> list[tuple[ReferenceRow, SetScores]]:
    """PyTorch's own rows, as far as a time of theirs is known in this part."""
    return [
        (row, scope.of(row.scores))
        for row in view.reference
        if scope.part in (row.scores.clean if scope.clean else row.scores.raw)
    ]


def _board_document(
    board: Board,
    scope: Scope,
    rows: Sequence[tuple[EntryView, int | None, int | None]],
    reference: Sequence[tuple[ReferenceRow, SetScores]],
) -> Mapping[str, Any]:
    return {
        "board": board.slug,
        "title": board.title,
        "modelled": board.modelled,
        "tasks": scope.slug,
        "entries": [
            {
                "rank": rank,
                "rank_with_unverified": of_all,
                "entry": entry.slug,
                "name": entry.info.name,
                "authors": list(entry.info.authors),
                "status": entry.status.value,
                "submitted": str(entry.info.submitted or ""),
                "scores": score_document(scope.of(entry.scores)),
            }
            for entry, rank, of_all in rows
        ],
        "reference": [
            {
                "kind": row.kind,
                "name": row.name,
                "source": row.source,
                "coverage": {"tasks": score.tasks, "of": scopes_of(board)[scope]},
                "versions": dict(row.versions),
                "scores": score_document(score, reference=True),
            }
            for row, score in reference
        ],
    }


def _task_row(row: TaskRow, file: str) -> Markup:
    """A row of a task's table, put together by hand: there may be 125,000 of them."""
    score = row.score
    outcome, status = score.outcome or "", row.status
    reason = f' <small class="code">{escape(printable(score.reason))}</small>'
    seconds = score.seconds.median if score.seconds else None
    light = score.light_fraction
    return Markup(
        f'<tr data-outcome="{outcome}"><th scope="row"><a href="../entries/{escape(row.slug)}/'
        f'{file}.html">{escape(printable(row.name))}</a></th><td><span class="outcome {outcome}">'
        f"{str(outcome).replace('_', ' ')}</span>{reason if score.reason else ''}</td>"
        f"{_speedup_cell(score.eager)}{_speedup_cell(score.compile)}"
        f'<td class="number nowrap" data-value="{seconds or ""}">'
        f'{format_seconds(seconds) if seconds else ""}</td><td class="number" data-value="'
        f'{light or ""}">{share(light) + " %" if light else ""}</td>'
        f'<td><span class="badge {status}">{status}</span></td></tr>'
    )


def _speedup_cell(speedup: Speedup | None) -> str:
    if speedup is None:
        return '<td class="number" data-value=""></td>'
    return (
        f'<td class="number" data-value="{speedup.value}">{ratio(speedup.value)}×'
        f"<small>{span(speedup)}</small></td>"
    )


def fastest_first(row: TaskRow) -> tuple[bool, float, str]:
    """The order of a task's table: correct ones by speedup against eager, then the others."""
    speed = row.score.eager.value if row.score.eager is not None else -math.inf
    return not row.score.correct, -speed, row.slug


def _sources(folder: Path) -> dict[str, str]:
    """The files of a solution, which was checked when its entry was read."""
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
