"""How long a verdict takes on a GPU, cold and warm, with counters and without, phase by phase.

    python benchmarks/bench_gpu_verdict.py [--repeats 20] [--output benchmarks/results/FILE.json]

"Cold" is a source that no cache has seen (a random identifier in it) with the service warm; "again"
is the same source once more. Two candidates: an elementwise addition of 128 numbers (a task file
made here, whose baseline is eager mode alone) and ReLU (L1/19) at KernelBench's full size (against
eager mode and the stored time of torch.compile).
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import platform
import secrets
import subprocess
import tempfile
import time
from statistics import median
from typing import Any

import torch

from kernelgym._version import __version__
from kernelgym.config import JudgeConfig
from kernelgym.judge.judge import Judge
from kernelgym.judge.verdict import Verdict

ADD_TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.randn(1, 128), torch.randn(1, 128)]


def get_init_inputs():
    return []
"""

CANDIDATE = '''
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
// {nonce}
__global__ void kernel_{nonce}({parameters}, float* out, long n) {{
    long i = (blockIdx.x * (long)blockDim.x + threadIdx.x) * {width};
    {body}
}}
torch::Tensor run_{nonce}({tensors}) {{
    auto out = torch::empty_like({first});
    long n = out.numel(), threads = (n + {width} - 1) / {width};
    kernel_{nonce}<<<(threads + 255) / 256, 256>>>({pointers}, out.data_ptr<float>(), n);
    return out;
}}
"""
ext = load_inline(name="ext_{nonce}", cpp_sources="torch::Tensor run_{nonce}({tensors});",
                  cuda_sources=source, functions=["run_{nonce}"])


class ModelNew(torch.nn.Module):
    def forward(self, {names}):
        return ext.run_{nonce}({names})
'''

ADD = {
    "parameters": "const float* a, const float* b",
    "body": "if (i < n) out[i] = a[i] + b[i];",
    "width": "1",
    "tensors": "torch::Tensor a, torch::Tensor b",
    "first": "a",
    "pointers": "a.data_ptr<float>(), b.data_ptr<float>()",
    "names": "a, b",
}
RELU = {
    "parameters": "const float* x",
    "body": (
        "if (i + 3 < n) { float4 v = *(const float4*)(x + i);\n"
        "        v.x = fmaxf(v.x, 0.0f); v.y = fmaxf(v.y, 0.0f);\n"
        "        v.z = fmaxf(v.z, 0.0f); v.w = fmaxf(v.w, 0.0f);\n"
        "        *(float4*)(out + i) = v;\n"
        "    } else for (; i < n; ++i) out[i] = fmaxf(x[i], 0.0f);"
    ),
    "width": "4",
    "tensors": "torch::Tensor x",
    "first": "x",
    "pointers": "x.data_ptr<float>()",
    "names": "x",
}


CONFIG: dict[str, Any] = {"device": "cuda", "size": "full", "draws": 5, "counters": False}
COUNTERS: dict[str, Any] = {"baselines": ("eager",), "counters": True}


def source_of(parts: dict[str, str]) -> str:
    """A candidate that nobody has seen before."""
    return CANDIDATE.format(nonce=secrets.token_hex(6), **parts)


def main() -> None:
    """Runs the benchmark and prints, or writes, JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"versions": versions(), "config": CONFIG, "rows": {}}
    with tempfile.TemporaryDirectory() as folder:
        task = pathlib.Path(folder, "add.py")
        task.write_text(ADD_TASK)
        for name, where, parts, again, config in (
            ("add", str(task), ADD, True, {"baselines": ("eager",)}),
            ("L1/19", "L1/19", RELU, True, {}),
            ("add with counters", str(task), ADD, False, COUNTERS),
        ):
            with Judge(JudgeConfig(**{**CONFIG, **config})) as judge:
                judge.evaluate(where, source_of(parts))  # starts the service
                time.sleep(1.0)
                cold, warm = [], []
                for _ in range(options.repeats):
                    text = source_of(parts)
                    cold.append(timed(judge, where, text))
                    if again:
                        warm.append(timed(judge, where, text))
            results["rows"][f"{name}, cold"] = summary(cold)
            if again:
                results["rows"][f"{name}, again"] = summary(warm)
            if options.output is not None:  # what is known so far, should the next step fail
                options.output.parent.mkdir(parents=True, exist_ok=True)
                options.output.write_text(json.dumps(results, indent=1) + "\n")
    for name, row in results["rows"].items():
        print(f"{name}: median {row['p50']} s, p95 {row['p95']} s, {row['phases_p50']}")


def timed(judge: Judge, task: str, text: str) -> tuple[float, Verdict]:
    """One verdict, and the seconds that it took."""
    began = time.monotonic()
    verdict = judge.evaluate(task, text)
    return time.monotonic() - began, verdict


def summary(runs: list[tuple[float, Verdict]]) -> dict[str, Any]:
    """Medians, and every sample."""
    phases = sorted({name for _, verdict in runs for name, _ in verdict.seconds})
    last = runs[-1][1]
    timing = last.timing
    return {
        "seconds": [round(seconds, 4) for seconds, _ in runs],
        "p50": round(median(seconds for seconds, _ in runs), 4),
        "p95": round(sorted(seconds for seconds, _ in runs)[math.ceil(0.95 * len(runs)) - 1], 4),
        "build_paths": sorted({v.build.path for _, v in runs if v.build is not None}),
        "phases_p50": {
            phase: round(median(dict(v.seconds).get(phase, 0.0) for _, v in runs), 4)
            for phase in phases
        },
        "outcomes": [f"{v.outcome}{':' if v.reason else ''}{v.reason}" for _, v in runs],
        "messages": sorted({v.message for _, v in runs}),
        "candidate_seconds": timing
        and [timing.candidate.low, timing.candidate.median, timing.candidate.high],
        "eager_seconds": timing and timing.eager and timing.eager.median,
        "speedups": [
            v.timing.speedup_eager.value
            for _, v in runs
            if v.timing is not None and v.timing.speedup_eager is not None
        ],
        "speedup_interval": timing
        and timing.speedup_eager
        and [timing.speedup_eager.low, timing.speedup_eager.high],
        "light_fraction": timing and timing.light_fraction,
        "protections": list(last.provenance.protections),
    }


def versions() -> dict[str, str]:
    """What the numbers belong to."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return {
        "kernelgym": __version__,
        "torch": str(torch.__version__),
        "cuda": str(torch.version.cuda),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "gpu": subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip(),
    }


if __name__ == "__main__":
    main()
