"""A cache of folders named by the content that they were made from.

An entry appears whole, by a rename, and carries a manifest with the digest of each of its files: one
that was cut short by a full disk or a crash is dropped and made again. Least recently used entries
go when the cache outgrows its limit. Only the build service writes here; a compiler writes in a
scratch folder, and `publish` copies from there, so that no entry belongs to a compiler's user.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import filelock
import platformdirs

__all__ = ["ContentCache", "default_cache_root"]

_MANIFEST = "manifest.json"
_KEY = re.compile(r"[0-9a-f]{16,128}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_ABANDONED_SECONDS = 3600.0


def default_cache_root() -> Path:
    """The user's cache folder for kernelgym, by the platform's rules."""
    return Path(platformdirs.user_cache_dir("kernelgym"))


class ContentCache:
    """Folders by content key, shared by threads and processes.

    Args:
        root: Where entries lie; made when missing. Default: `default_cache_root()`.
        max_bytes: Size from which least recently used entries are dropped.
        keep_seconds: An entry used this recently is never dropped: somebody may be about to load
            it.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int = 4 * 2**30,
        keep_seconds: float = 600.0,
    ) -> None:
        self.root = Path(root) if root is not None else default_cache_root()
        self.max_bytes = max_bytes
        self.keep_seconds = keep_seconds
        for folder in (self._entries, self._locks, self._fresh):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def _entries(self) -> Path:
        return self.root / "entries"

    @property
    def _locks(self) -> Path:
        return self.root / "locks"

    @property
    def _fresh(self) -> Path:
        return self.root / "fresh"

    @contextlib.contextmanager
    def lock(self, key: str, timeout: float = -1) -> Iterator[None]:
        """Holds the key's lock, against other threads and other processes.

        The kernel frees the lock of a process that dies.

        Args:
            key: Content key, hexadecimal.
            timeout: Seconds to wait for it; negative waits for ever.

        Raises:
            TimeoutError: Somebody else held it all the while.
            ValueError: The key is not hexadecimal.
        """
        # thread_local=False: each call has a lock object, and so a descriptor, of its own.
        lock = filelock.FileLock(self._locks / f"{_checked(key)}.lock", thread_local=False)
        with lock.acquire(timeout=timeout):
            yield

    def get(self, key: str) -> Path | None:
        """The entry's folder, or `None` when there is none or it is damaged (then it is dropped).

        Raises:
            ValueError: The key is not hexadecimal.
        """
        entry = self._entries / _checked(key)
        manifest = entry / _MANIFEST
        if not entry.exists():
            return None
        try:
            digests: dict[str, str] = json.loads(manifest.read_bytes())
            intact = all(_digest(entry / name) == digest for name, digest in digests.items())
            os.utime(manifest)
        except FileNotFoundError:
            intact = False
        except (ValueError, AttributeError):  # Not JSON, or not a table: cut short.
            intact = False
        if intact:
            return entry
        self._drop(entry)
        return None

    def publish(self, key: str, files: Mapping[str, bytes | Path]) -> Path:
        """Adds an entry, or replaces the one that is there.

        Args:
            key: Content key, hexadecimal.
            files: Content by plain file name: bytes, or a file to copy.

        Returns:
            The entry's folder.

        Raises:
            ValueError: The key or a name is not a plain one, or a file is not a regular one.
        """
        entry = self._entries / _checked(key)
        fresh = self._fresh / f"{key}.{secrets.token_hex(8)}"
        fresh.mkdir()
        try:
            digests = {}
            for name, content in files.items():
                if not _NAME.fullmatch(name) or name == _MANIFEST:
                    raise ValueError(f"expected a plain file name, got {name!r}")
                target = fresh / name
                target.write_bytes(content if isinstance(content, bytes) else _read(content))
                if isinstance(content, Path):
                    target.chmod(0o755)
                digests[name] = _digest(target)
            (fresh / _MANIFEST).write_text(json.dumps(digests), encoding="utf-8")
            self._drop(entry)
            fresh.rename(entry)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        self.evict()
        return entry

    def evict(self) -> int:
        """Drops least recently used entries until the rest fits; returns how many went."""
        now = time.time()
        for left in self._fresh.iterdir():
            if now - _last_use(left) > _ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
        entries = sorted(
            (_last_use(entry / _MANIFEST), _size(entry), entry) for entry in self._entries.iterdir()
        )
        total = sum(size for _, size, _ in entries)
        dropped = 0
        for used, size, entry in entries:
            if total <= self.max_bytes or now - used < self.keep_seconds:
                break
            self._drop(entry)
            total -= size
            dropped += 1
        return dropped

    def _drop(self, entry: Path) -> None:
        """Removes an entry: first out of sight, by a rename, then for good."""
        condemned = self._fresh / f"{entry.name}.{secrets.token_hex(8)}"
        try:
            entry.rename(condemned)
        except FileNotFoundError:
            return  # Another process was faster.
        shutil.rmtree(condemned, ignore_errors=True)


def _checked(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise ValueError(f"expected a hexadecimal key of 16 to 128 digits, got {key!r}")
    return key


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read(path: Path) -> bytes:
    """Reads a file that somebody else may have made: never through a link, never a device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"expected a regular file, got {path}")
        return file.read()


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _size(folder: Path) -> int:
    total = 0
    with contextlib.suppress(FileNotFoundError):  # Dropped meanwhile.
        for file in folder.iterdir():
            total += file.stat().st_size
    return total
