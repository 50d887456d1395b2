"""`kernelgym tape`: verdicts stored once and replayed as a judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from kernelgym.cli.catalogue import find_task
from kernelgym.cli.console import plain, problem
from kernelgym.cli.episodes import played
from kernelgym.cli.exits import Exit, finish, guarded
from kernelgym.cli.options import judging
from kernelgym.config import JudgeConfig
from kernelgym.errors import RecordError, UsageError
from kernelgym.rewards import REWARDS
from kernelgym.writing import writing

__all__ = ["add_to", "record", "replay", "show"]

HeldT = TypeVar("HeldT")


def add_to(app: typer.Typer) -> None:
    """Adds the group `tape`."""
    group = typer.Typer(help="Store verdicts once, and replay them as a judge.")
    for command in (record, show, replay):
        group.command()(guarded(command))
    app.add_typer(group, name="tape")


@judging
def record(
    *,
    out: Annotated[Path, typer.Option(help="The tape; one that exists is added to.")],
    run: Annotated[Path | None, typer.Option(help="Take the verdicts of this run.")] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(help='Judge these: JSON lines of {"task": …, "files": {…}} or "source".'),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Compilations at a time.")] = None,
    config: JudgeConfig,
) -> None:
    """Put verdicts on a tape: those of a run, or those of candidates that are judged now.

    Killed and started again, it goes on from where it was. The judge's options are those of
    candidates; a run's verdicts were reached as it says itself.
    """
    if (run is None) == (candidates is None):
        raise UsageError("expected either --run or --candidates")
    if run is not None:
        from kernelgym.taping import record_run

        with writing(out):
            added = record_run(run, out)
        plain(f"{out}: {added} verdicts added")
        return
    from kernelgym.errors import EnvironmentFault
    from kernelgym.judge.pool import evaluate_many
    from kernelgym.taping import read_candidates

    assert candidates is not None
    try:
        jobs = read_candidates(candidates, find_task)
    except OSError as error:
        raise UsageError(f"--candidates: cannot read {candidates}: {error.strerror}") from error
    with writing(out):
        results = evaluate_many(jobs, config, workers=workers, resume=out)
    faults = [result for result in results if isinstance(result, EnvironmentFault)]
    for fault in faults:
        problem(str(fault))
    plain(f"{out}: {len(results) - len(faults)} of {len(results)} candidates judged")
    finish(Exit.FAULT if faults else Exit.CORRECT)


def show(tape: Annotated[Path, typer.Argument(metavar="TAPE", help="A tape.")]) -> None:
    """Say what a tape holds: a line for each setting."""
    from kernelgym.tape import Tape

    held = _read(tape, Tape)
    for setting in held.settings:
        verdicts = held.verdicts(setting)
        sources = {v.timing.candidate.source for v in verdicts if v.timing is not None}
        config = setting.config
        plain(
            f"{len(verdicts)} verdicts on {len({v.task for v in verdicts})} tasks, "
            f"{sum(v.correct for v in verdicts)} correct; {setting.device}, {config.size}, "
            f"{config.protocol}, {config.ruleset}, {config.precision}; "
            f"times: {', '.join(sorted(sources)) or 'none'}"
        )


def replay(
    tape: Annotated[Path, typer.Argument(metavar="TAPE", help="A tape.")],
    *,
    agent: Annotated[str, typer.Option(help="An agent's name, or module:attribute.")],
    task: Annotated[str, typer.Option(help="Task ids, paths or levels (L1), comma-separated.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; one that exists is continued.")],
    agent_args: Annotated[
        str, typer.Option(metavar="JSON", help="Arguments of the agent, as a JSON object.")
    ] = "{}",
    max_turns: Annotated[int, typer.Option(help="Turns of an episode.", min=2)] = 8,
    reward: Annotated[str, typer.Option(help=f"One of {', '.join(REWARDS)}.")] = "milestone",
    live: Annotated[bool, typer.Option(help="Judge what the tape does not hold.")] = False,
) -> None:
    """Let an agent play against a tape: as `run`, with verdicts that were reached before."""
    from kernelgym.judging import LazyJudge
    from kernelgym.tape import TapeJudge

    judge = _read(tape, TapeJudge)
    fallback = LazyJudge(judge.config) if live else None
    try:
        if fallback is not None:
            judge = TapeJudge(judge.tape, live=fallback)
        code = played(
            agent, agent_args, task, out, max_turns, reward, judge, note=f", tape {tape.name}"
        )
    finally:
        if fallback is not None:
            fallback.close()
    times = "as they were measured then, or modelled" if judge.hits else "none from the tape"
    plain(f"{judge.hits} verdicts replayed (times {times}), {judge.misses} not on the tape")
    finish(code)


def _read(path: Path, kind: Callable[[Path], HeldT]) -> HeldT:
    try:
        return kind(path)
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}") from error
