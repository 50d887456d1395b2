"""Which device a configuration means, and what is said where it is not there."""

import pytest
import torch

from kernelgym.config import JudgeConfig
from kernelgym.errors import ConfigError
from kernelgym.judge import device as device_module
from kernelgym.judge.confinement import candidate_policy
from kernelgym.judge.device import arithmetic, failure_reason, resolve_device, set_arithmetic
from kernelgym.judge.judge import Judge
from kernelgym.judge.reasons import REASONS


@pytest.fixture
def one_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(device_module, "find_nvcc", lambda: "/usr/bin/nvcc")


def test_without_a_gpu_the_judge_says_what_was_looked_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"expected an NVIDIA GPU for 'cuda', got none: .*torch"):
        Judge(JudgeConfig(device="cuda"))
    assert resolve_device("auto") == torch.device("cpu")


def test_auto_takes_the_gpu_when_there_is_also_nvcc(one_gpu, monkeypatch):
    assert resolve_device("auto") == resolve_device("cuda") == torch.device("cuda", 0)
    assert resolve_device("cpu") == torch.device("cpu")
    monkeypatch.setattr(device_module, "find_nvcc", lambda: None)
    assert resolve_device("auto") == torch.device("cpu")
    with pytest.raises(ConfigError, match="nvcc"):
        resolve_device("cuda")


def test_an_index_that_is_not_there_is_refused(one_gpu):
    with pytest.raises(ConfigError, match="index below 1, got 'cuda:1'"):
        resolve_device("cuda:1")


def test_what_cuda_says_becomes_a_reason_with_a_remedy():
    said = "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be"
    assert failure_reason(said) == "memory.out_of_bounds"
    assert failure_reason("CUDA error: misaligned address") == "memory.misaligned"
    assert failure_reason("expected 2 arguments, got 1") is None
    assert {code for _, code in device_module._FAILURES} <= set(REASONS)


def test_arithmetic_is_chosen_for_a_block_alone():
    before = set_arithmetic("default")
    with arithmetic("tf32"):
        assert set_arithmetic("default") == ("tf32",) * 3
        with arithmetic("ieee"):
            assert set_arithmetic("default") == ("ieee",) * 3
        assert set_arithmetic("default") == ("tf32",) * 3
    assert set_arithmetic("default") == before


def test_on_a_gpu_the_policy_opens_the_driver_and_lifts_the_limit_on_addresses(tmp_path):
    config = JudgeConfig(memory_limit=123)
    host = candidate_policy(config, tmp_path, ())
    gpu = candidate_policy(config, tmp_path, (), gpu=True)
    assert host.memory_bytes == 123
    assert gpu.memory_bytes is None
    assert "/proc/self" in gpu.writable
    assert "/proc/self" not in (*host.writable, *host.readable)
    assert not gpu.new_processes
