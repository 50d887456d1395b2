"""Tapes: verdicts stored once, and a judge that gives them again thousands of times a second.

A tape is a log as `kernelgym.evaluate_many(resume=…)` writes it: JSON lines, chained by hashes, each
a question (task text, sources, configuration, kind of device) and the whole verdict on it. It may
be compressed with gzip, and is then only read.

A verdict that comes from a tape says so: the `source` of a time measured once is `"replayed"`, that
of a modelled one stays `"modelled"`. A tape answers only what it was asked: any other candidate is
a `TapeMiss`, or goes to a live judge where one is given.

Example:
    >>> judge = TapeJudge("verdicts.jsonl")  # doctest: +SKIP
    >>> env = kernelgym.KernelEnv("L1/19", judge=judge)  # doctest: +SKIP
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import os
import threading
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from kernelgym.config import JudgeConfig
from kernelgym.errors import ConfigError, EnvironmentFault, RecordError, UsageError
from kernelgym.judge.chain import links
from kernelgym.judge.sources import find_task, source_hash, workspace_files
from kernelgym.judge.verdict import Measurement, Verdict, from_json
from kernelgym.judging import SupportsEvaluate, evaluate_batch
from kernelgym.tasks import Task

__all__ = ["REPLAYED", "Setting", "Tape", "TapeJudge", "TapeMiss", "replayed"]

REPLAYED = "replayed"
"""The `Measurement.source` of a time that was measured earlier and comes from a tape."""


class TapeMiss(EnvironmentFault):
    """The tape holds no verdict on that candidate, and there is no live judge to ask."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """Under what verdicts of a tape were reached.

    Attributes:
        config: How candidates were judged. Its `size` is the one that was judged at; its `device`
            is `"cpu"` for the emulator and `"cuda"` for any GPU.
        device: The device as provenance names it.
    """

    config: JudgeConfig
    device: str


_Key = tuple[str, str]  # hashes of the task's text and of the sources


class Tape:
    """The verdicts of one file, by setting, task text and sources.

    Args:
        path: A verdict log, or one compressed with gzip (`.gz`). The latest of several verdicts on
            one question counts.

    Raises:
        RecordError: The file is something else, cut off, or its chain is broken.
        OSError: It cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._verdicts: dict[Setting, dict[_Key, Verdict]] = {}
        settings: dict[str, Setting] = {}
        for link in links(_content(self.path), str(path)):
            try:
                asked = link.record["question"]
                text = repr(asked["config"])
                if text not in settings:
                    settings[text] = _setting(asked["config"])
                key = (str(asked["task_hash"]), str(asked["source_hash"]))
                verdict = from_json(msgspec.json.encode(link.record["verdict"]))
            except (KeyError, TypeError, UsageError) as error:
                raise RecordError(f"{path}:{link.index + 1}: no verdict: {error}") from error
            self._verdicts.setdefault(settings[text], {})[key] = replayed(verdict)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings that it holds verdicts of, in order of appearance."""
        return tuple(self._verdicts)

    def verdicts(self, setting: Setting) -> tuple[Verdict, ...]:
        """All verdicts of a setting, marked as replayed."""
        return tuple(self._verdicts[setting].values())

    def find(self, setting: Setting, task_hash: str, sources: str) -> Verdict | None:
        """A verdict by the SHA-256 of the task's text and of the sources, or None."""
        return self._verdicts[setting].get((task_hash, sources))


class TapeJudge:
    """A judge that answers from a tape; safe to use from several threads.

    It can stand wherever an environment asks for a judge, and in `kernelgym.evaluate_many`.

    Args:
        tape: The tape, or its path.
        config: Which of the tape's settings: all fields but `device` must agree, and `size` unless
            it is `"auto"`. It may be left out where the tape holds one setting only.
        device: The device as provenance names it, where the tape holds several.
        live: Is asked what the tape does not hold; it stays open. Its verdicts are as it gives
            them, so that each verdict says whether it is live.

    Attributes:
        hits: Verdicts given from the tape so far.
        misses: Candidates that were not on it.

    Raises:
        ConfigError: The tape holds no such setting, or several; or the live judge judges another
            way.
        RecordError: As for `Tape`.
    """

    def __init__(
        self,
        tape: Tape | str | os.PathLike[str],
        *,
        config: JudgeConfig | None = None,
        device: str | None = None,
        live: SupportsEvaluate | None = None,
    ) -> None:
        self.tape = tape if isinstance(tape, Tape) else Tape(tape)
        self.setting = _chosen(self.tape, config, device)
        self.config = self.setting.config
        self.hits = 0
        self.misses = 0
        self._live = live
        self._hashes: dict[str, str] = {}
        self._lock = threading.Lock()
        if live is not None and not _agree(self.setting, live.config, live.size):
            raise ConfigError(
                f"live: expected a judge that judges as the tape's ({self.config} at {self.size}), "
                f"got {live.config} at {live.size}"
            )

    @property
    def size(self) -> str:
        """Which shapes were judged."""
        return self.config.size

    @property
    def device(self) -> torch.device:
        """The CPU: a tape needs no other device, whatever its verdicts were reached on."""
        return torch.device("cpu")

    @property
    def device_name(self) -> str:
        """The device that the verdicts were reached on, as provenance names it."""
        return self.setting.device

    @property
    def losses(self) -> int:
        """0: there is no process to lose; see `kernelgym.Judge.losses`."""
        return 0

    def evaluate(
        self, task: Task | str, workspace: Any, *, config: JudgeConfig | None = None
    ) -> Verdict:
        """The verdict on one candidate; `task` and `workspace` as for `kernelgym.Judge.evaluate`.

        Args:
            task: The task.
            workspace: The candidate.
            config: None, or the judge's own: a tape cannot judge in another way.

        Raises:
            ConfigError: `config` is another one.
            TapeMiss: It is not on the tape, and there is no live judge.
            UsageError: The task is unknown or the workspace no workspace.
        """
        if config is not None and config != self.config:
            raise ConfigError(f"config: expected the tape's, {self.config}, got {config}")
        task = find_task(task)
        verdict = self._found(task, workspace)
        if verdict is not None:
            return verdict
        if self._live is None:
            raise self._miss(task)
        return self._live.evaluate(task, workspace)

    def evaluate_many(
        self,
        jobs: Iterable[tuple[Task | str, Any]],
        *,
        workers: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Verdict | EnvironmentFault]:
        """The verdict on each candidate, in order, or the fault that prevented one.

        Args:
            jobs: Tasks and workspaces.
            workers: For what the live judge is asked.
            progress: Called with (done, total): after what the tape holds, and at the end.
        """
        todo = [(find_task(task), workspace) for task, workspace in jobs]
        results: list[Verdict | EnvironmentFault | None] = [self._found(*job) for job in todo]
        missing = [index for index, result in enumerate(results) if result is None]
        if progress is not None:
            progress(len(todo) - len(missing), len(todo))
        if self._live is None:
            for index in missing:
                results[index] = self._miss(todo[index][0])
        else:
            asked = evaluate_batch(self._live, [todo[index] for index in missing], workers)
            for index, result in zip(missing, asked, strict=True):
                results[index] = result
        if progress is not None and missing:
            progress(len(todo), len(todo))
        return [result for result in results if result is not None]

    def close(self) -> None:
        """Does nothing: a tape holds nothing open, and the live judge is the caller's."""

    def __deepcopy__(self, memo: dict[int, Any]) -> TapeJudge:
        """The judge itself: Gymnasium copies an environment's arguments; a tape may be large."""
        return self

    def _found(self, task: Task, workspace: Any) -> Verdict | None:
        digest = self._hashes.get(task.text)
        if digest is None:
            digest = self._hashes[task.text] = _hash_of(task.text)
        sources = source_hash(workspace_files(workspace))
        verdict = self.tape.find(self.setting, digest, sources)
        with self._lock:
            self.hits += verdict is not None
            self.misses += verdict is None
        return verdict

    def _miss(self, task: Task) -> TapeMiss:
        return TapeMiss(
            f"{self.tape.path}: expected a verdict on this candidate for {task.id} "
            f"({self.setting.device}, {self.size}), got none; record it, or give a live judge"
        )


def replayed(verdict: Verdict) -> Verdict:
    """The verdict with every time that was measured marked as replayed."""

    def marked(time: Measurement | None) -> Measurement | None:
        if time is None or time.source == "modelled":
            return time
        return dataclasses.replace(time, source=REPLAYED)

    timing = verdict.timing
    if timing is not None:
        candidate = marked(timing.candidate)
        assert candidate is not None
        timing = dataclasses.replace(
            timing,
            candidate=candidate,
            eager=marked(timing.eager),
            compile=marked(timing.compile),
        )
    return dataclasses.replace(
        verdict,
        timing=timing,
        energy=marked(verdict.energy),
        energy_eager=marked(verdict.energy_eager),
    )


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"{path}: expected a tape compressed with gzip, got: {error}") from error


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _setting(fields: dict[str, Any]) -> Setting:
    """The setting that a question's `config` describes."""
    known = {field.name for field in dataclasses.fields(JudgeConfig)}
    kept = {name: value for name, value in fields.items() if name in known}
    device = str(fields["device"])
    kept["device"] = "cpu" if device == "emulator" else "cuda"
    return Setting(JudgeConfig(**kept), device)


def _agree(setting: Setting, config: JudgeConfig, size: str) -> bool:
    return config.replace(device=setting.config.device, size=size) == setting.config


def _chosen(tape: Tape, config: JudgeConfig | None, device: str | None) -> Setting:
    fits: Sequence[Setting] = [
        setting
        for setting in tape.settings
        if (device is None or setting.device == device)
        and (
            config is None
            or _agree(
                setting, config, setting.config.size if config.size == "auto" else config.size
            )
        )
    ]
    if len(fits) != 1:
        held = "; ".join(f"{setting.config} on {setting.device}" for setting in tape.settings)
        raise ConfigError(
            f"{tape.path}: expected one setting that fits, got {len(fits)}; the tape holds: "
            f"{held or 'nothing'}"
        )
    return fits[0]
