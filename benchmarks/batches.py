"""What the benchmarks of whole batches share: fresh candidates, a run with a limit, and its report."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import pathlib
import platform
import random
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from typing import Any

import torch

from kernelgym._version import __version__
from kernelgym.agents.kernels.program import compile_program
from kernelgym.errors import KernelGymError
from kernelgym.judge.pool import JudgePool
from kernelgym.judge.verdict import Verdict
from kernelgym.tasks import get, ids

# Phases of a judgement in which it has the GPU for itself.
TURN_PHASES = ("reference", "start", "check", "time", "profile")


# --- candidates ------------------------------------------------------------------------------


def generate(count: int, size: str, seed: int, wrong: float, broken: float) -> list[dict[str, Any]]:
    """Candidates for tasks of levels 1 and 2 in turn, from the bundled agent's templates.

    Each is `{"task", "kind", "text"}`; `kind` is `"right"`, `"wrong"` (the last block is not
    launched) or `"broken"` (does not compile). Where there are more candidates than tasks, later
    ones have other knobs.
    """
    dice = random.Random(seed)
    names = [name for name in ids() if name.startswith(("L1/", "L2/"))]
    dice.shuffle(names)
    chosen = [names[index % len(names)] for index in range(count + count // 10 + 2)]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        orders = [
            (name, size, dice.randrange(2**30), n >= len(names)) for n, name in enumerate(chosen)
        ]
        texts = list(pool.map(_render, orders, chunksize=4))
    made = [(name, text) for name, text in zip(chosen, texts, strict=True) if text][:count]
    result = []
    for index, (name, text) in enumerate(made):
        share = (index * 0.6180339887) % 1  # spread evenly, whatever the number
        kind = "wrong" if share < wrong else "broken" if share < wrong + broken else "right"
        changed = _CHANGES[kind](text)
        result.append({"task": name, "kind": kind if changed != text else "right", "text": changed})
    return result


def _render(order: tuple[str, str, int, bool]) -> str:
    name, size, seed, vary = order
    try:
        program = compile_program(get(name).source(size))
    except KernelGymError:
        return ""  # no template for one of its operators
    dice = random.Random(seed)
    knobs = program.knobs() if vary else {}
    return program.render({key: dice.choice(knob.choices) for key, knob in knobs.items()})


def _without_last_block(text: str) -> str:
    return re.sub(r"<<<(\d+), ", lambda m: f"<<<{max(int(m[1]) - 1, 1)}, ", text)


_CHANGES: dict[str, Callable[[str], str]] = {
    "right": lambda text: text,
    "wrong": _without_last_block,
    "broken": lambda text: text.replace("__restrict__", "__restrict_", 1),
}


def fresh(text: str, dice: random.Random) -> str:
    """The same program with identifiers and a comment that no cache has seen."""
    nonce = f"{dice.getrandbits(48):012x}"
    renamed = re.sub(r"\bforward_(?=\w)", f"f{nonce}_", text)
    return renamed.replace(
        "#include <torch/extension.h>", f"// {nonce}\n#include <torch/extension.h>"
    )


def read(path: pathlib.Path) -> list[dict[str, Any]]:
    """Candidates from a JSONL file of such records, or a folder `L1_19*.py`, `L2_7*.py`, …"""
    if path.is_dir():
        found = []
        for file in sorted(path.glob("L[123]_*.py")):
            level, number = re.match(r"(L\d)_(\d+)", file.name).groups()  # type: ignore[union-attr]
            found.append({"task": f"{level}/{number}", "kind": "", "text": file.read_text()})
        return found
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- runs ------------------------------------------------------------------------------------


def judge_all(
    pool: JudgePool,
    candidates: list[dict[str, Any]],
    limit_seconds: float,
    note: Callable[[dict[str, Any]], None],
) -> float:
    """Judges all, or as many as the limit allows; tells `note` of each, and returns the seconds."""
    began = time.monotonic()
    futures = {
        pool.submit(candidate["task"], candidate["text"]): index
        for index, candidate in enumerate(candidates)
    }
    with contextlib.suppress(TimeoutError, concurrent.futures.TimeoutError):
        for future in concurrent.futures.as_completed(futures, timeout=limit_seconds):
            index = futures[future]
            candidate = candidates[index]
            row: dict[str, Any] = {"index": index, "task": candidate["task"]}
            row |= {"kind": candidate["kind"], "done_at": round(time.monotonic() - began, 4)}
            error = future.exception()
            row |= described(future.result()) if error is None else {"fault": str(error)[:500]}
            note(row)
    return time.monotonic() - began


def described(verdict: Verdict) -> dict[str, Any]:
    """What a report keeps of a verdict."""
    row: dict[str, Any] = {
        "outcome": str(verdict.outcome),
        "reason": verdict.reason,
        "device": verdict.provenance.device_uuid or verdict.provenance.device,
        "seconds": {name: round(value, 4) for name, value in verdict.seconds},
        "cached": verdict.build.cached if verdict.build else None,
    }
    if verdict.outcome.value not in ("correct", "compile_error"):
        row["message"] = verdict.message[:300]
    if verdict.timing is not None:
        row["candidate_seconds"] = verdict.timing.candidate.median
        speedup = verdict.timing.speedup_eager
        row["speedup"] = speedup and [speedup.low, speedup.value, speedup.high]
    return row


def summary(rows: list[dict[str, Any]], seconds: float, devices: int) -> dict[str, Any]:
    """Verdicts an hour, outcomes, and seconds by phase."""
    verdicts = [row for row in rows if "outcome" in row]
    phases = sorted({phase for row in verdicts for phase in row["seconds"]})
    outcomes: dict[str, int] = {}
    for row in rows:
        name = f"{row['kind'] or 'given'}: " + (
            f"{row['outcome']} {row['reason']}".strip() if "outcome" in row else "FAULT"
        )
        outcomes[name] = outcomes.get(name, 0) + 1
    turns = sum(row["seconds"].get(phase, 0.0) for row in verdicts for phase in TURN_PHASES)
    return {
        "verdicts": len(verdicts),
        "faults": len(rows) - len(verdicts),
        "seconds": round(seconds, 3),
        "verdicts_per_hour": round(3600 * len(verdicts) / seconds, 1) if seconds else None,
        "compiled_ahead": sum(row["cached"] is True for row in verdicts),
        "turn_share": round(turns / (seconds * devices), 4) if seconds else None,
        "outcomes": dict(sorted(outcomes.items())),
        "phase_seconds": {
            phase: {
                "sum": round(sum(row["seconds"].get(phase, 0.0) for row in verdicts), 3),
                "median": round(median(row["seconds"].get(phase, 0.0) for row in verdicts), 4),
                "largest": round(max(row["seconds"].get(phase, 0.0) for row in verdicts), 3),
            }
            for phase in phases
        },
    }


class Sampler:
    """Samples, in a thread, how busy GPUs are: NVML's share of time with a kernel on the GPU.

    Args:
        devices: Indices of GPUs.
    """

    def __init__(self, devices: list[int]) -> None:
        self._devices = devices
        self._stop = threading.Event()
        self.samples: dict[int, list[int]] = {device: [] for device in devices}
        self.trouble = ""

    def __enter__(self) -> Sampler:
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while self._devices and not self._stop.wait(0.5):
            try:
                run = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
                lines = run.stdout.split()
                for device in self._devices:
                    self.samples[device].append(int(lines[device]))
            except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
                self.trouble = str(error)
                return

    def report(self) -> dict[str, Any]:
        """Mean utilisation by GPU, and the samples."""
        means = {d: round(sum(s) / len(s) / 100, 4) for d, s in self.samples.items() if s}
        return {"mean": means, "samples": self.samples, "trouble": self.trouble}


# --- reports ---------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """What the numbers belong to."""
    query = ["nvidia-smi", "--query-gpu=name,uuid,driver_version", "--format=csv,noheader"]
    try:
        gpus = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        gpus = []
    return {
        "kernelgym": __version__,
        "torch": str(torch.__version__),
        "cuda": str(torch.version.cuda),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cores": len(os.sched_getaffinity(0)),
        "gpus": gpus,
    }


class Report:
    """A JSON file that is written anew after each step, so that a run cut short has its part.

    Args:
        path: The file, or None for no file.
        **head: First entries.
    """

    def __init__(self, path: pathlib.Path | None, **head: Any) -> None:
        self._path = path
        self.content: dict[str, Any] = {"machine": machine(), **head, "troubles": []}

    def write(self) -> None:
        """Writes what there is."""
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh_file = self._path.with_suffix(".new")
            fresh_file.write_text(json.dumps(self.content, indent=1) + "\n")
            fresh_file.replace(self._path)

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One step: what goes wrong is noted, and the next step comes all the same."""
        began = time.monotonic()
        try:
            yield
        except Exception as error:
            trouble = f"{name}: {type(error).__name__}: {error}"
            print(trouble, flush=True)
            self.content["troubles"].append(trouble)
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
        self.write()


def device_names(given: list[str]) -> list[str | int]:
    """Devices as a command line names them."""
    return [int(name) if name.isdigit() else name for name in given]
