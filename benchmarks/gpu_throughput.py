"""How many verdicts an hour: distinct candidates over levels 1 and 2 through one pool, cold.

    python benchmarks/gpu_throughput.py --devices 0 --output benchmarks/results/FILE.json

Each source is one that nobody has seen (fresh identifiers and a comment), the content cache is
empty, the judges are warm (one judgement before the clock starts). Counters are off. `--write`
keeps the generated candidates for a later run's `--candidates`, which makes their sources fresh
again. Devices may be `cpu`, several times, for a trial without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import tempfile
from typing import Any

from batches import Report, Sampler, device_names, fresh, generate, judge_all, read, summary

from kernelgym.config import JudgeConfig
from kernelgym.judge.pool import JudgePool


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", nargs="+", default=["0"])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--candidates", type=pathlib.Path, help="JSONL or folder, to generate none")
    parser.add_argument("--write", type=pathlib.Path, help="keep the candidates, as JSONL")
    parser.add_argument("--generate-only", action="store_true")
    parser.add_argument("--wrong", type=float, default=0.1)
    parser.add_argument("--broken", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", default="auto")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--baselines", nargs="*", default=["eager"])
    parser.add_argument("--workers", type=int)
    parser.add_argument("--per-device", type=int)
    parser.add_argument("--cores", type=int, help="use this many of the cores")
    parser.add_argument("--limit-seconds", type=float, default=480.0)
    parser.add_argument("--cache", help="folder of caches; default: a new one")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    devices = device_names(options.devices)
    size = options.size if options.size != "auto" else "small" if "cpu" in devices else "full"
    settings = {k: str(v) if isinstance(v, pathlib.Path) else v for k, v in vars(options).items()}
    report = Report(options.output, settings=settings)
    candidates: list[dict[str, Any]] = []
    with report.step("candidates"):
        if options.candidates is not None:
            candidates = read(options.candidates)[: options.count]
        else:
            candidates = generate(options.count, size, options.seed, options.wrong, options.broken)
        if options.write is not None:
            options.write.parent.mkdir(parents=True, exist_ok=True)
            options.write.write_text("".join(json.dumps(c) + "\n" for c in candidates))
    if options.generate_only:
        return
    dice = random.Random()
    for candidate in candidates:
        candidate["text"] = fresh(candidate["text"], dice)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        os.environ["XDG_CACHE_HOME"] = options.cache or cache
        with report.step("run"):
            run(report, options, devices, size, candidates)
    print(json.dumps(report.content.get("summary"), indent=1))


def run(
    report: Report,
    options: argparse.Namespace,
    devices: list[str | int],
    size: str,
    candidates: list[dict[str, Any]],
) -> None:
    """The measured part; rows are in the report as they come."""
    config = JudgeConfig(
        size=size, counters=False, draws=options.draws, baselines=tuple(options.baselines)
    )
    rows: list[dict[str, Any]] = []
    report.content["rows"] = rows

    def note(row: dict[str, Any]) -> None:
        rows.append(row)
        if len(rows) % 20 == 0:
            print(f"{len(rows)} of {len(candidates)} at {row['done_at']:.1f} s", flush=True)
            report.content["summary"] = summary(rows, row["done_at"], len(devices))
            report.write()

    pool = JudgePool(
        config, devices=devices, workers=options.workers, per_device=options.per_device
    )
    with pool:
        report.content["threads"] = len(pool._threads)
        for judge in pool.judges:  # each starts its standby process, and opens its device
            warm = next((c for c in candidates if c["kind"] in ("right", "")), None)
            if warm is not None:
                text = fresh(warm["text"], random.Random())
                report.content.setdefault("warm_up", []).append(
                    judge.evaluate(warm["task"], text).reason
                )
        gpus = [device for device in devices if isinstance(device, int)]
        with Sampler(gpus) as sampler:
            seconds = judge_all(pool, candidates, options.limit_seconds, note)
        report.content["gpu_busy"] = sampler.report()
    report.content["complete"] = len(rows) == len(candidates)
    report.content["summary"] = summary(rows, seconds, len(devices))


if __name__ == "__main__":
    main()
