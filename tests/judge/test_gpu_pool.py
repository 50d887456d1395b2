"""A pool on real GPUs; skipped where there is none."""

import secrets
import time

import psutil
import pytest
import torch

from kernelgym.config import JudgeConfig
from kernelgym.judge.pool import JudgePool
from kernelgym.judge.verdict import Outcome
from kernelgym.toolchain.cuda import find_nvcc
from tests.judge.candidates import RELU_KERNEL, candidate, forward

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or find_nvcc() is None, reason="needs a GPU and nvcc"
    ),
]

CONFIG = JudgeConfig(size="small", draws=2, run_timeout=20, baselines=("eager",), counters=False)


def fresh(kernel=RELU_KERNEL, **parts):
    """A candidate that no cache has seen."""
    return candidate(f"// {secrets.token_hex(8)}\n{kernel}", **parts)


def test_candidates_are_compiled_ahead_and_judged_in_order():
    broken = RELU_KERNEL.replace("threadIdx.x;", "threadIdx.x")
    wrong = RELU_KERNEL.replace("i < n", "i < n - 5")
    texts = [fresh(), fresh(broken), fresh(wrong), fresh()]
    with JudgePool(CONFIG, devices=[0], workers=4) as pool:
        verdicts = pool.evaluate_many([("L1/19", text) for text in texts])
    assert [verdict.outcome for verdict in verdicts] == [
        Outcome.CORRECT,
        Outcome.COMPILE_ERROR,
        Outcome.INCORRECT,
        Outcome.CORRECT,
    ]
    assert all(verdict.build.cached for verdict in verdicts)
    uuid = str(torch.cuda.get_device_properties(0).uuid)
    assert {verdict.provenance.device_uuid for verdict in verdicts} == {uuid}


def test_a_verdict_is_right_after_its_standby_process_was_killed():
    slow = fresh(forward=forward("time.sleep(1)", "return ext.run(x)"))
    before = {process.pid for process in psutil.Process().children()}
    with JudgePool(CONFIG.replace(draws=1), devices=[0]) as pool:
        pool.evaluate("L1/19", fresh())
        future = pool.submit("L1/19", slow)
        while not future.running():
            time.sleep(0.01)
        time.sleep(2)
        for process in psutil.Process().children():
            if process.pid not in before and "zygote" in " ".join(process.cmdline()):
                process.kill()
        assert future.result(120).outcome in (Outcome.CORRECT, Outcome.TIMEOUT)
        assert pool.evaluate("L1/19", fresh()).outcome is Outcome.CORRECT


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_gpus_share_a_batch():
    with JudgePool(CONFIG, devices=[0, 1]) as pool:
        verdicts = pool.evaluate_many([("L1/19", fresh()) for _ in range(8)])
    assert all(verdict.outcome is Outcome.CORRECT for verdict in verdicts)
    assert len({verdict.provenance.device_uuid for verdict in verdicts}) == 2
