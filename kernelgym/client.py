"""`Client`: a judge that runs elsewhere, behind `kernelgym serve`. Needs httpx, and no torch.

Example:
    >>> from kernelgym.client import Client
    >>> with Client("http://127.0.0.1:8765") as judge:  # doctest: +SKIP
    ...     verdict = judge.evaluate("L1/19", open("model_new.py").read())
    ...     env = gym.make("KernelBench-L1-v0", judge=judge)
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

import httpx
import msgspec

from kernelgym import errors
from kernelgym.config import JudgeConfig
from kernelgym.errors import ConfigError, EnvironmentFault, UsageError
from kernelgym.judge.sources import find_task, workspace_files
from kernelgym.judge.verdict import Verdict, from_json
from kernelgym.service.messages import (
    IDEMPOTENCY_HEADER,
    JobStatus,
    Problem,
    QueueStatus,
    ServiceConfig,
    Submission,
    TaskText,
    text_hash,
)
from kernelgym.tasks import Task

__all__ = ["Client"]

_POLL_SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_TRY_AGAIN = frozenset((408, 425, 429, 500, 502, 503, 504))

_Talk: TypeAlias = Generator["httpx.Request | float", "httpx.Response | Exception", "_T"]
_T = TypeVar("_T")
_ResultT = TypeVar("_ResultT", JobStatus, ServiceConfig, QueueStatus, dict[str, Any])


class Client:
    """A judge behind an address; a context manager, safe to use from several threads.

    It stands wherever a `Judge` is asked for: `KernelEnv(judge=Client(url))`. A job carries a key of
    its own, so that a request that is repeated is judged once and its verdict never lost, also
    where the service is started anew in between.

    Args:
        url: The service's address, such as `"http://127.0.0.1:8765"`.
        token: The account's token, where the service asks for one.
        agent: Whose work it is, for the service's record.
        patience: Seconds for which a service that does not answer, or has no room, is tried again.
            How long a judgement takes does not count.
        workers: Jobs of a batch that are with the service at a time.

    Raises:
        ConfigError: The address is none, or a number is too small.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        agent: str = "",
        patience: float = 300.0,
        workers: int = 32,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"url: expected http:// or https://, got {url!r}")
        if workers < 1 or patience < 0:
            raise ConfigError("expected workers of at least 1, and patience of at least 0")
        self._agent = agent
        self._patience = patience
        self._workers = workers
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = httpx.Timeout(10.0, read=_POLL_SECONDS + 15.0, pool=None)
        self._base = url.rstrip("/")
        self._http = httpx.Client(
            headers=self._headers,
            timeout=self._timeout,
            limits=httpx.Limits(max_connections=None),
        )
        self._about: ServiceConfig | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Client:
        """The client itself: Gymnasium copies an environment's arguments, and locks cannot be."""
        return self

    @property
    def about(self) -> ServiceConfig:
        """How the service judges; asked for once."""
        with self._lock:
            if self._about is None:
                self._about = self._run(self._fetch("/v1/config", ServiceConfig))
            return self._about

    @property
    def config(self) -> JudgeConfig:
        """The service's configuration.

        Raises:
            EnvironmentFault: The service cannot be reached, or is of a version that has others.
        """
        try:
            return JudgeConfig(**self.about.config)
        except TypeError as error:
            raise EnvironmentFault(
                f"expected a service of this version, got {self.about.kernelgym}: {error}"
            ) from error

    @property
    def size(self) -> str:
        """Which shapes the service judges at."""
        return self.about.size

    def evaluate(
        self,
        task: Task | str,
        workspace: Any,
        *,
        config: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Verdict:
        """Has one candidate judged; see `Judge.evaluate`.

        Args:
            task: A task, its id, or the path of a file in KernelBench's form; a service takes a
                file's text only where it was started so.
            workspace: As for `Judge.evaluate`.
            config: Fields of `JudgeConfig`, over the service's, where it was started so.
            key: Names the job: the same key is the same job, however often it is sent. By default
                one that is new.

        Raises:
            UsageError: The service does not take the job, and says why.
            EnvironmentFault: The service's harness failed, or it could not be reached in time.
        """
        return self._run(self._judge(task, workspace, config, key))

    async def aevaluate(
        self,
        task: Task | str,
        workspace: Any,
        *,
        config: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Verdict:
        """`evaluate` for callers in an event loop."""
        talk = self._judge(task, workspace, config, key)
        async with httpx.AsyncClient(headers=self._headers, timeout=self._timeout) as http:
            answer: httpx.Response | Exception | None = None
            while True:
                try:
                    wish = next(talk) if answer is None else talk.send(answer)
                except StopIteration as end:
                    return _verdict(end.value)
                if isinstance(wish, float):
                    await asyncio.sleep(wish)
                    answer = _SLEPT
                else:
                    try:
                        answer = await http.send(wish)
                    except httpx.TransportError as error:
                        answer = error

    def evaluate_many(
        self,
        jobs: Iterable[tuple[Task | str, Any]],
        *,
        workers: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Verdict | EnvironmentFault]:
        """Has a batch judged.

        Args:
            jobs: Tasks and workspaces.
            workers: Of no effect: the service has its own.
            progress: Called after each job with (done, total), from the calling thread.

        Returns:
            For each job, in order: its verdict, or the fault that prevented one.

        Raises:
            UsageError: The service does not take a job.
        """
        todo = list(jobs)
        results: list[Verdict | EnvironmentFault] = []

        def one(job: tuple[Task | str, Any]) -> Verdict | EnvironmentFault:
            try:
                return self.evaluate(*job)
            except EnvironmentFault as fault:
                return fault

        with ThreadPoolExecutor(self._workers, "kernelgym-client") as pool:
            for result in pool.map(one, todo):
                results.append(result)
                if progress is not None:
                    progress(len(results), len(todo))
        return results

    def health(self) -> dict[str, Any]:
        """`{"status": "ok" or "stopping", "kernelgym": version}`; tried once.

        Raises:
            EnvironmentFault: The service cannot be reached.
        """
        return self._run(self._fetch("/v1/health", dict[str, Any], patience=0.0))

    def queue(self) -> QueueStatus:
        """The service's queue, and this account's verdicts and budget.

        Raises:
            EnvironmentFault: The service cannot be reached.
        """
        return self._run(self._fetch("/v1/queue", QueueStatus))

    def close(self) -> None:
        """Closes the connections. Calling it twice is fine."""
        self._http.close()

    # --- what is said, whoever carries it ----------------------------------------------------

    def _judge(
        self,
        task: Task | str,
        workspace: Any,
        config: Mapping[str, Any] | None,
        key: str | None,
    ) -> _Talk[Verdict]:
        found = find_task(task)
        submission = Submission(
            task=found.id if found.level else TaskText(found.id, found.text),
            files={file.path: file.text for file in workspace_files(workspace)},
            config=dict(config or {}),
            task_hash=text_hash(found.text),
            agent=self._agent,
        )
        headers = {
            IDEMPOTENCY_HEADER: key or uuid.uuid4().hex,
            "Content-Type": "application/json",
        }
        body = msgspec.json.encode(submission)
        status = yield from self._ask(
            "POST", f"/v1/verdicts?wait={_POLL_SECONDS:g}", JobStatus, headers, body
        )
        while status.status not in ("done", "fault"):
            began = time.monotonic()
            status = yield from self._ask(
                "GET", f"/v1/verdicts/{status.id}?wait={_POLL_SECONDS:g}", JobStatus
            )
            if time.monotonic() - began < _FIRST_PAUSE:  # it is stopping, or does not wait
                yield _FIRST_PAUSE
        if status.status == "done":
            return from_json(bytes(status.verdict))
        fault = _error_class(status.fault)
        if issubclass(fault, (EnvironmentFault, UsageError)):
            raise fault(status.message)
        raise EnvironmentFault(status.message)

    def _fetch(
        self, path: str, kind: type[_ResultT], patience: float | None = None
    ) -> _Talk[_ResultT]:
        return (yield from self._ask("GET", path, kind, patience=patience))

    def _ask(
        self,
        method: str,
        path: str,
        kind: type[_ResultT],
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        patience: float | None = None,
    ) -> _Talk[_ResultT]:
        """One request, tried again while there is hope."""
        patience = self._patience if patience is None else patience
        given_up = time.monotonic() + patience
        pause = _FIRST_PAUSE
        while True:
            request = httpx.Request(
                method,
                self._base + path,
                headers={**self._headers, **(headers or {})},
                content=body,
                extensions={"timeout": self._timeout.as_dict()},
            )
            answer = yield request
            wanted = 0.0
            if isinstance(answer, httpx.Response):
                if answer.is_success:
                    return _decoded(answer, kind)
                if answer.status_code not in _TRY_AGAIN:
                    raise _refusal(answer)
                wanted = _retry_after(answer)
                trouble = f"it answered {answer.status_code}: {_problem(answer).message}"
            else:
                trouble = f"{type(answer).__name__}: {answer}"
            # Many callers that were turned away at once do not come back at once.
            rest = max(wanted, pause) * random.uniform(1.0, 1.5)
            if time.monotonic() + rest > given_up:
                raise EnvironmentFault(
                    f"the judge's service at {self._base} has not answered in {patience:g} s: "
                    f"{trouble}"
                )
            yield rest
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _run(self, talk: _Talk[_T]) -> _T:
        answer: httpx.Response | Exception | None = None
        while True:
            try:
                wish = next(talk) if answer is None else talk.send(answer)
            except StopIteration as end:
                result: _T = end.value
                return result
            if isinstance(wish, float):
                time.sleep(wish)
                answer = _SLEPT
            else:
                try:
                    answer = self._http.send(wish)
                except httpx.TransportError as error:
                    answer = error


_SLEPT = Exception("no answer: only time has passed")


def _verdict(value: Any) -> Verdict:
    assert isinstance(value, Verdict)
    return value


def _decoded(answer: httpx.Response, kind: type[_ResultT]) -> _ResultT:
    try:
        decoded: _ResultT = msgspec.json.decode(answer.content, type=kind)
        return decoded
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EnvironmentFault(f"expected an answer of the judge's service: {error}") from error


def _problem(answer: httpx.Response) -> Problem:
    try:
        return msgspec.json.decode(answer.content, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Problem("UsageError", answer.text[:200] or answer.reason_phrase)


def _refusal(answer: httpx.Response) -> Exception:
    problem = _problem(answer)
    kind = _error_class(problem.error)
    if not issubclass(kind, UsageError):
        kind = UsageError
    return kind(f"the service answered {answer.status_code}: {problem.message}")


def _error_class(name: str) -> type[Exception]:
    found = getattr(errors, name, None)
    if isinstance(found, type) and issubclass(found, errors.KernelGymError):
        return found
    return EnvironmentFault


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("Retry-After", "")
    return min(float(text), 60.0) if text.isdigit() else 0.0
