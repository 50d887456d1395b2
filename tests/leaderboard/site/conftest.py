"""A small board with entries made up for it, and what tests ask of its pages."""

from __future__ import annotations

import dataclasses
import datetime
import urllib.parse
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kernelgym.leaderboard.board import EMULATOR
from kernelgym.leaderboard.entry import Verification
from kernelgym.leaderboard.loading import load_entry
from kernelgym.leaderboard.synthetic import BOARD, write_synthetic
from kernelgym.leaderboard.writing_entries import write_stamp

LEVEL3 = dataclasses.replace(BOARD, task_set="level3")
MODELLED = dataclasses.replace(LEVEL3, device=EMULATOR, size="small")
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Document(HTMLParser):
    """A page's elements with their attributes, and its text; each element is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def classes(self, tag: str) -> set[str]:
        """Every class of the elements of a kind."""
        return {name for found in self.all(tag) for name in (found.get("class") or "").split()}

    def values(self, *names: str) -> list[str]:
        """The values of some attributes, wherever they stand."""
        found = [attributes.get(name) for _, attributes in self.elements for name in names]
        return [value for value in found if value is not None]


def _stamp(folder: Path) -> None:
    entry = load_entry(folder)
    when = datetime.datetime(2026, 12, 1, 12, tzinfo=datetime.timezone.utc)
    write_stamp(
        folder, Verification("C. Hecker", "a lab", when, entry.content, 50, False, "somebody")
    )


def _write(root: Path) -> None:
    for name, seed, skill, verified in (
        ("quick", 1, 4.0, True),
        ("hasty", 2, 2.0, False),
        ("slow", 3, 1.1, True),
    ):
        folder = write_synthetic(root, name, seed, board=LEVEL3, skill=skill)
        if verified:
            _stamp(folder)
    few = MODELLED.tasks[:3]
    write_synthetic(root, "on-a-laptop", 4, board=MODELLED, tasks=few)


def _assert_whole(folder: Path) -> None:
    """Every page is well formed and titled; ids are unique; each link leads to something."""
    pages = sorted(folder.rglob("*.html"))
    assert pages
    for path in pages:
        page = Document(path.read_text("utf-8"))
        tags = [tag for tag, _ in page.elements]
        assert (tags.count("h1"), tags.count("main")) == (1, 1), path
        ids = page.values("id")
        assert len(ids) == len(set(ids)), path
        assert set(page.values("for", "aria-labelledby")) <= set(ids), path
        for link in page.values("href", "src"):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme:
                assert parts.scheme in ("http", "https"), (path, link)
            elif parts.path:
                assert (path.parent / urllib.parse.unquote(parts.path)).is_file(), (path, link)
            else:
                assert parts.fragment in ids, (path, link)
        assert {head.get("scope") for head in page.all("th")} <= {"col", "row"}, path
        for svg in page.all("svg"):
            assert svg.get("role") == "img" or svg.get("aria-hidden") == "true", path


@pytest.fixture(scope="session")
def write_entries() -> Callable[[Path], None]:
    """Writes entries: `quick` and `slow` are verified, `hasty` is not, another is modelled."""
    return _write


@pytest.fixture(scope="session")
def stamp() -> Callable[[Path], None]:
    """Has somebody else verify an entry."""
    return _stamp


@pytest.fixture(scope="session")
def parse() -> Callable[[Path], Document]:
    """Parses a page."""
    return lambda path: Document(path.read_text("utf-8"))


@pytest.fixture(scope="session")
def assert_whole() -> Callable[[Path], None]:
    """Asserts that all pages of a site hang together."""
    return _assert_whole
