"""What PyTorch itself comes to on a board: rows for eager and `torch.compile`, to read others by.

On a measured board they come from the store of baselines, on a modelled one from the times that its
entries' verdicts were held against. They are no entries: nobody submitted them, and they take no rank.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from kernelgym.judge.baseline_store import BaselineRecord, shipped
from kernelgym.judge.verdict import Measurement, Outcome, Speedup
from kernelgym.leaderboard.board import Board
from kernelgym.leaderboard.entry import Entry
from kernelgym.leaderboard.scores import EntryScores, score_tasks
from kernelgym.scores import TaskScore

__all__ = ["KINDS", "ReferenceRow", "modelled_rows", "rows_of_records", "stored_rows"]

KINDS = {"eager": "PyTorch eager", "compile": "torch.compile"}
"""What has a row, and how it is called there."""

_SAME = Speedup(1.0, 1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class ReferenceRow:
    """A row of PyTorch's.

    Attributes:
        kind: `"eager"` or `"compile"`.
        name: What the table shows.
        source: `"measured"` or `"modelled"`.
        scores: As an entry's; a task without a known time has no verdict.
        versions: (name, version) pairs of what measured it.
    """

    kind: str
    name: str
    source: str
    scores: EntryScores
    versions: tuple[tuple[str, str], ...] = ()


def stored_rows(board: Board) -> tuple[ReferenceRow, ...]:
    """The rows of a measured board, from the store that comes with kernelgym; none without records.

    Raises:
        RecordError: The store's file is broken.
    """
    return rows_of_records(board, shipped(board.device))


def rows_of_records(board: Board, records: Iterable[BaselineRecord]) -> tuple[ReferenceRow, ...]:
    """The rows of a measured board from records of its device; those of other rules are left out."""
    found: dict[str, dict[str, BaselineRecord]] = {}
    fitting = [
        record
        for record in records
        if (record.setting.device, record.size, record.precision)
        == (board.device, board.size, board.precision)
    ]
    # Both modes may be there: the protocol's counts, and the other one where that has no time.
    usual = "eval" if board.protocol == "cuda_agent" else "train"
    for record in sorted(fitting, key=lambda record: record.mode != usual):
        kinds = found.setdefault(record.task, {})
        if record.median is not None and (not kinds or record.mode == _mode(kinds)):
            kinds.setdefault(record.kind, record)
    if not any(found.values()):
        return ()
    times = {
        task: {kind: _measurement(record) for kind, record in kinds.items()}
        for task, kinds in found.items()
    }
    ratios = {
        task: kinds["compile"].ratio
        for task, kinds in found.items()
        if "compile" in kinds and kinds["compile"].ratio is not None
    }
    setting = fitting[0].setting
    versions = tuple(
        (name, version)
        for name in ("torch", "cuda", "driver", "triton")
        if (version := getattr(setting, name))
    )
    return _rows(board, times, ratios, "measured", versions)


def modelled_rows(board: Board, entries: Iterable[Entry]) -> tuple[ReferenceRow, ...]:
    """The rows of a modelled board, over the tasks that its entries have a correct solution of."""
    times: dict[str, dict[str, Measurement]] = {}
    ratios: dict[str, Speedup | None] = {}
    for entry in entries:
        for result in entry.results:
            timing = result.verdict.timing
            if timing is None or timing.eager is None:
                continue
            times.setdefault(result.task, {})["eager"] = timing.eager
            if timing.compile is not None:
                times[result.task]["compile"] = timing.compile
                ratio = timing.compile.median / timing.eager.median
                ratios[result.task] = Speedup(ratio, ratio, ratio)
    return _rows(board, times, ratios, "modelled", ()) if times else ()


def _rows(
    board: Board,
    times: Mapping[str, Mapping[str, Measurement]],
    ratios: Mapping[str, Speedup | None],
    source: str,
    versions: tuple[tuple[str, str], ...],
) -> tuple[ReferenceRow, ...]:
    rows = []
    for kind, name in KINDS.items():
        tasks = [_task(task, kind, times.get(task, {}), ratios.get(task)) for task in board.tasks]
        rows.append(ReferenceRow(kind, name, source, score_tasks(tasks, board), versions))
    return tuple(rows)


def _task(
    task: str, kind: str, times: Mapping[str, Measurement], ratio: Speedup | None
) -> TaskScore:
    """One task of a row; `ratio` is compile's time over eager's."""
    if kind not in times:
        return TaskScore(task)
    eager: Speedup | None
    compiled: Speedup | None
    if kind == "eager":
        eager, compiled = _SAME, ratio
    else:
        eager = Speedup(1 / ratio.value, 1 / ratio.high, 1 / ratio.low) if ratio else None
        compiled = _SAME
    return TaskScore(task, Outcome.CORRECT, seconds=times[kind], eager=eager, compile=compiled)


def _mode(kinds: Mapping[str, BaselineRecord]) -> str:
    return next(iter(kinds.values())).mode


def _measurement(record: BaselineRecord) -> Measurement:
    assert record.median is not None  # the others were left out
    low = record.median if record.low is None else record.low
    high = record.median if record.high is None else record.high
    return Measurement(record.median, low, high, len(record.batches), "stored")
