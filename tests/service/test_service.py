"""The routes and the client, over HTTP on this machine."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest
from typer.testing import CliRunner

from kernelgym.cli import app
from kernelgym.client import Client
from kernelgym.config import JudgeConfig
from kernelgym.edits import WriteFile, render
from kernelgym.env import KernelEnv
from kernelgym.errors import (
    ConfigError,
    EnvironmentFault,
    SandboxFault,
    UnknownTaskError,
    UsageError,
)
from kernelgym.judge import chain
from kernelgym.service.access import Access, Account

from .conftest import Service

TOKEN = "0123456789abcdef"
REJECTED = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""
JOB = {"task": "L1/19", "files": {"model_new.py": "a"}}


def test_a_verdict_comes_back_as_it_was_reached(service):
    client = service.client(agent="me")
    verdict = client.evaluate("L1/19", "hello")
    assert (verdict.task, verdict.message, verdict.correct) == ("L1/19", "hello", True)
    assert client.health()["status"] == "ok"
    assert client.queue().agents == (("me", 1),)
    assert (client.config, client.size) == (JudgeConfig(device="cpu"), "small")
    assert client.about.devices == ("fake",)


def test_a_batch_comes_back_in_order_and_faults_are_its_own(service):
    client = service.client(workers=4)
    seen = []
    results = client.evaluate_many(
        [("L1/19", text) for text in ("a", "fault", "b")], progress=lambda *p: seen.append(p)
    )
    assert [results[0].message, results[2].message] == ["a", "b"]
    assert isinstance(results[1], SandboxFault)
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_awaiting_many(service):
    client = service.client()

    async def judge():
        return await asyncio.gather(*(client.aevaluate("L1/19", text) for text in "abc"))

    assert [verdict.message for verdict in asyncio.run(judge())] == list("abc")


def test_errors_are_those_of_a_judge(service):
    client = service.client()
    with pytest.raises(UnknownTaskError):
        client.evaluate("L9/1", "a")
    with pytest.raises(UsageError, match="its own configuration"):
        client.evaluate("L1/19", "a", config={"draws": 2})
    with pytest.raises(SandboxFault, match="no sandbox"):
        client.evaluate("L1/19", "fault")
    with pytest.raises(UsageError, match="at most 10000 bytes"):
        client.evaluate("L1/19", "x" * 20_000)
    with pytest.raises(ConfigError, match="url"):
        Client("localhost:8765")
    gone = Client("http://127.0.0.1:9", patience=0.3)
    with gone, pytest.raises(EnvironmentFault, match=r"not answered in 0\.3 s: ConnectError"):
        gone.evaluate("L1/19", "a")


def test_a_full_queue_is_waited_for(start):
    service = start(capacity=1)
    service.pool.gate.clear()
    client = service.client()
    threading.Timer(0.5, service.pool.gate.set).start()
    assert [v.message for v in client.evaluate_many([("L1/19", t) for t in "abc"])] == list("abc")
    assert sorted(service.pool.judged) == list("abc")


def test_a_verdict_survives_a_restart_of_the_service(start, journal):
    first = start()
    first.pool.gate.clear()
    result = []
    client = first.client(patience=30)
    caller = threading.Thread(target=lambda: result.append(client.evaluate("L1/19", "a")))
    caller.start()
    while not first.desk.queue(Account("local")).running:
        time.sleep(0.01)
    first.desk.close()
    first._server.should_exit = True
    first._thread.join(20)
    second = Service(journal, port=first.port)
    try:
        caller.join(30)
        assert [verdict.message for verdict in result] == ["a"]
        assert (first.pool.judged, second.pool.judged) == ([], ["a"])
        assert chain.verify(journal) == 2
    finally:
        second.stop()


def test_an_environment_plays_against_a_service(service):
    env = KernelEnv("L1/19", judge=service.client())
    env.reset(seed=0)
    _, reward, _, _, info = env.step(render(WriteFile("model_new.py", "x = 1\n")))
    assert (reward, info["verdict"].message) == (1.0, "x = 1\n")
    env.close()


def test_tokens(start):
    accounts = [(TOKEN, Account("ann", 1)), ("f" * 16, Account("bob"))]
    service = start(access=Access(accounts))
    with pytest.raises(UsageError, match="401: expected the bearer token"):
        service.client().evaluate("L1/19", "a")
    assert service.client().health()["status"] == "ok"
    ann, bob = service.client(token=TOKEN), service.client(token="f" * 16)
    assert ann.evaluate("L1/19", "a", key="1").message == "a"
    assert ann.evaluate("L1/19", "a", key="1").message == "a"
    with pytest.raises(UsageError, match="403: the budget of ann is spent"):
        ann.evaluate("L1/19", "b")
    assert bob.evaluate("L1/19", "c", key="1").message == "c"
    assert service.pool.judged == ["a", "c"]


def test_requests_that_are_none(service):
    with httpx.Client(base_url=service.url) as http:
        json_type = {"Content-Type": "application/json"}

        def post(content, headers=json_type, query=""):
            answer = http.post(f"/v1/verdicts{query}", content=content, headers=headers)
            return answer.status_code

        body = json.dumps(JOB)
        assert post("{") == post(b"\xff") == post(json.dumps({**JOB, "more": 1})) == 400
        assert post(json.dumps({**JOB, "files": []})) == 400
        assert post(body, {"Content-Type": "text/plain"}) == 415
        assert post(body, query="?wait=soon") == post(body, query="?wait=-1") == 400
        assert post(body, {**json_type, "Idempotency-Key": "k" * 300}) == 400
        # Without a length in advance, it is the bytes that count.
        assert post(iter([b"x" * 6000] * 2)) == 413
        assert post(body, {**json_type, "Host": "evil.example"}) == 400
        assert http.get("/v1/verdicts/unknown").status_code == 404
        assert http.get("/docs").status_code == 404
        assert not service.pool.judged
        service.pool.gate.clear()
        answer = http.post("/v1/verdicts?wait=0.1", content=body, headers=json_type)
        assert answer.status_code == 202
        path = f"/v1/verdicts/{answer.json()['id']}"
        assert http.get(path).json()["status"] in ("queued", "running")
        service.pool.gate.set()
        answer = http.get(f"{path}?wait=10")
        assert (answer.status_code, answer.json()["status"]) == (200, "done")


def test_a_stopping_service_lets_go_of_who_waits(service):
    service.pool.gate.clear()
    with httpx.Client(base_url=service.url) as http:
        threading.Timer(0.3, service.desk.begin_stop).start()
        began = time.monotonic()
        answer = http.post("/v1/verdicts?wait=30", json=JOB)
        assert (answer.status_code, time.monotonic() - began < 10) == (202, True)
        answer = http.post("/v1/verdicts", json=JOB)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert http.get("/v1/health").json()["status"] == "stopping"


def test_the_command_serves_until_it_is_told_to_stop(journal):
    code = "from kernelgym.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--device", "cpu", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--journal", str(journal), "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = process.stdout.readline().strip()
        with Client(address, patience=20) as client:
            verdict = client.evaluate("L1/19", REJECTED)
        assert verdict.reason == "rule.torch_compute"
        assert verdict.provenance.device == "emulator"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, "stopped" in errors) == (0, True), errors
    assert chain.verify(journal) == 2


def test_evaluate_asks_a_service(start, tmp_path):
    service = start(access=Access([(TOKEN, Account("ann"))]), allow_config=True)
    (tmp_path / "relu.py").write_text("asked")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    arguments = ["evaluate", "L1/19", str(tmp_path / "relu.py"), "--server", service.url, "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "401" in result.output
    arguments += ["--token-file", str(tmp_path / "token"), "--draws", "2"]
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, json.loads(result.stdout)["message"]) == (0, "asked 2")


def test_what_the_command_refuses():
    for wrong in (
        ["--host", "0.0.0.0"],
        ["--host", "not an address"],
        ["--tokens", "/nowhere"],
        ["--devices", "gpu"],
    ):
        result = CliRunner().invoke(app, ["serve", "--port", "0", "--device", "cpu", *wrong])
        assert result.exit_code == 2, result.output


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import gymnasium as gym, kernelgym
with kernelgym.Client(sys.argv[1]) as judge:
    print(judge.evaluate("L1/19", "no torch").message)
    env = gym.make("KernelBench-L1-v0", judge=judge)
    env.reset(seed=0)
    env.close()
"""


def test_the_client_needs_no_torch(service):
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, service.url], capture_output=True, text=True
    )
    assert (run.returncode, run.stdout) == (0, "no torch\n"), run.stderr
