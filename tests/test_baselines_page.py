"""The page of baselines is the store's that comes with kernelgym."""

from pathlib import Path

import pytest

from kernelgym.judge import baseline_store, calibration
from kernelgym.judge.baseline_report import markdown, rows
from kernelgym.tasks import get, ids

DEVICE = "NVIDIA H200"
PAGE = Path(__file__).parent.parent / "docs" / "baselines.md"


@pytest.fixture(scope="module")
def records():
    return [
        record
        for record in baseline_store.shipped(DEVICE)
        if (record.size, record.precision) == ("full", "default")
    ]


def test_the_page_is_there_when_the_store_is_and_says_the_same(records):
    assert PAGE.exists() == bool(records)
    if records:
        model = calibration.light_model(DEVICE, calibration.shipped(DEVICE))
        table = rows(records, model, size="full", precision="default")
        assert PAGE.read_text() == markdown(table, records, "full")


def test_what_is_shipped_is_sorted_of_one_card_and_of_tasks_as_they_are(records):
    assert [r.key for r in records] == sorted(r.key for r in records)
    assert {r.setting.device for r in records} <= {DEVICE}
    known = set(ids())
    for record in records:
        assert record.task in known
        assert record.source == baseline_store.source_digest(get(record.task), record.size)
