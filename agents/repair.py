"""An agent that repairs: it makes the small change that a verdict suggests, and keeps what helps.

It starts from the files that it is given (or from the environment's), has them judged, and then tries
one change a turn, the likeliest first (`kernelgym.agents.fixes`). What gets the kernel further, from
not compiling to running to right, is kept and the search goes on from there; what does not is undone.
It writes no kernels: it is for what another agent, or a person, has nearly finished.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from kernelgym.agents.fixes import Fix, propose
from kernelgym.edits import Submit, WriteFile, render
from kernelgym.errors import UsageError
from kernelgym.judge.verdict import Outcome, Verdict
from kernelgym.workspace import MAIN_FILE
from kernelgym.workspace_folder import read_candidate

__all__ = ["Arguments", "Repair"]

# How far a candidate gets. Within an outcome, fewer problems and fewer wrong elements are further.
_STAGES = (
    Outcome.COMPILE_ERROR,
    Outcome.RUNTIME_ERROR,
    Outcome.TIMEOUT,
    Outcome.INCORRECT,
    Outcome.CORRECT,
)


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What `Repair` can be told.

    Attributes:
        start: A file, or a folder with `model_new.py`, to start from; `""`: the environment's files.
        patience: Changes tried in a row without getting further, after which it submits.
    """

    start: str = ""
    patience: int = 32

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.patience < 1:
            raise UsageError(f"patience: expected at least 1, got {self.patience}")


@dataclasses.dataclass
class _State:
    """One episode: the furthest files so far, and what else to try on them."""

    files: dict[str, str]
    verdict: Verdict | None = None
    queue: Iterator[Fix] = dataclasses.field(default_factory=lambda: iter(()))
    trying: Fix | None = None
    failures: int = 0
    tried: set[tuple[str, str]] = dataclasses.field(default_factory=set)


class Repair:
    """Repairs a candidate.

    Args:
        arguments: All arguments as one record.
        **fields: Single fields of `Arguments`, over those of `arguments`.

    Raises:
        UsageError: `start` is no candidate.
    """

    def __init__(self, arguments: Arguments | None = None, **fields: Any) -> None:
        self.arguments = dataclasses.replace(arguments or Arguments(), **fields)
        self._start: Mapping[str, str] | None = None
        if self.arguments.start:
            self._start = read_candidate([self.arguments.start]).workspace.files
        self._state: _State | None = None

    @property
    def last_change(self) -> str:
        """What the last text changed, in a few words; `""` for nothing."""
        trying = self._state.trying if self._state is not None else None
        return f"{trying.file}:{trying.line}: {trying.says}" if trying is not None else ""

    def reset(self, info: dict[str, Any]) -> None:
        """Forgets the last episode."""
        self._state = None

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        """The files to start from, then one change after another; `submit` when it is right."""
        if self._state is None:
            files = dict(info["workspace"].files if self._start is None else self._start)
            self._state = _State(files)
            return _written(files)
        state = self._state
        if info["edit_error"]:
            raise UsageError(f"repair: its own edit was refused: {info['edit_error']}")
        self._learn(state, info["verdict"], info["workspace"].reference)
        if state.verdict is not None and state.verdict.correct:
            return render(Submit())
        state.trying = next(state.queue, None)
        if state.trying is None or state.failures >= self.arguments.patience:
            return _written(state.files, submit=True)
        state.tried.add((state.trying.file, state.trying.text))
        return _written({**state.files, state.trying.file: state.trying.text})

    def _learn(self, state: _State, verdict: Verdict, reference: str) -> None:
        """Keeps what was tried if it gets further."""
        if state.verdict is not None and not _further(verdict, state.verdict):
            state.failures += 1
            return
        if state.trying is not None:
            state.files[state.trying.file] = state.trying.text
        state.verdict, state.failures = verdict, 0
        fixes = propose(state.files, verdict, reference)
        state.queue = iter([fix for fix in fixes if (fix.file, fix.text) not in state.tried])


def _further(verdict: Verdict, before: Verdict) -> bool:
    return _progress(verdict) > _progress(before)


def _progress(verdict: Verdict) -> tuple[int, float, int]:
    """How far a candidate got; greater is further."""
    stage = _STAGES.index(verdict.outcome) if verdict.outcome in _STAGES else -1
    errors = sum(one.severity == "error" for one in verdict.diagnostics)
    check = verdict.correctness
    wrong = check.bad_elements / check.elements if check is not None and check.elements else 1.0
    return stage, -wrong, -errors


def _written(files: Mapping[str, str], *, submit: bool = False) -> str:
    edits = [WriteFile(path, text) for path, text in files.items()]
    edits.sort(key=lambda edit: edit.path != MAIN_FILE)
    return render(*edits, *([Submit()] if submit else []))
