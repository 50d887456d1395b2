from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kernelgym import runs, tasks
from kernelgym.config import JudgeConfig
from kernelgym.errors import UsageError
from kernelgym.judge.verdict import Diagnostic, Outcome, Verdict
from kernelgym.report import write_report
from kernelgym.report.axes import Axis, si

HOSTILE = "<script>alert(1)</script>\"' onload=x &amp; \u202e\x1b[31m </pre><img src=//evil>"
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Document(HTMLParser):
    """Elements with their attributes, all texts, and whether every element is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def classes(self, tag: str) -> list[str]:
        return [attributes.get("class") or "" for name, attributes in self.elements if name == tag]


class Scripted:
    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.left: list[str] = []

    def reset(self, info: dict[str, Any]) -> None:
        self.left = list(self.texts)

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        return self.left.pop(0) if self.left else "submit"


def write(text: str) -> str:
    return f"```python model_new.py\n{text}\n```\n"


@pytest.fixture
def page(tmp_path: Path, fake_judge: Any) -> Callable[..., Document]:
    """Plays texts on a task with the fake judge, and reads the report."""

    def make(*texts: str, task_id: str = "L1/19", judge: Any = None) -> Document:
        plan = runs.RunPlan("scripted", (task_id,), JudgeConfig(device="cpu"))
        folder = tmp_path / "a run"
        runs.play(plan, [tasks.get(task_id)], Scripted(*texts), folder, judge=judge or fake_judge)
        return Document(write_report(folder, folder / "report.html").read_text())

    return make


def test_a_page_stands_alone_and_is_well_formed(page: Callable[..., Document]) -> None:
    document = page(write("# wrong!"), write("# fast=2.0 "), write("# fast=3.0 "), "nonsense")
    assert document.open == []
    names = {name for name, _ in document.elements}
    assert not names & {"script", "link", "img", "iframe"}
    for _, attributes in document.elements:
        assert not {"src", "onload", "onclick", "style"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert "prefers-color-scheme: dark" in document.text
    assert "@import" not in document.text
    assert "url(" not in document.text


def test_a_page_can_be_read_by_all(page: Callable[..., Document]) -> None:
    document = page(write("# fast=2.0 "))
    assert ("html", {"lang": "en"}) in document.elements
    drawings = [attributes for name, attributes in document.elements if name == "svg"]
    assert drawings
    assert all(attributes.get("role") == "img" for attributes in drawings)
    assert sum(name == "desc" for name, _ in document.elements) == len(drawings)
    headings = [name for name, _ in document.elements if re.fullmatch("h[1-6]", name)]
    assert headings[:3] == ["h1", "h2", "h3"]
    ids = [attributes["id"] for _, attributes in document.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)


def test_each_turn_shows_its_verdict_diff_and_times(page: Callable[..., Document]) -> None:
    document = page(write("# syntax!"), write("# fast=2.0 "), "nonsense")
    classes = document.classes("article")
    assert classes == ["compile_error", "correct", "none", "none"]
    assert "model_new.py:3:7 error: expected ';'" in document.text
    assert "+# fast=2.0" in document.text
    assert "-# syntax!" in document.text
    assert {"added", "removed", "hunk", "file"} <= set(document.classes("span"))
    assert "no edit found" in document.text
    assert "2.00x [1.80, 2.20]" in document.text
    assert "(best)" in document.text


def test_hostile_texts_stay_texts(
    page: Callable[..., Document], make_verdict: Callable[..., Verdict], fake_judge: Any
) -> None:
    problem = Diagnostic(HOSTILE, 1, 1, "error", HOSTILE, HOSTILE, "g++", HOSTILE)

    class Hostile:
        config = fake_judge.config
        size = "small"

        def evaluate(self, task: Any, workspace: Any) -> Verdict:
            return make_verdict(
                Outcome.RUNTIME_ERROR,
                reason=HOSTILE,
                message=HOSTILE,
                diagnostics=(problem,),
                output=HOSTILE,
            )

        def close(self) -> None:
            pass

    quiet = HOSTILE.replace("\x1b", "").replace("\u202e", "")
    document = page(write(f"# {quiet}"), HOSTILE, judge=Hostile())
    assert document.open == []
    assert not {"script", "img"} & {name for name, _ in document.elements}
    assert "<script>alert(1)</script>" in document.text
    assert "\x1b" not in document.text
    assert "\u202e" not in document.text
    assert document.classes("article")[0] == "runtime_error"


def test_the_best_so_far_is_a_step_and_failures_are_crosses(page: Callable[..., Document]) -> None:
    document = page(write("# wrong!"), write("# fast=2.0 "), write("# fast=1.5 "), "x")
    # The wrong one, and the one that did not apply; to submit is no failure.
    assert document.classes("path").count("cross") == 2
    [line] = [
        attributes["points"] or ""
        for name, attributes in document.elements
        if name == "polyline" and attributes["class"] == "best"
    ]
    heights = {point.split(",")[1] for point in line.split()}
    assert len(line.split()) == 8
    assert len(heights) == 1


def counted_judge(fake_judge: Any, make_verdict: Any, make_counters: Any) -> Any:
    class Counting:
        config = fake_judge.config
        size = "small"

        def evaluate(self, task: Any, workspace: Any) -> Verdict:
            least = task.facts("small").min_bytes
            counters = make_counters(dram_bytes_read=least, dram_bytes_written=least)
            verdict: Verdict = make_verdict(eager=(2.0, 1.9, 2.1), counters=counters)
            return verdict

        def close(self) -> None:
            pass

    return Counting()


@pytest.mark.parametrize(
    ("task_id", "label"), [("L1/1", "FLOP per byte moved"), ("L1/19", "bytes moved / least bytes")]
)
def test_the_roofline_places_what_was_counted(
    task_id: str,
    label: str,
    page: Callable[..., Document],
    fake_judge: Any,
    make_verdict: Callable[..., Verdict],
    make_counters: Callable[..., Any],
) -> None:
    judge = counted_judge(fake_judge, make_verdict, make_counters)
    document = page(write("# one"), task_id=task_id, judge=judge)
    assert label in document.text
    assert document.classes("polyline").count("ceiling") == 1
    assert document.classes("circle").count("point chosen") == 1
    assert "modelled device (emulator)" in document.text
    if task_id == "L1/1":
        facts = tasks.get(task_id).facts("small")
        assert f"{facts.flops / facts.min_bytes / 2:.3g} FLOP/B" in document.text
    else:
        assert "2.00 x the least" in document.text


def test_a_missing_roofline_says_why(page: Callable[..., Document]) -> None:
    assert "No roofline: no candidate that was correct" in page(write("# wrong!")).text


def test_a_task_that_changed_still_has_its_verdicts(
    page: Callable[..., Document], tmp_path: Path
) -> None:
    page(write("# fast=2.0 "))
    trace = tmp_path / "a run" / "trace.jsonl"
    trace.write_text(re.sub(r'"workspace_hash": ?"..', '"workspace_hash":"zz', trace.read_text()))
    document = Document(write_report(tmp_path / "a run", tmp_path / "r.html").read_text())
    assert "the task is not as it was" in document.text
    assert document.classes("article")[0] == "correct"


def test_what_is_no_run_is_refused(tmp_path: Path, page: Callable[..., Document]) -> None:
    with pytest.raises(UsageError, match=r"trace\.jsonl"):
        write_report(tmp_path, tmp_path / "r.html")
    page(write("# fast=2.0 "))
    with pytest.raises(UsageError, match="can be written"):
        write_report(tmp_path / "a run", tmp_path / "no" / "r.html")


def test_axes_map_ends_to_ends_and_have_few_round_ticks() -> None:
    linear = Axis.around([0.0, 3.0], 100, 0)
    assert linear(linear.low) == 100
    assert linear(linear.high) == 0
    assert linear.ticks() == [0.0, 1.0, 2.0, 3.0]
    log = Axis.around([1e3, 1e9], 0, 600, logarithmic=True)
    assert log(1e6) == pytest.approx(300)
    assert log.ticks() == [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]
    narrow = Axis.around([0.8, 2.0], 0, 600, logarithmic=True)
    assert all(narrow.low <= tick <= narrow.high for tick in narrow.ticks())
    assert 2 <= len(narrow.ticks()) <= 8
    assert [si(value, "B") for value in (999.9, 4e10, 3)] == ["1 kB", "40 GB", "3 B"]
