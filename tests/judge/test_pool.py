"""Pools: jobs go to whichever device is free, and what happens on one does not reach another."""

import asyncio
import concurrent.futures
import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from kernelgym.config import JudgeConfig
from kernelgym.errors import ConfigError, EnvironmentFault, RecordError, SandboxFault, UsageError
from kernelgym.judge import chain
from kernelgym.judge.judge import Judge
from kernelgym.judge.pool import JudgePool, aevaluate, evaluate_many
from kernelgym.judge.prebuild import prebuild
from kernelgym.judge.process import Zygote
from kernelgym.judge.sources import find_task, workspace_files
from kernelgym.judge.verdict import Outcome, Provenance, Verdict
from kernelgym.toolchain.cuda import find_nvcc
from kernelgym.toolchain.service import BuildService
from tests.judge.candidates import candidate, forward

GOOD = candidate()
CONFIG = JudgeConfig(device="cpu", seed=0, draws=1, run_timeout=20)


class FakeJudge(Judge):
    """Does what the text asks for, and notes what it was asked."""

    def __init__(self, name="one", gpu=False):
        super().__init__(CONFIG)
        self.name = name
        self.log = []
        self.lost = 0
        self.running = 0
        self.most = 0
        self.lock = threading.Lock()
        self.gate = threading.Event()
        self.gate.set()
        if gpu:
            self.device = dataclasses.make_dataclass("D", ["type"])("cuda")

    device_name = property(lambda self: f"fake {self.name}")
    losses = property(lambda self: self.lost)

    def prepare(self, workspace, *, config=None):
        self.log.append(("prepare", workspace["model_new.py"]))
        if "unpreparable" in workspace["model_new.py"]:
            raise OSError("no compiler")

    def evaluate(self, task, workspace, *, config=None):
        text = workspace if isinstance(workspace, str) else workspace["model_new.py"]
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            self.log.append(("evaluate", text))
            assert self.gate.wait(20)
            time.sleep(0.01)
            if "lose" in text and self.lost < text.count("lose"):
                self.lost += 1
                if "sandbox" in text:
                    raise SandboxFault("the zygote is gone")
            elif "fault" in text:
                raise EnvironmentFault("no power")
            elif "defect" in text:
                raise ZeroDivisionError("a defect")
            provenance = Provenance("0", "0", self.device_name, "", "", "", self.size)
            return Verdict(find_task(task).id, Outcome.CORRECT, "", text, "00", provenance)
        finally:
            with self.lock:
                self.running -= 1


@pytest.fixture
def fakes():
    return FakeJudge("one"), FakeJudge("two")


def jobs(*texts):
    return [("L1/19", text) for text in texts]


def test_results_come_in_order_and_a_bad_job_is_alone(fakes):
    texts = ["a", "fault", "b", "defect", "c"]
    seen = []
    with JudgePool(judges=fakes, workers=2) as pool:
        results = pool.evaluate_many(jobs(*texts), progress=lambda *pair: seen.append(pair))
    assert [r.message if isinstance(r, Verdict) else str(r) for r in results] == [
        "a",
        "no power",
        "b",
        "the judge failed: ZeroDivisionError: a defect",
        "c",
    ]
    assert seen == [(n, 5) for n in range(1, 6)]


def test_a_job_goes_to_whichever_device_is_free(fakes):
    one, two = fakes
    one.gate.clear()  # holds its first job
    with JudgePool(judges=fakes, workers=2) as pool:
        futures = [pool.submit("L1/19", text) for text in "abcdef"]
        concurrent.futures.wait(futures, 10, return_when=concurrent.futures.FIRST_COMPLETED)
        deadline = time.monotonic() + 10
        while len(two.log) < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        one.gate.set()
        assert [future.result(10).message for future in futures] == list("abcdef")
    assert (len(one.log), len(two.log)) == (1, 5)


def test_a_gpu_judges_one_at_a_time_what_was_compiled_ahead():
    gpu = FakeJudge(gpu=True)
    gpu.gate.clear()
    with JudgePool(judges=[gpu], workers=3) as pool:
        futures = [pool.submit("L1/19", text) for text in ("a", "unpreparable", "c", "d")]
        deadline = time.monotonic() + 10
        while len(gpu.log) < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        # All are compiled while the first is still being judged.
        assert sorted(kind for kind, _ in gpu.log) == ["evaluate", *["prepare"] * 4]
        gpu.gate.set()
        assert [future.result(10).message for future in futures] == ["a", "unpreparable", "c", "d"]
    assert gpu.most == 1


def test_two_kinds_of_gpu_each_have_it_compiled_and_two_of_a_kind_once():
    one, two, three = (FakeJudge(name, gpu=True) for name in ("x", "x", "y"))
    with JudgePool(judges=[one, two, three], workers=1) as pool:
        pool.evaluate("L1/19", "a")
    prepared = [("prepare", "a") in judge.log for judge in (one, two, three)]
    assert prepared.count(True) == 2
    assert prepared[2]


@pytest.mark.parametrize("text", ["lose", "lose sandbox"])
def test_a_judgement_whose_standby_process_was_lost_is_made_again(fakes, text):
    one, _ = fakes
    with JudgePool(judges=[one], workers=1) as pool:
        assert pool.evaluate("L1/19", text).message == text
        assert len(one.log) == 2
        with pytest.raises(SandboxFault, match="ended twice"):
            pool.evaluate("L1/19", "lose " * 4)


def test_a_closed_pool_cancels_what_waits_and_takes_nothing_more(fakes):
    one, _ = fakes
    one.gate.clear()
    pool = JudgePool(judges=[one], workers=1)
    first, second = (pool.submit("L1/19", text) for text in "ab")
    while not first.running():
        time.sleep(0.01)
    threading.Timer(0.1, one.gate.set).start()
    pool.close()
    pool.close()
    assert first.result(0).message == "a"  # a judge that was given is waited for
    assert second.cancelled()
    with pytest.raises(EnvironmentFault, match="closed"):
        pool.submit("L1/19", "c")


def test_wrong_jobs_and_devices_are_refused_before_anything_is_judged(fakes):
    with JudgePool(judges=fakes) as pool:
        with pytest.raises(UsageError, match="L9/1"):
            pool.evaluate_many([("L1/19", "a"), ("L9/1", "b")])
        with pytest.raises(UsageError, match="workspace"):
            pool.evaluate_many([("L1/19", "a"), ("L1/19", 7)])
        assert not fakes[0].log
        assert not fakes[1].log
    for wrong in ({"devices": []}, {"devices": "cpu"}, {"devices": ["gpu"]}, {"workers": 0}):
        with pytest.raises(ConfigError):
            JudgePool(CONFIG, **wrong)
    with pytest.raises(ConfigError, match="beside"):
        JudgePool(judges=fakes, devices=["cpu"])
    with pytest.raises(ConfigError, match="beside"):
        evaluate_many([], CONFIG, judge=fakes[0])


def test_a_batch_goes_on_where_it_was_broken_off(fakes, tmp_path):
    one, two = fakes
    store = tmp_path / "verdicts.jsonl"
    first = evaluate_many(jobs("a", "fault", "b"), judge=one, resume=store)
    assert chain.verify(store) == 2
    with store.open("a") as file:
        file.write('{"cut off')
    one.log.clear()
    again = evaluate_many(jobs("b", "a", "c", "fault"), judge=one, resume=store)
    assert again[:2] == [first[2], first[0]]
    assert sorted(text for _, text in one.log) == ["c", "fault"]
    assert chain.verify(store) == 3
    # Another kind of device, or another configuration, is another question.
    evaluate_many(jobs("a"), judge=two, resume=store)
    one.config = CONFIG.replace(draws=2)
    evaluate_many(jobs("a"), judge=one, resume=store)
    assert chain.verify(store) == 5
    store.write_text(store.read_text().replace('"a"', '"x"'))
    with pytest.raises(RecordError, match=":1: the chain is broken"):
        evaluate_many(jobs("a"), judge=one, resume=store)


def test_awaiting_a_verdict_leaves_the_loop_free(fakes):
    async def both(pool):
        pair = asyncio.gather(
            aevaluate("L1/19", "a", judge=pool), aevaluate("L1/19", "b", judge=fakes[1], draws=2)
        )
        ticks = 0
        while not pair.done():
            ticks += 1
            await asyncio.sleep(0.001)
        return ticks, await pair

    with JudgePool(judges=fakes[:1], workers=1) as pool:
        ticks, verdicts = asyncio.run(both(pool))
    assert [verdict.message for verdict in verdicts] == ["a", "b"]
    assert ticks > 1


def test_cancelling_what_is_awaited_takes_it_from_the_queue(fakes):
    one, _ = fakes

    async def give_up(pool):
        running = asyncio.ensure_future(pool.aevaluate("L1/19", "a"))
        waiting = asyncio.ensure_future(pool.aevaluate("L1/19", "b"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        one.gate.set()
        return await asyncio.gather(running, waiting, return_exceptions=True)

    one.gate.clear()
    with JudgePool(judges=[one], workers=1) as pool:
        verdict, cancelled = asyncio.run(give_up(pool))
    assert verdict.message == "a"
    assert isinstance(cancelled, asyncio.CancelledError)
    assert one.log == [("evaluate", "a")]


# --- compiled ahead --------------------------------------------------------------------------

COMPUTED = """
import pathlib
pathlib.Path("extra.cuh").write_text("#define ZERO 0.0f\\n")
torch.cuda.get_device_properties(0)
KERNEL_TAIL = "".join(f"// {n}\\n" for n in range(3))
"""


@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")
def test_what_a_candidate_computes_is_compiled_ahead(tmp_path):
    computed = GOOD.replace("cuda_sources=cuda_source", "cuda_sources=cuda_source + KERNEL_TAIL")
    computed = computed.replace("cuda_source = r", COMPUTED + "cuda_source = r")
    files = workspace_files(computed)
    zygote = Zygote()
    with BuildService(tmp_path) as service:
        first = prebuild(files, CONFIG, "sm_90", service, zygote)
        again = prebuild(files, CONFIG, "sm_90", service, zygote)
        broken = prebuild(workspace_files("import missing"), CONFIG, "sm_90", service, zygote)
        rejected = candidate(forward=forward("return torch.relu(ext.run(x))"))
        unbuilt = prebuild(workspace_files(rejected), CONFIG, "sm_90", service, zygote)
    zygote.close()
    assert [(result.status, result.cached) for result in first] == [("ok", False)]
    assert [(result.key, result.cached) for result in again] == [(first[0].key, True)]
    assert broken == unbuilt == ()


# --- with real judges ------------------------------------------------------------------------


def zygotes(of=None):
    return [
        process
        for process in psutil.Process(of).children()
        if "kernelgym.judge.zygote" in " ".join(process.cmdline())
    ]


SLOW = candidate(forward=forward("time.sleep(0.7)", "return ext.run(x)"))


def test_a_standby_process_killed_on_one_device_disturbs_no_verdict():
    before = {process.pid for process in zygotes()}
    with JudgePool(CONFIG, devices=["cpu", "cpu"], workers=2) as pool:
        pool.evaluate_many(jobs(GOOD, GOOD))
        own = [process for process in zygotes() if process.pid not in before]
        assert len(own) == 2
        futures = [pool.submit("L1/19", SLOW) for _ in range(3)]
        while sum(future.running() for future in futures) < 2:
            time.sleep(0.01)
        time.sleep(0.4)  # into the candidates' own time
        own[0].kill()
        verdicts = [future.result(120) for future in futures]
    assert [verdict.outcome for verdict in verdicts] == [Outcome.CORRECT] * 3
    assert not [process for process in zygotes() if process.pid not in before]


INTERRUPTED = """
import sys
sys.path.insert(0, sys.argv[1])
from kernelgym.judge.pool import evaluate_many
from tests.judge.test_pool import CONFIG, candidate, forward
hang = candidate(forward=forward("time.sleep(60)"))
print("started", flush=True)
evaluate_many([("L1/19", hang)] * 5, CONFIG, devices=["cpu", "cpu"], workers=2)
"""


def test_an_interrupt_leaves_no_process(tmp_path):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, root],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert process.stdout.readline() == "started\n"
        deadline = time.monotonic() + 60
        # Both candidates run: a zygote, a supervisor and a candidate for each device.
        while len(family := psutil.Process(process.pid).children(recursive=True)) < 6:
            assert time.monotonic() < deadline, family
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert "KeyboardInterrupt" in errors
    _, alive = psutil.wait_procs(family, timeout=5)
    assert not alive
