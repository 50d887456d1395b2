"""Writing an entry's folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kernelgym.judge.chain import ChainedLog
from kernelgym.leaderboard.entry import EntryInfo, Environment, TaskResult, Verification
from kernelgym.leaderboard.loading import (
    ENTRY_FILE,
    ENVIRONMENT_FILE,
    SOLUTIONS,
    TRACES,
    VERDICTS_FILE,
    VERIFICATION_FILE,
    task_folder,
)
from kernelgym.leaderboard.plain_yaml import write_mapping

__all__ = ["write_entry", "write_stamp"]


def write_entry(
    folder: Path,
    info: EntryInfo,
    results: Iterable[TaskResult],
    environment: Environment,
    traces: Sequence[Path] = (),
) -> None:
    """Writes an entry into an empty folder.

    Args:
        folder: Made when missing.
        info: For `entry.yaml`.
        results: In the order in which they shall be chained.
        environment: For `environment.json`; `verdicts` and `head` are filled in here.
        traces: Files to copy.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = ChainedLog(folder / VERDICTS_FILE)
    for result in results:
        log.append(msgspec.to_builtins(result.verdict))
        for name, text in result.sources.items():
            path = folder / SOLUTIONS / task_folder(result.task) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
    log.path.chmod(0o644)  # a log is its writer's alone; this one is to be published
    environment = dataclasses.replace(environment, verdicts=len(log), head=log.head)
    _write_json(folder / ENVIRONMENT_FILE, environment)
    (folder / ENTRY_FILE).write_bytes(write_mapping(_mapping(info)))
    for trace in traces:
        target = folder / TRACES / trace.name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(trace.read_bytes())


def write_stamp(folder: Path, stamp: Verification) -> None:
    """Writes an entry's `verification.json`, in one step."""
    fresh = folder.parent / f"{folder.name}.{VERIFICATION_FILE}"
    _write_json(fresh, stamp)
    fresh.replace(folder / VERIFICATION_FILE)


def _write_json(path: Path, record: Any) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def _mapping(info: EntryInfo) -> dict[str, Any]:
    """The fields of `entry.yaml`, the version first and nothing that is empty."""
    fields: dict[str, Any] = msgspec.to_builtins(info)
    fields["budget"] = {name: n for name, n in fields["budget"].items() if n is not None}
    version = fields.pop("schema_version")
    filled = {name: value for name, value in fields.items() if value not in ("", None, (), [], {})}
    return {"schema_version": version, **_plain(filled)}


def _plain(value: Any) -> Any:
    """Tuples as lists: YAML has no others."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
