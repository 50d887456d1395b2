"""`kernelgym run` and `kernelgym report`: letting an agent play, and reading what it did."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from kernelgym.cli.catalogue import find_task
from kernelgym.cli.console import errors, output, plain, problem
from kernelgym.cli.exits import Exit, finish
from kernelgym.cli.options import judging
from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError
from kernelgym.feedback import printable, summary
from kernelgym.rewards import REWARDS

if TYPE_CHECKING:
    from kernelgym.budget import Budget
    from kernelgym.judging import SupportsEvaluate
    from kernelgym.runs import TaskResult
    from kernelgym.tasks import Task

__all__ = ["played", "report", "run", "scores"]


@judging
def run(
    *,
    agent: Annotated[str, typer.Option(help="An agent's name, or module:attribute.")],
    task: Annotated[str, typer.Option(help="Task ids, paths or levels (L1), comma-separated.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; one that exists is continued.")],
    agent_args: Annotated[
        str, typer.Option(metavar="JSON", help="Arguments of the agent, as a JSON object.")
    ] = "{}",
    max_turns: Annotated[
        int | None,
        typer.Option(help="Turns of an episode; default 8, or twice the verdicts.", min=2),
    ] = None,
    verdicts: Annotated[int | None, typer.Option(help="Budget of a task: verdicts.", min=1)] = None,
    tokens: Annotated[
        int | None, typer.Option(help="Budget of a task: tokens read and written.", min=1)
    ] = None,
    cost: Annotated[float | None, typer.Option(help="Budget of a task: money.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Budget of a task: seconds.")] = None,
    reward: Annotated[str, typer.Option(help=f"One of {', '.join(REWARDS)}.")] = "milestone",
    config: JudgeConfig,
) -> None:
    """Let an agent play tasks; exit code 0 when each of them has a correct kernel.

    Tasks that the folder holds finished are skipped. --seed also seeds the episodes.
    """
    from kernelgym.budget import Budget
    from kernelgym.judging import LazyJudge

    judge = LazyJudge(config)
    try:
        budget = Budget(verdicts, tokens, cost, seconds)
        code = played(agent, agent_args, task, out, max_turns, reward, judge, budget=budget)
    finally:
        judge.close()
    finish(code)


def played(
    agent: str,
    agent_args: str,
    task: str,
    out: Path,
    max_turns: int | None,
    reward: str,
    judge: SupportsEvaluate,
    note: str = "",
    budget: Budget | None = None,
) -> Exit:
    """Lets an agent play tasks before a judge, prints what came of it, and says how to exit.

    Args:
        agent: As for `run`.
        agent_args: As for `run`.
        task: As for `run`.
        out: As for `run`.
        max_turns: As for `run`.
        reward: As for `run`.
        judge: Stays open.
        note: Put behind the agent's name in the run's record.
        budget: What a task may cost; by default it has no limit but the turns.
    """
    from kernelgym import agents, runs
    from kernelgym.budget import Budget

    names, tasks = _tasks(task)
    player = agents.get(agent, **_arguments(agent_args))
    label = (agent if agent_args == "{}" else f"{agent} {agent_args}") + note
    config = judge.config
    budget = budget or Budget()
    turns = max_turns or budget.turns or runs.RunPlan.max_turns
    plan = runs.RunPlan(label, names, config, turns, reward, config.seed, runs.versions(), budget)
    progress = _Progress(agent, len(tasks))
    try:
        results = runs.play(
            plan,
            tasks,
            player,
            out,
            judge=judge,
            on_start=progress.start,
            on_turn=progress.turn,
            on_end=progress.end,
        )
    finally:
        progress.close()
    _print_results(results)
    _print_scores(results, config.protocol)
    plain(f"{out}: `kernelgym report {out}` makes a page of it")
    if any(result.fault for result in results):
        return Exit.FAULT
    if any(result.failure for result in results):
        return Exit.AGENT
    return Exit.CORRECT if all(result.solved for result in results) else Exit.NO


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    out: Annotated[Path | None, typer.Option(help="The page; DIR/report.html by default.")] = None,
) -> None:
    """Make one self-contained HTML page of a run: edits, verdicts, times, roofline."""
    from kernelgym.report import write_report

    page = write_report(folder, out or folder / "report.html")
    plain(str(page))


def scores(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of runs.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Score runs: how often right, how fast, how soon, at what price; with 95 % intervals."""
    from kernelgym.cli.scores_view import table, to_line
    from kernelgym.evaluation import read_evaluation

    found = [read_evaluation(folder) for folder in folders]
    if as_json:
        for one in found:
            plain(to_line(one))
    else:
        output().print(table(found))


class _Progress:
    """On stderr: a status line on a terminal, else a line for each turn; a line for each task."""

    def __init__(self, agent: str, tasks: int) -> None:
        self._agent = agent
        self._tasks = tasks
        self._done = 0
        self._task = ""
        self._console = errors()
        self._status = self._console.status("")
        self._terminal = sys.stderr.isatty()

    def start(self, task: Task) -> None:
        self._task = f"({self._done + 1}/{self._tasks}) {task.id} {task.name}"
        self._show("first turn…")
        if self._terminal:
            self._status.start()
        else:
            problem(f"{self._task}, first turn…")

    def turn(self, info: dict[str, Any]) -> None:
        said = "no verdict"
        if info["edit_error"]:
            said = "the edit did not apply"
        elif info["judged"]:
            said = summary(info["verdict"])
        line = f"turn {info['turn']}: {said}"
        self._show(f"{line}; next turn…")
        if not self._terminal:
            problem(f"{self._task}, {line}")

    def end(self, result: TaskResult) -> None:
        self.close()
        self._done += 1
        how = "finished before: " if result.skipped else ""
        said = f"{self._agent}: {_said(result)}" if result.failure else _said(result)
        problem(f"({self._done}/{self._tasks}) {result.task_id}: {how}{said}")

    def close(self) -> None:
        self._status.stop()

    def _show(self, text: str) -> None:
        # As a Text, because a string's brackets would be read as markup.
        self._status.update(Text(printable(f"{self._task}, {text}")))


def _tasks(text: str) -> tuple[tuple[str, ...], list[Task]]:
    from kernelgym import tasks as registry

    names: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if part in ("L1", "L2", "L3"):
            names.extend(registry.ids(int(part[1:])))
        elif part:
            names.append(str(Path(part).resolve()) if part.endswith(".py") else part)
    if not names:
        raise UsageError(f"--task: expected task ids, got {text!r}")
    tasks = {task.id: (name, task) for name in names for task in [find_task(name)]}
    loaded = [task for _, task in tasks.values()]
    return tuple(name if name.endswith(".py") else task.id for name, task in tasks.values()), loaded


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--agent-args: expected a JSON object, got {text!r}: {error}") from error
    if not isinstance(arguments, dict):
        raise UsageError(f"--agent-args: expected a JSON object, got {text!r}")
    return arguments


def _said(result: TaskResult) -> str:
    if result.fault:
        return f"fault: {result.fault}"
    if result.failure:
        return f"the agent failed: {result.failure}"
    return summary(result.best) if result.best is not None else "no verdict"


def _print_scores(results: Sequence[TaskResult], protocol: str) -> None:
    """The score over all tasks, and over those on which no trivial answer passes."""
    from kernelgym.scores import clean_tasks, in_a_line, score_set, task_score

    found = [task_score(result.task_id, result.best) for result in results]
    names = frozenset(clean_tasks([one.task for one in found], protocol))
    clean = [one for one in found if one.task in names]
    plain(f"all tasks: {in_a_line(score_set(found))}")
    if clean and len(clean) < len(found):
        plain(f"clean tasks (see docs/audit.md): {in_a_line(score_set(clean))}")


def _print_results(results: Sequence[TaskResult]) -> None:
    from rich.table import Table

    console = output()
    solved = sum(result.solved for result in results)
    if not console.is_terminal:
        for result in results:
            plain(f"{result.task_id}\t{result.turns}\t{result.total_reward:g}\t{_said(result)}")
        plain(f"solved {solved} of {len(results)}")
        return
    table = Table("task", "turns", "reward", "best", box=None, header_style="bold")
    for result in results:
        said = Text(printable(_said(result)))
        table.add_row(result.task_id, str(result.turns), f"{result.total_reward:g}", said)
    console.print(table)
    console.print(f"solved {solved} of {len(results)}")
