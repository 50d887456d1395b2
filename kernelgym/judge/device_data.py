"""What is known of the card that a judgement runs on, from tables, files and the driver."""

from __future__ import annotations

import dataclasses
import importlib.metadata

import torch

from kernelgym.judge import calibration
from kernelgym.judge.baseline_store import BaselineStore, Setting
from kernelgym.judge.device import GpuFacts
from kernelgym.judge.gpus import gpu_model
from kernelgym.judge.nvml import Clocks, open_clocks
from kernelgym.judge.physics import DeviceModel
from kernelgym.judge.timing import UNCALIBRATED, Spread

__all__ = ["DeviceData", "setting_of"]


@dataclasses.dataclass(frozen=True)
class DeviceData:
    """A card's stored baselines, rates and clocks.

    Attributes:
        setting: The card and the software.
        store: Its stored baselines.
        spread: What differs between runs on it.
        sold: Its rates by the data sheet, which nothing exceeds; None where not known.
        light: The rates by which its speed of light is told; None where not known.
        clocks: Its clocks; None where NVML or its Python package is missing.
    """

    setting: Setting
    store: BaselineStore = dataclasses.field(default_factory=lambda: BaselineStore(()))
    spread: Spread = UNCALIBRATED
    sold: DeviceModel | None = None
    light: DeviceModel | None = None
    clocks: Clocks | None = None

    @classmethod
    def load(cls, facts: GpuFacts) -> DeviceData:
        """Reads the user's files and those that kernelgym ships.

        Raises:
            RecordError: One of them cannot be read.
        """
        measured = calibration.load(facts.name)
        return cls(
            setting=setting_of(facts),
            store=BaselineStore.load(facts.name),
            spread=calibration.spread_of(measured),
            sold=gpu_model(facts.name),
            light=calibration.light_model(facts.name, measured),
            clocks=open_clocks(facts.uuid),
        )


def setting_of(facts: GpuFacts) -> Setting:
    """The card and the software of this process."""
    try:
        triton = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        triton = ""
    return Setting(facts.name, facts.driver, facts.cuda, str(torch.__version__), triton)
