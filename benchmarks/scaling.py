"""Does the judge scale: one batch on one GPU, on the other, on both; and with one side killed.

    python benchmarks/scaling.py --devices 0 1 --output benchmarks/results/FILE.json

The CPU's cores are divided: a run on one of N devices gets a share of 1/N of them. Told are the
ratio of verdicts an hour (1.9 is wanted for two), how many candidates' speedups on both agree
with those measured alone (their 95 % intervals overlap), and the same for a run in which a standby
process is killed every some seconds. Each part is a process of `gpu_throughput.py`; devices may be
`cpu cpu` for a trial without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import psutil
from batches import Report

HERE = pathlib.Path(__file__).parent


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", nargs="+", default=["0", "1"])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--candidates", type=pathlib.Path)
    parser.add_argument("--killed-count", type=int, default=60, help="candidates of the last part")
    parser.add_argument("--kill-every", type=float, default=10.0, help="seconds")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--size", default="auto")
    parser.add_argument("--limit-seconds", type=float, default=540.0, help="of all parts together")
    parser.add_argument("--cache", help="folder of caches; default: one for all parts")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    end = time.monotonic() + options.limit_seconds
    settings = {k: str(v) if isinstance(v, pathlib.Path) else v for k, v in vars(options).items()}
    report = Report(options.output, settings=settings)
    parts: dict[str, Any] = report.content.setdefault("parts", {})
    cores = len(os.sched_getaffinity(0))
    share = max(cores // len(options.devices), 1)
    with tempfile.TemporaryDirectory() as folder:
        # Sources are fresh in each part; what is built once for all is built in the first.
        options.cache = options.cache or folder
        given = options.candidates or pathlib.Path(folder, "candidates.jsonl")
        if options.candidates is None:
            with report.step("candidates"):
                run(given, options, options.devices[:1], cores, end, generate=given)
        for index, device in enumerate(options.devices):
            if index == 0 or device != options.devices[0]:
                with report.step(f"alone on {device}"):
                    parts[f"alone_{device}"] = run(given, options, [device], share, end)
        with report.step("together"):
            parts["together"] = run(given, options, options.devices, cores, end)
        with report.step("killed"):
            parts["killed"] = run(
                given,
                options,
                options.devices,
                cores,
                end,
                count=min(options.killed_count, options.count),
                kill_every=options.kill_every,
            )
        with report.step("comparison"):
            report.content["comparison"] = comparison(parts)
    print(json.dumps(report.content.get("comparison"), indent=1))


def run(
    candidates: pathlib.Path,
    options: argparse.Namespace,
    devices: Sequence[str],
    cores: int,
    end: float,
    *,
    generate: pathlib.Path | None = None,
    count: int | None = None,
    kill_every: float = 0.0,
) -> dict[str, Any]:
    """One part; returns its report, and what was killed meanwhile."""
    left = end - time.monotonic()
    if left < 5:
        raise TimeoutError("no time is left for this part")
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "report.json")
        command = [sys.executable, str(HERE / "gpu_throughput.py"), "--devices", *devices]
        command += ["--count", str(count or options.count), "--cores", str(cores)]
        command += ["--draws", str(options.draws), "--size", options.size]
        command += ["--cache", options.cache]
        # A part may take what is left, but for the time to write its report.
        command += ["--limit-seconds", f"{left - 4:.0f}", "--output", str(output)]
        if generate is not None:
            command += ["--write", str(generate), "--generate-only"]
        else:
            command += ["--candidates", str(candidates)]
        process = subprocess.Popen(command)
        killed: list[float] = []
        began = last = time.monotonic()
        try:
            while process.poll() is None:
                time.sleep(0.2)
                now = time.monotonic()
                if now > end + 20:
                    raise TimeoutError("a part did not end in time")
                # Not before it is at work: its report appears with the first part of it.
                if kill_every and output.exists() and now - last > kill_every:
                    last = now
                    if kill_one(process.pid):
                        killed.append(round(now - began, 1))
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(20)
        content: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {}
    if kill_every:
        content["killed_at"] = killed
    if process.returncode:
        content.setdefault("troubles", []).append(f"it ended with status {process.returncode}")
    return content


def kill_one(pid: int) -> bool:
    """Kills the oldest of a pool's standby processes, which those forked from it do not survive."""
    try:
        standby = [
            child
            for child in psutil.Process(pid).children()
            if "kernelgym.judge.zygote" in " ".join(child.cmdline())
        ]
        if len(standby) < 2:
            return False
        min(standby, key=lambda child: child.create_time()).kill()
    except psutil.Error:
        return False
    return True


def comparison(parts: dict[str, Any]) -> dict[str, Any]:
    """What the parts say together."""
    alone = [part for name, part in parts.items() if name.startswith("alone_")]
    rates = [part["summary"]["verdicts_per_hour"] for part in alone if "summary" in part]
    result: dict[str, Any] = {}
    for name in ("together", "killed"):
        part = parts.get(name, {})
        if "summary" not in part or not rates:
            continue
        rate = part["summary"]["verdicts_per_hour"]
        result[name] = {
            "verdicts_per_hour": rate,
            "ratio_to_one": round(rate / (sum(rates) / len(rates)), 3),
            "faults": part["summary"]["faults"],
            "devices": sorted({row["device"] for row in part["rows"] if "device" in row}),
            "killed": len(part.get("killed_at", ())),
            **agreement(part["rows"], [row for other in alone for row in other.get("rows", [])]),
        }
    return result


def agreement(rows: list[dict[str, Any]], alone: list[dict[str, Any]]) -> dict[str, Any]:
    """How a run's verdicts compare with those of the same candidates measured alone."""
    before: dict[int, list[dict[str, Any]]] = {}
    for row in alone:
        before.setdefault(row["index"], []).append(row)
    other_outcome: list[Any] = []
    other_speed: list[Any] = []
    ratios: list[float] = []
    compared = 0
    for row in rows:
        for other in before.get(row["index"], []):
            if "outcome" not in row or "outcome" not in other:
                continue
            if (row["outcome"], row["reason"]) != (other["outcome"], other["reason"]):
                other_outcome.append([row["task"], row["outcome"], other["outcome"]])
            elif row.get("speedup") and other.get("speedup"):
                compared += 1
                (low, value, high), (a, b, c) = row["speedup"], other["speedup"]
                ratios.append(value / b)
                if low > c or a > high:
                    other_speed.append([row["task"], row["speedup"], other["speedup"]])
    return {
        "speedups_compared": compared,
        "speedups_apart": len(other_speed),
        "median_ratio_of_speedups": round(median(ratios), 4) if ratios else None,
        "outcomes_apart": len(other_outcome),
        "apart": other_speed[:40] + other_outcome[:40],
    }


if __name__ == "__main__":
    main()
