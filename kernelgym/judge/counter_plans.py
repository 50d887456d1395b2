"""Plans of what to count, made in a process of their own and kept in a cache.

CUPTI is loaded into the grader's process never: where something does not suit it, it may crash
instead of failing, and a judge must not go down with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping

import msgspec

from kernelgym.errors import KernelGymError
from kernelgym.judge.cupti import Cupti
from kernelgym.judge.metrics import ALTERNATIVES
from kernelgym.judge.range_profiler import CounterPlan, chip_of, make_plan
from kernelgym.toolchain.cache import ContentCache

__all__ = ["PlanFailed", "plan_for", "stored_plan"]

# Where a compute capability has one chip alone, nobody needs to be asked.
_CHIPS: Mapping[tuple[int, int], str] = {(7, 0): "GV100", (8, 0): "GA100", (9, 0): "GH100"}
_PLAN_SECONDS = 30.0
_MAX_MESSAGE = 300
_FILE = "plan.json"


class PlanFailed(KernelGymError):
    """No plan could be made; the message says why."""


def stored_plan(
    cache: ContentCache, library: str, gpu: str, capability: tuple[int, int], index: int
) -> CounterPlan:
    """The plan for a GPU out of a cache, made and kept there when it is not in it.

    Args:
        cache: Where plans are kept.
        library: Path of CUPTI.
        gpu: The GPU's name, and its driver's version.
        capability: Its compute capability.
        index: Of the GPU, as CUDA counts them.

    Raises:
        PlanFailed: CUPTI does not know the GPU, or crashed.
    """
    real = os.path.realpath(library)
    asked = f"counter plan 2 {real} {os.path.getmtime(real)} {gpu} {capability} {ALTERNATIVES}"
    key = hashlib.sha256(asked.encode()).hexdigest()
    entry = cache.get(key)
    if entry is not None:
        with contextlib.suppress(OSError, msgspec.DecodeError):  # Dropped meanwhile: made again.
            return msgspec.json.decode((entry / _FILE).read_bytes(), type=CounterPlan)
    plan = plan_for(library, _CHIPS.get(capability, index))
    cache.publish(key, {_FILE: msgspec.json.encode(plan)})
    return plan


def plan_for(library: str, chip: str | int) -> CounterPlan:
    """Has another process make a plan.

    Args:
        library: Path of CUPTI.
        chip: CUPTI's name of the chip, or the index of a GPU that has it.

    Raises:
        PlanFailed: CUPTI does not know the chip, or crashed.
    """
    command = [sys.executable, "-m", __name__, library, str(chip)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PLAN_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise PlanFailed(f"CUPTI made no plan in {_PLAN_SECONDS:.0f} s") from None
    if done.returncode < 0:
        raise PlanFailed(f"CUPTI ({library}) crashed with signal {-done.returncode}")
    try:
        return msgspec.json.decode(done.stdout, type=CounterPlan)
    except msgspec.DecodeError:
        said = done.stderr.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
        raise PlanFailed(said[-_MAX_MESSAGE:] or f"status {done.returncode}") from None


def _main() -> None:
    library, chip = sys.argv[1:]
    cupti = Cupti(library)
    plan = make_plan(cupti, chip_of(cupti, int(chip)) if chip.isdigit() else chip)
    sys.stdout.buffer.write(msgspec.json.encode(plan))


if __name__ == "__main__":
    _main()
