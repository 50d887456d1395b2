"""Builds the site: reads every entry, then writes the pages whose inputs have changed."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import hashlib
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from kernelgym import scores as run_scores
from kernelgym.errors import RecordError
from kernelgym.leaderboard.checks import check_entry
from kernelgym.leaderboard.loading import entry_folders, load_entry
from kernelgym.leaderboard.ranking import rank
from kernelgym.leaderboard.reference_rows import modelled_rows, stored_boards, stored_rows
from kernelgym.leaderboard.reported import load_reported
from kernelgym.leaderboard.site.board_pages import (
    TaskPage,
    TaskRow,
    board_pages,
    fastest_first,
    index_pages,
    task_pages,
)
from kernelgym.leaderboard.site.entry_pages import entry_pages, view_of
from kernelgym.leaderboard.site.output import Output, code_version, write_pages
from kernelgym.leaderboard.site.records import FIGURES, BoardView, EntryView, scopes_of
from kernelgym.leaderboard.site.reported_pages import reported_pages
from kernelgym.leaderboard.site.static import static_files
from kernelgym.writing import writing

__all__ = ["Built", "build_site"]

# Starting processes costs about as much as so many entries.
_FEW = 4
_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True)
class Built:
    """What a build did.

    Attributes:
        boards: Number of boards.
        entries: Number of entries.
        written: Number of files written.
        removed: Number of files of an earlier build that are gone.
    """

    boards: int
    entries: int
    written: int
    removed: int


@dataclasses.dataclass(frozen=True)
class _Read:
    """An entry, read.

    Attributes:
        unit: Name of its unit of pages.
        view: The entry, or None where it is broken.
        files: Its new pages in the staging folder; None where those of the last build will do.
        problem: What is wrong with it, or `""`.
    """

    unit: str
    view: EntryView | None
    files: tuple[str, ...] | None
    problem: str = ""


@dataclasses.dataclass(frozen=True)
class _Kept:
    """What the last build knew of an entry: `stat` tells whether its files may have changed."""

    stat: str
    view: EntryView


def build_site(
    entries: str | os.PathLike[str], out: str | os.PathLike[str], *, jobs: int | None = None
) -> Built:
    """Writes the pages of all entries; those whose inputs have not changed are left alone.

    With more than one job, processes are started: call it below `if __name__ == "__main__":`.

    Args:
        entries: The folder of entries: `entries/<board>/<entry>/`.
        out: The site's folder; empty, missing, or from an earlier build.
        jobs: Processes to work with; by default one a core.

    Raises:
        RecordError: Entries are broken; names each. Nothing has been changed.
        UsageError: The site cannot be written there.
    """
    output = Output(Path(out), code_version())
    workers = jobs if jobs is not None else len(os.sched_getaffinity(0))
    with writing(out):
        try:
            views = _read_all(Path(entries), output, workers)
            boards = _boards(views)
            _write_gathered(boards, Path(entries), output, workers)
            written, removed = output.publish()
        finally:
            output.clear()
    return Built(len(boards), len(views), written, removed)


def _read_all(entries: Path, output: Output, workers: int) -> list[EntryView]:
    """Reads every entry and makes the pages of those that are new."""
    work = []
    for folder in entry_folders(entries):
        unit = f"entry:{folder.parent.name}/{folder.name}"
        work.append((folder, unit, output.inputs_of(unit)))
    read = functools.partial(_read_entry, output.staging, output.kept)
    found = list(_map(read, work, workers))
    problems = [one.problem for one in found if one.problem]
    if problems:
        raise RecordError("\n".join(problems))
    views = []
    for one in found:
        assert one.view is not None  # the others were problems
        views.append(one.view)
        if one.files is None:
            output.keep(one.unit)
        else:
            output.add(one.unit, one.view.content, one.files)
    return views


def _read_entry(staging: Path, kept: Path, work: tuple[Path, str, str | None]) -> _Read:
    folder, unit, before = work
    cache = kept / folder.parent.name / f"{folder.name}.msgpack"
    stat = _stat_of(folder)
    if before and cache.is_file():
        known = msgspec.msgpack.decode(cache.read_bytes(), type=_Kept)
        if known.stat == stat and known.view.content == before:
            return _Read(unit, known.view, None)
    try:
        entry = load_entry(folder)
        if entry.board.slug != folder.parent.name:
            raise RecordError(f"{folder}: expected it below {entry.board.slug}, as its board is")
        problems = check_entry(entry)
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise RecordError(f"{folder}: {problems[0]}{more}")
        view = view_of(entry)
    except RecordError as error:
        return _Read(unit, None, None, str(error))
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_bytes(msgspec.msgpack.encode(_Kept(stat, view)))
    if view.content == before:
        return _Read(unit, view, None)
    return _Read(unit, view, write_pages(staging, entry_pages(entry, view)))


def _stat_of(folder: Path) -> str:
    """What changes when a file of an entry does: names, sizes and times, hashed."""
    digest = hashlib.sha256()
    for path, size, changed in _stats(folder):
        digest.update(f"{path}\0{size}\0{changed}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _stats(folder: str | os.PathLike[str]) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as items:
        for item in sorted(items, key=lambda item: item.name):
            if item.is_dir(follow_symlinks=False):
                yield from _stats(item.path)
            else:
                stat = item.stat(follow_symlinks=False)
                yield item.path, stat.st_size, stat.st_mtime_ns


def _boards(views: Iterable[EntryView]) -> list[BoardView]:
    """Every board with entries; and one of PyTorch alone for a card that has none, but times."""
    by_board: dict[str, list[EntryView]] = {}
    for view in views:
        by_board.setdefault(view.info.board.slug, []).append(view)
    boards = [_ranked(entries) for entries in by_board.values()]
    entered = {view.board.device for view in boards}
    for board in stored_boards():
        if board.device not in entered:
            boards.append(BoardView(board, {}, {}, {}, stored_rows(board)))
    return sorted(boards, key=lambda view: view.board.slug)


def _ranked(entries: Sequence[EntryView]) -> BoardView:
    score, board = FIGURES[0].of, entries[0].info.board
    order: dict[str, tuple[str, ...]] = {}
    ranks: dict[str, dict[str, tuple[int | None, int | None]]] = {}
    for scope in scopes_of(board):
        by_scope = functools.partial(lambda scope, entry: score(scope.of(entry.scores)), scope)
        verified = rank(entries, by_scope, lambda entry: entry.verified)
        of_all = {one.row.slug: one.place for one in rank(entries, by_scope)}
        order[scope.slug] = tuple(one.row.slug for one in verified)
        ranks[scope.slug] = {one.row.slug: (one.place, of_all[one.row.slug]) for one in verified}
    if board.modelled:
        reference = modelled_rows(board, (entry.scores for entry in entries))
    else:
        reference = stored_rows(board)
    return BoardView(board, {entry.slug: entry for entry in entries}, order, ranks, reference)


def _write_gathered(
    boards: Sequence[BoardView], entries: Path, output: Output, workers: int
) -> None:
    """The pages that show several entries, as far as they have changed."""
    _unit(output, "static", "", static_files)
    reported = load_reported()
    _unit(output, "reported", _hash(reported), functools.partial(reported_pages, reported))
    _unit(output, "index", _hash(_contents(boards)), functools.partial(index_pages, boards))
    stale: list[tuple[str, str, TaskPage]] = []
    for view in boards:
        slug = view.board.slug
        inputs = _hash((_contents([view]), view.reference))
        _unit(output, f"board:{slug}", inputs, functools.partial(board_pages, view))
        for page in _task_pages(view, entries / slug):
            unit = f"task:{slug}/{page.task}"
            shown = view.entries[page.best.slug].content if page.best else ""
            inputs = _hash((page.rows, shown, page.clean))
            if output.inputs_of(unit) == inputs:
                output.keep(unit)
            else:
                stale.append((unit, inputs, page))
    write = functools.partial(_write_task, output.staging)
    files = _map(write, [page for _, _, page in stale], workers)
    for (unit, inputs, _), names in zip(stale, files, strict=True):
        output.add(unit, inputs, names)


def _write_task(staging: Path, page: TaskPage) -> tuple[str, ...]:
    return write_pages(staging, task_pages(page))


def _unit(
    output: Output, unit: str, inputs: str, make: Callable[[], Mapping[str, str | bytes]]
) -> None:
    inputs = inputs or "code"  # what depends on nothing but the code
    if output.inputs_of(unit) == inputs:
        output.keep(unit)
    else:
        output.add(unit, inputs, write_pages(output.staging, make()))


def _task_pages(view: BoardView, folder: Path) -> Iterator[TaskPage]:
    entries = list(view.entries.values())
    clean = frozenset(run_scores.clean_tasks(view.board.tasks, view.board.protocol))
    for place, task in enumerate(view.board.tasks):
        rows = [
            TaskRow(entry.slug, entry.info.name, entry.status, entry.scores.tasks[place])
            for entry in entries
            if entry.scores.tasks[place].outcome is not None
        ]
        if rows:
            rows.sort(key=fastest_first)
            correct = [row for row in rows if row.score.correct]
            verified = [row for row in correct if view.entries[row.slug].verified]
            best = next(iter(verified or correct), None)
            source = folder / best.slug if best else None
            yield TaskPage(view.board, task, tuple(rows), best, source, task in clean)


def _contents(boards: Iterable[BoardView]) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        (view.board.slug, [(entry.slug, entry.content) for entry in view.entries.values()])
        for view in boards
    ]


def _hash(record: object) -> str:
    return hashlib.sha256(msgspec.json.encode(record)).hexdigest()


def _map(
    function: Callable[[_Argument], _Result], work: Sequence[_Argument], workers: int
) -> Iterable[_Result]:
    """`map` over processes where that pays."""
    if workers <= 1 or len(work) <= _FEW:
        return map(function, work)
    # Not forked: the caller may have threads.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        return list(pool.map(function, work, chunksize=max(1, min(8, len(work) // workers))))
