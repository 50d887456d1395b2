"""The chat agent against a server that speaks the protocol, well and badly."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelgym.agents.openai_chat import OpenAIChat
from kernelgym.budget import Usage
from kernelgym.errors import AgentError, UsageError
from kernelgym.evaluation import evaluate_agent
from kernelgym.runner import run_episode

SLEEP = time.sleep  # the agent's own pauses are noted instead


def completion(text: str | None, **usage: int) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}}],
    }
    return answer | ({"usage": usage} if usage else {})


def written(word: str) -> str:
    return f"<think>Let me see.</think>\n```python model_new.py\n# {word} \n```\n"


class Endpoint:
    """Answers from a list: a text, a completion, (status, headers, body), or seconds to hang."""

    def __init__(self, server: http.server.ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        self.script: list[Any] = []
        self.seen: list[dict[str, Any]] = []
        self.headers: list[Any] = []


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.seen.append(body)
            found.headers.append(self.headers)
            assert self.path == "/v1/chat/completions"
            said = found.script.pop(0) if found.script else "submit"
            if isinstance(said, float):
                SLEEP(said)
                said = "too late"
            if isinstance(said, str):
                said = completion(said, prompt_tokens=100, completion_tokens=10)
            status, extra, text = (200, {}, json.dumps(said)) if isinstance(said, dict) else said
            try:
                self.send_response(status)
                for name, value in extra.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())
            except BrokenPipeError:
                return  # the caller has given up

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found = Endpoint(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def make_agent(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pauses: list[float] = []
    monkeypatch.setattr("kernelgym.agents.openai_chat.time.sleep", pauses.append)
    made: list[OpenAIChat] = []

    def make(**fields: Any) -> OpenAIChat:
        made.append(OpenAIChat(**{"model": "m", "base_url": endpoint.url, **fields}))
        made[-1].pauses = pauses  # type: ignore[attr-defined]
        return made[-1]

    yield make
    for agent in made:
        agent.close()


def test_it_plays_an_episode(endpoint: Endpoint, make_agent: Any, make_env: Any) -> None:
    endpoint.script = [written("wrong!"), "no edit", written("fast=2.0")]
    agent = make_agent(temperature=0.5, seed=3, extra={"top_k": 7}, max_tokens=99)
    result = run_episode(make_env(), agent)
    assert result.solved
    assert [turn.edit_error != "" for turn in result.turns] == [False, True, False, False]
    first, second, third, _ = endpoint.seen
    told = {key: first[key] for key in ("model", "max_tokens", "temperature", "seed", "top_k")}
    assert told == {"model": "m", "max_tokens": 99, "temperature": 0.5, "seed": 3, "top_k": 7}
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    assert "Let me see" not in json.dumps(second)
    assert second["messages"][-1]["content"].startswith("Outcome: incorrect")
    assert third["messages"][-1]["content"].startswith("The edit was not applied")
    assert "Authorization" not in endpoint.headers[0]


def test_episodes_do_not_share_a_conversation(
    endpoint: Endpoint, make_agent: Any, make_env: Any
) -> None:
    agent = make_agent()
    run_episode(make_env(), agent)
    run_episode(make_env(), agent)
    assert endpoint.seen[0] == endpoint.seen[1]


def test_trouble_is_tried_again(endpoint: Endpoint, make_agent: Any, make_env: Any) -> None:
    endpoint.script = [
        (429, {"Retry-After": "7"}, "slow down"),
        (500, {}, "oops"),
        (200, {}, "{not json"),
        (200, {}, json.dumps({"choices": []})),
        (200, {}, json.dumps(completion(17))),  # type: ignore[arg-type]
        written("fast=2.0"),
    ]
    agent = make_agent(backoff=1.0)
    assert run_episode(make_env(), agent).solved
    assert len(endpoint.seen) == 7
    assert agent.pauses[0] >= 7
    assert 2 <= agent.pauses[1] <= 2.5
    assert 4 <= agent.pauses[2] <= 5
    assert agent.usage.requests == 2


def test_an_answer_that_does_not_come_is_asked_for_again(
    endpoint: Endpoint, make_agent: Any, make_env: Any
) -> None:
    endpoint.script = [0.6, "submit"]
    agent = make_agent(timeout=0.3)
    result = run_episode(make_env(), agent)
    assert [turn.action for turn in result.turns] == ["submit"]
    assert (len(endpoint.seen), agent.usage.requests) == (2, 1)


def test_it_gives_up(endpoint: Endpoint, make_agent: Any, make_env: Any) -> None:
    endpoint.script = [(503, {}, "no")] * 3
    with pytest.raises(AgentError, match="3 attempts failed; the last: it answered 503: no"):
        run_episode(make_env(), make_agent(retries=2))
    endpoint.script = [(401, {}, "who are you?")]
    with pytest.raises(AgentError, match=r"answered 401: who are you\?"):
        run_episode(make_env(), make_agent())
    assert len(endpoint.seen) == 4


def test_no_endpoint_is_an_error_of_the_agent(make_agent: Any, make_env: Any) -> None:
    with pytest.raises(AgentError, match="2 attempts failed; the last: ConnectError"):
        run_episode(make_env(), make_agent(base_url="http://127.0.0.1:9/v1", retries=1))


def test_tokens_and_money_are_counted(endpoint: Endpoint, make_agent: Any, make_env: Any) -> None:
    agent = make_agent(price_prompt=2.0, price_completion=10.0)
    run_episode(make_env(), agent)
    assert agent.usage == Usage(1, 100, 10, pytest.approx(300e-6))
    endpoint.script = [completion("submit")]
    run_episode(make_env(), agent)
    # Not counted by the endpoint: by the length of the texts.
    sent = sum(len(m["content"]) for m in endpoint.seen[-1]["messages"])
    assert agent.usage.prompt_tokens == 100 + sent // 4
    assert agent.usage.completion_tokens == 10 + 1


def test_a_spent_budget_ends_the_run_and_more_of_it_goes_on(
    endpoint: Endpoint, make_agent: Any, tmp_path: Path, fake_judge: Any
) -> None:
    out, tasks = tmp_path / "run", ["L1/19", "L1/23", "L1/26"]
    endpoint.script = [written("fast=2.0")] * 2
    poor = evaluate_agent(
        make_agent(total_tokens=200), tasks, 1, out=out, judge=fake_judge, name="chat"
    )
    assert (poor.finished, poor.usage.tokens) == (2, 220)
    rich = evaluate_agent(
        make_agent(total_tokens=9999), tasks, 1, out=out, judge=fake_judge, name="chat"
    )
    assert (rich.finished, len(endpoint.seen)) == (3, 3)


def test_answers_in_the_journal_are_not_asked_for_again(
    endpoint: Endpoint, make_agent: Any, make_env: Any, tmp_path: Path
) -> None:
    journal = tmp_path / "answers.jsonl"
    endpoint.script = [written("wrong!"), written("fast=2.0"), "submit"]
    first = run_episode(make_env(), make_agent(journal=str(journal)))
    with journal.open("a") as file:
        file.write('{"request": "cut o')
    agent = make_agent(journal=str(journal))
    again = run_episode(make_env(), agent)
    assert [turn.action for turn in again.turns] == [turn.action for turn in first.turns]
    assert len(endpoint.seen) == 3
    assert agent.usage.requests == 3
    # The same question a second time in one run is another sample.
    endpoint.script = ["submit"]
    assert run_episode(make_env(), agent).turns[0].action == "submit"
    assert len(endpoint.seen) == 4
    journal.write_text("{}\n")
    with pytest.raises(UsageError, match="journal"):
        make_agent(journal=str(journal))


def test_a_key_is_sent_and_odd_text_survives(
    endpoint: Endpoint, make_agent: Any, make_env: Any, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("secret\n")
    endpoint.script = ["\ud800 \x00 odd", completion(None), "submit"]
    agent = make_agent(key_file=str(key))
    assert len(run_episode(make_env(), agent).turns) == 3
    assert endpoint.headers[0]["Authorization"] == "Bearer secret"
    assert endpoint.seen[2]["messages"][4]["content"] == "(no answer)"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model": ""}, "model"),
        ({"base_url": "localhost"}, "base_url"),
        ({"timeout": 0}, "timeout"),
        ({"retries": -1}, "retries"),
        ({"key_file": "/no/such/file"}, "key_file"),
    ],
)
def test_what_cannot_be_is_refused(make_agent: Any, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_agent(**fields)
