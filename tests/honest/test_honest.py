"""No honest candidate is refused: `controls/` on the emulator, and with `gpu_only/` on a GPU."""

import pytest
import torch

from kernelgym.config import JudgeConfig
from kernelgym.judge.judge import Judge
from kernelgym.judge.verdict import Outcome
from kernelgym.toolchain.cuda import find_nvcc
from tests.honest.candidates import read

CONTROLS = read()
GPU_ONLY = read("gpu_only")

# One of each style, of tasks that are quick to emulate: what every run of the tests looks at.
REPRESENTATIVE = (
    "l1_003_three_d_grid",
    "l1_004_split_k_atomics",
    "l1_005_scalar",
    "l1_019_dispatch_lazy",
    "l1_019_files",
    "l1_019_float4_pybind",
    "l1_019_forbidden_words",
    "l1_019_functor",
    "l1_019_stream_joined",
    "l1_021_fast_math",
    "l1_023_online_warp",
    "l1_024_cooperative_groups",
    "l1_033_batch_norm",
    "l1_037_last_block",
    "l1_049_max_accessor",
    "l1_067_packed_weights",
    "l1_082_constant_memory",
    "l1_093_bool_mask",
    "l2_056_files",
    "l2_076_transposed_at_construction",
)

needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available() or find_nvcc() is None, reason="needs a GPU and nvcc"
)


def refusal(verdict):
    """What a refused candidate was told, for the reader of a failed test."""
    places = [f"{d.file}:{d.line}: {d.text}" for d in verdict.diagnostics[:5]]
    return verdict.outcome, verdict.reason, verdict.message, places


@pytest.fixture(scope="module")
def emulator():
    with Judge(JudgeConfig(device="cpu", run_timeout=60)) as judge:
        yield judge


@pytest.fixture(scope="module")
def gpu():
    config = JudgeConfig(device="cuda", size="small", counters=False, baselines=("eager",))
    with Judge(config) as judge:
        yield judge


def test_there_are_enough_of_them_over_all_levels():
    levels = [control.task.split("/")[0] for control in CONTROLS.values()]
    assert len(CONTROLS) >= 60
    assert {level: levels.count(level) > 4 for level in levels} == dict.fromkeys(
        ("L1", "L2", "L3"), True
    )
    assert len({control.task for control in CONTROLS.values()}) >= 45
    assert set(REPRESENTATIVE) <= set(CONTROLS)


@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_an_honest_candidate_is_correct(emulator, name):
    control = CONTROLS[name]
    verdict = emulator.evaluate(control.task, control.files)
    assert verdict.outcome is Outcome.CORRECT, refusal(verdict)
    # Honest rounding stays well below what is allowed.
    assert verdict.correctness.error < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CONTROLS) - set(REPRESENTATIVE)))
def test_every_other_honest_candidate_is_correct(emulator, name):
    control = CONTROLS[name]
    verdict = emulator.evaluate(control.task, control.files)
    assert verdict.outcome is Outcome.CORRECT, refusal(verdict)
    assert verdict.correctness.error < 0.5


@pytest.mark.parametrize("name", sorted(GPU_ONLY))
def test_what_only_a_gpu_can_run_is_not_refused_by_the_screen(name):
    from kernelgym.judge.screen import screen
    from kernelgym.judge.sources import workspace_files

    files = workspace_files(GPU_ONLY[name].files)
    assert screen(files, "strict", emulated=False) is None


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("name", [*CONTROLS, *GPU_ONLY])
def test_an_honest_candidate_is_correct_on_a_gpu(gpu, name):
    control = CONTROLS.get(name) or GPU_ONLY[name]
    verdict = gpu.evaluate(control.task, control.files)
    assert verdict.outcome is Outcome.CORRECT, refusal(verdict)
