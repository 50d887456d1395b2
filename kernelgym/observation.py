"""Observations: their space, how one is made, and how one reads as a prompt.

An observation has texts for language models and arrays for everything else. What is not known is 0
with a 0 in the mask beside it, never NaN; arrays are fresh at each call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from kernelgym.edit_types import fenced
from kernelgym.feedback import MAX_FEEDBACK, clip, render_feedback
from kernelgym.judge.verdict import Outcome, Verdict
from kernelgym.spaces import SourceText
from kernelgym.workspace import REFERENCE_FILE, Workspace

__all__ = [
    "COUNTERS",
    "INSTRUCTIONS",
    "MAX_PROMPT",
    "OUTCOMES",
    "make_observation",
    "make_space",
    "render_feedback",
    "render_prompt",
    "render_task",
    "render_workspace",
]

OUTCOMES: tuple[Outcome | None, ...] = (None, *Outcome)
"""What each value of `outcome` stands for; 0 is "no verdict yet"."""

COUNTERS = (
    "device_time",  # seconds in one call
    "launches",
    "dram_bytes_read",
    "dram_bytes_written",
    "requests",  # global loads and stores, per warp
    "sectors",  # of 32 bytes
    "sectors_per_request",
    "shared_requests",
    "bank_conflicts",
    "atomics",
    "barriers",
    "divergent_warps",
    "achieved_fraction_of_light",  # 0 to 1
    "own_share",  # of device time, 0 to 1
)
"""Names of the entries of `counters`, in order. Sums over one call of the candidate."""

MAX_TASK = 2**20
MAX_WORKSPACE = 16 * 2**20
_MAX_SPEEDUP = 1e6
_MAX_SECONDS = 1e6
_MAX_COUNT = 1e18

INSTRUCTIONS = """\
Make the PyTorch program in reference.py faster: edit model_new.py so that its class ModelNew gives
the same results as Model, through CUDA code of your own (torch.utils.cpp_extension.load_inline, or
extra .cu and .cuh files). Each turn you answer with one text that holds one or more edits:

* a whole file, in a fenced block with its path behind the fence:
  ```python model_new.py
* a passage to replace, under the path of its file; SEARCH must match exactly one place:
  model_new.py
  <<<<<<< SEARCH
  old lines
  =======
  new lines
  >>>>>>> REPLACE
* a unified diff (--- a/PATH, +++ b/PATH, @@ hunks)
* submit, on a line of its own, to end the episode

If one edit does not apply, none does.
"""

MAX_PROMPT = MAX_TASK + MAX_WORKSPACE + MAX_FEEDBACK + len(INSTRUCTIONS) + 256
"""Most characters of a prompt."""


def make_space(max_turns: int) -> spaces.Dict:
    """The observation space of an environment with that many turns."""

    def box(shape: tuple[int, ...], high: float) -> spaces.Box:
        return spaces.Box(
            np.zeros(shape, np.float32), np.full(shape, high, np.float32), dtype=np.float32
        )

    return spaces.Dict(
        {
            "task": SourceText(MAX_TASK),
            "workspace": SourceText(MAX_WORKSPACE),
            "feedback": SourceText(MAX_FEEDBACK),
            "outcome": spaces.Discrete(len(OUTCOMES)),
            "speedup": box((2, 3), _MAX_SPEEDUP),
            "runtime": box((3,), _MAX_SECONDS),
            "timing_mask": spaces.MultiBinary(3),
            "counters": box((len(COUNTERS),), _MAX_COUNT),
            "counters_mask": spaces.MultiBinary(len(COUNTERS)),
            "turn": spaces.Discrete(max_turns + 1),
        }
    )


def make_observation(
    task: str, workspace: str, feedback: str, verdict: Verdict | None, turn: int
) -> dict[str, Any]:
    """One observation.

    Args:
        task: The task, as `render_task` gives it.
        workspace: The files, as `render_workspace` gives them.
        feedback: What the last turn brought.
        verdict: The last verdict, or None.
        turn: Turns taken.
    """
    speedup, runtime, timing_mask = _timing(verdict)
    counters, counters_mask = _counters(verdict)
    return {
        "task": clip(task, MAX_TASK),
        "workspace": clip(workspace, MAX_WORKSPACE),
        "feedback": clip(feedback, MAX_FEEDBACK),
        "outcome": np.int64(0 if verdict is None else OUTCOMES.index(verdict.outcome)),
        "speedup": speedup,
        "runtime": runtime,
        "timing_mask": timing_mask,
        "counters": counters,
        "counters_mask": counters_mask,
        "turn": np.int64(turn),
    }


def render_task(task_id: str, name: str, source: str) -> str:
    """The task as an agent is shown it."""
    return f"Task {task_id}: {name}\n\n{fenced(REFERENCE_FILE, source)}"


def render_workspace(workspace: Workspace) -> str:
    """The files as fenced blocks, in the form that an edit would write them."""
    return "\n".join(fenced(path, text) for path, text in workspace.files.items())


def render_prompt(observation: dict[str, Any]) -> str:
    """The observation as one text, for a language model that keeps no history."""
    return (
        f"{INSTRUCTIONS}\n{observation['task']}\nYour files:\n\n{observation['workspace']}\n"
        f"Turns taken: {int(observation['turn'])}\n{observation['feedback']}\n"
    )


def _timing(
    verdict: Verdict | None,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.int8]]:
    speedup = np.zeros((2, 3), np.float32)
    runtime = np.zeros(3, np.float32)
    mask = np.zeros(3, np.int8)
    timing = verdict.timing if verdict is not None else None
    if timing is not None:
        for row, time in enumerate((timing.candidate, timing.eager, timing.compile)):
            if time is not None:
                runtime[row] = min(max(time.median, 0.0), _MAX_SECONDS)
                mask[row] = 1
        for row, speed in enumerate((timing.speedup_eager, timing.speedup_compile)):
            if speed is not None:
                speedup[row] = np.clip((speed.value, speed.low, speed.high), 0.0, _MAX_SPEEDUP)
    return speedup, runtime, mask


def _counters(
    verdict: Verdict | None,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]:
    known: dict[str, float] = {}
    if verdict is not None and verdict.counters is not None:
        total = verdict.counters.total
        known.update(total.values, device_time=total.time, launches=total.launches)
    if verdict is not None and verdict.timing is not None:
        light = verdict.timing.light_fraction
        if light is not None:
            known["achieved_fraction_of_light"] = light
    if verdict is not None and verdict.coverage is not None:
        known["own_share"] = verdict.coverage.own
    values = np.zeros(len(COUNTERS), np.float32)
    mask = np.zeros(len(COUNTERS), np.int8)
    for index, name in enumerate(COUNTERS):
        if name in known:
            values[index] = min(max(known[name], 0.0), _MAX_COUNT)
            mask[index] = 1
    return values, mask
