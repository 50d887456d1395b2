"""`python -m kernelgym.agents.training`: the stages, and a tape for them."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelgym.agents.training.config import STAGES, TrainingConfig, read_config
from kernelgym.agents.training.pipeline import expressible, run_stage, setup
from kernelgym.agents.training.script import Schedules
from kernelgym.cli.exits import Exit, finish, guarded
from kernelgym.errors import EnvironmentFault
from kernelgym.judge.pool import JudgePool
from kernelgym.tasks.records import read_tasks

app = typer.Typer(
    help="Train the small policy; see docs/training.md.", pretty_exceptions_enable=False
)


def _command(stage: str) -> Callable[..., None]:
    """The command that runs a stage, or all of them."""

    def run(
        config: Annotated[Path, typer.Option(help="The configuration: YAML or JSON.")],
        out: Annotated[Path, typer.Option(help="Folder of the training; one that exists goes on.")],
    ) -> None:
        training = read_config(config)
        with setup(training) as shared:
            for name in training.stages if stage == "all" else (stage,):
                result = run_stage(name, training, out, shared, _tell).evaluation
                sys.stdout.write(
                    f"{name}: held-out reward {result.reward:.3f}, passed {result.passed:.3f}, "
                    f"faster than eager {result.faster_eager:.3f}, than compile "
                    f"{result.faster_compile:.3f} ({', '.join(result.times) or 'no'} times)\n"
                )

    run.__doc__ = "Run the configured stages in turn." if stage == "all" else f"Run {stage}."
    return run


for _stage in (*STAGES, "all"):
    app.command(_stage)(guarded(_command(_stage)))


@app.command()
@guarded
def record(
    config: Annotated[Path, typer.Option(help="The configuration: YAML or JSON.")],
    out: Annotated[Path, typer.Option(help="The tape; one that exists is gone on with.")],
    limit: Annotated[int, typer.Option(help="Most schedules of a task.", min=1)] = 200,
    workers: Annotated[int | None, typer.Option(help="Compilations at a time.")] = None,
) -> None:
    """Judge the schedules of all tasks, live, onto a tape.

    Of a task with more than --limit, the default and a sample drawn by the seed are judged.
    """
    training: TrainingConfig = read_config(config)
    with JudgePool(training.judge, workers=workers) as pool:
        jobs: list[tuple[Any, str]] = []
        for task in expressible(read_tasks(training.tasks), pool.size, training.kernels):
            schedules = Schedules.of(task.source(pool.size))
            space = list(schedules.space(training.assignments))
            if len(space) > limit:
                rng = random.Random(f"{training.seed} {task.id}")
                space = [space[0], *rng.sample(space[1:], limit - 1)]
            jobs += [(task, schedules.text(schedule)) for schedule in space]
        results = pool.evaluate_many(jobs, resume=out, progress=_count)
    faults = [result for result in results if isinstance(result, EnvironmentFault)]
    sys.stdout.write(f"{out}: {len(results) - len(faults)} of {len(results)} judged\n")
    for fault in faults[:5]:
        sys.stderr.write(f"{fault}\n")
    finish(Exit.FAULT if faults else Exit.CORRECT)


def _tell(line: dict[str, Any]) -> None:
    sys.stderr.write(json.dumps(line) + "\n")


def _count(done: int, total: int) -> None:
    if done % 50 == 0 or done == total:
        sys.stderr.write(f"{done} of {total}\n")


if __name__ == "__main__":
    app()
