"""Tries the hardware counters and the counter of energy of the GPU at hand, step by step.

    python benchmarks/gpu_counters.py OUT.json [--only STEP ...] [--budget SECONDS]

Every step runs in a process of its own under a time limit, so that none takes the others with it;
what is known so far is in OUT.json at any time. Steps: `environment` (what is there, and who may
count), `plain` (counters of kernels whose counts are known by hand, in a plain process), `judge`
(a verdict with and without counters, phase by phase, and what its machine code is made of),
`confined` (counters under each level of protection), `order` (activities before and after
counters), `energy` (how often the counter of energy moves, and joules of a verdict). All of it ends
within the budget, two minutes by default: what comes last then gets less, or nothing.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from typing import Any

STEPS = {
    "environment": 20,
    "plain": 30,
    "judge": 50,
    "confined": 30,
    "order": 15,
    "energy": 40,
}
_LEAST_SECONDS = 5.0

KERNELS = r"""
extern "C" __global__ void copy_coalesced(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
extern "C" __global__ void copy_float4(const float4* x, float4* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
extern "C" __global__ void load_strided(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[(long)i * 32];
}
extern "C" __global__ void shared_conflicts(float* y, int n) {
    __shared__ volatile float s[1024];
    int t = threadIdx.x;
    s[(t & 31) * 32 + (t >> 5)] = t;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + t;
    if (i < n) y[i] = s[(t & 31) * 32 + (t >> 5)];
}
"""
CHIP = "GH100"
N = 2**22
WARPS = N // 32

# By hand, for a GPU with sectors of 32 bytes and 32 banks of 4 bytes.
EXPECTED: dict[str, dict[str, float]] = {
    "relu": {"dram_bytes_read": 4 * 8192**2, "dram_bytes_written": 4 * 8192**2},
    "product": {"tensor_activity": 0.0},
    "product_tf32": {},
    "copy_coalesced": {
        "load_sectors_per_request": 4,
        "store_sectors_per_request": 4,
        "requests": 2 * WARPS,
        "sectors": 8 * WARPS,
        "warps": WARPS,
        "bank_conflicts": 0,
    },
    "copy_float4": {"load_sectors_per_request": 16, "store_sectors_per_request": 16},
    "load_strided": {"load_sectors_per_request": 32, "store_sectors_per_request": 4},
    "shared_conflicts": {
        "shared_requests": 2 * WARPS,
        "shared_wavefronts": 64 * WARPS,
        "bank_conflicts": 62 * WARPS,
        "bank_conflicts_per_request": 31,
    },
}


def environment() -> Iterator[dict[str, Any]]:
    import torch

    from kernelgym.judge.counter_plans import plan_for
    from kernelgym.judge.cupti import Cupti, find_cupti
    from kernelgym.judge.range_profiler import chip_of, profiling_restricted

    torch.zeros(1, device="cuda")
    path = find_cupti()
    status = pathlib.Path("/proc/self/status").read_text()
    found: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "uid": os.getuid(),
        "capabilities": next(line for line in status.splitlines() if line.startswith("CapEff")),
        "profiling_restricted": profiling_restricted(),
        "cupti": path,
    }
    yield found
    if path is None:
        return
    # Elsewhere: by a chip's name, then by asking the GPU for it.
    for chip in (CHIP, 0):
        started = time.perf_counter()
        plan = _tried(lambda chip=chip: plan_for(path, chip))  # type: ignore[misc]
        found[f"plan for {chip} seconds"] = time.perf_counter() - started
        found[f"plan for {chip}"] = (
            plan if isinstance(plan, str) else [plan.chip, len(plan.names), plan.passes]
        )
        yield found
    found["folder"] = sorted(os.listdir(os.path.dirname(os.path.realpath(path))))
    cupti = Cupti(path)
    found["cupti_version"] = cupti.version()
    yield found
    # Each of these may crash; what came before is known then.
    for name in ("cuptiProfilerInitialize", "cuptiProfilerGetCounterAvailability"):
        started = time.perf_counter()
        found[name] = _tried(lambda name=name: cupti.call(name) and "ok")  # type: ignore[misc]
        found[f"{name}_seconds"] = time.perf_counter() - started
        yield found
    found["chip"] = chip_of(cupti, 0)
    yield found


def plain() -> Iterator[dict[str, Any]]:
    import torch

    calls = _calls()
    found = {}
    for index, (name, call) in enumerate(calls.items()):
        call()
        torch.cuda.synchronize()
        found[name] = _tried(lambda call=call: _counted(call))  # type: ignore[misc]
        if isinstance(found[name], dict):
            found[name]["expected"] = EXPECTED.get(name, {})
            found[name]["first_session"] = index == 0
        yield found


def order() -> Iterator[dict[str, Any]]:
    import torch

    from kernelgym.judge.gpu_call import profiled_call

    device = torch.device("cuda", 0)
    x = torch.randn(2**22, device=device)

    def call() -> Any:
        return torch.relu(x).add_(1.0)

    call()
    found: dict[str, Any] = {}
    for step in ("count 1", "activities 1", "count 2", "activities 2", "count 3"):
        started = time.perf_counter()
        if step.startswith("count"):
            found[step] = _tried(lambda: _counted(call, ("first name", "second name")))
        else:
            found[step] = _tried(lambda: str(profiled_call(call, device)))
        found[f"{step} seconds"] = time.perf_counter() - started
        yield found


def confined() -> Iterator[dict[str, Any]]:
    """One forked process for each level, confined as a candidate is, with and without the right."""
    import torch  # noqa: F401

    import kernelgym.judge.metrics
    import kernelgym.judge.range_profiler  # noqa: F401
    from kernelgym.config import PROTECTIONS, JudgeConfig
    from kernelgym.judge.confinement import candidate_policy
    from kernelgym.toolchain.confinement import confine

    found: dict[str, Any] = {}
    for level in PROTECTIONS:
        for allowed in (True, False):
            folder = pathlib.Path(tempfile.mkdtemp(prefix="kernelgym-"))
            out = folder / "out.json"
            policy = candidate_policy(JudgeConfig(protection=level), folder, (), gpu=True)
            policy = policy._replace(performance_counters=allowed)
            pid = os.fork()
            if pid == 0:
                os.chdir(folder)
                told: dict[str, Any] = {"protections": _tried(lambda p=policy: confine(p))}  # type: ignore[misc]
                told["uid"] = os.getuid()
                told["counted"] = _tried(_count_relu)
                out.write_text(json.dumps(told, default=str))
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            key = f"{level}, {'with' if allowed else 'without'} the right"
            found[key] = json.loads(out.read_text()) if out.exists() else f"status {status}"
            yield found


def judge() -> Iterator[dict[str, Any]]:
    import dataclasses
    import secrets

    from kernelgym.config import JudgeConfig
    from kernelgym.judge.judge import Judge

    found: dict[str, Any] = {}
    base = JudgeConfig(device="cuda", size="small", baselines=("eager",))
    for size, counters, times in (("small", True, 2), ("small", False, 2), ("full", True, 1)):
        config = dataclasses.replace(base, size=size, counters=counters)
        with Judge(config) as one:
            runs = found[f"{size}, counters {'on' if counters else 'off'}"] = []
            for _ in range(times):
                source = _relu(secrets.token_hex(4))
                for state in ("cold", "warm"):
                    runs.append({"state": state, **_judged(one, source)})
                    yield found


def energy() -> Iterator[dict[str, Any]]:
    import dataclasses

    import torch

    from kernelgym.config import JudgeConfig
    from kernelgym.judge.energy import EnergyCounter
    from kernelgym.judge.judge import Judge

    found: dict[str, Any] = {}

    def period() -> dict[str, float]:
        counter = EnergyCounter(str(torch.cuda.get_device_properties(0).uuid))
        a = torch.randn(4096, 4096, device="cuda")
        changes = []
        last, began = counter.joules(), time.perf_counter()
        while time.perf_counter() - began < 2.0:
            a @ a
            torch.cuda.synchronize()
            now = counter.joules()
            if now != last:
                changes.append(time.perf_counter() - began)
                last = now
        counter.close()
        gaps = sorted(b - a for a, b in itertools.pairwise(changes))
        return {"changes": len(changes), "median_gap": gaps[len(gaps) // 2] if gaps else -1.0}

    found["period"] = _tried(period)
    yield found

    def verdict() -> dict[str, Any]:
        config = JudgeConfig(
            device="cuda", size="full", baselines=("eager",), counters=False, energy=True
        )
        with Judge(config) as one:
            result = one.evaluate("L1/19", _relu("energy"))
        return {
            "outcome": str(result.outcome),
            "message": result.message,
            "energy": dataclasses.asdict(result.energy) if result.energy else None,
            "energy_eager": dataclasses.asdict(result.energy_eager)
            if result.energy_eager
            else None,
            "seconds": dict(result.seconds),
            "timing": dataclasses.asdict(result.timing) if result.timing else None,
        }

    found["verdict"] = _tried(verdict)
    yield found


# --- helpers ---------------------------------------------------------------------------------


def _judged(judge: Any, source: str) -> dict[str, Any]:
    import dataclasses

    from kernelgym.feedback import render_feedback

    began = time.perf_counter()
    verdict = judge.evaluate("L1/19", source)
    return {
        "wall": time.perf_counter() - began,
        "outcome": str(verdict.outcome),
        "message": verdict.message,
        "seconds": dict(verdict.seconds),
        "peak_memory": verdict.peak_memory,
        "peak_memory_eager": verdict.peak_memory_eager,
        "protections": verdict.provenance.protections,
        "counters": dataclasses.asdict(verdict.counters) if verdict.counters else None,
        "build": dataclasses.asdict(verdict.build) if verdict.build else None,
        "feedback": render_feedback(verdict),
    }


def _relu(nonce: str) -> str:
    return f'''
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
// {nonce}
__global__ void relu_{nonce}(const float4* x, float4* y, long n) {{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) {{
        float4 v = x[i];
        y[i] = make_float4(fmaxf(v.x, 0.f), fmaxf(v.y, 0.f), fmaxf(v.z, 0.f), fmaxf(v.w, 0.f));
    }}
}}
torch::Tensor run(torch::Tensor x) {{
    auto y = torch::empty_like(x);
    long n = x.numel() / 4;
    relu_{nonce}<<<(n + 255) / 256, 256>>>(
        (const float4*)x.data_ptr<float>(), (float4*)y.data_ptr<float>(), n);
    return y;
}}
"""
ext = load_inline(name="relu", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  cuda_sources=source, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.run(x)
'''


def _calls() -> dict[str, Any]:
    import torch

    x = torch.randn(8192, 8192, device="cuda")
    a = torch.randn(8192, 8192, device="cuda")
    long = torch.randn(32 * N, device="cuda")
    y = torch.empty(N, device="cuda")

    def product(precision: str) -> Any:
        from kernelgym.judge.device import arithmetic

        with arithmetic(precision):
            return x @ a

    calls: dict[str, Any] = {
        "relu": lambda: torch.relu(x),
        "product": lambda: product("ieee"),
        "product_tf32": lambda: product("tf32"),
    }
    try:
        import cupy

        module = cupy.RawModule(code=KERNELS)
        pointers = {"x": long.data_ptr(), "y": y.data_ptr()}

        def launch(name: str, n: int, *tensors: str) -> Any:
            kernel = module.get_function(name)
            arguments = (*(pointers[t] for t in tensors), cupy.int32(n))
            threads = 1024 if name == "shared_conflicts" else 256
            return lambda: kernel(((n + threads - 1) // threads,), (threads,), arguments)

        calls["copy_coalesced"] = launch("copy_coalesced", N, "x", "y")
        calls["copy_float4"] = launch("copy_float4", N // 4, "x", "y")
        calls["load_strided"] = launch("load_strided", N, "x", "y")
        calls["shared_conflicts"] = launch("shared_conflicts", N, "y")
    except Exception:
        print(traceback.format_exc(), file=sys.stderr)
    return calls


def _count_relu() -> Any:
    import torch

    torch.zeros(1, device="cuda")
    x = torch.randn(2**22, device="cuda")
    torch.relu(x)
    return _counted(lambda: torch.relu(x))


def _counted(call: Any, names: tuple[str, ...] = ()) -> dict[str, Any]:
    import torch

    from kernelgym.judge.cupti import Cupti, find_cupti
    from kernelgym.judge.metrics import counter_values
    from kernelgym.judge.range_profiler import RangeProfiler, make_plan

    path = find_cupti()
    assert path is not None
    cupti = Cupti(path)
    plan = make_plan(cupti, CHIP)
    began = time.perf_counter()
    profiler = RangeProfiler(plan)
    opened = time.perf_counter()
    counts = profiler.count(call, torch.cuda.synchronize, names)
    ended = time.perf_counter()
    launches = [
        {n: v for n, v in zip(plan.names, one.values, strict=True) if v is not None}
        for one in counts.launches
    ]
    seconds, values = counter_values(launches)
    return {
        "names": [one.name for one in counts.launches],
        "complete": counts.complete,
        "passes": plan.passes,
        "open_seconds": opened - began,
        "count_seconds": ended - opened,
        "steps": dict(counts.seconds),
        "device_seconds": seconds,
        "values": dict(values),
        "raw": launches[:4],
    }


def _tried(step: Any) -> Any:
    try:
        return step()
    except Exception:
        return traceback.format_exc()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=tuple(STEPS), default=tuple(STEPS))
    parser.add_argument("--step", choices=tuple(STEPS))
    parser.add_argument("--budget", type=float, default=120.0, help="seconds in all")
    arguments = parser.parse_args()
    if arguments.step:
        # The parent's time limit may end this process: what it has started goes with it.
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
        faulthandler.enable()
        found: Any = {}
        try:
            for found in globals()[arguments.step]():
                arguments.out.write_text(json.dumps(found, default=str))
        except Exception:
            found["error"] = traceback.format_exc()
            arguments.out.write_text(json.dumps(found, default=str))
        return
    results: dict[str, Any] = {"started": time.strftime("%Y-%m-%d %H:%M:%S")}
    deadline = time.monotonic() + arguments.budget
    for step in arguments.only:
        began = time.monotonic()
        limit = min(STEPS[step], deadline - began)
        if limit < _LEAST_SECONDS:
            results[step] = {"status": "no time left"}
            arguments.out.write_text(json.dumps(results, indent=1))
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "found.json"
            command = [sys.executable, __file__, str(file), "--step", step]
            try:
                done = subprocess.run(
                    command,
                    timeout=limit,
                    capture_output=True,
                    text=True,
                    check=False,
                    # The step `confined` forks.
                    env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                )
                said = {"status": done.returncode, "output": (done.stdout + done.stderr)[-4000:]}
            except subprocess.TimeoutExpired as error:
                said = {"status": "timeout", "output": str(error.stderr or "")[-4000:]}
            try:
                found = json.loads(file.read_text())
            except (OSError, ValueError):
                found = None
        results[step] = {"seconds": time.monotonic() - began, "found": found, **said}
        arguments.out.write_text(json.dumps(results, indent=1))
        print(f"{step}: {said['status']}, {results[step]['seconds']:.1f} s", flush=True)
        print(json.dumps(found, indent=1)[:3000], flush=True)


if __name__ == "__main__":
    main()
