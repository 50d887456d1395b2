"""`KernelEnv`: an agent edits CUDA code, a judge says what came of it. Spaces and episode rules."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import gymnasium as gym
from gymnasium.error import ResetNeeded

from kernelgym import edits, observation, rewards
from kernelgym.config import JudgeConfig
from kernelgym.errors import ConfigError, EditError, EnvironmentFault, UsageError
from kernelgym.feedback import printable, summary
from kernelgym.judge.verdict import Verdict
from kernelgym.judging import LazyJudge, SupportsEvaluate
from kernelgym.spaces import SourceText
from kernelgym.workspace import Workspace

if TYPE_CHECKING:
    from kernelgym.tasks import Task

__all__ = ["EDIT_PENALTY", "KernelEnv", "Move", "Observation", "StepResult"]

EDIT_PENALTY = -0.1
"""What an edit that does not apply costs."""

_RENDER_MODES = ("ansi", "human")
_START = "No verdict yet. model_new.py is the reference renamed; replace its work by your kernels."

TaskReference: TypeAlias = Union[str, "os.PathLike[str]", "Task"]
Observation: TypeAlias = dict[str, Any]
StepResult: TypeAlias = tuple[Observation, float, bool, bool, dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Move:
    """An action, read but not yet judged.

    Attributes:
        workspace: The files after the action's edits; those before it when they do not apply.
        edit_error: Why the edits do not apply, or `""`.
        submits: Whether the action ends the episode.
        wants_verdict: Whether the workspace is to be judged.
    """

    workspace: Workspace
    edit_error: str
    submits: bool
    wants_verdict: bool


@dataclasses.dataclass
class _Episode:
    task: Task
    task_text: str
    workspace: Workspace
    feedback: str = _START
    turn: int = 0
    verdict: Verdict | None = None
    best: Verdict | None = None
    over: bool = False


class KernelEnv(gym.Env[Observation, str]):
    """Edit CUDA code for a KernelBench task until it is correct and fast.

    **Action**: one text with one or more edits (`kernelgym.edits`), or `submit`.
    **Observation**: a flat `Dict` of texts (`task`, `workspace`, `feedback`) and arrays (`outcome`,
    `speedup`, `runtime`, `timing_mask`, `counters`, `counters_mask`, `turn`).
    **Starting state**: `model_new.py` is the task's reference with `Model` renamed `ModelNew`.
    **Reward**: by name, from the verdict (`kernelgym.rewards`); -0.1 for an edit that does not apply.
    **Episode end**: terminates on `submit`, truncates after `max_turns`.
    **Info**: `verdict`, `best_verdict`, `task_id`, `edit_error`, `workspace`, `turn`,
    `reward_parts`.

    The full description is in `docs/environment.md`.

    Args:
        task: A task id (`"L1/19"`), a level (`"L1"`), the path of a file in KernelBench's form, a
            Task, or several of these; `reset` picks one.
        max_turns: Turns before the episode is truncated, at least 2.
        reward: One of `kernelgym.rewards.REWARDS`.
        reward_mode: `"delta"`: each verdict pays what it adds to the best; `"terminal"`: the best
            verdict pays when the episode ends.
        config: How candidates are judged. Fields may also be given as keyword arguments.
        judge: A judge to share; it stays open when the environment closes. By default one is
            made at the first verdict. Excludes `config` and its fields.
        render_mode: `"ansi"`, `"human"` or None.
        **fields: Fields of `JudgeConfig`, over those of `config`.

    Raises:
        ConfigError: An argument is not one of those accepted.
        UnknownTaskError: No task of that id.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium declares it so)
        "render_modes": list(_RENDER_MODES),
        "render_fps": 1,
    }

    def __init__(
        self,
        task: TaskReference | Sequence[TaskReference] | None = None,
        *,
        max_turns: int = 8,
        reward: str = "milestone",
        reward_mode: str = "delta",
        config: JudgeConfig | None = None,
        judge: SupportsEvaluate | None = None,
        render_mode: str | None = None,
        **fields: Any,
    ) -> None:
        if task is None:
            raise ConfigError("task: expected a task id, a level, a path or a Task, got none")
        _refuse_unknown(fields)
        if max_turns < 2:
            raise ConfigError(f"max_turns: expected at least 2, got {max_turns}")
        if reward_mode not in rewards.REWARD_MODES:
            expected = ", ".join(rewards.REWARD_MODES)
            raise ConfigError(f"reward_mode: expected one of {expected}, got {reward_mode!r}")
        if render_mode is not None and render_mode not in _RENDER_MODES:
            raise ConfigError(
                f"render_mode: expected None or one of {', '.join(_RENDER_MODES)}, "
                f"got {render_mode!r}"
            )
        if judge is not None and (config is not None or fields):
            raise ConfigError("judge: expected no config beside it, the judge has its own")
        self._owned: LazyJudge | None = None
        if judge is None:
            judge = self._owned = LazyJudge((config or JudgeConfig()).replace(**fields))
        self.judge = judge
        self.config = self.judge.config
        self.max_turns = max_turns
        self.reward = rewards.get(reward)
        self.reward_mode = reward_mode
        self.render_mode = render_mode
        self.action_space = SourceText(edits.MAX_ACTION_LENGTH)
        self.observation_space = observation.make_space(max_turns)
        self._tasks = _expand(task)
        self._episode: _Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Seeds the choice of tasks, from here on.
            options: `{"task": …}` names the task (an id, a path or a Task); without it the
                environment picks one of its own.

        Raises:
            UsageError: An option is not known.
            UnknownTaskError: No task of that id.
        """
        super().reset(seed=seed)
        options = dict(options or {})
        picked = options.pop("task", None)
        if options:
            raise UsageError(f"options: expected 'task', got {', '.join(map(repr, options))}")
        if picked is None:
            picked = self._tasks[int(self.np_random.integers(len(self._tasks)))]
        task = _load(picked)
        size = self.judge.size
        text = observation.render_task(task.id, task.name, task.source(size))
        self._episode = _Episode(task, text, Workspace.initial(task, size))
        self._show()
        return self._observe(), self._info(self._episode, "", {})

    def step(self, action: str) -> StepResult:
        """Applies an action's edits and has the result judged.

        Raises:
            EnvironmentFault: The harness failed; the episode stands as before, and the same step
                can be taken again.
            ResetNeeded: There is no episode, or it is over.
            UsageError: The action is not a text.
        """
        move = self.plan(action)
        if not move.wants_verdict:
            return self.complete(move, None)
        return self.complete(move, self.judge.evaluate(self.task, move.workspace))

    def plan(self, action: str) -> Move:
        """First half of `step`: reads and applies the edits; changes nothing.

        With `complete` it lets a caller judge the moves of many environments as one batch.

        Raises:
            ResetNeeded: There is no episode, or it is over.
            UsageError: The action is not a text.
        """
        episode = self._running()
        if not isinstance(action, str):
            raise UsageError(f"action: expected a str, got {type(action).__name__}")
        try:
            script = edits.parse(action)
            workspace = script.apply(episode.workspace)
        except EditError as error:
            return Move(
                episode.workspace, printable(str(error)), submits=False, wants_verdict=False
            )
        wants_verdict = workspace != episode.workspace if script.submits else True
        return Move(workspace, "", script.submits, wants_verdict)

    def complete(self, move: Move, verdict: Verdict | None) -> StepResult:
        """Second half of `step`: takes the verdict, and says what it is worth.

        Args:
            move: What `plan` returned, in this turn.
            verdict: The judge's verdict where the move wants one, else None.
        """
        episode = self._running()
        episode.turn += 1
        parts: dict[str, float] = {}
        if move.edit_error:
            parts["edit"] = EDIT_PENALTY
        episode.workspace = move.workspace
        if verdict is not None:
            if self.reward_mode == "delta":
                parts["verdict"] = self.reward(verdict, episode.best)
            episode.verdict = verdict
            episode.best = rewards.better(self.reward, verdict, episode.best)
        terminated = move.submits
        truncated = not terminated and episode.turn >= self.max_turns
        episode.over = terminated or truncated
        # An episode without a verdict is worth what no kernel is worth, or stopping would pay.
        if episode.over and (self.reward_mode == "terminal" or episode.best is None):
            parts["end"] = self.reward.value(episode.best)
        episode.feedback = self._feedback(episode, move, verdict)
        self._show()
        info = self._info(episode, move.edit_error, parts)
        return self._observe(), sum(parts.values()), terminated, truncated, info

    def abandon(self, fault: EnvironmentFault) -> StepResult:
        """Ends the episode, truncated and without a reward, for a fault that is not the agent's."""
        episode = self._running()
        episode.over = True
        info = self._info(episode, "", {})
        return self._observe(), 0.0, False, True, {**info, "fault": str(fault)}

    def render(self) -> str | None:
        """The episode as an agent is shown it (`ansi`), or printed as a panel (`human`)."""
        if self.render_mode == "ansi":
            self._current()
            return observation.render_prompt(self._observe())
        if self.render_mode == "human":
            self._print(self._current())
        return None

    def close(self) -> None:
        """Closes the judge, if it is the environment's own. May be called again."""
        if self._owned is not None:
            self._owned.close()
        super().close()

    @property
    def task(self) -> Task:
        """The episode's task.

        Raises:
            ResetNeeded: There is no episode yet.
        """
        return self._current().task

    def _current(self) -> _Episode:
        if self._episode is None:
            raise ResetNeeded("Cannot go on before calling env.reset()")
        return self._episode

    def _running(self) -> _Episode:
        episode = self._current()
        if episode.over:
            raise ResetNeeded("Cannot call env.step(): the episode is over; call env.reset()")
        return episode

    def _feedback(self, episode: _Episode, move: Move, verdict: Verdict | None) -> str:
        lines: list[str] = []
        if move.edit_error:
            lines.append(f"The edit was not applied: {move.edit_error}")
        if verdict is not None:
            lines.append(observation.render_feedback(verdict))
        elif move.submits:
            lines.append("Submitted.")
        if episode.best is not None and episode.best is not verdict:
            lines.append(f"Best so far: {summary(episode.best)}")
        if not episode.over:
            lines.append(f"Turns left: {self.max_turns - episode.turn}")
        return "\n".join(lines)

    def _observe(self) -> Observation:
        episode = self._current()
        return observation.make_observation(
            episode.task_text,
            observation.render_workspace(episode.workspace),
            episode.feedback,
            episode.verdict,
            episode.turn,
        )

    def _info(self, episode: _Episode, edit_error: str, parts: dict[str, float]) -> dict[str, Any]:
        return {
            "task_id": episode.task.id,
            "turn": episode.turn,
            "workspace": episode.workspace,
            "verdict": episode.verdict,
            "best_verdict": episode.best,
            "edit_error": edit_error,
            "reward_parts": {"verdict": 0.0, "edit": 0.0, "end": 0.0, **parts},
        }

    def _show(self) -> None:
        if self.render_mode == "human":
            self._print(self._current())

    def _print(self, episode: _Episode) -> None:
        from rich.console import Console
        from rich.panel import Panel
        from rich.text import Text

        title = f"{episode.task.id} {episode.task.name}, turn {episode.turn} of {self.max_turns}"
        # As Text: what a candidate printed must not be read as markup.
        Console().print(Panel(Text(episode.feedback), title=Text(title)))


def _refuse_unknown(fields: Iterable[str]) -> None:
    known = [field.name for field in dataclasses.fields(JudgeConfig)]
    own = [name for name in inspect.signature(KernelEnv).parameters if name != "fields"]
    for name in fields:
        if name not in known:
            close = difflib.get_close_matches(name, own + known, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ConfigError(
                f"expected an argument of KernelEnv ({', '.join(own)}) or a field of JudgeConfig "
                f"({', '.join(known)}), got {name!r}{hint}"
            )


def _expand(references: TaskReference | Iterable[TaskReference]) -> tuple[TaskReference, ...]:
    """The tasks to pick from, levels replaced by their tasks."""
    if isinstance(references, (str, os.PathLike)) or not isinstance(references, Iterable):
        references = (references,)
    tasks: list[TaskReference] = []
    for reference in references:
        if isinstance(reference, str) and reference[:1] == "L" and reference[1:].isdigit():
            from kernelgym.tasks import ids

            tasks.extend(ids(int(reference[1:])))
        else:
            tasks.append(reference)
    if not tasks:
        raise ConfigError("task: expected at least one task, got none")
    return tuple(tasks)


def _load(reference: TaskReference) -> Task:
    if not isinstance(reference, (str, os.PathLike)):
        return reference
    from kernelgym import tasks

    path = os.fspath(reference)
    return tasks.load_file(path) if path.endswith(".py") else tasks.get(path)
