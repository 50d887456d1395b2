"""What pages show of boards and entries: compact, so that 500 entries fit in memory."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping

from kernelgym.leaderboard.board import Board
from kernelgym.leaderboard.entry import EntryInfo, Status
from kernelgym.leaderboard.reference_rows import ReferenceRow
from kernelgym.leaderboard.scores import EntryScores
from kernelgym.resampling import Estimate
from kernelgym.scores import AT_LIGHT, BaselineScores, SetScores, clean_tasks

__all__ = ["FIGURES", "SCOPES", "BoardView", "EntryView", "Figure", "Scope", "scopes_of"]

# KernelBench's p, as far as scores are sampled there; an entry's plot has all of the curve.
_FAST = (1.0, 1.5, 2.0, 5.0)


@dataclasses.dataclass(frozen=True)
class Scope:
    """A part of the tasks that is scored by itself.

    Attributes:
        part: `"all"`, `"L1"`, `"L2"` or `"L3"`.
        clean: Whether only tasks count on which no trivial answer passes.
    """

    part: str
    clean: bool

    @property
    def slug(self) -> str:
        """Its name in names of pages: `index` for all tasks."""
        if self.part == "all":
            return "clean" if self.clean else "index"
        return "clean-" * self.clean + self.part.lower()

    @property
    def part_label(self) -> str:
        """The part as a reader calls it."""
        return "All levels" if self.part == "all" else f"Level {self.part[1:]}"

    @property
    def label(self) -> str:
        """What a reader calls it, such as `"Level 1, clean tasks"`."""
        return f"{self.part_label}, {'clean tasks' if self.clean else 'every task'}"

    def of(self, scores: EntryScores) -> SetScores:
        """An entry's scores in this part."""
        return (scores.clean if self.clean else scores.raw)[self.part]


SCOPES = tuple(Scope(part, clean) for clean in (False, True) for part in ("all", "L1", "L2", "L3"))
"""Every part: all tasks and the clean ones, each over all levels and per level."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """A column of a board.

    Attributes:
        key: Its name in JSON and CSV.
        label: What a reader calls it.
        help: What it says, in a sentence.
        is_ratio: Whether it is a ratio (shown as `1.52×`) rather than a share.
        is_speedup: Whether it is about times, so that PyTorch itself has it too.
        on_board: Whether it has a column on a board's page; all have a row on an entry's.
        of: The figure of a score; None where it is not known.
    """

    key: str
    label: str
    help: str
    is_ratio: bool
    is_speedup: bool
    on_board: bool
    of: Callable[[SetScores], Estimate | None]


def _against(name: str, label: str, fast_on_board: tuple[float, ...]) -> tuple[Figure, ...]:
    """The figures against one baseline, fast_p among them."""

    def figure(
        key: str,
        said: str,
        explained: str,
        of: Callable[[BaselineScores], Estimate | None],
        is_ratio: bool = False,
        on_board: bool = False,
    ) -> Figure:
        def of_set(score: SetScores) -> Estimate | None:
            against: BaselineScores | None = getattr(score, name)
            return None if against is None else of(against)

        return Figure(f"{key}_{name}", said, explained, is_ratio, True, on_board, of_set)

    def fast(p: float) -> Figure:
        return figure(
            f"fast_{p:g}",
            f"fast_{p:g} vs {label}",
            f"Share of tasks with a correct solution more than {p:g} times as fast as {label}.",
            lambda against: dict(against.fast)[p],
            on_board=p in fast_on_board,
        )

    return (
        figure(
            "geomean_all",
            f"Mean vs {label}",
            f"Geometric mean of the speedup against {label} over all tasks; a task without a "
            "correct solution counts 1.",
            lambda against: against.geomean_all,
            is_ratio=True,
            on_board=True,
        ),
        figure(
            "geomean_correct",
            f"Mean vs {label}, correct only",
            "The same over correct solutions alone, as papers often state it.",
            lambda against: against.geomean_correct,
            is_ratio=True,
        ),
        *(fast(p) for p in _FAST),
        figure(
            "faster",
            f"Surely faster than {label}",
            f"Share of tasks with a correct solution whose speedup against {label} lies above 1 "
            "with its whole interval.",
            lambda against: against.faster,
            on_board=True,
        ),
        figure(
            "faster_5",
            f"Surely 5 % faster than {label}",
            "The same above 1.05.",
            lambda against: against.faster_by_5_percent,
        ),
    )


FIGURES = (
    *_against("eager", "eager", (1.0, 2.0)),
    *_against("compile", "compile", ()),
    Figure("correct", "Correct", "Share of tasks with a correct solution.", False, False, True,
           lambda score: score.correct),
    Figure("at_light", "At the limit",
           f"Share of tasks with a correct solution at {AT_LIGHT:.0%} of the speed of light or "
           "above.", False, False, True, lambda score: score.at_light),
    Figure("light_fraction", "Of the speed of light",
           "Mean share of what physics allows, over correct solutions.", False, False, False,
           lambda score: score.light_fraction),
    Figure("own", "Own kernels", "Mean share of device time in the solution's own kernels, over "
           "correct solutions.", False, False, False, lambda score: score.own),
    Figure("library", "Libraries", "Mean share of device time in libraries that the solution "
           "calls.", False, False, False, lambda score: score.library),
    Figure("memory_ratio", "Peak memory", "Geometric mean of peak memory over eager's, where "
           "measured; less is better.", True, False, False, lambda score: score.memory_ratio),
    Figure("energy_ratio", "Energy", "Geometric mean of joules over eager's, where measured; less "
           "is better.", True, False, False, lambda score: score.energy_ratio),
)  # fmt: skip
"""Every figure of a score, in the order of the columns."""


@dataclasses.dataclass(frozen=True)
class EntryView:
    """An entry without its sources. What its authors wrote is escaped where it is shown.

    Attributes:
        slug: Name of its folder.
        info: What its authors say.
        status: Whether a replay has confirmed it.
        stamp: Who replayed it, where and when; `""` where nobody has.
        scores: Its scores, and each of its board's tasks in a line.
        content: Hash of all that the entry consists of, its stamp included.
    """

    slug: str
    info: EntryInfo
    status: Status
    stamp: str
    scores: EntryScores
    content: str

    @property
    def verified(self) -> bool:
        """Whether it takes part in the ranking."""
        return self.status is Status.VERIFIED

    @property
    def authors(self) -> str:
        """Its authors in a line."""
        return ", ".join(self.info.authors)


@dataclasses.dataclass(frozen=True)
class BoardView:
    """A board with its entries, or without any where only PyTorch's own times are known.

    Attributes:
        board: What its entries have in common.
        entries: By slug.
        order: Slug of a scope to the slugs of the entries, the highest score first.
        ranks: Slug of a scope to the ranks by slug of an entry: among the verified ones (None for
            another), and among all.
        reference: PyTorch's own rows, which take no rank.
    """

    board: Board
    entries: Mapping[str, EntryView]
    order: Mapping[str, tuple[str, ...]]
    ranks: Mapping[str, Mapping[str, tuple[int | None, int | None]]]
    reference: tuple[ReferenceRow, ...] = ()


@functools.cache
def scopes_of(board: Board) -> Mapping[Scope, int]:
    """The parts that a board's pages show, with their numbers of tasks; of one level, no levels."""
    clean = clean_tasks(board.tasks, board.protocol)
    found = {}
    for scope in SCOPES:
        if scope.part != "all" and board.task_set != "kernelbench":
            continue
        tasks = clean if scope.clean else board.tasks
        count = sum(scope.part in ("all", task.partition("/")[0]) for task in tasks)
        if count:
            found[scope] = count
    return found
