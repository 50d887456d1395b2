"""A service on a fake pool, in a thread of its own."""

import contextlib
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import uvicorn

from kernelgym.client import Client
from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault, SandboxFault
from kernelgym.judge.verdict import Outcome, Provenance, Verdict
from kernelgym.service.access import Access
from kernelgym.service.app import make_app
from kernelgym.service.desk import Desk

PROVENANCE = Provenance("0", "0", "fake", "audited", "strict", "default", "small")


class FakePool:
    """Judges by words, one at a time; `gate` holds it up."""

    def __init__(self):
        self.config = JudgeConfig(device="cpu")
        self.judged = []
        self.gate = threading.Event()
        self.gate.set()
        self._threads = ThreadPoolExecutor(1)
        self._futures = []
        self._closed = False

    def submit(self, task, workspace, *, config=None) -> Future:
        if self._closed:
            raise EnvironmentFault("closed")
        future = self._threads.submit(self._judge, task, workspace["model_new.py"], config)
        self._futures.append(future)
        return future

    def close(self, grace=0.0):
        self._closed = True
        for future in self._futures:
            future.cancel()
        if grace == 0:
            self.gate.set()
        self._threads.shutdown()

    def _judge(self, task, text, config):
        assert self.gate.wait(20)
        if self._closed and "late" not in text:
            raise EnvironmentFault("closed during the judgement")
        if "fault" in text:
            raise SandboxFault("no sandbox")
        self.judged.append(text)
        message = f"{text} {config.draws}" if config is not None else text
        return Verdict(task.id, Outcome.CORRECT, "", message, "00", PROVENANCE)


class Service:
    """A desk, its application and a server."""

    def __init__(self, journal, access=None, port=0, max_bytes=10_000, **desk):
        self.pool = FakePool()
        self.desk = Desk(self.pool, journal, **desk)
        app = make_app(
            self.desk,
            access or Access(),
            self.pool.config,
            "small",
            ["fake"],
            max_bytes=max_bytes,
        )
        settings = uvicorn.Config(app, port=port, log_level="critical", lifespan="off")
        settings.load()
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._clients = []

    def client(self, **arguments):
        client = Client(self.url, **{"patience": 10, **arguments})
        self._clients.append(client)
        return client

    def stop(self):
        for client in self._clients:
            client.close()
        self.desk.close()
        self._server.should_exit = True
        self._thread.join(20)


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "state" / "journal.jsonl"


@pytest.fixture
def start(journal):
    with contextlib.ExitStack() as stack:

        def begin(**arguments):
            service = Service(journal, **arguments)
            stack.callback(service.stop)
            return service

        yield begin


@pytest.fixture
def service(start):
    return start()
