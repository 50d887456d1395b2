"""Entries from strangers: whatever lies in the folder, the answer is an entry or one clear error."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelgym.errors import RecordError, UsageError
from kernelgym.leaderboard import synthetic
from kernelgym.leaderboard.board import Board, Budget
from kernelgym.leaderboard.checks import check_all
from kernelgym.leaderboard.loading import (
    entry_folders,
    find_entry,
    load_entry,
    task_folder,
    task_of_folder,
)
from kernelgym.leaderboard.plain_yaml import read_mapping
from tests.leaderboard.stubs import FIXTURES

REAL = Path(__file__).parents[2] / "leaderboard" / "entries"
BOMB = "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nname: *c\n"


@pytest.mark.parametrize("folder", entry_folders(REAL), ids=lambda folder: folder.name)
def test_every_entry_of_the_board_loads_and_holds(folder):
    assert check_all([folder], REAL) == ()


def test_the_folder_of_entries_can_be_read():
    assert all((folder / "entry.yaml").is_file() for folder in entry_folders(REAL))


@pytest.mark.parametrize("folder", entry_folders(FIXTURES), ids=lambda folder: folder.name)
def test_the_fixtures_hold(folder):
    assert check_all([folder], FIXTURES) == ()


def test_an_entry_is_read_whole(first):
    entry = load_entry(first)
    assert entry.id == f"{synthetic.BOARD.slug}/first-light"
    assert entry.board == synthetic.BOARD
    assert [result.task for result in entry.results] == ["L1/19", "L1/23", "L2/76"]
    assert "load_inline" in entry.results[0].sources["model_new.py"]
    assert entry.info.model_date is not None
    assert entry.info.model_date.isoformat() == "2026-02-01"


def yaml_with(first: Path, old: str, new: str) -> None:
    path = first / "entry.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema_version: 1", "schema_version: 2", "expected 1, got 2 .*newer kernelgym"),
        ("schema_version: 1", "schema_version: true", "schema_version: expected 1, got True"),
        ("schema_version: 1\n", "", "schema_version: expected 1, got None"),
        ("name: first-light", "name: <b>x</b>", "name: expected plain text"),
        ("name: first-light", 'name: "a\\nb"', "name: expected plain text in one line"),
        ("name: first-light", "name: [1]", "Expected `str`, got `array`"),
        ("name: first-light", "title: x", "expected one of .*, got 'title'"),
        ("name: first-light", "name: x\nname: y", "each key once, got 'name'"),
        ("name: first-light", "name: !!python/object/apply:os.system [id]", "could not determine"),
        ("name: first-light", "name: {", "expected plain YAML"),
        ("name: first-light", BOMB, "expected no aliases"),
        ("name: first-light", "? [a]\n: b", "expected each key once, got None"),
        ("name: first-light", f"name: {'[' * 9000}", "expected plain YAML"),
        ("name: first-light", "name: " + "x" * 70_000, "expected at most 65536 bytes"),
        ("https://example.org/made-up", "file:///etc/passwd", "links: expected an address"),
        ("protocol: audited", "protocol: easy", "protocol: expected one of audited"),
        ("budget: '10'", "budget: '5'", "Invalid enum value '5'"),
        ("verdicts_per_task: 8", "verdicts_per_task: 80", "expected at most 10 on this board"),
        ("task_set: kernelbench", "task_set: level1", r"expected tasks of level1, got 'L2/76'"),
        ("money_usd: 12.5", "money_usd: .inf", "money_usd: expected 0 or more, got inf"),
        ("money_usd: 12.5", "dollars: 12.5", "budget: expected one of .*, got 'dollars'"),
        ("model_date: '2026-02-01'", "model_date: 2026-02-01", None),
        ("model_date: '2026-02-01'", "model_date: soon", "Invalid RFC3339"),
    ],
)
def test_entry_yaml(first, old, new, message):
    yaml_with(first, old, new)
    if message is None:
        assert load_entry(first).info.model_date is not None
        return
    with pytest.raises(RecordError, match=message) as error:
        load_entry(first)
    assert "entry.yaml" in str(error.value) or "verdicts.jsonl" in str(error.value)


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"", b"- a\n- b\n", b"a: \x00", b"a: *b", b"\t", b"2"]
)
def test_what_is_no_mapping(data):
    with pytest.raises(RecordError, match="where: expected"):
        read_mapping(data, "where")


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet="ab:{}[]&*!?|>-'\"\n \t#%@,0.", max_size=60))
def test_any_bytes_are_a_mapping_or_a_record_error(data):
    try:
        found = read_mapping(data.encode() if isinstance(data, str) else data, "where")
    except RecordError:
        return
    assert isinstance(found, dict)


@pytest.mark.parametrize(
    "name", ["entry.yaml", "verdicts.jsonl", "environment.json", "solutions/L1-019/model_new.py"]
)
def test_a_part_that_is_missing_is_named(first, name):
    (first / name).unlink()
    with pytest.raises(RecordError, match=name.split("/model")[0]):
        load_entry(first)


@pytest.mark.parametrize("name", ["environment.json", "verification.json"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "as JSON"),
        ("[]", "schema_version: expected 1, got None"),
        ('{"schema_version": 7}', "expected 1, got 7"),
        ('{"schema_version": 1}', "missing required field"),
        ("[" * 100_000, "as JSON"),
    ],
)
def test_broken_json_is_named(first, name, text, message):
    (first / name).write_text(text)
    with pytest.raises(RecordError, match=message) as error:
        load_entry(first)
    assert name in str(error.value)


def test_an_empty_log_has_no_verdicts(first):
    (first / "verdicts.jsonl").write_text("")
    with pytest.raises(RecordError, match="expected 3 verdicts up to"):
        load_entry(first)


def test_a_solution_without_a_verdict_is_named(first):
    extra = first / "solutions" / "L1-020"
    extra.mkdir()
    (extra / "model_new.py").write_text("x = 1\n")
    with pytest.raises(RecordError, match="expected a verdict on L1/20"):
        load_entry(first)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("index.html", "expected only files of an entry, got index.html"),
        (".git/config", "expected only files of an entry"),
        ("solutions/readme.md", "expected solutions/L<level>-<number>/<file>"),
        ("solutions/L9-001/model_new.py", "expected solutions/L<level>-<number>/<file>"),
        ("solutions/L1-019/reference.py", "read-only"),
        ("solutions/L1-019/a.sh", "expected a name ending in"),
        ("solutions/L1-019/a b.cu", "expected a relative path"),
        ("solutions/L1-019/.hidden.py", "expected a relative path"),
        ("solutions/L1-019/" + "d/" * 12 + "x.cu", "folders at most 8 deep"),
    ],
)
def test_what_does_not_belong_in_an_entry(first, name, message):
    path = first / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("text")
    with pytest.raises(RecordError, match=message):
        load_entry(first)


def test_links_are_refused(first, tmp_path):
    (tmp_path / "secret").write_text("secret")
    os.symlink(tmp_path / "secret", first / "solutions" / "L1-019" / "secret.cu")
    with pytest.raises(RecordError, match="got a link"):
        load_entry(first)


def test_linked_folders_are_refused(fixtures, first):
    os.symlink(first, first.parent / "alias")
    with pytest.raises(RecordError, match="got something else"):
        entry_folders(fixtures)
    with pytest.raises(RecordError, match="expected the folder of an entry"):
        load_entry(first.parent / "alias")


def test_pipes_are_refused(first):
    os.mkfifo(first / "traces")
    with pytest.raises(RecordError, match="expected a plain file or folder"):
        load_entry(first)


@pytest.mark.parametrize(
    "name", ["verdicts.jsonl", "solutions/L1-019/model_new.py", "traces/trace.jsonl"]
)
def test_huge_files_are_refused_before_they_are_read(first, name):
    path = first / name
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(RecordError, match="expected at most"):
        load_entry(first)


@pytest.mark.parametrize("name", ["..", "Upper", "a--b", "-a", "a b", "a.b", "ä"])
def test_names_of_folders(first, name):
    with pytest.raises(RecordError, match="expected a folder's name"):
        load_entry(first.parent / name)


def test_a_verdict_of_a_newer_schema(first):
    path = first / "verdicts.jsonl"
    from kernelgym.judge.chain import ChainedLog

    records = [json.loads(line)["record"] for line in path.read_text().splitlines()]
    path.unlink()
    log = ChainedLog(path)
    for record in records:
        log.append({**record, "schema_version": 2})
    with pytest.raises(RecordError, match=r"verdicts\.jsonl:1: schema_version: expected 1, got 2"):
        load_entry(first)


def test_drafts_of_submissions_under_way_are_no_entries(fixtures):
    (fixtures / ".draft-abc").mkdir()
    assert [folder.name for folder in entry_folders(fixtures)] == ["first-light", "second-wind"]


def test_entries_are_found_by_path_id_and_name(fixtures, first):
    assert find_entry(str(first), fixtures) == first
    assert find_entry("first-light", fixtures) == first
    assert find_entry(f"{first.parent.name}/first-light", fixtures) == first
    with pytest.raises(UsageError, match="got 'third': none"):
        find_entry("third", fixtures)


def test_tasks_and_their_folders():
    assert task_folder("L1/19") == "L1-019"
    assert task_of_folder("L2-076") == "L2/76"
    assert task_of_folder("L1-19") is None
    assert task_of_folder("../L1-019") is None


def test_boards_have_names_of_their_own():
    board = Board("NVIDIA H200", "cuda_agent", "strict", "tf32", "level1", "full", Budget.OPEN)
    assert board.slug == "nvidia-h200--cuda-agent--strict--tf32--level1-full--open"
    assert len(board.tasks) == 100
    assert not board.modelled
    with pytest.raises(UsageError, match="size: expected one of small, medium, full, got 'auto'"):
        Board("NVIDIA H200", "audited", "strict", "tf32", "level1", "auto", Budget.OPEN)
    with pytest.raises(UsageError, match="device: expected the name of a model"):
        Board("/../", "audited", "strict", "tf32", "level1", "full", Budget.OPEN)


@pytest.mark.parametrize(
    ("verdicts", "budget"),
    [(0, "1"), (1, "1"), (2, "10"), (10, "10"), (100, "100"), (101, "open"), (None, "open")],
)
def test_budget_classes(verdicts, budget):
    assert Budget.of(verdicts).value == budget
