"""What protection costs a verdict: one candidate judged with every defence on, and with none.

`python benchmarks/bench_protection.py [--device cuda] [--rounds 15] [--out FILE]` judges in turns,
after a warm-up that fills the build cache, and prints (and with `--out` writes) JSON: median seconds
of a whole verdict with all defences, without all, without each group, and the differences. A step
that fails is reported in the JSON and ends nothing else.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import platform
import statistics
import time
from collections.abc import Mapping

from kernelgym.config import JudgeConfig
from kernelgym.judge.defences import Defences
from kernelgym.judge.judge import Judge

GROUPS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "all": Defences.names(),
    "confinement": ("confinement", "threads"),
    "evidence": ("operators", "witness", "host_guard", "raw_memory", "native_calls", "decoys"),
    "values": ("salted_inputs", "budget", "repeated_draw", "poison", "mutation", "aliasing"),
    "time": ("clock", "timed_outputs", "fresh_timed_inputs", "traffic"),
}
CANDIDATE = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
__global__ void relu_kernel(const float* x, float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    long n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
ext = load_inline(name="ext", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  cuda_sources=source, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
'''


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--task", default="L1/19")
    parser.add_argument("--size", default="auto")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--wall", type=float, default=300.0, help="limit in seconds")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    deadline = time.monotonic() + options.wall
    config = JudgeConfig(
        device=options.device, size=options.size, seed=0, baselines=("eager",), run_timeout=30
    )
    seconds: dict[str, list[float]] = {name: [] for name in GROUPS}
    phases: dict[str, dict[str, list[float]]] = {name: {} for name in GROUPS}
    problems: list[str] = []
    with Judge(config) as first:
        judges = {}
        for name, off in GROUPS.items():
            judges[name] = Judge(config, service=first._service, defences=Defences.without(*off))
            judges[name]._zygote = first._zygote
        for index in range(options.rounds + 1):
            for name, judge in judges.items():
                if time.monotonic() > deadline:
                    break
                started = time.monotonic()
                try:
                    verdict = judge.evaluate(options.task, CANDIDATE)
                except Exception as error:
                    problems.append(f"{name}: {type(error).__name__}: {error}")
                    continue
                if not verdict.correct:
                    problems.append(f"{name}: {verdict.reason}: {verdict.message}")
                elif index:  # the first round fills caches
                    seconds[name].append(time.monotonic() - started)
                    for phase, spent in verdict.seconds:
                        phases[name].setdefault(phase, []).append(spent)
            _write(options.out, _summary(config, seconds, phases, problems))
    print(json.dumps(_summary(config, seconds, phases, problems), indent=1))


def _summary(
    config: JudgeConfig,
    seconds: Mapping[str, list[float]],
    phases: Mapping[str, Mapping[str, list[float]]],
    problems: list[str],
) -> dict[str, object]:
    medians = {name: statistics.median(taken) for name, taken in seconds.items() if taken}
    return {
        "machine": platform.platform(),
        "device": config.device,
        "rounds": len(seconds["none"]),
        "seconds_with_these_off": medians,
        "cost_seconds": {
            name: medians["none"] - value
            for name, value in medians.items()
            if name != "none" and "none" in medians
        },
        "phases": {
            name: {phase: statistics.median(taken) for phase, taken in spent.items()}
            for name, spent in phases.items()
        },
        "problems": sorted(set(problems))[:20],
    }


def _write(path: pathlib.Path | None, summary: dict[str, object]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
