"""How evaluations are shown: one column each, or a line of JSON."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
from rich.table import Table
from rich.text import Text

from kernelgym.evaluation import Evaluation
from kernelgym.feedback import printable
from kernelgym.resampling import Estimate
from kernelgym.scores import BaselineScores, SetScores

__all__ = ["table", "to_line"]

_Row: TypeAlias = "tuple[str, Callable[[Evaluation], str]]"
_FAST = (1.0, 1.2, 2.0)


def table(evaluations: Sequence[Evaluation]) -> Table:
    """A table of evaluations, one column each."""
    shown = Table("", box=None, header_style="bold")
    for one in evaluations:
        shown.add_column(Text(printable(one.agent)), justify="right")
    for label, cell in _rows(evaluations):
        shown.add_row(label, *(cell(one) for one in evaluations))
    return shown


def to_line(evaluation: Evaluation) -> str:
    """An evaluation as one line of JSON, with each task's best and last verdict in a few words."""
    from kernelgym.feedback import summary

    fields = msgspec.to_builtins(evaluation)
    for told, task in zip(fields["tasks"], evaluation.tasks, strict=True):
        for name, verdict in (("best", task.best), ("last", task.last)):
            told[name] = summary(verdict) if verdict is not None else None
    return json.dumps(fields)


def _rows(evaluations: Sequence[Evaluation]) -> list[_Row]:
    rows: list[_Row] = [
        ("tasks", lambda e: f"{e.finished} of {len(e.tasks)}"),
        ("verdicts a task", lambda e: str(e.budget.verdicts or "no limit")),
        ("correct", lambda e: _correct(e.best.get("all"))),
        ("correct, clean tasks", lambda e: _correct(e.clean.get("all"))),
        ("correct, last verdict", lambda e: _correct(e.last.get("all"))),
        ("at the limit of physics", lambda e: _share(e.best["all"].at_light)),
        ("mean share of the speed of light", lambda e: _share(e.best["all"].light_fraction)),
    ]
    for baseline in ("eager", "compile"):
        rows += [
            (f"fast_{p:g}, {baseline}", functools.partial(_fast, baseline=baseline, p=p))
            for p in _FAST
        ]
        rows += [
            (
                f"geometric mean, {baseline}, {over}",
                functools.partial(_mean, baseline=baseline, over=over),
            )
            for over in ("correct", "all")
        ]
    levels = [name for name in ("L1", "L2", "L3") if any(name in e.best for e in evaluations)]
    if len(levels) > 1:
        rows += [(f"correct, {name}", functools.partial(_level, name=name)) for name in levels]
    rows += [
        ("verdicts to the first correct one", lambda e: _plain(e.first_correct)),
        ("verdicts", lambda e: str(e.verdicts)),
        ("builds", lambda e: str(e.builds)),
        ("tokens", lambda e: str(e.usage.tokens)),
        ("cost", lambda e: f"{e.usage.cost:.4g}"),
    ]
    return rows


def _against(evaluation: Evaluation, baseline: str) -> BaselineScores | None:
    found: BaselineScores | None = getattr(evaluation.best["all"], baseline)
    return found


def _fast(evaluation: Evaluation, baseline: str, p: float) -> str:
    scores = _against(evaluation, baseline)
    return "-" if scores is None else _share(dict(scores.fast)[p])


def _mean(evaluation: Evaluation, baseline: str, over: str) -> str:
    scores = _against(evaluation, baseline)
    return "-" if scores is None else _plain(getattr(scores, f"geomean_{over}"), "x")


def _level(evaluation: Evaluation, name: str) -> str:
    return _correct(evaluation.best.get(name))


def _correct(scores: SetScores | None) -> str:
    return "-" if scores is None else _share(scores.correct)


def _share(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.value:.1%} [{estimate.low:.1%}, {estimate.high:.1%}]"


def _plain(estimate: Estimate | None, unit: str = "") -> str:
    if estimate is None:
        return "-"
    return f"{estimate.value:.2f}{unit} [{estimate.low:.2f}, {estimate.high:.2f}]"
