"""The timed calls of a candidate on a GPU, beside the reference's, and what bounds them.

The grader leads each call by itself: it writes other inputs (scaled by a secret number) into the
shared memory, poisons the output, and asks for one call. So the candidate knows neither the inputs
beforehand nor which of the outputs will be checked. Device time is stamped in the candidate's
process, for another process cannot read it; what is claimed there is held against the grader's own
clock and against physics. What that cannot show: on calls of less than some tenths of a
millisecond the clock of the host is too coarse, and only physics bounds a false claim.
"""

from __future__ import annotations

import dataclasses
import math
import random
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from kernelgym.config import JudgeConfig
from kernelgym.judge import protocol, timing
from kernelgym.judge.check import Checker
from kernelgym.judge.correctness import compare
from kernelgym.judge.device import GpuFacts, arithmetic, settle
from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.gpu_call import timed_call
from kernelgym.judge.gpus import floor_seconds, gpu_model
from kernelgym.judge.physics import light_seconds
from kernelgym.judge.process import CandidateProcess
from kernelgym.judge.reference import Reference
from kernelgym.judge.salt import Salt
from kernelgym.judge.verdict import Measurement, Timing

__all__ = ["Meter"]

_FLUSH_OVER_L2 = 4
_CHECKED_SHARE = 0.1
_EMPTY_CALLS = 5
_WARM_UP_CALLS = 3
# The grader's clock sees two messages and a wake-up beside the call; they vary by less than this.
_CLOCK_SLACK_SECONDS = 2e-3
_CLOCK_FACTOR = 3.0
# Some outputs do not depend on all of the inputs (a triangular factor's other half).
_PHYSICS_FACTOR = 0.5


@dataclasses.dataclass
class _Samples:
    """Seconds of each call, batch by batch, and those of the candidate's on two other clocks."""

    candidate: list[list[float]]
    baselines: dict[str, list[list[float]]]
    walls: list[float]
    host: list[float]


class Meter:
    """Times one candidate that has passed the check.

    Args:
        checker: Whose shared memory is used.
        reference: What it is compared with.
        gpu: The GPU.
        salt: Seeds what the candidate must not foresee.
        config: Says which baselines, of `"eager"` and `"compile"`, in which precision class.
    """

    def __init__(
        self,
        checker: Checker,
        reference: Reference,
        gpu: GpuFacts,
        salt: Salt,
        config: JudgeConfig,
    ) -> None:
        self._checker = checker
        self._reference = reference
        self._gpu = gpu
        self._rng = random.Random(salt.seed("timing"))
        self._asked = config.baselines
        self._precision = config.precision
        self._flush_bytes = _FLUSH_OVER_L2 * max(gpu.l2_bytes, 2**20)
        self._base = reference.inputs(0)
        self._own = [_copy(value) for value in self._base]
        self._wall = 0.0

    def measure(self, candidate: CandidateProcess) -> Timing:
        """Times the candidate and the baselines in turns.

        Raises:
            CheckFailed: A timed output was wrong, or the claimed times cannot be true.
        """
        baselines = self._baselines()
        for _ in range(_WARM_UP_CALLS):
            self._candidate_call(candidate)
            for call in baselines.values():
                self._baseline_call(call)
        empty = median([self._empty_call(candidate) for _ in range(_EMPTY_CALLS)])
        began = time.monotonic()
        self._candidate_call(candidate)
        for call in baselines.values():
            self._baseline_call(call)
        plan = timing.plan(time.monotonic() - began)
        samples = _Samples([], {name: [] for name in baselines}, [], [])
        for _ in range(plan.batches):
            turns: list[Callable[[], None]] = [
                lambda: samples.candidate.append(
                    [self._candidate_call(candidate, samples) for _ in range(plan.calls)]
                )
            ]
            for name, call in baselines.items():
                turns.append(
                    lambda name=name, call=call: samples.baselines[name].append(  # type: ignore[misc]
                        [self._baseline_call(call) for _ in range(plan.calls)]
                    )
                )
            self._rng.shuffle(turns)
            for turn in turns:
                turn()
        self._checked_call(candidate)
        measured = timing.measurement(samples.candidate, self._rng, host_span=median(samples.host))
        self._bound(measured, median(samples.walls) - empty)
        return self._timing(measured, samples)

    # --- calls -------------------------------------------------------------------------------

    def _inputs(self) -> None:
        """New inputs: each tensor of floating-point numbers times a number from [1/2, 1).

        A bounded law stays within its bounds by that, and every output changes.
        """
        fresh = self._checker.defences.fresh_timed_inputs
        scale = self._rng.uniform(0.5, 1.0) if fresh else 1.0
        for mine, value in zip(self._own, self._base, strict=True):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                torch.mul(value, scale, out=mine)

    def _candidate_call(
        self, candidate: CandidateProcess, samples: _Samples | None = None
    ) -> float:
        self._inputs()
        checked = samples is not None and self._rng.random() < _CHECKED_SHARE
        checked = checked and self._checker.defences.timed_outputs
        timed = self._ask(candidate, check=checked)
        if samples is not None:
            samples.walls.append(self._wall)
            samples.host.append(max(timed.host_seconds, 0.0))
        if not 0.0 < timed.seconds < math.inf:
            raise CheckFailed("cheat.clock", f"expected a time above 0, got {timed.seconds} s")
        return timed.seconds

    def _checked_call(self, candidate: CandidateProcess) -> None:
        """At least one timed output is checked in every judgement."""
        self._inputs()
        self._ask(candidate, check=self._checker.defences.timed_outputs)

    def _ask(self, candidate: CandidateProcess, *, check: bool) -> protocol.Timed:
        placed = self._checker.place(self._own)
        seed = self._reference.run_seed(0)
        command = protocol.Time(placed.arguments, seed, placed.outputs, self._flush_bytes)
        began = time.monotonic()
        timed: protocol.Timed = self._checker.answer(candidate, command, protocol.Timed, "run")
        self._wall = time.monotonic() - began
        self._checker.expect_outputs(timed.outputs, placed.outputs)
        if check:
            got = self._checker.taken(placed)
            expected = self._reference.expected(self._own, 0)
            for value, wanted in zip(got, expected, strict=True):
                found = compare(value, wanted)
                if not found.passed:
                    raise CheckFailed(
                        "cheat.timed_output",
                        f"in a timed call {found.bad} of {found.elements} elements were wrong",
                    )
        return timed

    def _empty_call(self, candidate: CandidateProcess) -> float:
        """Wall-clock seconds of all that a timed call brings along."""
        placed = self._checker.place(self._own)
        command = protocol.Time(
            placed.arguments, self._reference.run_seed(0), (), self._flush_bytes, call=False
        )
        began = time.monotonic()
        self._checker.answer(candidate, command, protocol.Timed, "run")
        return time.monotonic() - began

    def _baselines(self) -> dict[str, Callable[[], Any]]:
        calls: dict[str, Callable[[], Any]] = {}
        for name in self._asked:
            calls[name] = self._reference.call(self._own, compiled=name == "compile")
        return calls

    def _baseline_call(self, call: Callable[[], Any]) -> float:
        self._inputs()
        settle(self._reference.device)
        with arithmetic(self._precision):
            return timed_call(call, self._reference.device, self._flush_bytes)[1]

    # --- what follows from them --------------------------------------------------------------

    def _bound(self, measured: Measurement, wall: float) -> None:
        """Holds the claimed time against the grader's clock and against physics."""
        out_bytes = sum(
            torch.Size(spec.shape).numel() * spec.dtype.itemsize
            for spec in self._reference.output_specs()
        )
        model = gpu_model(self._gpu.name)
        # Handing over copies the output once: read and written.
        copied = 2 * out_bytes / (0.5 * model.dram_bandwidth) if model is not None else 0.0
        limit = _CLOCK_FACTOR * measured.median + copied + _CLOCK_SLACK_SECONDS
        if model is not None and self._checker.defences.clock and wall > limit:
            raise CheckFailed(
                "cheat.clock",
                f"the call is said to take {measured.median:.3g} s; by the grader's clock it took "
                f"{wall:.3g} s beyond what a call without work takes",
            )
        if model is None:
            return
        floor = floor_seconds(model, self._reference.facts.min_bytes, self._gpu.l2_bytes)
        if self._checker.defences.traffic and measured.median < _PHYSICS_FACTOR * floor:
            raise CheckFailed(
                "cheat.physics",
                f"{model.name} needs {floor:.3g} s to move the inputs and outputs once, got "
                f"{measured.median:.3g} s, less than {_PHYSICS_FACTOR:g} of it",
            )

    def _timing(self, measured: Measurement, samples: _Samples) -> Timing:
        baselines = {
            name: timing.measurement(batches, self._rng)
            for name, batches in samples.baselines.items()
        }
        speedups = {
            name: timing.speedup(batches, samples.candidate, self._rng)
            for name, batches in samples.baselines.items()
        }
        model = gpu_model(self._gpu.name)
        facts = self._reference.facts
        light = None
        if model is not None:
            light = min(light_seconds(model, facts.flops, facts.min_bytes) / measured.median, 1.0)
        return Timing(
            candidate=measured,
            eager=baselines.get("eager"),
            compile=baselines.get("compile"),
            speedup_eager=speedups.get("eager"),
            speedup_compile=speedups.get("compile"),
            light_fraction=light,
        )


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value
