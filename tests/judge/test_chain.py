"""The chained log: nothing can be changed, dropped or exchanged in it unnoticed."""

import json
import math
import multiprocessing
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgym.errors import RecordError
from kernelgym.judge.chain import GENESIS, ChainedLog, read, verify

SCALARS = st.none() | st.booleans() | st.integers() | st.text()
RECORDS = st.dictionaries(
    st.text(),
    st.recursive(
        SCALARS | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "log.jsonl"


def filled(path, count=4):
    log = ChainedLog(path)
    return [log.append({"n": number}) for number in range(count)]


def test_what_was_appended_is_read_back_in_order(path):
    hashes = filled(path)
    links = list(read(path))
    assert [link.record for link in links] == [{"n": number} for number in range(4)]
    assert [link.hash for link in links] == hashes
    assert [link.previous for link in links] == [GENESIS, *hashes[:-1]]
    assert verify(path) == verify(path, hashes[-1]) == 4
    assert set(json.loads(path.read_text().splitlines()[0])) == {
        "index",
        "previous",
        "hash",
        "record",
    }


@settings(max_examples=30, deadline=None)
@given(records=st.lists(RECORDS, max_size=4))
def test_any_record_that_json_can_say_survives(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("chain") / "log"
    log = ChainedLog(path)
    for record in records:
        log.append(record)
    assert not path.exists() or [link.record for link in read(path)] == records
    assert ChainedLog(path).head == log.head


def swap(lines):
    lines[1], lines[2] = lines[2], lines[1]


def drop(lines):
    del lines[1]


def change(lines):
    lines[1] = lines[1].replace('"n":1', '"n":7')


def twice(lines):
    lines[1] = lines[1].replace('"n":1', '"n":7,"n":1')


def spaced(lines):
    lines[1] = lines[1].replace('"n":1', '"n": 1')


def garbage(lines):
    lines[1] = "garbage"


def no_mapping(lines):
    lines[1] = "[]"


@pytest.mark.parametrize("damage", [swap, drop, change, twice, spaced, garbage, no_mapping])
def test_damage_is_found_at_its_line(path, damage):
    filled(path)
    lines = path.read_text().splitlines()
    damage(lines)
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(RecordError, match=r"log\.jsonl:2: "):
        verify(path)
    with pytest.raises(RecordError, match=r"log\.jsonl:2: "):
        ChainedLog(path)


def test_a_lost_end_is_found_by_its_head(path):
    hashes = filled(path)
    lines = path.read_text().splitlines()[:-1]
    path.write_text("".join(f"{line}\n" for line in lines))
    assert verify(path) == 3
    with pytest.raises(RecordError, match="expected the last hash"):
        verify(path, hashes[-1])


@pytest.mark.parametrize("kept", [1, 20])
def test_a_line_cut_off_by_a_kill_is_removed_and_the_chain_goes_on(path, kept):
    hashes = filled(path)
    with path.open("ab") as file:
        file.write(path.read_bytes().splitlines()[0][:kept])
    with pytest.raises(RecordError, match=r":5: expected a whole line"):
        verify(path)
    log = ChainedLog(path)
    assert (len(log), log.head) == (4, hashes[-1])
    log.append({"n": 4})
    assert verify(path) == 5


def test_two_writers_share_one_chain(path):
    first, second = ChainedLog(path), ChainedLog(path)

    def fill(log):
        for number in range(20):
            log.append({"n": number})

    threads = [threading.Thread(target=fill, args=(log,)) for log in (first, second, first)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verify(path) == 60


def test_two_processes_share_one_chain(path):
    filled(path, 1)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=filled, args=(path, 5)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert verify(path) == 11


@pytest.mark.parametrize("record", [{"x": math.nan}, {"x": math.inf}, {"x": {1, 2}}, [1]])
def test_what_json_cannot_say_is_refused_and_nothing_written(path, record):
    log = ChainedLog(path)
    with pytest.raises(RecordError, match="record: expected"):
        log.append(record)
    assert not path.exists()
