"""The store of baselines: lines of JSON, who comes first, and what does not fit."""

import dataclasses

import pytest

from kernelgym import tasks
from kernelgym.errors import RecordError
from kernelgym.judge import baseline_store
from kernelgym.judge.baseline_report import geometric_means, markdown, rows
from kernelgym.judge.baseline_store import (
    BaselineKey,
    BaselineRecord,
    BaselineStore,
    Setting,
    device_slug,
    encode_record,
    read_records,
    source_digest,
    write_records,
)
from kernelgym.judge.gpus import gpu_model
from kernelgym.judge.verdict import Speedup

HERE = Setting("NVIDIA H200", "580.1", "13.0", "2.11.0+cu130", "3.6.0")
KEY = BaselineKey("L1/19", "full", "train", "default", "compile")


def record(kind="compile", **fields):
    base = BaselineRecord(
        task="L1/19",
        size="full",
        mode="train",
        precision="default",
        kind=kind,
        source="aa",
        setting=HERE,
        date="2026-12-01",
        kernelgym="0.1.0",
        median=3.07e-3,
        low=3.06e-3,
        high=3.08e-3,
        batches=(3070.1, 3071.25),
        ratio=Speedup(0.99, 0.98, 1.0) if kind != "eager" else None,
        peak_memory=6_442_450_944,
        min_bytes=12_884_901_888,
    )
    return dataclasses.replace(base, **fields)


def test_records_go_to_a_file_and_back_sorted_one_a_line(tmp_path):
    path = tmp_path / "a" / "store.jsonl"
    written = [record(task="L2/3"), record("eager"), record(), record(size="small")]
    write_records(path, written)
    assert len(path.read_text().splitlines()) == 4
    back = read_records(path)
    assert back == [written[2], written[1], written[3], written[0]]
    write_records(path, list(reversed(back)))
    assert read_records(path) == back


def test_what_is_not_known_takes_no_room():
    line = encode_record(record("eager", compile_seconds=None)).decode()
    assert "ratio" not in line
    assert "compile_seconds" not in line
    assert "error" not in line


def test_a_line_cut_off_by_a_kill_is_left_out_and_another_is_refused(tmp_path):
    path = tmp_path / "store.jsonl"
    whole = encode_record(record())
    path.write_bytes(whole + whole[:-20])
    assert read_records(path) == [record()]
    path.write_bytes(whole[:-20] + b"\n" + whole)
    with pytest.raises(RecordError, match=r"store.jsonl:1"):
        read_records(path)


def test_a_fitting_record_is_found():
    found = BaselineStore([record("eager"), record()]).find(KEY, "aa", HERE)
    assert found.record == record()
    assert found.why == found.note == ""


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"setting": dataclasses.replace(HERE, torch="2.12.0")}, "of torch 2.12.0, not of 2.11.0"),
        ({"setting": dataclasses.replace(HERE, device="NVIDIA A10")}, "of NVIDIA A10"),
        ({"source": "bb"}, "another version of the task's program"),
        ({"size": "small"}, "no stored compile of L1/19 at full, train mode"),
        ({"mode": "eval"}, "no stored compile"),
        ({"precision": "tf32"}, "no stored compile"),
    ],
)
def test_one_that_does_not_fit_is_not_used_and_says_why(changes, why):
    found = BaselineStore([record(**changes)]).find(KEY, "aa", HERE)
    assert found.record is None
    assert not found.failed
    assert why in found.why


@pytest.mark.parametrize(
    "changes",
    [{"torch": "2.11.1"}, {"driver": "590.2"}, {"cuda": "13.1"}, {"triton": "3.6.1"}],
)
def test_a_small_difference_is_noted(changes):
    stored = record(setting=dataclasses.replace(HERE, **changes))
    found = BaselineStore([stored]).find(KEY, "aa", HERE)
    assert found.record == stored
    assert next(iter(changes.values())) in found.note


def test_one_that_is_known_not_to_run_says_so():
    stored = record(median=None, ratio=None, error="out of memory", needed=10**12)
    found = BaselineStore([stored]).find(KEY, "aa", HERE)
    assert (found.record, found.why, found.failed) == (None, "out of memory", True)


def test_the_users_own_record_comes_before_the_shipped_one(tmp_path, monkeypatch):
    monkeypatch.setattr(baseline_store, "shipped", lambda device: [record(date="2026-01-01")])
    assert BaselineStore.load("NVIDIA H200", tmp_path).find(KEY, "aa", HERE).record.date == (
        "2026-01-01"
    )
    write_records(tmp_path / "nvidia_h200.jsonl", [record()])
    store = BaselineStore.load("NVIDIA H200", tmp_path)
    assert store.find(KEY, "aa", HERE).record.date == "2026-12-01"
    # One of another torch does not hide the shipped one.
    other = dataclasses.replace(HERE, torch="2.12.0")
    write_records(tmp_path / "nvidia_h200.jsonl", [record(setting=other)])
    store = BaselineStore.load("NVIDIA H200", tmp_path)
    assert store.find(KEY, "aa", HERE).record.date == "2026-01-01"


def test_a_card_without_a_file_has_an_empty_store(tmp_path):
    store = BaselineStore.load("NVIDIA H900", tmp_path)
    assert len(store) == 0
    assert store.records == ()


def test_names_of_files_follow_from_names_of_cards():
    assert device_slug("NVIDIA H100 80GB HBM3") == "nvidia_h100_80gb_hbm3"


def test_a_program_is_named_by_its_content_at_a_size():
    relu, softmax = tasks.get("L1/19"), tasks.get("L1/23")
    digests = {source_digest(relu, "full"), source_digest(relu, "small")}
    assert len(digests | {source_digest(softmax, "full")}) == 3
    assert source_digest(relu, "full") in digests


# --- the table ------------------------------------------------------------------------------------


def test_the_ceiling_is_eager_time_over_the_speed_of_light():
    """12.9 GB at 4.8 TB/s take 2.68 ms."""
    model = gpu_model("NVIDIA H200")
    (row,) = rows([record("eager"), record()], model, size="full", precision="default")
    assert row.ceiling == pytest.approx(3.07e-3 / (12_884_901_888 / 4.8e12))
    assert (row.bound, row.level) == ("memory", "L1")
    assert row.ratio.value == 0.99


def test_arithmetic_bounds_a_product():
    product = record("eager", flops=10**12, min_bytes=10**6)
    (row,) = rows([product], gpu_model("NVIDIA H200"), size="full", precision="default")
    assert row.bound == "arithmetic"
    assert row.ceiling == pytest.approx(3.07e-3 / (10**12 / (989.5e12 / 3)))


def test_the_table_is_sorted_by_number_and_leaves_other_classes_out():
    stored = [record("eager", task=f"L1/{n}") for n in (10, 9, 100)]
    stored.append(record("eager", task="L1/1", precision="bf16"))
    table = rows(stored, None, size="full", precision="default")
    assert [row.task for row in table] == ["L1/9", "L1/10", "L1/100"]
    assert {row.ceiling for row in table} == {None}


def test_geometric_means_are_by_level_and_over_all():
    stored = [
        record("eager", task="L1/1", median=2e-3, min_bytes=int(4.8e9)),
        record("eager", task="L2/1", median=8e-3, min_bytes=int(4.8e9)),
        record("compile", task="L2/1", ratio=Speedup(0.5, 0.4, 0.6)),
    ]
    means = geometric_means(
        rows(stored, gpu_model("NVIDIA H200"), size="full", precision="default")
    )
    assert means["L1"] == (pytest.approx(2.0), None)
    assert means["L2"] == (pytest.approx(8.0), pytest.approx(2.0))
    assert means["all"] == (pytest.approx(4.0), pytest.approx(2.0))


def test_the_page_names_the_setting_and_has_a_line_a_task():
    stored = [
        record("eager"),
        record(),
        record("eager", task="L1/20", median=None, batches=(), error="out of memory"),
    ]
    page = markdown(rows(stored, None, size="full", precision="default"), stored, "full")
    assert "NVIDIA H200, driver 580.1, CUDA 13.0, torch 2.11.0+cu130, Triton 3.6.0" in page
    assert "| L1/19 | train | 3.07 | 0.990 [0.980, 1.000] |" in page
    assert "| L1/20 | train | out of memory |" in page
