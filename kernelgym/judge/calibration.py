"""What has been measured of a card: its ceilings, and how much a judgement's times differ by run.

kernelgym ships the records of some cards (`judge/data/devices`); the user's own, written by
`kernelgym calibrate`, lie in the user's data folder and come first.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import pathlib

import msgspec
import platformdirs

from kernelgym.errors import RecordError
from kernelgym.judge.baseline_store import Setting, device_slug
from kernelgym.judge.gpus import gpu_model, with_bandwidth
from kernelgym.judge.physics import DeviceModel
from kernelgym.judge.timing import UNCALIBRATED, Spread, SpreadPoint

__all__ = ["Calibration", "Ceilings", "Run", "light_model", "load", "save", "shipped", "spread_of"]

# What is slower than this is no ceiling but a disturbed measurement: the data sheet stands then.
_LEAST_OF_PEAK = 0.5


@dataclasses.dataclass(frozen=True)
class Ceilings:
    """The most that was measured. Bytes or FLOP per second; None: the card or torch cannot.

    Attributes:
        dram_read: Reading device memory.
        dram_write: Writing it.
        dram_copy: Both at once, the sum of the two.
        l2_bandwidth: Reading and writing what lies in L2, the sum of the two.
        fp32: Products of large matrices by torch's library, operands in IEEE fp32.
        tf32: The same in TF32.
        fp16: The same in fp16.
        bf16: The same in bf16.
        fp8: The same in 8 bits (e4m3).
        fp64: The same in fp64.
        launch_seconds: From the start of one empty kernel to that of the next in one stream.
        sm_mhz: The multiprocessors' clock while a large product in fp16 ran, in MHz.
        sm_mhz_highest: Their highest clock.
        memory_mhz: The memory's clock.
    """

    dram_read: float | None = None
    dram_write: float | None = None
    dram_copy: float | None = None
    l2_bandwidth: float | None = None
    fp32: float | None = None
    tf32: float | None = None
    fp16: float | None = None
    bf16: float | None = None
    fp8: float | None = None
    fp64: float | None = None
    launch_seconds: float | None = None
    sm_mhz: float | None = None
    sm_mhz_highest: float | None = None
    memory_mhz: float | None = None


@dataclasses.dataclass(frozen=True)
class Run:
    """One judgement of a known kernel: its size in elements, its median seconds, its speedup."""

    elements: int
    seconds: float
    speedup: float


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Everything that `kernelgym calibrate` found out about a card.

    Attributes:
        setting: The card and the software.
        date: Day of the measurement, ISO 8601.
        kernelgym: The version that measured.
        ceilings: What it can do.
        spread: What differs between runs; empty where that was not measured.
        runs: The judgements behind `spread`.
        problems: What could not be measured, and why.
    """

    setting: Setting
    date: str
    kernelgym: str
    ceilings: Ceilings
    spread: tuple[SpreadPoint, ...] = ()
    runs: tuple[Run, ...] = ()
    problems: tuple[str, ...] = ()


def user_folder() -> pathlib.Path:
    """Where a user's own records lie."""
    return pathlib.Path(platformdirs.user_data_dir("kernelgym")) / "devices"


def load(device: str, folder: pathlib.Path | None = None) -> Calibration | None:
    """What is known of a card: the user's record, else the one that kernelgym ships, else None.

    Args:
        device: The card's name, as its driver gives it.
        folder: The user's folder; by default `user_folder()`.

    Raises:
        RecordError: A file is not a calibration's.
    """
    own = (folder or user_folder()) / f"{device_slug(device)}.json"
    return _decode(own.read_bytes(), str(own)) if own.is_file() else shipped(device)


def shipped(device: str) -> Calibration | None:
    """The record of a card that comes with kernelgym, or None.

    Raises:
        RecordError: The file is not a calibration's.
    """
    name = f"{device_slug(device)}.json"
    file = importlib.resources.files("kernelgym.judge") / "data" / "devices" / name
    return _decode(file.read_bytes(), name) if file.is_file() else None


def save(calibration: Calibration, path: pathlib.Path | None = None) -> pathlib.Path:
    """Writes a record, by default to the user's folder, and gives its path."""
    path = path or user_folder() / f"{device_slug(calibration.setting.device)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n")
    return path


def spread_of(calibration: Calibration | None) -> Spread:
    """What differs between runs on a card."""
    if calibration is None or not calibration.spread:
        return UNCALIBRATED
    return Spread(tuple(sorted(calibration.spread)))


def light_model(device: str, calibration: Calibration | None) -> DeviceModel | None:
    """The rates by which a card's speed of light is told; see `kernelgym.judge.gpus`.

    Of a card that the table lacks, measured ceilings stand in for the data sheet.

    Args:
        device: The card's name.
        calibration: What was measured of it.
    """
    model = gpu_model(device)
    if calibration is None:
        return model
    found = calibration.ceilings
    streams = [found.dram_read, found.dram_write, found.dram_copy]
    dram = max((rate for rate in streams if rate is not None), default=0.0)
    if model is not None:
        within = _LEAST_OF_PEAK * model.dram_bandwidth <= dram <= model.dram_bandwidth
        return with_bandwidth(model, dram) if within else model
    if not dram or not found.fp32:
        return None
    return DeviceModel(
        name=device,
        dram_bandwidth=dram,
        l2_bandwidth=found.l2_bandwidth or dram,
        fp32_rate=found.fp32,
        multiprocessors=1,
        clock=(found.sm_mhz_highest or 0.0) * 1e6,
        launch_seconds=found.launch_seconds or 0.0,
        tf32_rate=found.tf32 or 0.0,
        fp16_rate=max(found.fp16 or 0.0, found.bf16 or 0.0),
        fp8_rate=found.fp8 or 0.0,
        fp64_rate=found.fp64 or 0.0,
    )


def _decode(data: bytes, where: str) -> Calibration:
    try:
        return msgspec.json.decode(data, type=Calibration)
    except msgspec.DecodeError as error:
        raise RecordError(f"{where}: expected a calibration record, got: {error}") from error
