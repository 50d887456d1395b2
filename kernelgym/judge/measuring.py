"""The timed calls of a candidate on a GPU, beside the reference's, and what bounds them.

The grader leads each call by itself. While the candidate waits, it writes other inputs straight
into the shared memory (every element times a secret factor: `fresh_inputs`), poisons the output,
and asks for one call. So nothing of a call's inputs is there before the call before it has ended, a
result kept from another call is wrong almost everywhere, an output that is not written is NaN, and
which outputs will be checked is not known to the candidate: an unpredictable tenth, and one at the
end. The baseline's calls run in the grader's own process and memory. L2 is flushed before each call
of either side, in a way that no persisting window outlives (`gpu_call.CacheFlush`).

Device time is stamped in the candidate's process, for another process cannot read it; what is
claimed there is held against the grader's own clock and against physics. What that cannot show: on
calls of less than some tenths of a millisecond the clock of the host is too coarse, and only physics
bounds a false claim.

Eager mode is measured beside every candidate. `torch.compile` is that live time times the stored
ratio of the two, where the store has one that fits, and is measured live otherwise, or when that is
asked for.
"""

from __future__ import annotations

import functools
import math
import random
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from kernelgym.config import JudgeConfig
from kernelgym.judge import protocol, timing
from kernelgym.judge.baseline_store import BaselineKey, Found, source_digest
from kernelgym.judge.check import Checker, Placed
from kernelgym.judge.correctness import compare
from kernelgym.judge.device import GpuFacts, arithmetic, settle
from kernelgym.judge.device_data import DeviceData
from kernelgym.judge.failure import CheckFailed
from kernelgym.judge.fresh_inputs import FreshInputs
from kernelgym.judge.gpu_call import CacheFlush, blocks_aside, timed_call
from kernelgym.judge.gpus import Work, floor_seconds, light_of
from kernelgym.judge.nvml import ClockLog
from kernelgym.judge.process import CandidateProcess
from kernelgym.judge.reference import Reference
from kernelgym.judge.salt import Salt
from kernelgym.judge.verdict import Measurement, Speedup, Timing

__all__ = ["Meter"]

_FLUSH_OVER_L2 = 4
_CHECKED_SHARE = 0.1
_EMPTY_CALLS = 5
_WARM_UP_CALLS = 2
# The grader's clock sees two messages and a wake-up beside the call; they vary by less than this.
_CLOCK_SLACK_SECONDS = 2e-3
_CLOCK_FACTOR = 3.0
# Some outputs do not depend on all of the inputs (a triangular factor's other half).
_PHYSICS_FACTOR = 0.5


class Meter:
    """Times one candidate that has passed the check.

    Args:
        checker: Whose shared memory is used.
        reference: What it is compared with.
        gpu: The GPU.
        salt: Seeds what the candidate must not foresee.
        config: Says which baselines, of `"eager"` and `"compile"`, in which precision class.
        data: What is known of the card.

    Attributes:
        eager_peak: Device bytes that a call of the reference takes at most beyond its inputs and
            weights; None before `measure`.
    """

    def __init__(
        self,
        checker: Checker,
        reference: Reference,
        gpu: GpuFacts,
        salt: Salt,
        config: JudgeConfig,
        data: DeviceData,
    ) -> None:
        self.eager_peak: int | None = None
        self._checker = checker
        self._reference = reference
        self._gpu = gpu
        self._rng = random.Random(salt.seed("timing"))
        self._config = config
        self._data = data
        base = reference.inputs(0)
        seed = salt.seed("timed inputs")
        self._fresh = FreshInputs(base, reference.specs, seed, reference.device)
        self._base = base
        self._own = [[_copy(value) for value in base]]
        self._out_bytes = [
            torch.Size(spec.shape).numel() * spec.dtype.itemsize
            for spec in reference.output_specs()
        ]
        self._flush = CacheFlush(reference.device, _FLUSH_OVER_L2 * max(gpu.l2_bytes, 2**20))
        self._notes: list[str] = []
        self._recording = False
        self._walls: list[float] = []
        self._host: list[float] = []

    def measure(self, candidate: CandidateProcess) -> Timing:
        """Times the candidate and the baselines in turns.

        Raises:
            CheckFailed: A timed output was wrong, or the claimed times cannot be true.
        """
        stored = self._stored()
        placed = self._checker.place(self._base)
        self._own += [
            [_copy(value) for value in self._base] for _ in range(1, self._checker.places)
        ]
        sides: dict[str, Callable[[], float]] = {
            "candidate": functools.partial(self._candidate_call, candidate, placed),
            **self._baselines(stored),
        }
        for _ in range(_WARM_UP_CALLS):
            for side in sides.values():
                side()
        empty = median([self._empty_call(candidate, placed) for _ in range(_EMPTY_CALLS)])
        began = time.monotonic()
        for side in sides.values():
            side()
        planned = timing.plan(time.monotonic() - began)
        log = ClockLog(self._data.clocks)
        self._recording = True
        batches = timing.take_turns(sides, planned, self._rng, between=log.read)
        self._recording = False
        self._call(candidate, placed, check=self._checker.defences.timed_outputs)
        measured = self._measurement(batches["candidate"], host_span=median(self._host))
        self._bound(measured, median(self._walls) - empty)
        return self._timing(measured, batches, stored, log)

    # --- the candidate's calls ---------------------------------------------------------------

    def _candidate_call(self, candidate: CandidateProcess, placed: Placed) -> float:
        check = self._recording and self._rng.random() < _CHECKED_SHARE
        check = check and self._checker.defences.timed_outputs
        timed, wall = self._call(candidate, placed, check=check)
        if self._recording:
            self._walls.append(wall)
            self._host.append(max(timed.host_seconds, 0.0))
        if not 0.0 < timed.seconds < math.inf:
            raise CheckFailed("cheat.clock", f"expected a time above 0, got {timed.seconds} s")
        return timed.seconds

    def _call(
        self, candidate: CandidateProcess, placed: Placed, *, check: bool
    ) -> tuple[protocol.Timed, float]:
        """One call on new inputs, and the seconds that it took by the grader's clock."""
        if self._checker.defences.fresh_timed_inputs:
            self._fresh.draw()
        placed = self._checker.moved(placed, self._place())
        self._fresh.write(self._checker.shared(placed))
        self._checker.poison(placed)
        timed, wall = self._ask(candidate, placed, aside=self._place())
        self._checker.expect_outputs(timed.outputs, placed.outputs)
        if check:
            got = self._checker.taken(placed)
            expected = self._reference.expected(self._fresh.copies(), 0)
            for value, wanted in zip(got, expected, strict=True):
                found = compare(value, wanted)
                if not found.passed:
                    raise CheckFailed(
                        "cheat.timed_output",
                        f"in a timed call {found.bad} of {found.elements} elements were wrong",
                    )
        return timed, wall

    def _empty_call(self, candidate: CandidateProcess, placed: Placed) -> float:
        """Wall-clock seconds of all that a timed call brings along."""
        return self._ask(candidate, placed, call=False)[1]

    def _ask(
        self, candidate: CandidateProcess, placed: Placed, *, call: bool = True, aside: int = 0
    ) -> tuple[protocol.Timed, float]:
        outputs = placed.outputs if call else ()
        command = protocol.Time(
            placed.arguments, self._reference.run_seed(0), outputs, self._flush.nbytes, call, aside
        )
        settle(self._reference.device)
        began = time.monotonic()
        timed: protocol.Timed = self._checker.answer(candidate, command, protocol.Timed, "run")
        return timed, time.monotonic() - began

    # --- the baselines' calls ----------------------------------------------------------------

    def _stored(self) -> Found:
        """What the store has of `torch.compile`; nothing where that is not asked for."""
        reference, config = self._reference, self._config
        if "compile" not in config.baselines or config.live_baselines:
            return Found(None)
        mode = "train" if reference.train else "eval"
        key = BaselineKey(reference.task.id, reference.size, mode, config.precision, "compile")
        digest = source_digest(reference.task, reference.size)
        return self._data.store.find(key, digest, self._data.setting)

    def _baselines(self, stored: Found) -> dict[str, Callable[[], float]]:
        """The sides that are measured live; the first call of each is over."""
        sides = {"eager": self._side(compiled=False)}
        self.eager_peak = _peak(sides["eager"], self._reference.device)
        if stored.failed:
            self._notes.append(f"no time of torch.compile: {stored.why}")
        elif stored.record is not None:
            if stored.note:
                self._notes.append(f"the stored ratio compile/eager was {stored.note}")
        elif "compile" in self._config.baselines:
            side = self._side(compiled=True)
            try:
                side()
                sides["compile"] = side
            except Exception as error:  # whatever torch's compiler does not get through
                first = next(iter(str(error).splitlines()), "")
                self._notes.append(f"torch.compile failed: {type(error).__name__}: {first}"[:300])
        return sides

    def _side(self, *, compiled: bool) -> Callable[[], float]:
        inputs = [*self._own[0]]
        call = self._reference.call(inputs, compiled=compiled)
        versions = [[_version(value) for value in own] for own in self._own]

        def side() -> float:
            place = self._place()
            inputs[:] = self._own[place]
            if [_version(value) for value in inputs] != versions[place]:
                # The reference has written to them.
                self._fresh.restore(inputs)
                versions[place] = [_version(value) for value in inputs]
            settle(self._reference.device)
            aside = blocks_aside(self._reference.device, self._out_bytes, self._place())
            with arithmetic(self._config.precision):
                seconds = timed_call(call, self._reference.device, self._flush)[1]
            del aside
            return seconds

        return side

    def _place(self) -> int:
        """Where something of the next call lies: what memory it got must not decide."""
        return self._rng.randrange(self._checker.places)

    # --- what follows from them --------------------------------------------------------------

    def _measurement(
        self, batches: timing.Batches, *, host_span: float | None = None
    ) -> Measurement:
        spread = self._data.spread
        return timing.measurement(batches, self._rng, spread=spread, host_span=host_span)

    def _bound(self, measured: Measurement, wall: float) -> None:
        """Holds the claimed time against the grader's clock and against physics."""
        model = self._data.sold
        if model is None:
            return
        out_bytes = sum(self._out_bytes)
        floor = floor_seconds(model, self._work().nbytes, self._gpu.l2_bytes)
        traffic = self._checker.defences.traffic
        if traffic and measured.median < _PHYSICS_FACTOR * floor:
            raise CheckFailed(
                "cheat.physics",
                f"{model.name} needs {floor:.3g} s to move the inputs and outputs once, got "
                f"{measured.median:.3g} s, less than {_PHYSICS_FACTOR:g} of it",
            )
        # Handing over copies the output once: read and written.
        copied = 2 * out_bytes / (0.5 * model.dram_bandwidth)
        limit = _CLOCK_FACTOR * measured.median + copied + _CLOCK_SLACK_SECONDS
        if self._checker.defences.clock and wall > limit:
            raise CheckFailed(
                "cheat.clock",
                f"the call is said to take {measured.median:.3g} s; by the grader's clock it took "
                f"{wall:.3g} s beyond what a call without work takes",
            )

    def _work(self) -> Work:
        facts = self._reference.facts
        # The facts are of fp32; in a half class, inputs, weights and outputs are half as large.
        scale = self._reference.dtype.itemsize / torch.float32.itemsize
        return Work(
            facts.min_bytes * scale,
            facts.flops - facts.convolution_flops,
            facts.convolution_flops,
        )

    def _timing(
        self,
        measured: Measurement,
        batches: dict[str, list[list[float]]],
        stored: Found,
        log: ClockLog,
    ) -> Timing:
        times: dict[str, Measurement] = {}
        speedups: dict[str, Speedup] = {}
        for name in ("eager", "compile"):
            if name in batches:
                times[name] = self._measurement(batches[name])
                speedups[name] = timing.speedup(
                    batches[name], batches["candidate"], self._rng, spread=self._data.spread
                )
        ratio = stored.record.ratio if stored.record is not None else None
        if ratio is not None:
            times["compile"] = timing.scaled(times["eager"], ratio)
            speedups["compile"] = timing.scaled_speedup(speedups["eager"], ratio)
        asked = self._config.baselines
        light = self._light_fraction(measured.median)
        return Timing(
            candidate=measured,
            eager=times.get("eager") if "eager" in asked else None,
            compile=times.get("compile"),
            speedup_eager=speedups.get("eager") if "eager" in asked else None,
            speedup_compile=speedups.get("compile"),
            light_fraction=light,
            clocks=log.summary(),
            notes=(*self._notes, *log.notes()),
        )

    def _light_fraction(self, seconds: float) -> float | None:
        """The least time over the candidate's; what makes it larger than 1 is noted."""
        model = self._data.light
        if model is None:
            return None
        light = light_of(model, self._work(), self._config.precision)
        if light.seconds <= seconds:
            return light.seconds / seconds
        if light.traffic <= seconds:
            self._notes.append(
                f"the reference's arithmetic takes {light.arithmetic:.3g} s at the card's peak "
                "rate: the candidate does less of it, so its fraction of the speed of light is "
                "that of memory's traffic alone"
            )
            return light.traffic / seconds
        self._notes.append(
            f"inputs and outputs once through the card's memory take {light.traffic:.3g} s: a part "
            "of them never went there, so the fraction of the speed of light is cut off at 1"
        )
        return 1.0


def _peak(call: Callable[[], Any], device: torch.device) -> int | None:
    """Bytes that a call takes at most beyond what there is; the first call does not count."""
    call()
    if device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    call()
    return max(torch.cuda.max_memory_allocated(device) - before, 0)


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _version(value: Any) -> int:
    """How often a tensor has been written to."""
    return value._version if isinstance(value, torch.Tensor) else 0
