"""How good a measured speedup is: its scatter, whether its interval covers, what it can tell apart.

    python benchmarks/timing_quality.py --output benchmarks/results/timing_quality_h200.json

Judges one candidate (a ReLU of 2^24 numbers, some 30 us on an H200) 200 times with one judge, then
the same candidate with a known delay 20 times. The delay is spun on the GPU's own clock in the
kernel, by every block that starts in the kernel's last wave, and is set so that the time grows by
2 %; what the time really grew by is measured over all of those judgements and written down. Wanted:
a coefficient of variation of the speedup of at most 0.5 %, its 95 % interval over the grand median
in at least 180 of 200, a median width of at most 1 %, and intervals apart in at least 18 of 20.
Every sample goes into the file, which is written anew as the samples come.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import platform
import tempfile
import time
from statistics import fmean, median, stdev
from typing import Any

import torch

from kernelgym._version import __version__
from kernelgym.config import JudgeConfig
from kernelgym.judge.device import gpu_facts
from kernelgym.judge.gpus import gpu_model
from kernelgym.judge.judge import Judge
from kernelgym.judge.repeatability import relu_candidate, relu_task
from kernelgym.judge.verdict import Timing

TARGETS = {"cv": 0.005, "covered": 0.9, "median_width": 0.01, "apart": 0.9}
ATTEMPTS = 6
USUAL_CLOCK = 1.5e9
WANTED_DELAY = 0.02
ACCEPTED = (0.016, 0.024)


class Bench:
    """One judge, one task file, and the samples so far."""

    def __init__(self, judge: Judge, task: pathlib.Path, deadline: float) -> None:
        self._judge = judge
        self._task = str(task)
        self._deadline = deadline

    def over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self._deadline

    def sample(self, source: str) -> dict[str, Any]:
        """One judgement."""
        began = time.monotonic()
        verdict = self._judge.evaluate(self._task, source)
        spent = time.monotonic() - began
        if verdict.timing is None:
            raise SystemExit(
                f"expected a measured verdict, got {verdict.outcome}: {verdict.message}"
            )
        return {"seconds_spent": round(spent, 4), "phases": dict(verdict.seconds)} | numbers(
            verdict.timing
        )


def numbers(timing: Timing) -> dict[str, Any]:
    """What is kept of one judgement's times."""
    speedup = timing.speedup_eager
    assert speedup is not None
    assert timing.eager is not None
    return {
        "candidate": timing.candidate.median,
        "candidate_interval": [timing.candidate.low, timing.candidate.high],
        "eager": timing.eager.median,
        "batches": timing.candidate.batches,
        "speedup": speedup.value,
        "interval": [speedup.low, speedup.high],
        "clocks": dict(timing.clocks),
        "notes": list(timing.notes),
    }


def spin(cycles: int) -> str:
    """Statements that hold every block of the grid's last part up by so many cycles."""
    return (
        "if (blockIdx.x + 1056 >= gridDim.x) { "
        f"long long until = clock64() + {cycles}LL; while (clock64() < until) {{}} }}"
    )


def find_delay(bench: Bench, plain: float) -> tuple[int, list[dict[str, Any]]]:
    """Cycles that make the candidate about 2 % slower, and what was tried."""
    model = gpu_model(str(torch.cuda.get_device_properties(0).name))
    clock = model.clock if model is not None else USUAL_CLOCK
    cycles = int(WANTED_DELAY * plain * clock) + 500
    tried: list[dict[str, Any]] = []
    for _ in range(ATTEMPTS):
        source = relu_candidate(spin(cycles))
        slower = median(bench.sample(source)["candidate"] for _ in range(3)) / plain - 1
        tried.append({"cycles": cycles, "slower": slower})
        if ACCEPTED[0] <= slower <= ACCEPTED[1] or bench.over():
            break
        missing = (WANTED_DELAY - slower) * plain * clock
        cycles = max(cycles + int(missing), 1)
    best = min(tried, key=lambda one: abs(one["slower"] - WANTED_DELAY))
    return best["cycles"], tried


def summary(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Scatter, coverage and width."""
    speedups = [one["speedup"] for one in samples]
    grand = median(speedups)
    covered = sum(one["interval"][0] <= grand <= one["interval"][1] for one in samples)
    widths = [(one["interval"][1] - one["interval"][0]) / one["speedup"] for one in samples]
    times = [one["candidate"] for one in samples]
    return {
        "judgements": len(samples),
        "grand_median": grand,
        "cv": stdev(speedups) / fmean(speedups) if len(samples) > 1 else None,
        "cv_of_time": stdev(times) / fmean(times) if len(samples) > 1 else None,
        "covered": covered,
        "median_width": median(widths),
        "median_seconds": median(one["seconds_spent"] for one in samples),
        "median_time_phase": median(one["phases"].get("time", 0.0) for one in samples),
        "median_candidate": median(times),
    }


def apart(plain: list[dict[str, Any]], delayed: list[dict[str, Any]]) -> dict[str, Any]:
    """In how many of the delayed judgements the interval lies below that of a plain one.

    Each is compared with one plain judgement, spread evenly over all of them.
    """
    step = max(len(plain) // max(len(delayed), 1), 1)
    pairs = list(zip(plain[::step], delayed, strict=False))
    disjoint = sum(slow["interval"][1] < fast["interval"][0] for fast, slow in pairs)
    slower = median(o["candidate"] for o in delayed) / median(o["candidate"] for o in plain) - 1
    return {"judgements": len(pairs), "disjoint": disjoint, "measured_delay": slower}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judgements", type=int, default=200)
    parser.add_argument("--delayed", type=int, default=20)
    parser.add_argument("--elements", type=int, default=2**24)
    parser.add_argument("--limit-seconds", type=float, default=300.0)
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    deadline = time.monotonic() + options.limit_seconds
    config = JudgeConfig(device="cuda", size="full", draws=1, counters=False, baselines=("eager",))
    facts = gpu_facts(torch.device("cuda", 0))
    results: dict[str, Any] = {
        "versions": {
            "kernelgym": __version__,
            "torch": str(torch.__version__),
            "cuda": facts.cuda,
            "driver": facts.driver,
            "gpu": facts.name,
            "python": platform.python_version(),
        },
        "targets": TARGETS,
        "elements": options.elements,
        "plain": [],
        "delayed": [],
        "delay": None,
    }

    def write() -> None:
        plain, delayed = results["plain"], results["delayed"]
        if plain:
            results["summary"] = summary(plain)
        if plain and delayed:
            results["summary"]["delay"] = apart(plain, delayed)
        if options.output is not None:
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(results, indent=1) + "\n")

    with tempfile.TemporaryDirectory() as folder, Judge(config) as judge:
        task = pathlib.Path(folder, "relu.py")
        task.write_text(relu_task(options.elements))
        bench = Bench(judge, task, deadline)
        source = relu_candidate()
        first = [bench.sample(source)["candidate"] for _ in range(4)][1:]  # the first builds
        cycles, results["delay"] = find_delay(bench, median(first))
        slow = relu_candidate(spin(cycles))
        every = max(options.judgements // max(options.delayed, 1), 1)
        for number in range(options.judgements):
            if bench.over():
                break
            results["plain"].append(bench.sample(source))
            # In between, so that both meet the same hours of the machine.
            if number % every == every - 1 and len(results["delayed"]) < options.delayed:
                results["delayed"].append(bench.sample(slow))
            if number % 10 == 9:
                write()
        write()
    print(json.dumps(results.get("summary"), indent=1))


if __name__ == "__main__":
    main()
