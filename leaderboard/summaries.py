"""Entries in short, kept between calls: what a comparison needs, without reading all again."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import hashlib
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import platformdirs

from kernelgym._version import __version__
from kernelgym.errors import RecordError
from kernelgym.leaderboard import checks
from kernelgym.leaderboard.entry import Entry, EntryInfo, Status, Verification
from kernelgym.leaderboard.loading import entry_folders, load_entry
from kernelgym.leaderboard.scores import EntryScores, score_entry

__all__ = ["Summary", "default_cache", "summaries", "summarise"]

_CACHE_VERSION = 2
_FEW = 4  # so many entries are read faster than processes start


@dataclasses.dataclass(frozen=True)
class Summary:
    """An entry in short.

    Attributes:
        id: `<board's slug>/<folder's name>`.
        content: See `Entry`.
        info: See `Entry`.
        status: See `Entry`.
        verification: See `Entry`.
        scores: Its scores.
        rejected: (task, reason) of each `rejected` verdict.
        fingerprints: For `kernelgym.leaderboard.checks.copies`.
        problems: What is wrong with it.
    """

    id: str
    content: str
    info: EntryInfo
    status: Status
    verification: Verification | None
    scores: EntryScores
    rejected: tuple[tuple[str, str], ...]
    fingerprints: checks.Fingerprints
    problems: tuple[checks.Problem, ...]


def default_cache() -> Path:
    """Where summaries are kept unless told otherwise: in the user's cache folder."""
    return Path(platformdirs.user_cache_dir("kernelgym")) / "leaderboard"


def summarise(entry: Entry) -> Summary:
    """An entry in short.

    Raises:
        RecordError: Its speedups cannot be scored.
    """
    return Summary(
        id=entry.id,
        content=entry.content,
        info=entry.info,
        status=entry.status,
        verification=entry.verification,
        scores=score_entry(entry),
        rejected=tuple((r.task, r.verdict.reason) for r in entry.rejected),
        fingerprints=checks.fingerprints(entry),
        problems=checks.check_entry(entry),
    )


def summaries(
    root: str | os.PathLike[str],
    cache: str | os.PathLike[str] | None = None,
    *,
    workers: int | None = None,
    without: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Summary]:
    """All entries below a folder in short, sorted by id.

    Args:
        root: The folder of boards.
        cache: Where summaries are kept between calls; `default_cache()` by default.
        workers: Processes that read what is not cached; by default one a core.
        without: A folder to leave out.
        progress: Called with (done, total) after each entry.

    Raises:
        RecordError: An entry is broken; names it.
    """
    left_out = without.resolve() if without is not None else None
    folders = [folder for folder in entry_folders(root) if folder.resolve() != left_out]
    kept = Path(cache) if cache is not None else default_cache()
    kept.mkdir(parents=True, exist_ok=True)
    found: list[Summary] = []
    for number, summary in enumerate(_read(folders, kept, workers), 1):
        found.append(summary)
        if progress is not None:
            progress(number, len(folders))
    return sorted(found, key=lambda summary: summary.id)


def _read(folders: Sequence[Path], cache: Path, workers: int | None) -> list[Summary]:
    workers = workers or os.cpu_count() or 1
    missing = len(folders) - len(list(cache.glob("*.msgpack")))
    if workers == 1 or missing <= _FEW:
        return [_summary(folder, cache) for folder in folders]
    # Not forked: the caller may have threads.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        return list(pool.map(_summary, folders, [cache] * len(folders), chunksize=4))


def _summary(folder: Path, cache: Path) -> Summary:
    path = cache / f"{_state(folder)}.msgpack"
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Summary)
    except FileNotFoundError:
        pass
    except (msgspec.DecodeError, RecordError):
        path.unlink()  # of another version, or cut off
    summary = summarise(load_entry(folder))
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(msgspec.msgpack.encode(summary))
    fresh.replace(path)
    return summary


def _state(folder: Path) -> str:
    """What changes when a file of an entry does, without reading any: hashed.

    A file's time of last change cannot be set back, unlike that of its last modification.
    """
    digest = hashlib.sha256(f"{_CACHE_VERSION} {__version__} {folder.resolve()}\0".encode())
    for path, status in _statuses(str(folder)):
        told = (
            f"{path}\0{status.st_mode} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        )
        digest.update(told.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()


def _statuses(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as items:
        for item in sorted(items, key=lambda item: item.name):
            yield item.path, item.stat(follow_symlinks=False)
            if item.is_dir(follow_symlinks=False):
                yield from _statuses(item.path)
