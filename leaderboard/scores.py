"""Scores of an entry: what each task came to, and what all of them come to, with intervals.

The figures and their intervals are those of `kernelgym.scores`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

from kernelgym import scores as run_scores
from kernelgym import tasks as catalogue
from kernelgym.leaderboard.board import Board
from kernelgym.leaderboard.entry import Entry
from kernelgym.scores import SetScores, TaskScore, by_level, task_score

__all__ = ["EntryScores", "score_entry", "score_tasks"]


@dataclasses.dataclass(frozen=True)
class EntryScores:
    """All scores of an entry.

    Attributes:
        tasks: One for each task of the board, in order.
        raw: Scores by set: `"all"`, and `"L1"`, `"L2"`, `"L3"` as far as the board has them.
        clean: The same over the tasks on which no trivial answer passes (see docs/audit.md); a set
            without such tasks is missing.
    """

    tasks: tuple[TaskScore, ...]
    raw: Mapping[str, SetScores]
    clean: Mapping[str, SetScores]


def score_entry(entry: Entry) -> EntryScores:
    """Scores an entry over all tasks of its board."""
    verdicts = {result.task: result.verdict for result in entry.results}
    tasks = [task_score(task, verdicts.get(task)) for task in entry.board.tasks]
    return score_tasks(tasks, entry.board)


def score_tasks(tasks: Sequence[TaskScore], board: Board) -> EntryScores:
    """Scores what each task came to: raw and clean, overall and by level."""
    clean = _clean(board.protocol)
    return EntryScores(
        tuple(tasks), by_level(tasks), by_level([t for t in tasks if t.task in clean])
    )


@functools.cache
def _clean(protocol: str) -> frozenset[str]:
    return frozenset(run_scores.clean_tasks(catalogue.ids(), protocol))
