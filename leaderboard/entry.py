"""The records of an entry: one submission to one board, with its evidence.

An entry is a folder, `entries/<board's slug>/<name>/`, which `kernelgym.leaderboard.loading` reads:

::

    entry.yaml            who, with what, under which budget: `EntryInfo`
    verdicts.jsonl        one verdict a task, chained by hashes (`kernelgym.judge.chain`)
    solutions/L1-019/     the files that this task's verdict is about
    environment.json      where the verdicts come from: `Environment`
    verification.json     who replayed it, where and when: `Verification`; absent until then
    traces/               the run's traces, where there are any
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import re
from collections.abc import Mapping
from pathlib import Path

from kernelgym.config import JudgeConfig
from kernelgym.errors import RecordError
from kernelgym.judge.verdict import Outcome, Verdict
from kernelgym.leaderboard.board import Board

__all__ = [
    "ENTRY_VERSION",
    "BudgetUsed",
    "Entry",
    "EntryInfo",
    "Environment",
    "Status",
    "TaskResult",
    "Verification",
]

ENTRY_VERSION = 1
"""Of `entry.yaml`, `environment.json` and `verification.json`."""

_MAX_TEXT = 120
_MAX_LIST = 64
_LINK = re.compile(r"https?://[A-Za-z0-9][^\s<>\"'`{}|\\^]*")
# Control characters, line ends, and what turns the direction of text around.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


@dataclasses.dataclass(frozen=True)
class BudgetUsed:
    """What a submission took; None where it is not known.

    Attributes:
        verdicts: Verdicts asked for in all.
        verdicts_per_task: The most for any one task; decides on the board's budget class.
        tokens: Tokens that models read and wrote.
        money_usd: What it cost, in US dollars.
    """

    verdicts: int | None = None
    verdicts_per_task: int | None = None
    tokens: int | None = None
    money_usd: float | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot have been used."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None and not 0 <= value < 1e15:
                raise RecordError(f"budget.{field.name}: expected 0 or more, got {value}")


@dataclasses.dataclass(frozen=True)
class EntryInfo:
    """What `entry.yaml` says.

    Texts are one line of at most 120 characters without `<` and `>`; links are http or https.

    Attributes:
        name: What the table shows.
        authors: Who submits it, at least one.
        board: Where it competes.
        agent: The agent that wrote the kernels.
        model: The language model behind it; `""` without one.
        model_date: The model's date.
        harness: What ran the agent, with its version.
        licence: Of the solutions, as an SPDX expression.
        links: Papers, code, logs.
        budget: What it took.
        submitted: The day of the submission, UTC.
        schema_version: Of this file.

    Raises:
        RecordError: A value is not accepted; says which.
    """

    name: str
    authors: tuple[str, ...]
    board: Board
    agent: str = ""
    model: str = ""
    model_date: datetime.date | None = None
    harness: str = ""
    licence: str = ""
    links: tuple[str, ...] = ()
    budget: BudgetUsed = BudgetUsed()
    submitted: datetime.date | None = None
    schema_version: int = ENTRY_VERSION

    def __post_init__(self) -> None:
        """Refuse texts that would break a page or fool its reader."""
        for field in ("name", "agent", "model", "harness", "licence"):
            _expect_text(field, getattr(self, field), empty=field != "name")
        if not 1 <= len(self.authors) <= _MAX_LIST:
            raise RecordError(f"authors: expected 1 to {_MAX_LIST}, got {len(self.authors)}")
        for author in self.authors:
            _expect_text("authors", author)
        if len(self.links) > _MAX_LIST:
            raise RecordError(f"links: expected at most {_MAX_LIST}, got {len(self.links)}")
        for link in self.links:
            if len(link) > 500 or not _LINK.fullmatch(link) or _UNPRINTABLE.search(link):
                raise RecordError(f"links: expected an address of http or https, got {link!r}")
        limit = self.board.budget.limit
        used = self.budget.verdicts_per_task
        if limit is not None and (used is None or used > limit):
            raise RecordError(
                f"budget.verdicts_per_task: expected at most {limit} on this board, got {used}"
            )


@dataclasses.dataclass(frozen=True)
class Environment:
    """Where an entry's verdicts come from: what `environment.json` says.

    Attributes:
        config: How all of them were reached.
        source: What was submitted: `"run"`, `"generations"`, `"json"` or `"workspaces"`.
        versions: (name, version) pairs of what the verdicts depend on.
        verdicts: Number of lines of `verdicts.jsonl`.
        head: The hash of its last line.
        rejudged: Tasks that were judged again when it was submitted, and agreed.
        submitter: Hash of user and machine, to tell a replay by somebody else from one's own.
        schema_version: Of this file.
    """

    config: JudgeConfig
    source: str
    versions: tuple[tuple[str, str], ...]
    verdicts: int
    head: str
    rejudged: tuple[str, ...] = ()
    submitter: str = ""
    schema_version: int = ENTRY_VERSION


@dataclasses.dataclass(frozen=True)
class Verification:
    """A replay of every solution, under fresh secrets, that agreed: `verification.json`.

    Attributes:
        by: Who vouches for it.
        where: Device and machine, as the verifier names it.
        when: UTC.
        content: Hash of what was verified (`Entry.content`).
        tasks: Number of solutions replayed.
        own: Whether it is the submitter's own replay, which does not make an entry verified.
        verifier: Hash of user and machine.
        salts: Commitments to the secrets of the replays, one a task.
        versions: As in `Environment`.
        schema_version: Of this file.
    """

    by: str
    where: str
    when: datetime.datetime
    content: str
    tasks: int
    own: bool
    verifier: str
    salts: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    schema_version: int = ENTRY_VERSION

    def __post_init__(self) -> None:
        """Refuse texts that would break a page or fool its reader."""
        _expect_text("by", self.by)
        _expect_text("where", self.where)


class Status(str, enum.Enum):
    """How far an entry can be trusted."""

    VERIFIED = "verified"  # replayed by somebody else, and it agreed
    SELF_CHECKED = "self-checked"  # replayed by its submitter
    UNVERIFIED = "unverified"
    STALE = "stale"  # a stamp is there, of other content: something was changed since

    def __str__(self) -> str:
        """The value."""
        return self.value


@dataclasses.dataclass(frozen=True)
class TaskResult:
    """One task of an entry: the verdict, and the files that it is about.

    Attributes:
        task: Task id.
        verdict: The judge's.
        sources: Path in the workspace to text, sorted by path.
    """

    task: str
    verdict: Verdict
    sources: Mapping[str, str] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Entry:
    """An entry, read back.

    Attributes:
        folder: Where it lies.
        info: What `entry.yaml` says.
        results: One for each task with a verdict, in the board's order; the board's other tasks
            count as not solved.
        environment: Where the verdicts come from.
        verification: The stamp, if there is one.
        content: SHA-256 over all its files but the stamp, hexadecimal.
        traces: The files below `traces/`.
    """

    folder: Path
    info: EntryInfo
    results: tuple[TaskResult, ...] = dataclasses.field(repr=False)
    environment: Environment
    verification: Verification | None
    content: str
    traces: tuple[Path, ...] = ()

    @property
    def board(self) -> Board:
        """Where it competes."""
        return self.info.board

    @property
    def id(self) -> str:
        """`<board's slug>/<folder's name>`."""
        return f"{self.board.slug}/{self.folder.name}"

    @property
    def status(self) -> Status:
        """How far it can be trusted."""
        if self.verification is None:
            return Status.UNVERIFIED
        if self.verification.content != self.content:
            return Status.STALE
        return Status.SELF_CHECKED if self.verification.own else Status.VERIFIED

    @property
    def rejected(self) -> tuple[TaskResult, ...]:
        """The results whose verdict is `rejected`: shown wherever the entry is."""
        return tuple(r for r in self.results if r.verdict.outcome is Outcome.REJECTED)


def _expect_text(field: str, text: str, *, empty: bool = False) -> None:
    if (not text.strip() and not empty) or len(text) > _MAX_TEXT:
        least = 0 if empty else 1
        raise RecordError(
            f"{field}: expected {least} to {_MAX_TEXT} characters, got {len(text)}: {text[:40]!r}"
        )
    if "<" in text or ">" in text or _UNPRINTABLE.search(text):
        raise RecordError(
            f"{field}: expected plain text in one line, without < and >, got {text!r}"
        )
