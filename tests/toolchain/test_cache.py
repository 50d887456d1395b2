"""The content cache: whole entries, shared, bounded, and repaired."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kernelgym.toolchain.cache import ContentCache, default_cache_root

KEY = "ab" * 16
OTHER = "cd" * 16


@pytest.fixture
def cache(tmp_path: Path) -> ContentCache:
    return ContentCache(tmp_path / "cache")


def test_an_entry_comes_back(cache: ContentCache, tmp_path: Path) -> None:
    assert cache.get(KEY) is None
    library = tmp_path / "x.so"
    library.write_bytes(b"machine code")
    entry = cache.publish(KEY, {"x.so": library, "result.json": b"{}"})
    assert cache.get(KEY) == entry
    assert (entry / "x.so").read_bytes() == b"machine code"
    assert os.access(entry / "x.so", os.X_OK)
    assert ContentCache(cache.root).get(KEY) == entry
    assert cache.get(OTHER) is None


def test_publishing_again_replaces(cache: ContentCache) -> None:
    cache.publish(KEY, {"a": b"1", "b": b"2"})
    entry = cache.publish(KEY, {"a": b"3"})
    assert sorted(path.name for path in entry.iterdir()) == ["a", "manifest.json"]
    assert (entry / "a").read_bytes() == b"3"


@pytest.mark.parametrize("damage", ["truncate", "change", "remove", "manifest", "empty", "list"])
def test_a_damaged_entry_is_dropped(cache: ContentCache, damage: str) -> None:
    entry = cache.publish(KEY, {"a": b"0123456789"})
    if damage == "truncate":
        (entry / "a").write_bytes(b"01234")
    elif damage == "change":
        (entry / "a").write_bytes(b"012345678X")
    elif damage == "remove":
        (entry / "a").unlink()
    else:
        text = {"manifest": '{"a": "', "empty": "", "list": "[]"}[damage]
        (entry / "manifest.json").write_text(text)
    assert cache.get(KEY) is None
    assert not entry.exists()
    assert cache.get(cache.publish(KEY, {"a": b"0123456789"}).name) is not None


@pytest.mark.parametrize("key", ["", "../../etc", "AB" * 16, "ab", "ab" * 16 + "/x"])
def test_a_key_is_hexadecimal(cache: ContentCache, key: str) -> None:
    with pytest.raises(ValueError, match="hexadecimal"):
        cache.get(key)
    with pytest.raises(ValueError, match="hexadecimal"):
        cache.publish(key, {})


@pytest.mark.parametrize("name", ["../a", "a/b", "", ".hidden", "manifest.json"])
def test_a_name_is_plain(cache: ContentCache, name: str) -> None:
    with pytest.raises(ValueError, match="plain file name"):
        cache.publish(KEY, {name: b""})
    assert cache.get(KEY) is None


def test_links_and_devices_are_not_copied(cache: ContentCache, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush")
    link = tmp_path / "link"
    link.symlink_to(secret)
    with pytest.raises(OSError, match="symbolic links"):
        cache.publish(KEY, {"a": link})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="regular file"):
        cache.publish(KEY, {"a": tmp_path / "pipe"})
    assert list((cache.root / "fresh").iterdir()) == []


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path, max_bytes=2500, keep_seconds=60)
    keys = [f"{number:032x}" for number in range(3)]
    long_ago = time.time() - 10_000
    for age, key in enumerate(keys[:2]):
        entry = cache.publish(key, {"a": bytes(1000)})
        os.utime(entry / "manifest.json", (long_ago + age, long_ago + age))
    assert cache.get(keys[0]) is not None  # Used just now: the other one is the oldest.
    cache.publish(keys[2], {"a": bytes(1000)})
    assert [cache.get(key) is not None for key in keys] == [True, False, True]


def test_what_was_used_just_now_stays(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path, max_bytes=100, keep_seconds=60)
    for number in range(3):
        cache.publish(f"{number:032x}", {"a": bytes(1000)})
    assert cache.evict() == 0
    assert cache.get(f"{0:032x}") is not None


def test_a_key_is_locked_against_threads_and_processes(cache: ContentCache) -> None:
    order: list[str] = []

    def wait_for_it() -> None:
        with cache.lock(KEY):
            order.append("second")

    with cache.lock(KEY):
        thread = threading.Thread(target=wait_for_it)
        thread.start()
        script = (
            "import sys; from kernelgym.toolchain.cache import ContentCache\n"
            "cache = ContentCache(sys.argv[1])\n"
            "try:\n    with cache.lock(sys.argv[2], timeout=0.05): pass\n"
            "except TimeoutError: sys.exit(7)"
        )
        code = subprocess.run(
            [sys.executable, "-c", script, cache.root, KEY], timeout=60
        ).returncode
        assert code == 7
        with cache.lock(OTHER, timeout=0):
            order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_the_default_root_is_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_cache_root() == Path("/somewhere/kernelgym")
