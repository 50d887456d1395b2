"""Measuring a card: its ceilings in this process, then how much judgements differ by run."""

from __future__ import annotations

import datetime
import time

import torch

from kernelgym._version import __version__
from kernelgym.errors import ConfigError
from kernelgym.judge.baseline_worker import Bench
from kernelgym.judge.calibration import Calibration
from kernelgym.judge.ceilings import measure_ceilings
from kernelgym.judge.device_data import setting_of
from kernelgym.judge.nvml import open_clocks
from kernelgym.judge.repeatability import judge_again, spread_points
from kernelgym.toolchain.cache import default_cache_root

__all__ = ["calibrate"]


def calibrate(
    index: int, graders: int, runs: int, limit_seconds: float | None = None
) -> Calibration:
    """Measures a GPU.

    Args:
        index: Its index.
        graders: Processes that judge a known kernel; 0 leaves the spread out.
        runs: Judgements of each, at each size.
        limit_seconds: Nothing more is judged after so long.

    Raises:
        ConfigError: There is no such GPU.
    """
    if not torch.cuda.is_available() or index >= torch.cuda.device_count():
        raise ConfigError(f"device: expected an NVIDIA GPU of index {index}, got none")
    until = None if limit_seconds is None else time.monotonic() + limit_seconds
    bench = Bench.of(index, default_cache_root())
    with bench.exclusive(), torch.no_grad():
        ceilings, problems = measure_ceilings(
            bench.device, bench.facts.l2_bytes, bench.seconds_of, open_clocks(bench.facts.uuid)
        )
    found, more = judge_again(graders, runs, index, until=until)
    return Calibration(
        setting=setting_of(bench.facts),
        date=datetime.date.today().isoformat(),
        kernelgym=__version__,
        ceilings=ceilings,
        spread=spread_points(found),
        runs=tuple(found),
        problems=(*problems, *more),
    )
