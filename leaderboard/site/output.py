"""The folder of a site, which knows what was written into it, and from what.

Pages come in units, such as all pages of one entry. A unit is written again only when its inputs
have changed; what was written before and belongs to no unit any more is removed. Nothing else in
the folder is touched, and nothing at all before every unit has been made: until then what is new
lies in a folder of its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.resources
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from kernelgym._version import __version__
from kernelgym.errors import UsageError

__all__ = ["STATE_FOLDER", "Output", "code_version", "write_pages"]

STATE_FOLDER = ".build"
"""Inside the site: what the next build needs to know. It can be left out of what is published."""

_STATE_FILE = "state.json"
_PACKAGES = ("kernelgym.leaderboard", "kernelgym.report", "kernelgym.judge", "kernelgym.tasks")
_KINDS = (".py", ".j2", ".css", ".js", ".svg", ".json")


@dataclasses.dataclass(frozen=True)
class _Unit:
    inputs: str
    files: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _State:
    code: str
    units: Mapping[str, _Unit]


class Output:
    """A site's folder during one build.

    Args:
        folder: Where the site is, or shall be.
        code: What the pages depend on besides their inputs: `code_version()`.

    Raises:
        UsageError: There is something in the folder, and no build has made it.
    """

    def __init__(self, folder: Path, code: str) -> None:
        self.folder = folder
        self._code = code
        self._state = folder / STATE_FOLDER / _STATE_FILE
        # A first build that was interrupted leaves nothing but its own folder.
        ours = not folder.exists() or self._state.is_file()
        if not ours and (
            not folder.is_dir() or any(one.name != STATE_FOLDER for one in folder.iterdir())
        ):
            raise UsageError(
                f"--out: expected an empty folder or one that an earlier build made, got {folder}"
            )
        self._before = self._read()
        self._units: dict[str, _Unit] = {}
        self._fresh: set[str] = set()
        self.clear()

    @property
    def staging(self) -> Path:
        """Where the files of new units are put, at the paths that they shall have in the site."""
        return self.folder / STATE_FOLDER / "new"

    @property
    def kept(self) -> Path:
        """A folder for what later builds can use again."""
        return self.folder / STATE_FOLDER / "kept"

    def inputs_of(self, unit: str) -> str | None:
        """What a unit was last made from, if all of its files are still there."""
        found = self._before.get(unit)
        if found is None or not all((self.folder / name).is_file() for name in found.files[:1]):
            return None
        return found.inputs

    def keep(self, unit: str) -> None:
        """Leaves a unit as it is."""
        self._units[unit] = self._before[unit]

    def add(self, unit: str, inputs: str, files: Iterable[str]) -> None:
        """Takes a unit's new files, which lie in `staging`."""
        self._units[unit] = _Unit(inputs, tuple(files))
        self._fresh.update(self._units[unit].files)

    def clear(self) -> None:
        """Removes what is new and was not published."""
        shutil.rmtree(self.staging, ignore_errors=True)

    def publish(self) -> tuple[int, int]:
        """Moves new files to their places, removes those without a unit, and notes what is there.

        Returns:
            Number of files written, and of files removed.
        """
        wanted = {name for unit in self._units.values() for name in unit.files}
        old = {name for unit in self._before.values() for name in unit.files}
        # Should this be interrupted, the next build knows these files and trusts none of them.
        self._note({"": _Unit("", tuple(wanted | old))})
        for folder in {(self.folder / name).parent for name in self._fresh}:
            folder.mkdir(parents=True, exist_ok=True)
        for name in self._fresh:
            (self.staging / name).replace(self.folder / name)
        gone = [self.folder / name for name in old - wanted]
        for path in gone:
            path.unlink(missing_ok=True)
        for folder in sorted({path.parent for path in gone}, reverse=True):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        self.clear()
        self._note(self._units)
        return len(self._fresh), len(gone)

    def _note(self, units: Mapping[str, _Unit]) -> None:
        self._state.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._state.with_suffix(".tmp")
        fresh.write_bytes(msgspec.json.encode(_State(self._code, units)))
        fresh.replace(self._state)

    def _read(self) -> Mapping[str, _Unit]:
        """The units of the last build; their files are known even where the code has changed."""
        if not self._state.is_file():
            return {}
        try:
            state = msgspec.json.decode(self._state.read_bytes(), type=_State)
        except msgspec.DecodeError as error:
            raise UsageError(
                f"--out: expected a site that this version can read, got: {self._state}: {error}"
            ) from error
        for unit in state.units.values():
            for name in unit.files:
                if name.startswith("/") or ".." in name.split("/"):
                    raise UsageError(f"--out: expected pages inside the site, got {name}")
        if state.code == self._code:
            return state.units
        return {name: _Unit("", unit.files) for name, unit in state.units.items()}


def write_pages(root: Path, pages: Mapping[str, str | bytes]) -> tuple[str, ...]:
    """Writes pages below a folder; returns their paths.

    Args:
        root: The folder.
        pages: Path to text, or to bytes.
    """
    folders = {root / name.rpartition("/")[0] for name in pages}
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        (root / name).write_bytes(page if isinstance(page, bytes) else page.encode("utf-8"))
    return tuple(pages)


def code_version() -> str:
    """A hash of the code, templates and style sheets that pages are made with."""
    digest = hashlib.sha256(__version__.encode())
    for package in _PACKAGES:
        for path in _files(Path(str(importlib.resources.files(package)))):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in ("entries", "__pycache__"):
            yield from _files(path)
        elif path.suffix in _KINDS:
            yield path
