"""Results as they exist, read for a submission: runs, KernelBench generations, JSON, workspaces.

| what | how it is recognised |
|---|---|
| a run of `kernelgym run` | a folder with `run.json`; comes with verdicts |
| KernelBench generations | a folder with `level_1_problem_19_sample_0_kernel.py`, … |
| JSON | a `.json` file: an object of task to source, or to an object of path to source |
| CUDA Agent workspaces | a folder of folders, named by task, each with `model_new.py` |

All but a run are judged when they are submitted.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernelgym import rewards, runs, traces
from kernelgym import tasks as catalogue
from kernelgym.config import JudgeConfig
from kernelgym.errors import EditError, RecordError, UsageError
from kernelgym.judge.verdict import Verdict
from kernelgym.leaderboard.entry import TaskResult
from kernelgym.workspace import MAIN_FILE, MAX_FILE_BYTES, REFERENCE_FILE, SUFFIXES, Workspace

__all__ = ["Imported", "read_results"]

_GENERATION = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
_TASK_NAME = re.compile(r"(?:L|level[ _-]?)?(\d)(?:[/_ -]|_problem_)0*(\d{1,3})(?:_.*)?", re.I)
_MAX_JSON_BYTES = 256 * 2**20
# Of CUDA Agent's workspaces: the reference, and tools that are not the candidate's.
_TOOLS = ("model.py", REFERENCE_FILE)
_TOOL_FOLDERS = ("utils", "build", "__pycache__")


@dataclasses.dataclass(frozen=True)
class Imported:
    """Results, read.

    Attributes:
        source: `"run"`, `"generations"`, `"json"` or `"workspaces"`.
        candidates: Task id to its candidates; more than one where there are samples.
        results: Of a run: each task's best verdict, with its files.
        config: Of a run: how all verdicts were reached.
        agent: Of a run: the agent's name.
        versions: Of a run: what it depends on.
        verdicts: Verdicts that each task is known to have taken; a run's are exact, elsewhere it is
            the number of samples.
        traces: Files to keep with the entry.
    """

    source: str
    candidates: Mapping[str, tuple[Workspace, ...]] = dataclasses.field(default_factory=dict)
    results: tuple[TaskResult, ...] = ()
    config: JudgeConfig | None = None
    agent: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    verdicts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    traces: tuple[Path, ...] = ()


def read_results(path: str | os.PathLike[str]) -> Imported:
    """Reads results in any of the forms that this module knows.

    Raises:
        UsageError: It is none of them, or something in it is not as it should be; names it.
    """
    root = Path(path)
    if root.is_symlink() or not root.exists():
        raise UsageError(f"expected a folder or a .json file of results, got {root}")
    if root.is_file() and root.suffix == ".json":
        return _from_json(root)
    if root.is_dir() and (root / runs.RUN_FILE).is_file():
        return _from_run(root)
    if root.is_dir():
        if any(_GENERATION.fullmatch(item.name) for item in root.iterdir()):
            return _from_generations(root)
        if any((item / MAIN_FILE).is_file() for item in root.iterdir()):
            return _from_workspaces(root)
    raise UsageError(
        f"{root}: expected a run's folder (run.json), KernelBench generations "
        "(level_1_problem_19_sample_0_kernel.py), a .json file of task to source, or workspaces "
        f"named by task (L1-019/{MAIN_FILE})"
    )


def _from_run(root: Path) -> Imported:
    plan = runs.read_plan(root)
    trace = root / runs.TRACE_FILE
    if plan is None or not trace.is_file():
        raise UsageError(f"{root}: expected {runs.RUN_FILE} and {runs.TRACE_FILE}, got not both")
    reward = rewards.get(plan.reward)
    results: dict[str, TaskResult] = {}
    finished: set[str] = set()
    counts: Counter[str] = Counter()
    for episode in traces.read(trace):
        task = _known_task(episode.start.task, trace)
        counts[task] += sum(step.verdict is not None for step in episode.steps)
        if episode.start.config != plan.config:
            raise RecordError(
                f"{trace}: expected all of it judged as {runs.RUN_FILE} says, got another "
                f"configuration for {task}"
            )
        if not episode.finished:
            continue
        if task in finished:
            raise RecordError(f"{trace}: expected one finished episode a task, got two of {task}")
        finished.add(task)
        result = _best(episode, task, reward)
        if result is not None:
            results[task] = result
    if not results:
        raise UsageError(f"{root}: expected a run with verdicts, got none")
    return Imported(
        source="run",
        results=tuple(results.values()),
        config=plan.config,
        agent=plan.agent,
        versions=plan.versions,
        verdicts=counts,
        traces=(trace,),
    )


def _best(episode: traces.Episode, task: str, reward: rewards.Reward) -> TaskResult | None:
    """The best verdict of an episode with its files; None where nothing was changed or judged."""
    judged = [step for step in episode.steps if step.verdict is not None]
    best: Verdict | None = None
    for step in judged:
        assert step.verdict is not None
        if step.workspace_hash != episode.start.workspace_hash:
            best = rewards.better(reward, step.verdict, best)
    if best is None:
        return None
    start = Workspace.initial(catalogue.get(task), best.provenance.size)
    for workspace in traces.replay(episode, start):
        if workspace.hash == best.source_hash:
            return TaskResult(task, best, workspace.files)
    raise RecordError(f"{task}: expected the files of its best verdict in the trace, got others")


def _from_generations(root: Path) -> Imported:
    found: dict[str, dict[int, Workspace]] = {}
    for path in sorted(root.iterdir()):
        match = _GENERATION.fullmatch(path.name)
        if match is None:
            continue
        task = _known_task(f"L{match[1]}/{match[2]}", path)
        samples = found.setdefault(task, {})
        if int(match[3]) in samples:
            raise UsageError(f"{path}: expected each sample once, got {task} again")
        samples[int(match[3])] = _workspace({MAIN_FILE: _text(path)}, path)
    candidates = {task: tuple(of[n] for n in sorted(of)) for task, of in found.items()}
    return _unjudged("generations", candidates)


def _from_json(path: Path) -> Imported:
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise UsageError(f"{path}: expected at most {_MAX_JSON_BYTES} bytes")
    try:
        content = json.loads(path.read_bytes(), object_pairs_hook=_once(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{path}: expected JSON, got: {error}") from error
    if not isinstance(content, dict) or not content:
        raise UsageError(f"{path}: expected an object of task to source")
    candidates: dict[str, tuple[Workspace, ...]] = {}
    for name, source in content.items():
        task = _known_task(name, path)
        if task in candidates:
            raise UsageError(f"{path}: expected each task once, got {task} again as {name!r}")
        files = {MAIN_FILE: source} if isinstance(source, str) else source
        if not isinstance(files, dict) or not all(isinstance(t, str) for t in files.values()):
            raise UsageError(f"{path}: {name}: expected source, or an object of path to source")
        candidates[task] = (_workspace(files, path),)
    return _unjudged("json", candidates)


def _from_workspaces(root: Path) -> Imported:
    candidates: dict[str, tuple[Workspace, ...]] = {}
    for folder in sorted(root.iterdir()):
        if not (folder / MAIN_FILE).is_file():
            continue
        task = _known_task(folder.name, folder)
        if task in candidates:
            raise UsageError(f"{folder}: expected each task once, got {task} again")
        files = {}
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            tool = str(inside) in _TOOLS or inside.parts[0] in _TOOL_FOLDERS
            if tool or any(part.startswith(".") for part in inside.parts):
                continue
            if path.is_symlink():
                raise UsageError(f"{path}: expected a plain file or folder, got a link")
            if path.is_file() and path.suffix in SUFFIXES:
                files[inside.as_posix()] = _text(path)
        candidates[task] = (_workspace(files, folder),)
    return _unjudged("workspaces", candidates)


def _unjudged(source: str, candidates: Mapping[str, tuple[Workspace, ...]]) -> Imported:
    counts = {task: len(samples) for task, samples in candidates.items()}
    return Imported(source, candidates, verdicts=counts)


def _known_task(name: str, where: Path) -> str:
    match = _TASK_NAME.fullmatch(name)
    task = f"L{match[1]}/{int(match[2])}" if match else name
    if task not in catalogue.ids():
        raise UsageError(f"{where}: expected a task of KernelBench such as L1/19, got {name!r}")
    return task


def _workspace(files: Mapping[str, str], where: Path) -> Workspace:
    if MAIN_FILE not in files:
        raise UsageError(f"{where}: expected {MAIN_FILE} among its files")
    try:
        return Workspace(files)
    except EditError as error:
        raise UsageError(f"{where}: {error}") from error


def _text(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        raise UsageError(f"{path}: expected a plain file, got a link or something else")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise UsageError(f"{path}: expected at most {MAX_FILE_BYTES} bytes")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: expected UTF-8, got: {error}") from error


def _once(path: Path) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Makes objects, and refuses those that name a key twice."""

    def make(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(name for name, count in Counter(n for n, _ in pairs).items() if count > 1)
            raise UsageError(f"{path}: expected each key once, got {twice!r} again")
        return found

    return make
