"""What a client and the judge's service say to each other, as JSON. See `docs/service.md`."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

__all__ = [
    "IDEMPOTENCY_HEADER",
    "MAX_WAIT_SECONDS",
    "NO_VERDICT",
    "JobStatus",
    "Problem",
    "QueueStatus",
    "ServiceConfig",
    "Submission",
    "TaskText",
    "text_hash",
]

IDEMPOTENCY_HEADER = "Idempotency-Key"
MAX_WAIT_SECONDS = 60.0
"""The longest `wait` that the service grants."""


NO_VERDICT = msgspec.Raw(b"null")


class TaskText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task that the service does not have: a name for it, and its file's text."""

    name: str
    text: str


class Submission(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job.

    Attributes:
        task: The id of a task that the service has, or a task's text.
        files: Path to text, as a workspace has them.
        config: Fields of `JudgeConfig`, over the service's own.
        task_hash: SHA-256 of the task's text as the client has it; checked where given.
        agent: Whose work it is, for the record.
    """

    task: str | TaskText
    files: dict[str, str]
    config: dict[str, Any] = {}
    task_hash: str = ""
    agent: str = ""

    def digest(self) -> str:
        """Tells one submission from another."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()


class JobStatus(msgspec.Struct, frozen=True):
    """Where a job stands.

    Attributes:
        id: Its id.
        status: `"queued"`, `"running"`, `"done"` (there is a verdict) or `"fault"`.
        verdict: The verdict as JSON, when done; `null` before.
        hash: The result's hash in the service's journal.
        fault: The class of the fault that prevented a verdict, as in `kernelgym.errors`.
        message: The fault's message.
    """

    id: str
    status: str
    verdict: msgspec.Raw = NO_VERDICT
    hash: str = ""
    fault: str = ""
    message: str = ""


class ServiceConfig(msgspec.Struct, frozen=True):
    """How the service judges.

    Attributes:
        config: The fields of its `JudgeConfig`.
        size: Which shapes.
        devices: What it judges on, as provenance names them.
        kernelgym: Its version.
        allows_config: Whether a submission may change the configuration.
        allows_tasks: Whether a submission may bring a task's text.
    """

    config: dict[str, Any]
    size: str
    devices: tuple[str, ...]
    kernelgym: str
    allows_config: bool
    allows_tasks: bool


class QueueStatus(msgspec.Struct, frozen=True):
    """The queue, and the caller's account.

    Attributes:
        queued: Jobs that wait, of all callers.
        running: Jobs on a device.
        capacity: Jobs that may be unfinished at a time.
        account: The caller's name.
        unfinished: The caller's jobs without a result.
        verdicts: Verdicts that the caller has been given since the journal began.
        budget: How many it may be given; None without a limit.
        agents: (name, verdicts) of the caller's agents.
    """

    queued: int
    running: int
    capacity: int
    account: str
    unfinished: int
    verdicts: int
    budget: int | None
    agents: tuple[tuple[str, int], ...] = ()


class Problem(msgspec.Struct, frozen=True):
    """Why a request was refused: a class of `kernelgym.errors`, and what was expected."""

    error: str
    message: str


def text_hash(text: str) -> str:
    """SHA-256 of a task's text, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
