"""Measured times of the references, stored: what they were, on which card, under which torch.

A file of the store has one record a line (JSON), sorted, so that two versions of it can be
compared. kernelgym ships files for some cards (`judge/data/baselines`); a user's own, made by
`kernelgym baselines build`, lie in the user's data folder and come first. A stored time is not used
as it stands: the judge measures eager beside each candidate, and takes from the store the ratio of
`torch.compile` to eager, which heat, clocks and drivers change far less.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.resources
import os
import pathlib
import re
import tempfile
from collections.abc import Iterable, Sequence

import msgspec
import platformdirs

from kernelgym.errors import RecordError
from kernelgym.judge.verdict import Speedup
from kernelgym.tasks import Task

__all__ = [
    "KINDS",
    "BaselineKey",
    "BaselineRecord",
    "BaselineStore",
    "Found",
    "Setting",
    "device_slug",
    "encode_record",
    "read_records",
    "shipped",
    "source_digest",
    "user_folder",
    "write_records",
]

KINDS = ("eager", "compile", "compile_max_autotune")
"""What is stored: eager mode, `torch.compile`, and that with `mode="max-autotune-no-cudagraphs"`."""

_DIGEST = 16


@dataclasses.dataclass(frozen=True, order=True)
class BaselineKey:
    """What a record is of.

    Attributes:
        task: Task id.
        size: `"small"`, `"medium"` or `"full"`.
        mode: `"train"` or `"eval"`.
        precision: The precision class.
        kind: One of `KINDS`.
    """

    task: str
    size: str
    mode: str
    precision: str
    kind: str


@dataclasses.dataclass(frozen=True)
class Setting:
    """The card and the software that a time belongs to."""

    device: str
    driver: str = ""
    cuda: str = ""
    torch: str = ""
    triton: str = ""


@dataclasses.dataclass(frozen=True)
class BaselineRecord:
    """One reference's time.

    Attributes:
        task: Task id.
        size: The preset.
        mode: `"train"` or `"eval"`.
        precision: The precision class.
        kind: One of `KINDS`.
        source: Digest of the program that ran; see `source_digest`.
        setting: Card and software.
        date: Day of the measurement, ISO 8601.
        kernelgym: The version that measured.
        median: Seconds a call; None where it did not run.
        low: Lower end of the median's 95 % interval.
        high: Upper end.
        batches: Median microseconds of each batch, in order of time; those of one index of a task's
            kinds were neighbours.
        ratio: This kind's time over eager's; None for eager itself.
        peak_memory: Device bytes that one call takes at most, beyond inputs and weights.
        compile_seconds: What the first call took, with the compilers' caches warm.
        flops: FLOPs of the reference's products and convolutions.
        min_bytes: Bytes of its inputs, weights and outputs.
        convolution_flops: Those of `flops` that are convolutions'.
        clock: Median SM clock during the batches, in MHz, where read.
        error: Why there is no time, such as `"out of memory"`.
        needed: Bytes that the call holds at a time at the least, where memory was short.
    """

    task: str
    size: str
    mode: str
    precision: str
    kind: str
    source: str
    setting: Setting
    date: str
    kernelgym: str
    median: float | None = None
    low: float | None = None
    high: float | None = None
    batches: tuple[float, ...] = ()
    ratio: Speedup | None = None
    peak_memory: int | None = None
    compile_seconds: float | None = None
    flops: int = 0
    min_bytes: int = 0
    convolution_flops: int = 0
    clock: float | None = None
    error: str = ""
    needed: int | None = None

    @property
    def key(self) -> BaselineKey:
        """What the record is of."""
        return BaselineKey(self.task, self.size, self.mode, self.precision, self.kind)


@dataclasses.dataclass(frozen=True)
class Found:
    """What the store has for a key.

    Attributes:
        record: The record to use, or None.
        why: Why there is none, for a reader; `""` where there is one.
        note: In what the record's setting differs from the present one without ruling it out.
        failed: Whether there is none because it is known not to run here.
    """

    record: BaselineRecord | None
    why: str = ""
    note: str = ""
    failed: bool = False


class BaselineStore:
    """The records of one card.

    Args:
        records: In order of precedence.
    """

    def __init__(self, records: Iterable[BaselineRecord]) -> None:
        self._records: dict[BaselineKey, list[BaselineRecord]] = {}
        for record in records:
            self._records.setdefault(record.key, []).append(record)

    @classmethod
    def load(cls, device: str, folder: pathlib.Path | None = None) -> BaselineStore:
        """The user's records of a card, then those that kernelgym ships.

        Args:
            device: The card's name, as its driver gives it.
            folder: The user's folder; by default `user_folder()`.

        Raises:
            RecordError: A file is not one of the store's.
        """
        own = (folder or user_folder()) / f"{device_slug(device)}.jsonl"
        records = read_records(own) if own.is_file() else []
        return cls([*records, *shipped(device)])

    def __len__(self) -> int:
        return sum(map(len, self._records.values()))

    @property
    def records(self) -> tuple[BaselineRecord, ...]:
        """All records, sorted by key."""
        return tuple(record for key in sorted(self._records) for record in self._records[key])

    def find(self, key: BaselineKey, source: str, setting: Setting) -> Found:
        """Looks for a record that fits.

        It must be of the same program and card, and of the same major and minor version of torch,
        whose compiler it speaks for. Another driver, CUDA or Triton is let pass and noted.

        Args:
            key: What is looked for.
            source: `source_digest` of the task at that size.
            setting: The present card and software.
        """
        candidates = self._records.get(key, [])
        if not candidates:
            return Found(None, f"no stored {key.kind} of {key.task} at {key.size}, {key.mode} mode")
        reasons = []
        for record in candidates:
            why = _misfit(record, source, setting)
            if not why and record.median is None:
                return Found(None, record.error, failed=True)
            if not why:
                return Found(record, note=_difference(record.setting, setting))
            reasons.append(why)
        return Found(None, f"the stored {key.kind} does not fit: {reasons[0]}")


def source_digest(task: Task, size: str) -> str:
    """Names the program of a task at one size by its content."""
    return hashlib.sha256(task.source(size).encode()).hexdigest()[:_DIGEST]


def device_slug(device: str) -> str:
    """A card's name as the name of a file: `"NVIDIA H200"` → `"nvidia_h200"`."""
    return re.sub(r"[^a-z0-9]+", "_", device.lower()).strip("_")


def user_folder() -> pathlib.Path:
    """Where a user's own records lie."""
    return pathlib.Path(platformdirs.user_data_dir("kernelgym")) / "baselines"


def shipped(device: str) -> list[BaselineRecord]:
    """The records of a card that come with kernelgym.

    Raises:
        RecordError: The file is not one of the store's.
    """
    name = f"{device_slug(device)}.jsonl"
    file = importlib.resources.files("kernelgym.judge") / "data" / "baselines" / name
    return _decode(file.read_bytes(), name) if file.is_file() else []


def shipped_devices() -> tuple[str, ...]:
    """The cards that records come with kernelgym of, as verdicts name them.

    Raises:
        RecordError: A file is not one of the store's.
    """
    folder = importlib.resources.files("kernelgym.judge") / "data" / "baselines"
    files = folder.iterdir() if folder.is_dir() else ()
    found = {
        record.setting.device
        for file in files
        if file.name.endswith(".jsonl")
        for record in _decode(file.read_bytes(), file.name)
    }
    return tuple(sorted(found))


def read_records(path: str | os.PathLike[str]) -> list[BaselineRecord]:
    """Reads a file of the store. A last line that was cut off by a kill is left out.

    Raises:
        RecordError: Another line is not a record.
    """
    return _decode(pathlib.Path(path).read_bytes(), str(path))


def encode_record(record: BaselineRecord) -> bytes:
    """One line; what is not known is left out."""
    fields = {
        name: value
        for name, value in msgspec.to_builtins(record).items()
        if value is not None and value not in ("", ()) and value != []
    }
    return msgspec.json.encode(fields) + b"\n"


def write_records(path: str | os.PathLike[str], records: Sequence[BaselineRecord]) -> None:
    """Writes a file of the store, sorted, in one step: a reader sees the old one or the new one."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = b"".join(encode_record(r) for r in sorted(records, key=lambda r: (r.key, r.source)))
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(lines)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def _decode(data: bytes, where: str) -> list[BaselineRecord]:
    records = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            records.append(msgspec.json.decode(line, type=BaselineRecord))
        except msgspec.DecodeError as error:
            if number == len(lines):  # no end of line: it was being written
                break
            raise RecordError(f"{where}:{number}: expected a baseline record: {error}") from error
    return records


def _misfit(record: BaselineRecord, source: str, setting: Setting) -> str:
    if record.setting.device != setting.device:
        return f"it is of {record.setting.device}, not of {setting.device}"
    if _release(record.setting.torch) != _release(setting.torch):
        return f"it is of torch {record.setting.torch}, not of {setting.torch}"
    if record.source != source:
        return "it is of another version of the task's program"
    return ""


def _difference(stored: Setting, present: Setting) -> str:
    different = [
        f"{name} {theirs} (here {ours})"
        for name in ("torch", "driver", "cuda", "triton")
        if (theirs := getattr(stored, name)) != (ours := getattr(present, name))
    ]
    return f"measured with {', '.join(different)}" if different else ""


def _release(version: str) -> tuple[str, ...]:
    return tuple(re.split(r"[.+]", version)[:2])
