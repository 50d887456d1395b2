"""Whole judgements: each kind of candidate gets its verdict, and hurts nobody else."""

import gc
import pathlib
import tempfile
import threading
import time

import psutil
import pytest

from kernelgym.config import JudgeConfig
from kernelgym.errors import ReferenceFault
from kernelgym.judge.judge import Judge, evaluate
from kernelgym.judge.pool import evaluate_many
from kernelgym.judge.verdict import Outcome, from_json, to_json
from kernelgym.toolchain.cuda import find_nvcc
from tests.judge.candidates import RELU_KERNEL, candidate, forward

GOOD = candidate()


def line_of(source, text):
    return next(n for n, line in enumerate(source.splitlines(), 1) if text in line)


def test_a_right_kernel_is_correct_with_modelled_times_and_counters(judge):
    verdict = judge.evaluate("L1/19", GOOD)
    assert verdict.outcome is Outcome.CORRECT, verdict.message
    assert verdict.correctness.passed == verdict.correctness.draws == 3
    assert verdict.correctness.generalises
    assert verdict.correctness.deterministic
    assert verdict.timing.candidate.source == "modelled"
    assert verdict.counters.total.get("sectors_per_request") == pytest.approx(4, abs=0.1)
    assert verdict.coverage.own == 1.0
    assert verdict.build.path == "emulator"
    assert {"rlimits", "no_network"} <= set(verdict.provenance.protections)
    assert from_json(to_json(verdict)) == verdict


def test_a_missing_semicolon_is_named_with_its_line(judge):
    source = candidate(RELU_KERNEL.replace("threadIdx.x;", "threadIdx.x"))
    verdict = judge.evaluate("L1/19", source)
    assert verdict.outcome is Outcome.COMPILE_ERROR
    assert verdict.reason == "build.compile"
    first = verdict.diagnostics[0]
    assert (first.file, first.severity) == ("model_new.py", "error")
    # g++ points at the end of the line that lacks it.
    assert first.line == line_of(source, "threadIdx.x")
    assert "^" in first.excerpt


def test_a_wrong_tail_is_incorrect_and_its_place_is_named(judge):
    kernel = RELU_KERNEL.replace("if (i < n)", "if (i < n - 100)")
    verdict = judge.evaluate("L1/19", candidate(kernel, output="torch::zeros_like(x)"))
    assert verdict.outcome is Outcome.INCORRECT
    assert verdict.correctness.bad_elements > 0
    assert verdict.correctness.worst.index[0] == 15
    assert verdict.correctness.worst.index[1] >= 771 - 100
    assert "all errors in the last" in verdict.message


def test_an_unwritten_tail_is_incorrect(judge):
    kernel = RELU_KERNEL.replace("if (i < n)", "if (i < n - 100)")
    verdict = judge.evaluate("L1/19", candidate(kernel))
    assert verdict.outcome is Outcome.INCORRECT
    assert verdict.reason == "check.tail"
    assert "never written" in verdict.message


REVERSE = """
__global__ void relu_kernel(const float* x, float* y, int n) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[255 - threadIdx.x] = i < n ? fmaxf(x[i], 0.0f) : 0.0f;
    BARRIER
    if (i < n) y[i] = tile[255 - threadIdx.x] + 0.0f * tile[threadIdx.x];
}
"""


def test_a_missing_syncthreads_is_found_though_the_values_may_be_right(judge):
    source = candidate(REVERSE.replace("BARRIER", ""))
    verdict = judge.evaluate("L1/19", source)
    assert verdict.outcome is Outcome.INCORRECT
    assert verdict.reason == "race.shared"
    assert verdict.diagnostics[0].file == "model_new.py"
    assert verdict.diagnostics[0].line in (
        line_of(source, "tile[255 - t"),
        line_of(source, "y[i] ="),
    )


def test_the_same_kernel_with_its_barrier_is_correct(judge):
    verdict = judge.evaluate("L1/19", candidate(REVERSE.replace("BARRIER", "__syncthreads();")))
    assert verdict.outcome is Outcome.CORRECT, verdict.message


def test_out_of_bounds_is_found_and_named(judge):
    source = candidate(RELU_KERNEL.replace("if (i < n) ", ""))
    verdict = judge.evaluate("L1/19", source)
    assert verdict.outcome is Outcome.RUNTIME_ERROR
    assert verdict.reason == "memory.out_of_bounds"
    assert verdict.diagnostics[0].line == line_of(source, "y[i] = ")
    assert "relu_kernel" in verdict.message


def test_an_infinite_loop_is_a_timeout_in_time_and_leaves_no_process():
    kernel = RELU_KERNEL.replace(
        "if (i < n)", "while (n > 0 && x[0] < 1e30f) { y[0] = x[0]; } if (i < n)"
    )
    others = set(psutil.Process().children(recursive=True))  # another judge's
    seen: set[psutil.Process] = set()
    over = threading.Event()

    def watch():
        while not over.wait(0.1):
            seen.update(set(psutil.Process().children(recursive=True)) - others)

    watcher = threading.Thread(target=watch)
    with Judge(JudgeConfig(seed=0, draws=1, run_timeout=3)) as judge:
        judge.evaluate("L1/19", GOOD)  # the standby process and the build are not what is timed
        watcher.start()
        started = time.monotonic()
        verdict = judge.evaluate("L1/19", candidate(kernel))
        spent = time.monotonic() - started - dict(verdict.seconds)["build"]
        over.set()
        watcher.join()
    assert verdict.outcome is Outcome.TIMEOUT
    assert verdict.reason == "run.timeout"
    assert spent < 3 + 2
    assert len(seen) >= 3  # the standby process, a supervisor, the candidate
    _, left = psutil.wait_procs(seen, timeout=5)
    assert not left


HOSTILE = {
    "exit": (forward("os._exit(0)"), "run.died"),
    "sys_exit": (forward("raise SystemExit(0)"), "run.error"),
    "segfault": (forward("import faulthandler", "faulthandler._read_null()"), "run.died"),
    "null_pointer": (forward("import ctypes", "ctypes.string_at(0)"), "rule.raw_memory"),
    "kill_parent": (forward("os.kill(os.getppid(), 9)", "return ext.run(x)"), None),
    "fork_storm": (forward("while True:", "    os.fork()"), None),
    "close_channel": (forward("os.closerange(0, 4096)", "return ext.run(x)"), "run.died"),
    "memory": (forward("block = []", "while True:", "    block.append(bytearray(2**28))"), None),
    "recursion": (forward("return self.forward(x)"), "run.error"),
    "huge_print": (forward("print('x' * 10**8)", "return ext.run(x)"), ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_candidate_costs_only_its_own_verdict(judge, name):
    body, reason = HOSTILE[name]
    verdict = judge.evaluate("L1/19", candidate(forward=body))
    if reason is None:
        assert verdict.outcome in (Outcome.RUNTIME_ERROR, Outcome.TIMEOUT, Outcome.CORRECT)
    else:
        assert verdict.reason == reason, verdict.message
    after = judge.evaluate("L1/19", GOOD)
    alone = judge.evaluate("L1/19", GOOD)
    for verdict in (after, alone):
        assert verdict.outcome is Outcome.CORRECT
    assert after.correctness == alone.correctness
    assert after.counters == alone.counters
    assert after.timing == alone.timing


def test_the_candidate_sees_neither_network_nor_the_graders_files(judge, tmp_path):
    secret = pathlib.Path.home() / ".kernelgym-test-secret"
    secret.write_text("secret")
    try:
        verdict = judge.evaluate(
            "L1/19",
            candidate(
                forward=forward(
                    "import socket",
                    "found = []",
                    "try:",
                    f"    found.append(open({str(secret)!r}).read())",
                    "except OSError:",
                    "    pass",
                    "try:",
                    f"    open({str(tmp_path / 'written')!r}, 'w')",
                    "    found.append('write')",
                    "except OSError:",
                    "    pass",
                    "try:",
                    "    socket.create_connection(('127.0.0.1', 22), 1)",
                    "    found.append('network')",
                    "except ConnectionRefusedError:",
                    "    found.append('network')",
                    "except OSError:",
                    "    pass",
                    "if found:",
                    "    raise RuntimeError(str(found))",
                    "return ext.run(x)",
                )
            ),
        )
    finally:
        secret.unlink()
    assert verdict.outcome is Outcome.CORRECT, verdict.message


def test_the_unmodified_reference_is_rejected(judge):
    source = (
        "import torch\nfrom torch import nn\n\n\nclass ModelNew(nn.Module):\n"
        "    def forward(self, x):\n        return torch.relu(x)\n"
    )
    verdict = judge.evaluate("L1/19", source)
    assert verdict.outcome is Outcome.REJECTED
    assert verdict.reason == "rule.torch_compute"
    assert verdict.diagnostics[0].line == 7


@pytest.mark.parametrize(
    "body",
    [
        "return x.relu()",
        "return getattr(torch, 're' + 'lu')(x)",
        "return torch.ops.aten.relu(x)",
        "return x * (x > 0)",
        "return ext.run(x) + 0",
        "return torch.where(x > 0, x, torch.zeros_like(x))",
    ],
)
def test_torch_at_work_is_seen_however_it_is_spelled(judge, body):
    verdict = judge.evaluate("L1/19", candidate(forward=forward(body)))
    assert verdict.outcome is Outcome.REJECTED, verdict.message
    assert verdict.reason == "rule.torch_compute"


def test_a_torch_operator_called_from_cpp_is_refused_with_its_line(judge):
    source = candidate(launch="y = torch::relu(x);")
    verdict = judge.evaluate("L1/19", source)
    assert verdict.reason == "rule.torch_compute"
    assert verdict.diagnostics[0].line == line_of(source, "torch::relu")


def test_the_ruleset_kernelbench_allows_torch_beside_an_own_kernel():
    verdict = evaluate(
        "L1/19",
        candidate(forward=forward("return ext.run(x) * 1.0")),
        ruleset="kernelbench",
        seed=0,
        draws=2,
    )
    assert verdict.outcome is Outcome.CORRECT, verdict.message
    assert 0 < verdict.coverage.foreign < 1


def test_no_kernel_at_all_is_rejected(judge):
    verdict = judge.evaluate("L1/19", candidate(launch="", forward=forward("return x.clone()")))
    assert verdict.outcome in (Outcome.REJECTED, Outcome.INCORRECT)
    assert not verdict.correct


CHEATS = {
    "returns_input": ("return x", "check.output_aliases_input"),
    "mutates_input": ("y = ext.run(x); x.fill_(1); return y", "check.input_mutated"),
    "wrong_shape": ("return ext.run(x)[:, :-1]", "check.shape"),
    "wrong_dtype": ("return ext.run(x).double()", "check.dtype"),
    "two_outputs": ("return ext.run(x), x", "check.count"),
    "not_a_tensor": ("return 1.0", "check.count"),
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_wrong_kind_of_output_is_named(judge, name):
    body, reason = CHEATS[name]
    verdict = judge.evaluate("L1/19", candidate(forward=forward(body)))
    assert verdict.outcome is Outcome.INCORRECT
    assert verdict.reason == reason


@pytest.mark.parametrize(
    "key", ["x.data_ptr()", "tuple(x.shape)", "id(type(x))", "x._version"], ids=str
)
def test_a_cached_output_is_caught(judge, key):
    source = candidate(
        prelude="cache = {}",
        forward=forward(
            f"key = {key}",
            "if key not in cache:",
            "    cache[key] = ext.run(x)",
            "return cache[key]",
        ),
    )
    verdict = judge.evaluate("L1/19", source)
    assert verdict.outcome is Outcome.INCORRECT


def test_python_errors_point_at_their_line(judge):
    source = candidate(forward=forward("y = ext.run(x)", "return y + undefined_name"))
    verdict = judge.evaluate("L1/19", source)
    assert verdict.outcome is Outcome.RUNTIME_ERROR
    assert verdict.reason == "run.error"
    assert "undefined_name" in verdict.message
    assert verdict.diagnostics[0].line == line_of(source, "undefined_name")


def test_a_syntax_error_is_a_runtime_error_of_the_import(judge):
    verdict = judge.evaluate("L1/19", "def broken(:\n")
    assert verdict.reason == "import.error"
    assert verdict.diagnostics[0].line == 1


def test_what_the_emulator_cannot_do_is_unsupported(judge):
    source = candidate(RELU_KERNEL.replace("if (i < n)", 'asm volatile("bar.sync 0;"); if (i < n)'))
    verdict = judge.evaluate("L1/19", source)
    assert verdict.outcome is Outcome.UNSUPPORTED
    assert verdict.diagnostics[0].line == line_of(source, "asm volatile")


def test_a_seed_gives_the_same_verdict_and_none_gives_other_draws():
    first, second = (evaluate("L1/19", GOOD, seed=5, draws=2) for _ in range(2))
    assert first.provenance == second.provenance
    assert (first.correctness, first.timing, first.counters) == (
        second.correctness,
        second.timing,
        second.counters,
    )
    other = evaluate("L1/19", GOOD, draws=2)
    assert other.provenance.salt_commitment != first.provenance.salt_commitment


def test_many_at_once_come_back_in_order_and_are_not_judged_twice(judge, tmp_path):
    bad = candidate(forward=forward("os._exit(3)"))
    jobs = [("L1/19", GOOD), ("L1/19", bad), ("L1/19", GOOD), ("L1/19", "nonsense")]
    store = tmp_path / "verdicts.jsonl"
    seen = []
    verdicts = evaluate_many(
        jobs, judge=judge, resume=store, progress=lambda d, n: seen.append((d, n))
    )
    assert [v.reason for v in verdicts] == ["", "run.died", "", "import.error"]
    assert seen[-1] == (4, 4)
    with store.open("a") as file:
        file.write('{"cut off')
    again = evaluate_many(jobs[:2], judge=judge, resume=store)
    assert [v.seconds for v in again] == [verdicts[0].seconds, verdicts[1].seconds] or again[
        0
    ].seconds == verdicts[2].seconds
    assert "cut off" not in store.read_text()


def test_nothing_is_left_in_the_temporary_folder(judge, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert judge.evaluate("L1/19", GOOD).correct
    assert not list(tmp_path.iterdir())


needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")


@needs_nvcc
def test_nvcc_adds_its_resources_and_its_errors():
    config = JudgeConfig(seed=0, draws=1, nvcc_check=True)
    # g++ takes a statement expression in a kernel for what it is; nvcc knows no such builtin.
    wrong = RELU_KERNEL.replace(
        "fmaxf(x[i], 0.0f)", "__builtin_ia32_rdtsc() * 0.0f + fmaxf(x[i], 0.0f)"
    )
    with Judge(config) as judge:
        good = judge.evaluate("L1/19", GOOD)
        bad = judge.evaluate("L1/19", candidate(wrong))
    assert good.outcome is Outcome.CORRECT, good.message
    assert good.build.kernels[0].registers > 0
    assert good.build.kernels[0].spill_store_bytes == 0
    assert bad.outcome is Outcome.COMPILE_ERROR
    assert bad.diagnostics[0].tool == "nvcc"
    assert bad.diagnostics[0].line == line_of(candidate(wrong), "rdtsc")


def test_a_standby_process_that_was_killed_is_replaced(judge):
    judge.evaluate("L1/19", GOOD)
    zygotes = [
        process
        for process in psutil.Process().children()
        if "kernelgym.judge.zygote" in " ".join(process.cmdline())
    ]
    assert zygotes
    for process in zygotes:
        process.kill()
        process.wait()
    assert judge.evaluate("L1/19", GOOD).outcome is Outcome.CORRECT


def test_verdicts_leave_no_descriptors_and_no_processes(judge):
    bad = candidate(forward=forward("os._exit(0)"))
    judge.evaluate("L1/19", GOOD)
    judge.evaluate("L1/19", bad)
    me = psutil.Process()
    gc.collect()
    before = (me.num_fds(), len(me.children(recursive=True)), me.num_threads())
    for _ in range(4):
        judge.evaluate("L1/19", GOOD)
        judge.evaluate("L1/19", bad)
    gc.collect()
    assert (me.num_fds(), len(me.children(recursive=True)), me.num_threads()) == before


def test_judgements_side_by_side_agree_with_one_alone():
    """Weights and draws follow the seed whatever other threads do with torch's generator."""
    source = candidate()
    config = JudgeConfig(seed=3, draws=2, protocol="kernelbench")
    with Judge(config) as judge:
        alone = judge.evaluate("L1/19", source)
        together = evaluate_many([("L1/19", source)] * 6, judge=judge, workers=3)
    assert {v.correctness for v in together} == {alone.correctness}


HOST_LOOP = """
    float* out = y.data_ptr<float>();
    const float* in = x.data_ptr<float>();
    for (int i = 0; i < n; ++i) out[i] = in[i] > 0 ? in[i] : 0;
"""


def test_host_code_that_does_the_work_is_found_as_a_gpu_would_find_it(judge):
    decoy = RELU_KERNEL + "__global__ void decoy() {}"
    source = candidate(decoy, launch="decoy<<<1, 1>>>();" + HOST_LOOP)
    verdict = judge.evaluate("L1/19", source)
    assert verdict.outcome is Outcome.RUNTIME_ERROR
    assert verdict.reason == "memory.host_access"
    assert verdict.diagnostics[0].line == line_of(source, "out[i] = in[i]")


def test_kernels_among_the_cpp_sources_are_watched_too(judge):
    source = candidate().replace(
        'cpp_sources="torch', 'cpp_sources="inline int unused() { return 0; }\\ntorch'
    )
    verdict = judge.evaluate("L1/19", source)
    assert verdict.outcome is Outcome.CORRECT, verdict.message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (["return torch.tensor([[max(v, 0.0) for v in row] for row in x.tolist()])"], None),
        (["import numpy", "return torch.from_numpy(numpy.maximum(x.numpy(), 0))"], "run.error"),
        (["import numpy", "y = ext.run(x)", "numpy.maximum(x.cpu(), 0)", "return y"], None),
        (["y = ext.run(x)", "[v.item() for v in x[0, :20]]", "return y"], "rule.host_compute"),
        (["y = ext.run(x)", "x[0].to('cpu')", "return y"], "rule.host_compute"),
    ],
)
def test_computing_on_the_host_is_rejected(judge, body, reason):
    verdict = judge.evaluate("L1/19", candidate(forward=forward(*body)))
    assert not verdict.correct
    if reason is not None:
        assert verdict.reason == reason, verdict.message


@pytest.mark.parametrize(
    "kernel",
    [
        RELU_KERNEL.replace("__global__", '__attribute__((no_sanitize("thread"))) __global__'),
        RELU_KERNEL + 'extern "C" void kgemu_reset();',
    ],
)
def test_tampering_with_the_instrumentation_is_rejected(judge, kernel):
    assert judge.evaluate("L1/19", candidate(kernel)).reason == "rule.instrumentation"


def test_a_task_that_does_not_fit_says_how_much_it_needs_before_it_starts():
    with Judge(JudgeConfig(device="cpu", size="full")) as judge:
        started = time.monotonic()
        with pytest.raises(ReferenceFault, match=r"L1/38.* takes about \d+\.\d GB .* available"):
            judge.evaluate("L1/38", GOOD)
    assert time.monotonic() - started < 30
