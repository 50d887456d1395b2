"""The order of a timed call, on a GPU that is a list of what it was asked for."""

import time

import pytest
import torch

from kernelgym.judge import gpu_call
from kernelgym.judge.gpu_call import CacheFlush, timed_call

CPU = torch.device("cpu")


class FakeEvent:
    def __init__(self, log):
        self._log = log

    def record(self):
        self._log.append("event")

    def synchronize(self):
        self._log.append("end")

    def elapsed_time(self, other):
        return 0.25


@pytest.fixture
def log(monkeypatch):
    asked = []
    monkeypatch.setattr(torch.cuda, "Event", lambda enable_timing: FakeEvent(asked))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: asked.append("synchronize"))
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: asked.append("wait"))
    return asked


class LoggedFlush(CacheFlush):
    def __init__(self, log):
        super().__init__(CPU, 64)
        self._log = log

    def release(self):
        self._log.append("release")

    def __call__(self):
        self._log.append("flush")


def test_a_call_stands_between_two_events_after_a_wait_and_a_flush(log):
    result, seconds, host = timed_call(lambda: log.append("call") or 7, CPU, LoggedFlush(log))
    assert log == [
        "synchronize", "release", "wait", "flush", "event", "call", "event", "end",
        "synchronize",
    ]  # fmt: skip
    assert (result, seconds) == (7, 0.25e-3)
    assert host >= 0


def test_work_on_another_stream_is_added(log, monkeypatch):
    def synchronize(device):
        time.sleep(2e-3 if "end" in log else 0)

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    _, seconds, _ = timed_call(lambda: None, CPU, LoggedFlush(log))
    assert seconds >= 2.25e-3


def test_a_flush_writes_one_half_and_reads_another_and_keeps_its_memory():
    flush = CacheFlush(CPU, 4096)
    flush()
    written, read, total = flush._memory
    assert written.numel() * 4 == read.numel() * 4 == 2048
    assert not written.any()
    read.fill_(1.0)
    flush()
    assert float(total) == 512
    assert flush._memory[0] is written


def test_persisting_lines_are_given_up_on_a_gpu(monkeypatch):
    calls = []

    class Driver:
        def cuCtxResetPersistingL2Cache(self):
            calls.append(1)
            return 801  # not supported: nothing to give up

    monkeypatch.setattr(gpu_call, "_driver", Driver)
    CacheFlush(CPU, 64).release()
    assert calls == []
    CacheFlush(torch.device("cuda", 0), 64).release()
    assert calls == [1]
