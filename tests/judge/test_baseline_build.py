"""Building baselines: what is asked for, resumed and booked; a worker's job, on a CPU for a GPU."""

import dataclasses
import pathlib

import pytest
import torch

from kernelgym.errors import ConfigError, UnknownTaskError, UsageError
from kernelgym.judge import baseline_build, baseline_worker
from kernelgym.judge.baseline_build import BuildOptions, build, sample
from kernelgym.judge.baseline_store import read_records
from kernelgym.judge.baseline_worker import OUT_OF_MEMORY, BaselineJob, Bench, measure
from kernelgym.judge.crew import Lost
from kernelgym.judge.device import GpuFacts

FACTS = GpuFacts("NVIDIA H200", "uuid", 2**20, "13.0", "580")
JOB = BaselineJob("L1/19", "small", "audited", "default", ("eager", "compile"), True)


@pytest.fixture
def bench(tmp_path):
    """A bench on the CPU whose calls take 2 ms, 1 ms when compiled."""

    def seconds_of(call):
        call()
        return 1e-3 if getattr(call, "compiled", False) else 2e-3

    return Bench(torch.device("cpu"), FACTS, tmp_path / "gpu.lock", seconds_of)


@pytest.fixture
def fake_compiler(monkeypatch):
    """Replaces the compiler by one that marks calls, or fails as told; gives what it was asked."""
    told = {"error": None, "kinds": []}
    real = baseline_worker._call

    def call(model, inputs, kind, turn):
        told["kinds"].append(kind)
        if kind == "eager":
            return real(model, inputs, kind, turn)
        if told["error"] is not None:
            raise told["error"]
        forward = real(model, inputs, "eager", turn)

        def compiled():
            turn.enter()
            return forward()

        compiled.compiled = True
        return compiled

    monkeypatch.setattr(baseline_worker, "_call", call)
    return told


def test_a_task_is_timed_in_both_kinds_side_by_side(bench, fake_compiler):
    eager, compiled = measure(JOB, bench)
    assert (eager.kind, compiled.kind) == ("eager", "compile")
    assert eager.median == 2e-3
    assert compiled.ratio.value == 0.5
    assert compiled.ratio.low < 0.5 < compiled.ratio.high
    assert eager.ratio is None
    assert len(eager.batches) == len(compiled.batches) >= 20
    assert eager.batches[0] == 2000.0
    assert compiled.compile_seconds is not None
    assert (eager.mode, eager.size, eager.setting.driver) == ("train", "small", "580")
    assert eager.min_bytes > 0


def test_the_gpu_is_free_again_after_a_job(bench, fake_compiler):
    measure(JOB, bench)
    with bench.exclusive().acquire(timeout=0):
        pass


def test_what_does_not_compile_is_recorded_and_eager_is_measured(bench, fake_compiler):
    fake_compiler["error"] = RuntimeError("no lowering\nfor this")
    eager, compiled = measure(JOB, bench)
    assert eager.median == 2e-3
    assert (compiled.median, compiled.error) == (None, "RuntimeError: no lowering")


def test_out_of_memory_says_how_much_is_needed(bench, monkeypatch):
    def made(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 90 GiB")

    monkeypatch.setattr(baseline_worker, "_made", made)
    for record in measure(JOB, bench):
        assert (record.median, record.error) == (None, OUT_OF_MEMORY)
        assert record.needed == record.min_bytes > 0  # a ReLU holds its input and its output


def test_half_classes_move_half_the_bytes(bench, fake_compiler):
    (half,) = measure(dataclasses.replace(JOB, precision="bf16", kinds=("eager",)), bench)
    (whole,) = measure(dataclasses.replace(JOB, kinds=("eager",)), bench)
    assert 2 * half.min_bytes == whole.min_bytes


@pytest.mark.slow
def test_inductor_itself_compiles_beforehand_and_in_turn(bench, tmp_path):
    import torch._dynamo

    assert baseline_worker.warm(dataclasses.replace(JOB, timed=False), bench) == []
    torch._dynamo.reset()
    _, compiled = measure(JOB, bench)
    assert compiled.error == ""
    assert compiled.median == 2e-3


# --- the builder ----------------------------------------------------------------------------------


class FakeCrew:
    """Answers jobs at once, in this process."""

    answers = staticmethod(lambda job: [])
    ran = ()

    def __init__(self, target, arguments, size):
        pass

    def __class_getitem__(cls, item):
        return cls

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def shrink(self, size):
        pass

    def run(self, jobs, done, **options):
        for job in jobs:
            self.ran.append(job)
            if done(job, self.answers(job) if job.timed else [], False):
                self.ran.append(job)
                done(job, self.answers(job), True)
        return 0


@pytest.fixture
def gpu(monkeypatch, bench, fake_compiler):
    """A machine with one card and a crew that measures at once."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10**11, 10**11))
    monkeypatch.setattr(Bench, "of", staticmethod(lambda index, folder: bench))
    monkeypatch.setattr(baseline_build, "Crew", FakeCrew)
    monkeypatch.setattr(FakeCrew, "answers", staticmethod(lambda job: measure(job, bench)))
    monkeypatch.setattr(FakeCrew, "ran", [])
    return FakeCrew


def options(tmp_path: pathlib.Path, **fields):
    fields = {"tasks": ("L1/19", "L2/12"), "size": "small", **fields}
    return BuildOptions(out=tmp_path / "store.jsonl", **fields)


def test_a_build_compiles_first_whole_networks_ahead_and_then_measures(gpu, tmp_path):
    told = []
    summary = build(options(tmp_path, tasks=("L1/19", "L3/1")), lambda *now: told.append(now))
    assert [(job.task, job.timed) for job in gpu.ran] == [
        ("L3/1", False),
        ("L1/19", False),
        ("L1/19", True),
        ("L3/1", True),
    ]
    assert (summary.measured, summary.failed, summary.unfinished) == (4, 0, 0)
    assert told[-1] == ("measuring: L3/1", 2, 2)
    assert [(r.task, r.kind) for r in read_records(summary.path)] == [
        ("L1/19", "compile"),
        ("L1/19", "eager"),
        ("L3/1", "compile"),
        ("L3/1", "eager"),
    ]


def test_a_build_goes_on_where_it_was(gpu, tmp_path):
    build(options(tmp_path, tasks=("L1/19",)))
    gpu.ran.clear()
    summary = build(options(tmp_path))
    assert {job.task for job in gpu.ran} == {"L2/12"}
    assert summary.present == 1
    gpu.ran.clear()
    build(options(tmp_path, tasks=("L1/19",), kinds=("eager", "compile", "compile_max_autotune")))
    assert gpu.ran[-1].kinds == ("eager", "compile_max_autotune")
    assert gpu.ran[-1].recorded == ("compile_max_autotune",)
    gpu.ran.clear()
    build(options(tmp_path, tasks=("L1/19",), protocol="cuda_agent", kinds=("eager",)))
    assert [job.protocol for job in gpu.ran] == ["cuda_agent"]  # its mode is another
    gpu.ran.clear()
    assert build(options(tmp_path, again=True)).measured == 4
    assert len(read_records(tmp_path / "store.jsonl")) == 6


def test_what_was_out_of_memory_beside_others_is_tried_alone(gpu, tmp_path, bench, monkeypatch):
    answers = iter([torch.OutOfMemoryError("no"), None])
    real = baseline_worker._made

    def made(*arguments):
        error = next(answers, None)
        if error is not None:
            raise error
        return real(*arguments)

    monkeypatch.setattr(baseline_worker, "_made", made)
    summary = build(options(tmp_path, tasks=("L1/19",)))
    assert (summary.measured, summary.failed) == (2, 0)


def test_a_lost_process_is_booked_as_a_failure(gpu, tmp_path, monkeypatch):
    lost = Lost("the process ended with exit code -11")
    monkeypatch.setattr(FakeCrew, "answers", staticmethod(lambda job: lost))
    summary = build(options(tmp_path, tasks=("L1/19",)))
    assert (summary.measured, summary.failed) == (0, 2)
    assert {record.error for record in read_records(summary.path)} == {lost.why}


def test_a_sample_is_spread_over_all_tasks():
    chosen = sample(20)
    levels = [id_.split("/")[0] for id_ in chosen]
    assert [levels.count(level) for level in ("L1", "L2", "L3")] == [8, 8, 4]
    assert sample(20) == chosen
    with pytest.raises(UsageError, match="expected 1 to 250"):
        sample(0)


@pytest.mark.parametrize(
    "fields", [{"kinds": ("fast",)}, {"protocol": "mine"}, {"precision": "fp4"}]
)
def test_options_that_nobody_understands_are_refused(fields):
    with pytest.raises(ConfigError, match="expected one of"):
        BuildOptions(**fields)


def test_without_a_gpu_or_with_an_unknown_task_nothing_is_built(gpu, tmp_path, monkeypatch):
    with pytest.raises(UnknownTaskError):
        build(options(tmp_path, tasks=("L9/1",)))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigError, match="got none"):
        build(options(tmp_path))
