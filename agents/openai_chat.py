"""An agent behind any endpoint that speaks OpenAI's chat protocol: vLLM, llama.cpp, Ollama, hosted.

The episode is a conversation (`kernelgym.agents.conversation`); the model's answer is the action as
it stands. What goes wrong on the way (rate limits, server errors, time-outs, broken answers) is tried
again with growing pauses. With a journal, an answer that was paid for is never asked for twice: a run
that was killed takes the same requests' answers from there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from kernelgym.agents.conversation import Conversation, read_skill
from kernelgym.budget import Usage
from kernelgym.errors import AgentError, UsageError

__all__ = ["Arguments", "OpenAIChat"]

_TRY_AGAIN = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
_LONGEST_PAUSE = 60.0
_PER_PRICE = 1e6
_CHARACTERS_PER_TOKEN = 4


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What `OpenAIChat` can be told.

    Attributes:
        model: The model's name, as the endpoint knows it.
        base_url: The endpoint, up to and with `/v1`.
        key_file: A file that holds the key; `""`: no key is sent.
        skill: Name of a bundled skill text, or a path; `""` for none.
        temperature: Of sampling; None leaves it to the endpoint.
        max_tokens: Most tokens of an answer.
        max_characters: Most characters of a conversation; older turns become a line each.
        seed: Sent with each request; None sends none.
        extra: More fields of each request's body.
        timeout: Seconds for one answer.
        retries: Attempts after the first one.
        backoff: Seconds before the second attempt; doubles from there, at most a minute.
        price_prompt: Money for a million tokens read.
        price_completion: Money for a million tokens written.
        total_tokens: Most tokens altogether, over all tasks; None for no limit.
        total_cost: Most money altogether.
        journal: A file of requests and answers; `""` keeps none.
    """

    model: str = ""
    base_url: str = "http://127.0.0.1:8000/v1"
    key_file: str = ""
    skill: str = "cuda"
    temperature: float | None = None
    max_tokens: int = 16_384
    max_characters: int = 200_000
    seed: int | None = None
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)
    timeout: float = 600.0
    retries: int = 6
    backoff: float = 1.0
    price_prompt: float = 0.0
    price_completion: float = 0.0
    total_tokens: int | None = None
    total_cost: float | None = None
    journal: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not self.model:
            raise UsageError("model: expected the name of a model, got none")
        if not self.base_url.startswith(("http://", "https://")):
            raise UsageError(f"base_url: expected http:// or https://, got {self.base_url!r}")
        for name in ("max_tokens", "timeout"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name}: expected more than 0, got {getattr(self, name)}")
        if self.retries < 0 or self.backoff < 0:
            raise UsageError("retries, backoff: expected 0 or more")


class OpenAIChat:
    """Asks a chat endpoint for each action.

    Args:
        arguments: All arguments as one record.
        **fields: Single fields of `Arguments`, over those of `arguments`.

    Attributes:
        usage: What was used so far; where an endpoint does not count tokens, four characters are
            one.

    Raises:
        UsageError: An argument is not accepted, or a file cannot be read.
    """

    def __init__(self, arguments: Arguments | None = None, **fields: Any) -> None:
        if arguments is None:
            arguments = Arguments(**fields)
        else:
            arguments = dataclasses.replace(arguments, **fields)
        self.arguments = arguments
        self.usage = Usage()
        self._conversation = Conversation(read_skill(arguments.skill), arguments.max_characters)
        self._started = False
        self._journal = _Journal(arguments.journal) if arguments.journal else None
        self._http = httpx.Client(
            headers=_headers(arguments.key_file),
            timeout=httpx.Timeout(arguments.timeout, connect=10.0),
        )

    def reset(self, info: dict[str, Any]) -> None:
        """Forgets the last episode's conversation."""
        self._started = False

    def __call__(self, observation: dict[str, Any], info: dict[str, Any]) -> str:
        """The model's answer.

        Raises:
            AgentError: The endpoint refuses the request or keeps failing, or the limit of tokens or
                money over all tasks is reached.
        """
        if self._started:
            self._conversation.observe(observation, info)
        else:
            self._conversation.begin(observation)
            self._started = True
        answer = self._ask()
        self._conversation.answered(answer)
        return answer

    def close(self) -> None:
        """Closes the connections. May be called again."""
        self._http.close()

    def _ask(self) -> str:
        self._refuse_overspending()
        told = self.arguments
        body: dict[str, Any] = {
            "model": told.model,
            "messages": self._conversation.messages(),
            "max_tokens": told.max_tokens,
        }
        if told.temperature is not None:
            body["temperature"] = told.temperature
        if told.seed is not None:
            body["seed"] = told.seed
        body.update(told.extra)
        known = self._journal.find(body) if self._journal is not None else None
        answer = known if known is not None else self._post(body)
        text = _text(answer)
        self._count(answer, body, text)
        if self._journal is not None and known is None:
            self._journal.add(body, answer)
        return text

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        url = f"{self.arguments.base_url.rstrip('/')}/chat/completions"
        # Escaped: an earlier answer may hold what UTF-8 cannot, such as a lone surrogate.
        content = json.dumps(body).encode("ascii")
        pause = self.arguments.backoff
        trouble = ""
        for attempt in range(self.arguments.retries + 1):
            if attempt:
                # Many that were turned away at once do not come back at once.
                time.sleep(pause * random.uniform(1.0, 1.25))
            wanted = 0.0
            try:
                response = self._http.post(url, content=content)
            except httpx.TransportError as error:
                trouble = f"{type(error).__name__}: {error}"
            else:
                if response.is_success:
                    try:
                        answer: dict[str, Any] = response.json()
                        _text(answer)
                        return answer
                    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
                        trouble = (
                            f"expected a chat completion, got {response.text[:120]!r} ({error})"
                        )
                elif response.status_code not in _TRY_AGAIN:
                    raise AgentError(
                        f"the endpoint answered {response.status_code}: {response.text[:500]}"
                    )
                else:
                    trouble = f"it answered {response.status_code}: {response.text[:200]}"
                    wanted = _retry_after(response)
            pause = min(max(wanted, self.arguments.backoff * 2**attempt), _LONGEST_PAUSE)
        raise AgentError(f"{self.arguments.retries + 1} attempts failed; the last: {trouble}")

    def _count(self, answer: dict[str, Any], body: dict[str, Any], text: str) -> None:
        counted = answer.get("usage")
        counted = counted if isinstance(counted, dict) else {}
        read, written = (counted.get(f"{name}_tokens") for name in ("prompt", "completion"))
        if not isinstance(read, int):
            characters = sum(len(message["content"]) for message in body["messages"])
            read = characters // _CHARACTERS_PER_TOKEN
        if not isinstance(written, int):
            written = len(text) // _CHARACTERS_PER_TOKEN
        cost = read * self.arguments.price_prompt + written * self.arguments.price_completion
        self.usage += Usage(1, read, written, cost / _PER_PRICE)

    def _refuse_overspending(self) -> None:
        limits = (
            ("tokens", self.arguments.total_tokens, self.usage.tokens),
            ("money", self.arguments.total_cost, self.usage.cost),
        )
        for name, limit, used in limits:
            if limit is not None and used >= limit:
                raise AgentError(f"the budget of {name} is spent: {used:g} of {limit:g}")


class _Journal:
    """Requests and answers, a line of JSON each. The same request may come several times."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._answers: dict[str, list[dict[str, Any]]] = {}
        self._asked: Counter[str] = Counter()
        text = self._path.read_bytes() if self._path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]  # a last line that was cut off is written anew
        for line in whole.splitlines():
            try:
                record = json.loads(line)
                self._answers.setdefault(record["request"], []).append(record["answer"])
            except (ValueError, KeyError, TypeError) as error:
                raise UsageError(f"journal: expected {path} to be one: {error}") from error
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.truncate(len(whole))

    def find(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to this request, as often as it was asked in this process."""
        key = _key(body)
        answers = self._answers.get(key, [])
        number = self._asked[key]
        self._asked[key] += 1
        return answers[number] if number < len(answers) else None

    def add(self, body: dict[str, Any], answer: dict[str, Any]) -> None:
        """Appends an answer, on disk before it is used."""
        line = json.dumps({"request": _key(body), "answer": answer})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())


def _key(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _text(answer: dict[str, Any]) -> str:
    """The answer's text; none where the model only thought."""
    content = answer["choices"][0]["message"].get("content")
    if content is not None and not isinstance(content, str):
        raise TypeError("expected the content to be a text")
    return content or ""


def _headers(key_file: str) -> dict[str, str]:
    plain = {"Content-Type": "application/json"}
    if not key_file:
        return plain
    try:
        key = Path(key_file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"key_file: expected a readable file: {error}") from error
    return {**plain, "Authorization": f"Bearer {key}"}


def _retry_after(response: httpx.Response) -> float:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdigit() else 0.0
