"""What a build writes, keeps and refuses."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import shutil
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from kernelgym.errors import RecordError, UsageError
from kernelgym.judge.baseline_store import BaselineRecord, Setting
from kernelgym.judge.verdict import Speedup
from kernelgym.leaderboard import reference_rows, synthetic
from kernelgym.leaderboard.checks import check_all
from kernelgym.leaderboard.loading import entry_folders
from kernelgym.leaderboard.reference_rows import stored_boards
from kernelgym.leaderboard.site import build_site, serve_site
from kernelgym.leaderboard.site.records import Scope, scopes_of

LEVEL3 = dataclasses.replace(synthetic.BOARD, task_set="level3")
BOARD = "boards/nvidia-h200--audited--strict--default--level3-full--10"
MODELLED = "boards/emulator--audited--strict--default--level3-small--10"
COMMITTED = Path(__file__).parents[3] / "leaderboard" / "entries"


@pytest.fixture(scope="module")
def made(tmp_path_factory, write_entries):
    """A folder with `entries`, and the `site` made from them."""
    folder = tmp_path_factory.mktemp("made")
    write_entries(folder / "entries")
    build_site(folder / "entries", folder / "site", jobs=1)
    return folder


@pytest.fixture
def copied(made, tmp_path):
    """A copy of them, times of files included."""
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def store(monkeypatch):
    """Makes the store know the given times of L3/9 on the H200, and of no other card."""

    def know(seconds: dict[str, float]) -> None:
        setting = Setting("NVIDIA H200", torch="2.11.0")
        records = [
            BaselineRecord(
                task="L3/9", size="full", mode="train", precision="default", kind=kind, source="0",
                setting=setting, date="2026-12-01", kernelgym="0.1.0", median=median,
                ratio=None if kind == "eager" else Speedup(*[median / seconds["eager"]] * 3),
            )
            for kind, median in seconds.items()
        ]  # fmt: skip
        monkeypatch.setattr(
            reference_rows, "shipped", lambda device: records if device == setting.device else []
        )

    return know


def times(site: Path) -> dict[str, int]:
    """When each file of a site was written, by path."""
    return {
        path.relative_to(site).as_posix(): path.stat().st_mtime_ns
        for path in site.rglob("*")
        if path.is_file() and ".build" not in path.parts
    }


def changed(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {path for path in after if before.get(path) != after[path]}


def test_all_pages_hang_together(made, assert_whole):
    assert_whole(made / "site")
    names = times(made / "site")
    for page in ("index", f"{BOARD}/index", f"{BOARD}/clean", f"{BOARD}/tasks/L3-009",
                 f"{BOARD}/entries/quick/index", "reported/index"):  # fmt: skip
        assert {f"{page}.html", f"{page}.json", f"{page}.csv"} <= names.keys()
    assert f"{BOARD}/entries/quick/L3-009.html" in names


def test_a_board_of_all_levels_has_a_page_for_each():
    slugs = [scope.slug for scope in scopes_of(synthetic.BOARD)]
    assert slugs == ["index", "l1", "l2", "l3", "clean", "clean-l1", "clean-l2", "clean-l3"]
    assert scopes_of(synthetic.BOARD)[Scope("L3", False)] == 50
    assert [scope.slug for scope in scopes_of(LEVEL3)] == ["index", "clean"]


def test_nothing_is_loaded_from_elsewhere(made, parse):
    for path in (made / "site").rglob("*.html"):
        page = parse(path)
        for tag in ("script", "link", "img"):
            for attributes in page.all(tag):
                address = attributes.get("src") or attributes.get("href") or ""
                assert "//" not in address, path
        assert all("style" not in attributes for _, attributes in page.elements), path
        handlers = [name for _, all_ in page.elements for name in all_ if name.startswith("on")]
        assert handlers == [], path
        policies = [m["content"] for m in page.all("meta") if "http-equiv" in m]
        assert len(policies) == 1, path
        assert "script-src 'self'" in policies[0], path


def test_ranks_leave_out_who_is_not_verified(made):
    document = json.loads((made / "site" / BOARD / "index.json").read_text())
    ranks = {
        one["entry"]: (one["rank"], one["rank_with_unverified"]) for one in document["entries"]
    }
    assert ranks == {"quick": (1, 1), "hasty": (None, 2), "slow": (2, 3)}
    table = csv.DictReader(io.StringIO((made / "site" / BOARD / "index.csv").read_text()))
    rows = [row for row in table if row["status"] != "reference"]
    assert [row["entry"] for row in rows] == ["quick", "hasty", "slow"]
    assert [row["rank"] for row in rows] == ["1", "", "2"]
    scores = document["entries"][0]["scores"]["geomean_all_eager"]
    assert scores["low"] <= scores["value"] <= scores["high"]
    assert float(rows[0]["geomean_all_eager"]) == scores["value"]


def test_rejected_solutions_are_shown_on_the_board(made, parse):
    document = json.loads((made / "site" / BOARD / "index.json").read_text())
    rejected = {one["entry"]: one["scores"]["rejected"] for one in document["entries"]}
    assert any(rejected.values())
    text = parse(made / "site" / BOARD / "index.html").text
    for count in rejected.values():
        assert not count or f"{count} rejected" in text


def test_modelled_and_measured_never_share_a_table(made, parse):
    for folder, modelled in ((BOARD, False), (MODELLED, True)):
        for path in (made / "site" / folder).rglob("*.html"):
            assert ("modelled" in parse(path).classes("span")) is modelled, path
    for path in (made / "site" / BOARD).rglob("*.csv"):
        assert "on-a-laptop" not in path.read_text(), path


def test_a_task_shows_all_entries_and_the_fastest_verified_source(made, parse):
    document = json.loads((made / "site" / BOARD / "tasks" / "L3-009.json").read_text())
    assert {one["entry"] for one in document["entries"]} == {"quick", "hasty", "slow"}
    speeds = [one["speedup_eager"] for one in document["entries"] if one["outcome"] == "correct"]
    assert speeds == sorted(speeds, reverse=True)
    best = next(
        one["entry"]
        for one in document["entries"]
        if one["outcome"] == "correct" and one["status"] == "verified"
    )
    seed = {"quick": 1, "slow": 3}[best]
    assert f"variant {seed}-L3-009" in parse(made / "site" / BOARD / "tasks" / "L3-009.html").text


def test_a_second_build_writes_nothing(copied):
    before = times(copied / "site")
    built = build_site(copied / "entries", copied / "site", jobs=1)
    assert (built.written, built.removed) == (0, 0)
    assert times(copied / "site") == before


def test_equal_content_with_other_times_writes_nothing(copied):
    for path in (copied / "entries").rglob("*"):
        os.utime(path, (1, 1))
    assert build_site(copied / "entries", copied / "site", jobs=1).written == 0


def test_a_new_entry_leaves_the_others_alone(copied, assert_whole):
    before = times(copied / "site")
    board = dataclasses.replace(synthetic.BOARD, task_set="level3")
    synthetic.write_synthetic(copied / "entries", "new", 9, board=board, tasks=("L3/1", "L3/2"))
    built = build_site(copied / "entries", copied / "site", jobs=1)
    after = times(copied / "site")
    written = changed(before, after)
    assert built.written == len(written)
    assert not [path for path in written if "/entries/" in path and "/entries/new/" not in path]
    assert {path for path in written if "/tasks/" in path} == {
        f"{BOARD}/tasks/{task}.{kind}"
        for task in ("L3-001", "L3-002")
        for kind in ("html", "json", "csv")
    }
    assert f"{BOARD}/index.html" in written
    assert "reported/index.html" not in written
    assert_whole(copied / "site")


def test_an_entry_that_is_gone_takes_its_pages_along(copied, assert_whole):
    shutil.rmtree(copied / "entries" / BOARD.removeprefix("boards/") / "hasty")
    built = build_site(copied / "entries", copied / "site", jobs=1)
    assert built.removed > 50
    assert not (copied / "site" / BOARD / "entries" / "hasty").exists()
    assert_whole(copied / "site")


def test_a_broken_entry_changes_nothing_and_is_named(copied, stamp):
    before = times(copied / "site")
    board = copied / "entries" / BOARD.removeprefix("boards/")
    source = board / "quick" / "solutions" / "L3-009" / "model_new.py"
    source.write_text(source.read_text() + "# edited\n")
    stamp(board / "hasty")  # sound, and new
    with pytest.raises(RecordError, match=r"quick.*L3-009"):
        build_site(copied / "entries", copied / "site", jobs=1)
    assert times(copied / "site") == before
    source.write_text(source.read_text().removesuffix("# edited\n"))
    written = build_site(copied / "entries", copied / "site", jobs=1)
    assert written.written  # hasty is verified now


def test_an_entry_on_another_board_than_its_own_is_refused(copied):
    board = copied / "entries" / BOARD.removeprefix("boards/")
    (board / "slow").rename(copied / "entries" / MODELLED.removeprefix("boards/") / "slow")
    with pytest.raises(RecordError, match="slow"):
        build_site(copied / "entries", copied / "site", jobs=1)


def test_what_no_build_has_made_is_left_alone(made, tmp_path):
    (tmp_path / "thesis.txt").write_text("three years of work")
    with pytest.raises(UsageError, match="empty folder"):
        build_site(made / "entries", tmp_path, jobs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_foreign_files_in_a_site_stay(copied):
    (copied / "site" / "CNAME").write_text("example.org")
    shutil.rmtree(copied / "entries" / MODELLED.removeprefix("boards/"))
    build_site(copied / "entries", copied / "site", jobs=1)
    assert (copied / "site" / "CNAME").read_text() == "example.org"


def test_a_state_that_names_files_outside_is_refused(copied):
    victim = copied / "victim.txt"
    victim.write_text("keep me")
    state = copied / "site" / ".build" / "state.json"
    document = json.loads(state.read_text())
    document["units"]["index"]["files"].append("../victim.txt")
    state.write_text(json.dumps(document))
    with pytest.raises(UsageError, match="inside the site"):
        build_site(copied / "entries", copied / "site", jobs=1)
    assert victim.exists()


def test_several_processes_write_the_same_site(made, tmp_path):
    build_site(made / "entries", tmp_path / "site", jobs=2)
    names = times(made / "site").keys()
    assert names == times(tmp_path / "site").keys()
    for name in names:
        assert (tmp_path / "site" / name).read_bytes() == (made / "site" / name).read_bytes(), name


def test_a_site_without_entries_shows_pytorch_alone(tmp_path, assert_whole, parse):
    (tmp_path / "entries").mkdir()
    built = build_site(tmp_path / "entries", tmp_path / "site", jobs=1)
    assert built.boards == len(stored_boards()) > 0
    assert built.entries == 0
    assert_whole(tmp_path / "site")
    assert "no entry yet" in parse(tmp_path / "site" / "index.html").text
    board = f"boards/{stored_boards()[0].slug}"
    text = parse(tmp_path / "site" / board / "l1.html").text
    assert "Nobody has entered this board yet" in text
    assert "measured on 100 of 100 tasks" in text


def test_a_site_without_anything_is_still_a_site(tmp_path, assert_whole, parse, monkeypatch):
    monkeypatch.setattr(reference_rows, "shipped_devices", lambda: ())
    (tmp_path / "entries").mkdir()
    built = build_site(tmp_path / "entries", tmp_path / "site", jobs=1)
    assert (built.boards, built.entries) == (0, 0)
    assert_whole(tmp_path / "site")
    assert "No board yet" in parse(tmp_path / "site" / "index.html").text


def test_pytorch_has_rows_without_a_rank(tmp_path, assert_whole, parse, store):
    store({"eager": 2e-3, "compile": 1e-3})
    synthetic.write_synthetic(tmp_path / "entries", "a", 1, board=LEVEL3, tasks=("L3/9", "L3/11"))
    site = tmp_path / "site"
    build_site(tmp_path / "entries", site, jobs=1)
    assert_whole(site)
    page = parse(site / BOARD / "index.html")
    assert "reference" in page.classes("tbody")
    assert "measured on 1 of 50 tasks" in page.text
    document = json.loads((site / BOARD / "index.json").read_text())
    assert [one["entry"] for one in document["entries"]] == ["a"]
    eager, compiled = document["reference"]
    assert compiled["coverage"] == {"tasks": 1, "of": 50}
    assert compiled["scores"]["geomean_all_eager"]["value"] == pytest.approx(2.0)
    assert eager["scores"]["geomean_all_compile"]["value"] == pytest.approx(0.5)
    assert "correct" not in eager["scores"]  # it has no verdict that could have been another
    rows = list(csv.DictReader(io.StringIO((site / BOARD / "index.csv").read_text())))
    assert [(row["entry"], row["rank"], row["status"], row["attempted"]) for row in rows] == [
        ("a", "", "unverified", "2"),
        ("eager", "", "reference", "1"),
        ("compile", "", "reference", "1"),
    ]


def test_an_entry_says_how_many_tasks_it_was_judged_on(made, parse):
    assert "judged on 3 of 50 tasks" in parse(made / "site" / MODELLED / "index.html").text
    entry = parse(made / "site" / MODELLED / "entries" / "on-a-laptop" / "index.html").text
    assert "3 of 50" in entry
    assert "judged on" not in parse(made / "site" / BOARD / "index.html").text


def test_new_baselines_change_their_board_alone(tmp_path, store):
    entries, site = tmp_path / "entries", tmp_path / "site"
    synthetic.write_synthetic(entries, "a", 1, board=LEVEL3, tasks=("L3/9", "L3/11"))
    store({"eager": 2e-3})
    build_site(entries, site, jobs=1)
    before = times(site)
    store({"eager": 2e-3, "compile": 1e-3})
    build_site(entries, site, jobs=1)
    written = changed(before, times(site))
    assert f"{BOARD}/index.html" in written
    assert {str(Path(name).parent) for name in written} == {BOARD}


def test_a_modelled_board_has_modelled_rows_of_pytorch(made):
    document = json.loads((made / "site" / MODELLED / "index.json").read_text())
    assert [row["source"] for row in document["reference"]] == ["modelled"] * 2


def test_the_committed_entries_make_a_site(tmp_path, assert_whole):
    assert check_all(entry_folders(COMMITTED), COMMITTED) == ()
    build_site(COMMITTED, tmp_path / "site", jobs=1)
    assert_whole(tmp_path / "site")


def test_a_site_is_served_on_this_machine_alone(made):
    with serve_site(made / "site", 0) as server:
        host, port = server.server_address[:2]
        assert host == "127.0.0.1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{BOARD}/index.html") as answer:
                assert b"<h1>NVIDIA H200" in answer.read()
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
            for hidden in ("/.build/state.json", "/%2ebuild/state.json", "/static/"):
                with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}{hidden}")
                refused.value.close()
        finally:
            server.shutdown()
            thread.join()


def test_only_a_site_is_served(tmp_path):
    with pytest.raises(UsageError, match="build it first"):
        serve_site(tmp_path)
