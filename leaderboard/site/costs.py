"""What each task costs at least, FLOPs and bytes: a table, for to find them takes minutes.

`python -m kernelgym.leaderboard.site.costs > leaderboard/site/task_costs.json` writes it anew.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import json
import sys
from collections.abc import Sequence

from kernelgym import tasks

__all__ = ["cost_table", "intensities", "text_hash"]

_FILE = "task_costs.json"


def intensities(size: str) -> dict[str, float]:
    """The least FLOP per byte of each task of the catalogue; 0 without matrix products.

    Args:
        size: Which shapes; a task without shapes of that size has those of the next larger one.
    """
    order = ("small", "medium", "full")
    found = {}
    for task, costs in _table().items():
        used = next(name for name in order[order.index(size) :] if name in costs)
        flops, nbytes = costs[used]
        found[task] = flops / nbytes
    return found


def cost_table(ids: Sequence[str]) -> str:
    """The table as JSON, a task a line: its text's hash, and [FLOPs, bytes] by size."""
    lines = []
    for task_id in ids:
        task = tasks.get(task_id)
        costs: dict[str, object] = {"text": text_hash(task.text)}
        for size in task.sizes:
            facts = task.facts(size)
            costs[size] = [facts.flops, facts.min_bytes]
        lines.append(f"{json.dumps(task_id)}: {json.dumps(costs)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def text_hash(text: str) -> str:
    """What tells whether a task has changed since the table was written."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def _table() -> dict[str, dict[str, tuple[int, int]]]:
    folder = importlib.resources.files("kernelgym.leaderboard.site")
    table: dict[str, dict[str, tuple[int, int]]] = json.loads((folder / _FILE).read_text("utf-8"))
    return table


if __name__ == "__main__":
    sys.stdout.write(cost_table(tasks.ids()))
