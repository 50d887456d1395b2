"""Many verdicts in a row, a tenth of them on hostile candidates: does the judge stay as it was?

    python benchmarks/soak.py --device cuda --verdicts 1000 --output benchmarks/results/FILE.json

Held: processes and descriptors afterwards are as many as before, the GPU's memory is the same
within 50 MB, and after each hostile candidate a known-good one gets the verdict that it got alone
(outcome; the speedup's interval overlaps one of those measured alone). Ends with status 1 where one
of these does not hold. `--device cpu --verdicts 50` tries it on the emulator.
"""

from __future__ import annotations

import argparse
import gc
import os
import pathlib
import sys
import time
from typing import Any

import psutil
import torch
from batches import Report, described

from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault
from kernelgym.judge.judge import Judge

TASK = "L1/19"
SOLO = 5
TOLERANCE_BYTES = 50 * 2**20

TEMPLATE = '''
import ctypes
import os
import signal
import sys
import threading
import time

import torch
from torch.utils.cpp_extension import load_inline

{prelude}
source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void relu(const float* x, float* y, long n) {{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    {kernel}
}}
torch::Tensor run(torch::Tensor x) {{
    auto y = torch::empty_like(x);
    long n = x.numel();
    relu<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}}
"""
ext = load_inline(name="ext", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  cuda_sources=source, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        {forward}
        return ext.run(x)
'''
RIGHT = "if (i < n) y[i] = x[i] > 0 ? x[i] : 0;"

# Name to what of the template it changes.
HOSTILE: dict[str, dict[str, str]] = {
    "illegal_address": {"kernel": "y[i + (1L << 40)] = x[i];"},
    "null_pointer": {"kernel": "if (i < n) *(volatile float*)nullptr = x[i];"},
    "kernel_hang": {"kernel": "volatile long* p = (volatile long*)y; while (i < 32) p[i] += 1;"},
    "host_hang": {"forward": "while True: pass"},
    "sleep": {"forward": "time.sleep(3600)"},
    "device_memory": {
        "forward": "held = [torch.empty(2**33, dtype=torch.uint8, device=x.device) "
        "for _ in range(64)]"
    },
    "host_memory": {"forward": "held = bytearray(2**45)"},
    "kill_self": {"forward": "os.kill(os.getpid(), signal.SIGKILL)"},
    "kill_parent": {"forward": "os.kill(os.getppid(), signal.SIGKILL)"},
    "kill_all": {"forward": "os.kill(-1, signal.SIGKILL)"},
    "fork_bomb": {"forward": "[os.fork() for _ in range(100)]"},
    "fork_bomb_on_import": {"prelude": "for _ in range(12): os.fork()"},
    "descriptors": {"forward": "held = [os.open('/dev/null', os.O_RDONLY) for _ in range(10**6)]"},
    "threads": {
        "forward": "[threading.Thread(target=time.sleep, args=(99,)).start() for _ in range(10**4)]"
    },
    "exit": {"forward": "os._exit(0)"},
    "exit_on_import": {"prelude": "sys.exit(3)"},
    "output": {"forward": "[print('x' * 10**6) for _ in range(300)]"},
    "output_to_descriptors": {
        "forward": "[os.write(fd, b'x' * 10**6) for _ in range(99) for fd in (1, 2)]"
    },
    "segfault": {"forward": "ctypes.string_at(8)"},
    "recursion": {"prelude": "sys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1) + 1\nf(0)"},
    "disk": {"forward": "open('big', 'wb').write(bytes(2**31))"},
}


def text_of(**changes: str) -> str:
    """A candidate."""
    parts = {"prelude": "", "kernel": RIGHT, "forward": "pass", **changes}
    return TEMPLATE.format(**parts)


def state(device: torch.device) -> dict[str, Any]:
    """What must not grow. The GPU's memory is that of all processes."""
    gc.collect()
    me = psutil.Process()
    used = 0
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info(device)
        used = total - free
    children = me.children(recursive=True)
    return {
        "processes": len(children),
        "descriptors": me.num_fds() + sum(_descriptors(child) for child in children),
        "threads": me.num_threads(),
        "resident_bytes": me.memory_info().rss,
        "gpu_bytes": used,
        "temporary": len(os.listdir(os.environ.get("TMPDIR", "/tmp"))),
    }


def _descriptors(process: psutil.Process) -> int:
    try:
        return process.num_fds()
    except psutil.Error:
        return 0  # it has just ended


def settled(device: torch.device, wanted: dict[str, Any] | None = None) -> dict[str, Any]:
    """The state once it has come to rest, or after some seconds."""
    deadline = time.monotonic() + 10
    now = state(device)
    while wanted is not None and differences(wanted, now) and time.monotonic() < deadline:
        time.sleep(0.2)
        now = state(device)
    return now


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What has changed and must not."""
    found = [
        f"{name}: {before[name]} before, {after[name]} after"
        for name in ("processes", "descriptors", "threads")
        if before[name] != after[name]
    ]
    if abs(before["gpu_bytes"] - after["gpu_bytes"]) > TOLERANCE_BYTES:
        found.append(f"gpu_bytes: {before['gpu_bytes']} before, {after['gpu_bytes']} after")
    return found


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--verdicts", type=int, default=1000)
    parser.add_argument("--hostile", type=float, default=0.1)
    parser.add_argument("--only", nargs="*", choices=sorted(HOSTILE), help="hostile kinds")
    parser.add_argument("--size", default="small")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--run-timeout", type=float, default=6.0)
    parser.add_argument("--limit-seconds", type=float, default=540.0)
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    settings = {k: str(v) if isinstance(v, pathlib.Path) else v for k, v in vars(options).items()}
    report = Report(options.output, settings=settings)
    config = JudgeConfig(
        device=options.device,
        size=options.size,
        draws=options.draws,
        run_timeout=options.run_timeout,
        baselines=("eager",),
        counters=False,
    )
    broken = ["it did not run"]
    with report.step("soak"), Judge(config) as judge:
        broken = soak(report, judge, options)
    report.content["broken"] = broken + report.content["troubles"]
    report.write()
    for line in report.content["broken"]:
        print(f"BROKEN {line}")
    print({name: report.content.get(name) for name in ("judged", "outcomes", "before", "after")})
    sys.exit(1 if report.content["broken"] else 0)


def soak(report: Report, judge: Judge, options: argparse.Namespace) -> list[str]:
    """All verdicts; returns what did not hold."""
    end = time.monotonic() + options.limit_seconds
    good = text_of()
    broken: list[str] = []
    rows: list[dict[str, Any]] = []
    outcomes: dict[str, dict[str, int]] = {}
    report.content |= {"rows": rows, "outcomes": outcomes}

    def judged(name: str, text: str) -> dict[str, Any]:
        began = time.monotonic()
        try:
            row = described(judge.evaluate(TASK, text))
        except EnvironmentFault as fault:
            row = {"outcome": "FAULT", "reason": str(fault)[:300]}
        row |= {"name": name, "wall": round(time.monotonic() - began, 3)}
        rows.append(row)
        ending = f"{row['outcome']} {row['reason']}".strip()
        count = outcomes.setdefault(name, {})
        count[ending] = count.get(ending, 0) + 1
        return row

    solo = [judged("solo", good) for _ in range(SOLO)]
    if any(row["outcome"] != "correct" for row in solo):
        return [f"the known-good candidate alone: {solo[-1]}"]
    # What is made once is made now, not counted as left behind: one death starts what it starts.
    judged("exit", text_of(**HOSTILE["exit"]))
    report.content["before"] = before = settled(judge.device)
    kinds = options.only or list(HOSTILE)
    every = max(round(1 / options.hostile), 2)
    turn = 0
    while len(rows) < options.verdicts and time.monotonic() < end:
        if len(rows) % every == 0:
            name = kinds[turn % len(kinds)]
            turn += 1
            row = judged(name, text_of(**HOSTILE[name]))
            after = judged(f"after {name}", good)
            if not same(after, solo):
                broken.append(f"after {name} ({row['outcome']} {row['reason']}): {after}")
        else:
            row = judged("good", good)
            if row["outcome"] != "correct":
                broken.append(f"a known-good candidate: {row}")
        if len(rows) % 20 == 0:
            report.write()
    report.content["after"] = after = settled(judge.device, before)
    report.content["judged"] = len(rows)
    report.content["complete"] = len(rows) >= options.verdicts
    return broken + differences(before, after)


def same(row: dict[str, Any], solo: list[dict[str, Any]]) -> bool:
    """Whether a verdict is one of those reached alone, as far as its interval tells."""
    if row["outcome"] != "correct":
        return False
    if not row.get("speedup"):
        return not any(other.get("speedup") for other in solo)
    low, _, high = row["speedup"]
    return any(low <= other["speedup"][2] and other["speedup"][0] <= high for other in solo)


if __name__ == "__main__":
    main()
