"""What PyTorch itself comes to on a board: rows for eager and `torch.compile`, to read others by.

On a measured board they come from the store of baselines, on a modelled one from the times that its
entries' verdicts were held against. They are no entries: nobody submitted them, and they take no rank.
A row is scored over the tasks whose time is known; it has no verdicts that could have failed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from kernelgym.judge.baseline_store import BaselineRecord, shipped, shipped_devices
from kernelgym.judge.verdict import Measurement, Outcome, Speedup
from kernelgym.leaderboard.board import Board, Budget
from kernelgym.leaderboard.scores import EntryScores, score_tasks
from kernelgym.scores import TaskScore

__all__ = [
    "KINDS",
    "ReferenceRow",
    "modelled_rows",
    "rows_of_records",
    "stored_boards",
    "stored_rows",
]

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
        scores: As an entry's, but over the tasks whose time is known: a set's `tasks` is their
            number, and a set without any is missing.
        versions: (name, version) pairs of what measured it.
    """

    kind: str
    name: str
    source: str
    scores: EntryScores
    versions: tuple[tuple[str, str], ...] = ()


def stored_boards() -> tuple[Board, ...]:
    """For each card that baselines come with: the board of all tasks that a run enters by default.

    Raises:
        RecordError: The store's file is broken.
    """
    return tuple(
        Board(device, "audited", "strict", "default", "kernelbench", "full", Budget.TEN)
        for device in shipped_devices()
    )


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


def modelled_rows(board: Board, entries: Iterable[EntryScores]) -> tuple[ReferenceRow, ...]:
    """The rows of a modelled board, over the tasks that its entries have a correct solution of."""
    times: dict[str, dict[str, Measurement]] = {}
    ratios: dict[str, Speedup | None] = {}
    for scores in entries:
        for task in scores.tasks:
            if task.seconds is None or task.eager is None or task.task in times:
                continue
            kinds = times[task.task] = {"eager": _times(task.seconds, task.eager)}
            if task.compile is not None:
                kinds["compile"] = _times(task.seconds, task.compile)
                ratio = task.compile.value / task.eager.value
                ratios[task.task] = Speedup(ratio, ratio, ratio)
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
        known = [task for task in tasks if task.outcome is not None]
        if known:
            scores = dataclasses.replace(score_tasks(known, board), tasks=tuple(tasks))
            rows.append(ReferenceRow(kind, name, source, scores, versions))
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


def _times(seconds: Measurement, speedup: Speedup) -> Measurement:
    """The time of what a modelled time was held against: both are exact."""
    time = seconds.median * speedup.value
    return Measurement(time, time, time, seconds.batches, seconds.source)


def _measurement(record: BaselineRecord) -> Measurement:
    assert record.median is not None  # the others were left out
    low = record.median if record.low is None else record.low
    high = record.median if record.high is None else record.high
    return Measurement(record.median, low, high, len(record.batches), "stored")
