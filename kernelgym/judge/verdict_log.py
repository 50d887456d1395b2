"""Verdicts on disk, to go on where a batch was broken off: a chained log, looked up by the question."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

import msgspec
import torch

from kernelgym._version import __version__
from kernelgym.config import JudgeConfig
from kernelgym.errors import RecordError
from kernelgym.judge.chain import ChainedLog, read
from kernelgym.judge.sources import source_hash
from kernelgym.judge.verdict import Verdict, from_json, to_json
from kernelgym.tasks import Task
from kernelgym.toolchain.build import SourceFile

__all__ = ["VerdictLog", "question"]


def question(
    task: Task, files: Sequence[SourceFile], config: JudgeConfig, size: str, device_name: str
) -> dict[str, Any]:
    """All that a verdict depends on, as a record.

    Args:
        task: Its text counts, not its id alone.
        files: The candidate's.
        config: Every field counts but `device` and `size`, for which the next two stand.
        size: Which shapes.
        device_name: The kind of device, as provenance names it: verdicts of one H200 stand for
            another's.
    """
    fields = dataclasses.asdict(config)
    fields |= {"device": device_name, "size": size}
    return {
        "task": task.id,
        "task_hash": hashlib.sha256(task.text.encode("utf-8", "surrogatepass")).hexdigest(),
        "source_hash": source_hash(files),
        "config": fields,
        "kernelgym": __version__,
        "torch": str(torch.__version__),
    }


class VerdictLog:
    """Verdicts by question, in a `ChainedLog` of `{"question": …, "verdict": …}`.

    Args:
        path: The file; made when the first verdict comes.

    Raises:
        RecordError: The file is something else, or its chain is broken.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._log = ChainedLog(path)
        self._known: dict[str, Verdict] = {}
        if self._log.path.exists():
            for link in read(path):
                try:
                    asked = link.record["question"]
                    verdict = from_json(msgspec.json.encode(link.record["verdict"]))
                except (KeyError, RecordError) as error:
                    raise RecordError(f"{path}:{link.index + 1}: no verdict: {error}") from error
                self._known[_key(asked)] = verdict

    def find(self, asked: dict[str, Any]) -> Verdict | None:
        """The verdict on a question, or None."""
        return self._known.get(_key(asked))

    def append(self, asked: dict[str, Any], verdict: Verdict) -> str:
        """Keeps a verdict; returns its hash in the chain."""
        record = {"question": asked, "verdict": msgspec.json.decode(to_json(verdict))}
        digest = self._log.append(record)
        self._known[_key(asked)] = verdict
        return digest


def _key(asked: dict[str, Any]) -> str:
    return json.dumps(asked, sort_keys=True)
