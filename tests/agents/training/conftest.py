"""A tape of modelled verdicts on synthetic tasks, and a training on it that takes seconds."""

import pathlib

import pytest
import torch

from kernelgym.agents.training.config import CloneConfig, PlayConfig, TrainingConfig, ValueConfig
from kernelgym.agents.training.network import NetworkConfig
from kernelgym.agents.training.pipeline import setup
from kernelgym.agents.training.ppo import PpoConfig
from kernelgym.config import JudgeConfig

HERE = pathlib.Path(__file__).parent
WORDS = (
    "block=64", "block=256", "block=2048", "width=1", "width=4",
    "team=thread", "team=warp", "team=block",
)  # fmt: skip


def tiny(**fields):
    ppo = PpoConfig(lr=1e-3, critic_lr=2e-3)
    return TrainingConfig(
        **{
            "tasks": str(HERE / "tasks.jsonl"),
            "tape": str(HERE / "tape.jsonl.gz"),
            "judge": JudgeConfig(device="cpu", size="small", draws=1, seed=0),
            "turns": 2,
            "kernels": 1,
            "assignments": WORDS,
            "network": NetworkConfig(width=64, layers=2, heads=2, context=64),
            "evaluate_episodes": 4,
            "sft": CloneConfig(20),
            "single_turn_ppo": PlayConfig(4, 6, 4, ppo),
            "rft": CloneConfig(8, episodes=32, keep=1.0),
            "value_pretraining": ValueConfig(8, 32),
            "agentic_ppo": PlayConfig(4, 6, 4, ppo),
            **fields,
        }
    )


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def config():
    return tiny()


@pytest.fixture(scope="package")
def shared():
    with setup(tiny()) as shared:
        yield shared
