"""Does PPO learn to set knobs? Trained policies against random choices, at equal verdicts.

    python -m benchmarks.ppo_against_random --json benchmarks/results/ppo_emulator.json

Both play the same episodes of a few verdicts, on the tasks that the policy was trained on and on tasks
that it never saw. A score is the speedup against eager of an episode's best kernel, averaged as
logarithms; an episode without a correct kernel scores 0.01. On the emulator a choice that was judged
once is not judged again, on a GPU each is.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import platform
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from kernelgym import __version__
from kernelgym.agents.sb3_ppo import TrainArguments, make_training_env, train
from kernelgym.agents.sb3_wrappers import MAX_CHOICES, MAX_KNOBS, RememberingJudge
from kernelgym.config import JudgeConfig
from kernelgym.judge.judge import Judge
from kernelgym.judging import SupportsEvaluate
from kernelgym.rewards import log_speedup

TRAINED = ("L1/1", "L1/23", "L2/76")
UNSEEN = ("L1/2", "L1/40", "L2/12")
SEEDS = (0, 1, 2)

Choose = Callable[[Any, Any], Any]


def at_random(seed: int) -> Choose:
    """Draws every knob's choice, each of those that there are as likely."""
    rng = np.random.default_rng(seed)

    def choose(seen: Any, mask: Any) -> Any:
        rows = mask.reshape(MAX_KNOBS, MAX_CHOICES)
        return np.array([rng.choice(np.flatnonzero(row)) for row in rows])

    return choose


def by_policy(policy: Any) -> Choose:
    """Draws from a policy."""

    def choose(seen: Any, mask: Any) -> Any:
        return policy.predict(seen, action_masks=mask, deterministic=False)[0]

    return choose


def score(
    choose: Choose, tasks: Sequence[str], turns: int, episodes: int, judge: SupportsEvaluate
) -> dict[str, float]:
    """Geometric means over episodes: of the first kernel, and of the best."""
    firsts, bests = [], []
    for task in tasks:
        env = make_training_env([task], turns, judge)
        for number in range(episodes):
            seen, _ = env.reset(seed=number)
            scores = []
            for _ in range(turns):
                seen, _, _, _, info = env.step(choose(seen, env.action_masks()))
                scores.append(log_speedup(info["verdict"]))
            firsts.append(scores[0])
            bests.append(max(scores))
    return {
        "first": math.exp(float(np.mean(firsts))),
        "best": math.exp(float(np.mean(bests))),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=2048)
    parser.add_argument("--episodes", type=int, default=20, help="of each task")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--unseen", type=int, default=1, help="0 leaves the unseen tasks out")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    result: dict[str, Any] = {
        "kernelgym": __version__,
        "machine": platform.platform(),
        "device": options.device,
        "trained": TRAINED,
        "unseen": UNSEEN if options.unseen else (),
        "turns": options.turns,
        "episodes": options.episodes,
        "seeds": [],
    }
    config = JudgeConfig(device=options.device, baselines=("eager",), draws=2)
    with Judge(config) as judge:
        remembering = RememberingJudge(judge)
        judging = remembering if options.device == "cpu" else judge
        for seed in options.seeds:
            began = time.monotonic()
            told = TrainArguments(TRAINED, options.steps, options.turns, seed)
            policy = train(told, judging)
            row: dict[str, Any] = {
                "seed": seed,
                "steps": int(policy.num_timesteps),
                "train_seconds": round(time.monotonic() - began, 1),
                "judged_so_far": remembering.judged,
            }
            for name in ("trained", "unseen"):
                tasks = result[name]
                if tasks:
                    for who, choose in (("ppo", by_policy(policy)), ("random", at_random(seed))):
                        row[f"{name}_{who}"] = score(
                            choose, tasks, options.turns, options.episodes, judging
                        )
            result["seeds"].append(row)
            print(json.dumps(row), flush=True)
            options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
