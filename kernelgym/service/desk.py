"""The service's desk: takes jobs in, has them judged, and keeps a journal of both.

The journal is a chained log (`kernelgym.judge.chain`) of `submitted`, `verdict` and `fault`
records. A job is in it before its caller hears of it, and a verdict before its caller gets it: after
a restart, jobs without a result are judged, and those with one are never judged again.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import os
import threading
import time
import uuid
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any, Protocol

import filelock
import msgspec

from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault, KernelGymError, RecordError, UsageError
from kernelgym.judge.chain import ChainedLog, read
from kernelgym.judge.sources import workspace_files
from kernelgym.judge.verdict import Verdict, to_json
from kernelgym.service.access import Account
from kernelgym.service.messages import (
    NO_VERDICT,
    JobStatus,
    QueueStatus,
    Submission,
    TaskText,
    text_hash,
)
from kernelgym.tasks import Task, get

__all__ = ["Desk", "Refused", "SupportsSubmit"]

_RETRY_SECONDS = (1, 30)
# What a submission may change where it may change something: nothing that is the machine's.
_CHANGEABLE = frozenset(
    ("size", "protocol", "ruleset", "precision", "baselines", "counters", "draws")
)


class SupportsSubmit(Protocol):
    """What the desk asks of a pool; `JudgePool` is one."""

    @property
    def config(self) -> JudgeConfig:
        """How it judges."""

    def submit(
        self, task: Task | str, workspace: Any, *, config: JudgeConfig | None = None
    ) -> Future[Verdict]:
        """Queues a job."""

    def close(self, grace: float = 0.0) -> None:
        """Cancels what waits and ends what runs."""


class Refused(KernelGymError):
    """A submission that is not taken in.

    Attributes:
        status: The HTTP status that says so: 403 (not allowed, or the budget is spent), 409 (the
            key belongs to another job), 503 (try again).
        retry_after: Seconds after which it is worth trying again; 0 when it is not.
    """

    def __init__(self, status: int, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


@dataclasses.dataclass
class _Job:
    """A job, and its result when there is one."""

    id: str
    owner: str
    agent: str
    digest: str
    finished: Future[None] = dataclasses.field(default_factory=Future)
    future: Future[Verdict] | None = None
    verdict: bytes | None = None
    hash: str = ""
    fault: str = ""
    message: str = ""

    def status(self) -> JobStatus:
        if self.verdict is not None:
            return JobStatus(self.id, "done", msgspec.Raw(self.verdict), self.hash)
        if self.fault:
            return JobStatus(self.id, "fault", NO_VERDICT, self.hash, self.fault, self.message)
        running = self.future is not None and self.future.running()
        return JobStatus(self.id, "running" if running else "queued")


class Desk:
    """Takes jobs in for a pool; safe to use from several threads.

    Args:
        pool: Judges; closed with the desk.
        journal: The chained log. Jobs in it without a result are queued at once. One desk at a
            time uses it.
        capacity: Jobs that may be unfinished at a time.
        allow_config: Whether a submission may change how it is judged, within limits.
        allow_tasks: Whether a submission may bring a task's text. The judge runs it with its own
            rights: for callers that are trusted with the machine only.

    Raises:
        UsageError: Another desk uses the journal.
        RecordError: The journal's chain is broken, or it is something else.
    """

    def __init__(
        self,
        pool: SupportsSubmit,
        journal: str | os.PathLike[str],
        *,
        capacity: int = 256,
        allow_config: bool = False,
        allow_tasks: bool = False,
    ) -> None:
        self.capacity = capacity
        self.allow_config = allow_config
        self.allow_tasks = allow_tasks
        self.stopping = False
        self._pool = pool
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._unfinished: dict[str, _Job] = {}
        self._verdicts: collections.Counter[tuple[str, str]] = collections.Counter()
        self._ends: collections.deque[float] = collections.deque(maxlen=32)
        path = Path(journal)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._own = filelock.FileLock(f"{path}.lock")
        try:
            self._own.acquire(timeout=0)
        except filelock.Timeout:
            raise UsageError(f"journal: another service uses {path}") from None
        try:
            self._journal = ChainedLog(path)
            waiting = self._replay(path) if path.exists() else {}
        except BaseException:
            self._own.release()
            raise
        for job, submission in waiting.values():
            self._begin(job, submission)

    def submit(self, account: Account, key: str | None, submission: Submission) -> JobStatus:
        """Takes a job in, or finds it where its key is known.

        Args:
            account: Whose it is.
            key: The caller's name for it: the same key is the same job, however often it comes.
            submission: The job.

        Raises:
            Refused: See there.
            UsageError: The job is none: unknown task, wrong paths, a field of the configuration.
            OSError: The journal cannot be written.
        """
        digest = submission.digest()
        if key is None:
            job_id = uuid.uuid4().hex
        else:
            name = f"{account.name}\0{key}"
            job_id = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        with self._lock:
            known = self._known(job_id, digest)
        if known is not None:
            return known
        prepared = self._prepared(submission)
        job = _Job(job_id, account.name, submission.agent, digest)
        with self._lock:
            known = self._known(job_id, digest)
            if known is not None:  # it came twice at once
                return known
            self._refuse(account)
            self._journal.append(
                {
                    "kind": "submitted",
                    "id": job_id,
                    "owner": account.name,
                    "time": time.time(),
                    "submission": msgspec.to_builtins(submission),
                }
            )
            self._jobs[job_id] = self._unfinished[job_id] = job
        self._begin(job, submission, prepared)
        return job.status()

    def find(self, account: Account, job_id: str) -> JobStatus | None:
        """Where an account's job stands; None when it has no such job."""
        job = self._jobs.get(job_id)
        return job.status() if job is not None and job.owner == account.name else None

    def finished(self, job_id: str) -> Future[None]:
        """Done when the job has a result, or when the desk stops."""
        return self._jobs[job_id].finished

    def queue(self, account: Account) -> QueueStatus:
        """The queue as an account may see it."""
        with self._lock:
            states = [job.status().status for job in self._unfinished.values()]
            mine = sum(job.owner == account.name for job in self._unfinished.values())
            agents = tuple(
                (agent, count)
                for (owner, agent), count in sorted(self._verdicts.items())
                if owner == account.name
            )
        return QueueStatus(
            queued=states.count("queued"),
            running=states.count("running"),
            capacity=self.capacity,
            account=account.name,
            unfinished=mine,
            verdicts=sum(count for _, count in agents),
            budget=account.budget,
            agents=agents,
        )

    def begin_stop(self) -> None:
        """Takes no more jobs in, and lets go of whoever waits."""
        with self._lock:
            self.stopping = True
            waiting = list(self._unfinished.values())
        for job in waiting:
            _finish(job)

    def close(self, grace: float = 0.0) -> None:
        """Ends: running judgements get `grace` seconds, the rest waits in the journal."""
        self.begin_stop()
        self._pool.close(grace)
        self._own.release()

    # --- inside ------------------------------------------------------------------------------

    def _known(self, job_id: str, digest: str) -> JobStatus | None:
        known = self._jobs.get(job_id)
        if known is None:
            return None
        if known.digest != digest:
            raise Refused(409, "the key belongs to another job: expected the same content")
        return known.status()

    def _refuse(self, account: Account) -> None:
        """Refuses a new job where there is no room for it. The lock is held."""
        if self.stopping:
            raise Refused(503, "the service is stopping", _RETRY_SECONDS[0])
        if len(self._unfinished) >= self.capacity:
            raise Refused(
                503,
                f"the queue is full: expected fewer than {self.capacity} unfinished jobs",
                self._retry_after(),
            )
        if account.budget is not None:
            spent = sum(n for (owner, _), n in self._verdicts.items() if owner == account.name)
            spent += sum(job.owner == account.name for job in self._unfinished.values())
            if spent >= account.budget:
                raise Refused(
                    403, f"the budget of {account.name} is spent: {account.budget} verdicts"
                )

    def _retry_after(self) -> int:
        """About when the next job will have ended, in seconds."""
        low, high = _RETRY_SECONDS
        if len(self._ends) < 2:
            return low
        apart = (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)
        return min(max(round(apart), low), high)

    def _prepared(self, submission: Submission) -> tuple[Task, JudgeConfig | None]:
        """The task and the configuration that a submission asks for."""
        workspace_files(submission.files)
        if isinstance(submission.task, TaskText):
            if not self.allow_tasks:
                raise Refused(403, "task: expected the id of a task, this service takes no texts")
            name = submission.task.name
            task = Task(name, 0, 0, name, f"{name}.py", submission.task.text)
            _ = task.file  # raises where it is no task
        else:
            task = get(submission.task)
        if submission.task_hash and submission.task_hash != text_hash(task.text):
            raise UsageError(f"task: {task.id} differs between this service's version and yours")
        if not submission.config:
            return task, None
        if not self.allow_config:
            raise Refused(403, "config: this service judges by its own configuration alone")
        for name in submission.config:
            if name not in _CHANGEABLE:
                accepted = ", ".join(sorted(_CHANGEABLE))
                raise UsageError(f"config: expected one of {accepted}, got {name!r}")
        return task, self._pool.config.replace(**submission.config)

    def _begin(
        self,
        job: _Job,
        submission: Submission,
        prepared: tuple[Task, JudgeConfig | None] | None = None,
    ) -> None:
        try:
            task, config = prepared or self._prepared(submission)
            job.future = self._pool.submit(task, submission.files, config=config)
        except EnvironmentFault:  # the pool is closed, and the journal has the job
            _finish(job)
        except KernelGymError as error:  # taken in by an earlier version, or with other rights
            self._end(job, error)
        else:
            job.future.add_done_callback(lambda future: self._ended(job, future))

    def _ended(self, job: _Job, future: Future[Verdict]) -> None:
        if future.cancelled():
            _finish(job)
            return
        error = future.exception()
        if error is None:
            self._end(job, future.result())
        elif not self.stopping:  # what a stop has broken off is judged after the restart
            self._end(job, error)

    def _end(self, job: _Job, result: Verdict | BaseException) -> None:
        record: dict[str, Any] = {"id": job.id, "owner": job.owner, "time": time.time()}
        if isinstance(result, Verdict):
            record |= {"kind": "verdict", "verdict": msgspec.json.decode(to_json(result))}
        else:
            fault = type(result).__name__
            record |= {"kind": "fault", "fault": fault, "message": str(result)}
        with self._lock:
            try:
                digest = self._journal.append(record)
            except (OSError, RecordError) as error:
                # Nobody gets a verdict that is not kept; a restart judges the job again.
                job.fault = "EnvironmentFault"
                job.message = f"the journal cannot be written: {error}"
            else:
                self._note(job, record, digest)
            self._unfinished.pop(job.id, None)
            self._ends.append(time.monotonic())
        _finish(job)

    def _note(self, job: _Job, record: dict[str, Any], digest: str) -> None:
        job.hash = digest
        if record["kind"] == "verdict":
            job.verdict = msgspec.json.encode(record["verdict"], order="deterministic")
            self._verdicts[job.owner, job.agent] += 1
        else:
            job.fault, job.message = record["fault"], record["message"]

    def _replay(self, path: Path) -> dict[str, tuple[_Job, Submission]]:
        """Reads the journal; returns the jobs without a result, in order."""
        waiting: dict[str, tuple[_Job, Submission]] = {}
        for link in read(path):
            record = link.record
            try:
                if record["kind"] == "submitted":
                    submission = msgspec.convert(record["submission"], Submission)
                    job = _Job(record["id"], record["owner"], submission.agent, submission.digest())
                    self._jobs[job.id] = self._unfinished[job.id] = job
                    waiting[job.id] = job, submission
                else:
                    job, _ = waiting.pop(record["id"])
                    del self._unfinished[job.id]
                    self._note(job, record, link.hash)
                    _finish(job)
            except (KeyError, TypeError, msgspec.ValidationError) as error:
                raise RecordError(
                    f"{path}:{link.index + 1}: expected a record of the service, got: {error!r}"
                ) from error
        return waiting


def _finish(job: _Job) -> None:
    """Lets go of whoever waits for a job; it may happen twice, from two threads."""
    try:
        job.finished.set_result(None)
    except InvalidStateError:
        return
