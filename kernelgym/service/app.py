"""The service's routes: what `docs/service.md` tabulates, and nothing else."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import fastapi
import msgspec
from fastapi import FastAPI, Request, Response
from starlette.middleware.trustedhost import TrustedHostMiddleware

from kernelgym._version import __version__
from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError
from kernelgym.service.access import Access, Account
from kernelgym.service.desk import Desk, Refused
from kernelgym.service.messages import (
    IDEMPOTENCY_HEADER,
    MAX_WAIT_SECONDS,
    JobStatus,
    Problem,
    ServiceConfig,
    Submission,
)

__all__ = ["make_app"]

_MAX_KEY = 200
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")


class _HttpError(Exception):
    """A request that ends here."""

    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error = error


def make_app(
    desk: Desk,
    access: Access,
    config: JudgeConfig,
    size: str,
    devices: Sequence[str],
    *,
    max_bytes: int = 8 * 2**20,
) -> FastAPI:
    """Makes the application.

    Args:
        desk: Takes the jobs.
        access: Knows the callers.
        config: How the desk's pool judges.
        size: Which shapes.
        devices: On what.
        max_bytes: Longest body of a request.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    if access.open:
        # No token to hold off a web page that has its own name point to this machine.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(_LOCAL_NAMES))
    about = ServiceConfig(
        config=dataclasses.asdict(config),
        size=size,
        devices=tuple(devices),
        kernelgym=__version__,
        allows_config=desk.allow_config,
        allows_tasks=desk.allow_tasks,
    )

    def caller(request: Request) -> Account:
        account = access.account(request.headers.get("authorization"))
        if account is None:
            raise _HttpError(401, "UsageError", "expected the bearer token of an account")
        return account

    @app.exception_handler(_HttpError)
    async def http_error(request: Request, error: _HttpError) -> Response:
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
        return _problem(error.status, error.error, str(error), headers)

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
        kind = "EnvironmentFault" if error.status == 503 else "UsageError"
        return _problem(error.status, kind, str(error), headers)

    @app.exception_handler(UsageError)
    async def usage_error(request: Request, error: UsageError) -> Response:
        return _problem(400, type(error).__name__, str(error))

    @app.exception_handler(OSError)
    async def os_error(request: Request, error: OSError) -> Response:
        return _problem(503, "EnvironmentFault", f"the journal cannot be written: {error}")

    @app.get("/v1/health")
    async def health() -> Response:
        status = "stopping" if desk.stopping else "ok"
        return _json(200, {"status": status, "kernelgym": __version__})

    @app.get("/v1/config")
    async def configuration(request: Request) -> Response:
        caller(request)
        return _json(200, about)

    @app.get("/v1/queue")
    async def queue(request: Request) -> Response:
        return _json(200, desk.queue(caller(request)))

    @app.post("/v1/verdicts")
    async def submit(request: Request) -> Response:
        account = caller(request)
        wait = _wait(request)
        key = request.headers.get(IDEMPOTENCY_HEADER)
        if key is not None and not 1 <= len(key) <= _MAX_KEY:
            raise UsageError(f"{IDEMPOTENCY_HEADER}: expected 1 to {_MAX_KEY} characters")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # what no form of a web page can send unasked
            raise _HttpError(415, "UsageError", "expected Content-Type: application/json")
        body = await _body(request, max_bytes)
        try:
            submission = msgspec.json.decode(body, type=Submission)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"body: expected a submission, got: {error}") from error
        status = await asyncio.to_thread(desk.submit, account, key, submission)
        return await respond(account, status, wait, accepted=202)

    @app.get("/v1/verdicts/{job_id}")
    async def verdict(request: Request, job_id: str) -> Response:
        account = caller(request)
        status = desk.find(account, job_id)
        if status is None:
            raise _HttpError(404, "UsageError", f"expected the id of a job, got {job_id[:80]!r}")
        return await respond(account, status, _wait(request), accepted=200)

    async def respond(account: Account, status: JobStatus, wait: float, accepted: int) -> Response:
        if status.status in ("queued", "running") and wait > 0 and not desk.stopping:
            # asyncio.wait leaves the future alone when the time is over.
            await asyncio.wait([asyncio.wrap_future(desk.finished(status.id))], timeout=wait)
            status = desk.find(account, status.id) or status
        finished = status.status in ("done", "fault")
        return _json(200 if finished else accepted, status)

    return app


async def _body(request: Request, limit: int) -> bytes:
    announced = request.headers.get("content-length", "0")
    if not announced.isdigit() or int(announced) > limit:
        raise _HttpError(413, "UsageError", f"body: expected at most {limit} bytes")
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > limit:
            raise _HttpError(413, "UsageError", f"body: expected at most {limit} bytes")
    return bytes(data)


def _wait(request: Request) -> float:
    text = request.query_params.get("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise UsageError(f"wait: expected seconds, got {text[:80]!r}")
    return min(seconds, MAX_WAIT_SECONDS)


def _json(status: int, content: Any, headers: dict[str, str] | None = None) -> Response:
    return fastapi.Response(
        msgspec.json.encode(content), status, headers, media_type="application/json"
    )


def _problem(
    status: int, error: str, message: str, headers: dict[str, str] | None = None
) -> Response:
    return _json(status, Problem(error, message), headers)
