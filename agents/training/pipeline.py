"""Running stages: folders, logs, checkpoints and manifests.

::

    OUT/1_sft/log.jsonl                what each iteration saw
              episodes.jsonl           what an imitating or regressing stage learns from
              checkpoint.safetensors   weights, optimisers, and how far it is
              manifest.json            when it has ended: tasks, verdicts, versions, evaluation
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from kernelgym import runs
from kernelgym.agents.training.checkpoint import Learner, load, save
from kernelgym.agents.training.config import STAGES, TrainingConfig
from kernelgym.agents.training.evaluation import Evaluation, evaluate
from kernelgym.agents.training.rollout import Arena, Episode
from kernelgym.agents.training.script import KERNELS, Schedules, ScriptError
from kernelgym.agents.training.stages import Stage, draw_seed, stage_of
from kernelgym.errors import RecordError, TaskFormatError, UsageError
from kernelgym.judging import LazyJudge, SupportsEvaluate
from kernelgym.tape import TapeJudge
from kernelgym.tasks import Task
from kernelgym.tasks.records import read_tasks
from kernelgym.tasks.synthesis import HELD_OUT, TRAIN

__all__ = ["Manifest", "Setup", "expressible", "read_manifest", "run_all", "run_stage", "setup"]

CHECKPOINT, LOG, EPISODES, MANIFEST = (
    "checkpoint.safetensors",
    "log.jsonl",
    "episodes.jsonl",
    "manifest.json",
)
_ALARMS: dict[str, Callable[[float], bool]] = {
    "entropy": lambda value: value < 0.01,  # the policy has stopped to try anything
    "mismatch": lambda value: value > 0.01,  # player and learner disagree on probabilities
    "cheats": lambda value: value > 0.05,
    "faults": lambda value: value > 0,
}


@dataclasses.dataclass(frozen=True)
class Setup:
    """What all stages share: the judge, and the arenas of both splits."""

    judge: SupportsEvaluate
    train: Arena
    heldout: Arena


@dataclasses.dataclass(frozen=True)
class Manifest:
    """How a stage's checkpoint came about.

    Attributes:
        stage: Its name.
        config: The whole configuration.
        train: Ids of the tasks trained on.
        heldout: Ids of the tasks evaluated on.
        tasks_sha256: Of the texts of both, in order.
        tape_sha256: Of the tape, or `""`.
        verdicts: Verdicts used up to this stage's end, without evaluations.
        replayed: Verdicts that came from the tape in this process, evaluations included.
        live: Verdicts that did not.
        times: What evaluated times are: `modelled`, `replayed`, `measured`.
        versions: (name, version) pairs.
        checkpoint_sha256: Of the checkpoint.
        evaluation: Of the held-out tasks, at the stage's end.
    """

    stage: str
    config: TrainingConfig
    train: tuple[str, ...]
    heldout: tuple[str, ...]
    tasks_sha256: str
    tape_sha256: str
    verdicts: int
    replayed: int
    live: int
    times: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    checkpoint_sha256: str
    evaluation: Evaluation


@contextlib.contextmanager
def setup(config: TrainingConfig) -> Iterator[Setup]:
    """Opens the judge and both arenas; closes the judge.

    Raises:
        UsageError: A file cannot be read, or a split has no task that scripts can express.
    """
    live = LazyJudge(config.judge) if config.live else None
    judge: SupportsEvaluate
    try:
        if config.tape is not None:
            judge = TapeJudge(config.tape, config=config.judge, live=live)
        else:
            assert live is not None, "a configuration has a tape or a live judge"
            judge = live
        arenas = []
        for split in (TRAIN, HELD_OUT):
            tasks = expressible(read_tasks(config.tasks, split), judge.size, config.kernels)
            if not tasks:
                raise UsageError(f"{config.tasks}: expected tasks of {split} to schedule, got none")
            arenas.append(Arena(tasks, judge, config.reward))
        yield Setup(judge, *arenas)
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from error
    finally:
        if live is not None:
            live.close()


def expressible(tasks: tuple[Task, ...], size: str, kernels: int = len(KERNELS)) -> list[Task]:
    """The tasks whose programs can be compiled, to at most so many kernels."""
    found = []
    for task in tasks:
        try:
            schedules = Schedules.of(task.source(size))
        except (ScriptError, TaskFormatError, UsageError):
            continue  # no kernel for one of its operators, or too many kernels
        if len(schedules.kernels) <= kernels:
            found.append(task)
    return found


def run_all(config: TrainingConfig, out: Path, shared: Setup) -> list[Manifest]:
    """Runs the configured stages in order; those that have ended are passed over."""
    return [run_stage(name, config, out, shared) for name in STAGES if name in config.stages]


def run_stage(
    name: str,
    config: TrainingConfig,
    out: Path,
    shared: Setup,
    on_iteration: Callable[[dict[str, Any]], None] = lambda line: None,
) -> Manifest:
    """Runs a stage to its end, from where an earlier call left it.

    It starts from the last earlier stage's checkpoint, or from untrained networks.

    Args:
        name: One of `STAGES`.
        config: The training.
        out: Its folder.
        shared: Judge and arenas.
        on_iteration: Called with each line of the log once it and the checkpoint are written.

    Raises:
        UsageError: The folder is of another configuration, or an earlier stage has not ended.
        RecordError: A file in it is spoilt.
    """
    folder = _folder(out, name)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / MANIFEST).exists():
        manifest = read_manifest(folder)
        _expect_same(folder, manifest.config, config)
        return manifest
    stage = stage_of(name, config)
    learner = _begun(out, stage, config)
    episodes = _episodes(folder, stage, learner, shared.train)
    log = folder / LOG
    _cut(log, learner.state.iteration)
    with _tensorboard(folder) as board, log.open("a", encoding="utf-8") as file:
        while learner.state.iteration < stage.iterations:
            start = time.perf_counter()
            metrics = stage.step(learner, shared.train, episodes, learner.state.iteration)
            learner.state.verdicts += int(metrics.pop("verdicts", 0))
            learner.state.iteration += 1
            line = {
                "stage": name,
                "iteration": learner.state.iteration,
                "verdicts": learner.state.verdicts,
                **metrics,
                "alarms": [m for m, alarm in _ALARMS.items() if m in metrics and alarm(metrics[m])],
                "seconds": round(time.perf_counter() - start, 3),
            }
            # The log first: a kill in between leaves a line too much, which the next run cuts.
            file.write(json.dumps(line, allow_nan=False) + "\n")
            file.flush()
            save(learner, folder / CHECKPOINT)
            board(metrics, learner.state.iteration)
            on_iteration(line)
    return _finish(folder, stage, learner, config, shared)


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """The manifest in a stage's folder.

    Raises:
        RecordError: It cannot be read.
    """
    path = Path(folder) / MANIFEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise RecordError(f"{path}: expected a stage's manifest, got: {error}") from error


def _folder(out: Path, name: str) -> Path:
    return out / f"{STAGES.index(name) + 1}_{name}"


def _begun(out: Path, stage: Stage, config: TrainingConfig) -> Learner:
    """The learner as the stage left it, or as the stage before it ended."""
    folder = _folder(out, stage.name)
    plan = folder / "config.json"
    if plan.exists():
        _expect_same(folder, msgspec.json.decode(plan.read_bytes(), type=TrainingConfig), config)
    plan.write_bytes(msgspec.json.format(msgspec.json.encode(config), indent=1) + b"\n")
    if (folder / CHECKPOINT).exists():
        return load(folder / CHECKPOINT, stage.lr, stage.critic_lr)
    earlier = [s for s in STAGES[: STAGES.index(stage.name)] if s in config.stages]
    if earlier:
        before = _folder(out, earlier[-1])
        if not (before / MANIFEST).exists():
            raise UsageError(f"{stage.name}: expected {earlier[-1]} to have ended; run it first")
        learner = load(before / CHECKPOINT)
    else:
        learner = Learner(config.network, config.allowed, config.turns, config.seed)
    learner.start_stage(stage.name, stage.lr, stage.critic_lr)
    return learner


def _episodes(folder: Path, stage: Stage, learner: Learner, arena: Arena) -> list[Episode]:
    """What the stage learns from: made once, for a live judge would say something else again."""
    if stage.prepare is None:
        return []
    path = folder / EPISODES
    if not path.exists():
        episodes, verdicts = stage.prepare(learner, arena)
        lines = [msgspec.json.encode({"verdicts": verdicts})]
        lines += [msgspec.json.encode(dataclasses.replace(e, best=None)) for e in episodes]
        fresh = path.with_name(path.name + ".new")
        fresh.write_bytes(b"\n".join(lines) + b"\n")
        fresh.replace(path)
    try:
        head, *rest = path.read_bytes().splitlines()
        if learner.state.iteration == 0:
            learner.state.verdicts += int(json.loads(head)["verdicts"])
        return [msgspec.json.decode(line, type=Episode) for line in rest]
    except (ValueError, KeyError, msgspec.DecodeError) as error:
        raise RecordError(f"{path}: expected episodes, got: {error}") from error


def _cut(log: Path, lines: int) -> None:
    """Cuts a log to what the checkpoint knows of."""
    if log.exists():
        kept = log.read_bytes().splitlines(keepends=True)[:lines]
        log.write_bytes(b"".join(kept))


def _finish(
    folder: Path, stage: Stage, learner: Learner, config: TrainingConfig, shared: Setup
) -> Manifest:
    learner.state.done = True
    save(learner, folder / CHECKPOINT)
    evaluation = evaluate(
        learner.actor,
        shared.heldout,
        config.turns,
        config.evaluate_episodes,
        allowed=config.allowed,
        seed=draw_seed(config.seed, "evaluation", 0),
    )
    judge = shared.judge
    tasks = (*shared.train.tasks, *shared.heldout.tasks)
    manifest = Manifest(
        stage=stage.name,
        config=config,
        train=tuple(task.id for task in shared.train.tasks),
        heldout=tuple(task.id for task in shared.heldout.tasks),
        tasks_sha256=hashlib.sha256("\0".join(task.text for task in tasks).encode()).hexdigest(),
        tape_sha256=_sha256(Path(config.tape)) if config.tape is not None else "",
        verdicts=learner.state.verdicts,
        replayed=judge.hits if isinstance(judge, TapeJudge) else 0,
        live=judge.misses if isinstance(judge, TapeJudge) else learner.state.verdicts,
        times=evaluation.times,
        versions=runs.versions(),
        checkpoint_sha256=_sha256(folder / CHECKPOINT),
        evaluation=evaluation,
    )
    fresh = folder / (MANIFEST + ".new")
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    fresh.replace(folder / MANIFEST)
    return manifest


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _expect_same(folder: Path, before: TrainingConfig, now: TrainingConfig) -> None:
    for field in dataclasses.fields(TrainingConfig):
        old, new = getattr(before, field.name), getattr(now, field.name)
        if old != new and field.name not in ("tasks", "tape"):
            raise UsageError(
                f"{folder} holds another training: expected {field.name} {old}, got {new}"
            )


@contextlib.contextmanager
def _tensorboard(folder: Path) -> Iterator[Callable[[dict[str, float], int], None]]:
    """Writes metrics for TensorBoard where that is installed."""
    if importlib.util.find_spec("tensorboard") is None:
        yield lambda metrics, iteration: None
        return
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder / "tensorboard"))

    def write(metrics: dict[str, float], iteration: int) -> None:
        for name, value in metrics.items():
            writer.add_scalar(name, value, iteration)

    try:
        yield write
    finally:
        writer.close()
