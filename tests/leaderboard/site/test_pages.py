"""The parts of pages: what is escaped, what is linked, what is drawn, what is written as data."""

from __future__ import annotations

import csv
import dataclasses
import importlib.resources
import io
import json
import re
from html.parser import HTMLParser

import pytest

from kernelgym import tasks as catalogue
from kernelgym.judge.verdict import Outcome, Speedup
from kernelgym.leaderboard.entry import Status
from kernelgym.leaderboard.loading import load_entry
from kernelgym.leaderboard.reported import load_reported
from kernelgym.leaderboard.site import plots
from kernelgym.leaderboard.site.board_pages import TaskPage, TaskRow, fastest_first, task_pages
from kernelgym.leaderboard.site.costs import cost_table, intensities, text_hash
from kernelgym.leaderboard.site.entry_pages import entry_pages, view_of
from kernelgym.leaderboard.site.listing import listings
from kernelgym.leaderboard.site.rendering import environment, safe_url
from kernelgym.leaderboard.site.reported_pages import reported_pages
from kernelgym.leaderboard.site.tables import csv_text, json_text
from kernelgym.leaderboard.synthetic import BOARD, write_synthetic
from kernelgym.report.rendering import read_style
from kernelgym.resampling import Estimate
from kernelgym.scores import TaskScore

HOSTILE = "<script>alert(1)</script>\"' onload=x &amp; \u202e\x1b[31m <img src=//evil>"
LEVEL3 = dataclasses.replace(BOARD, task_set="level3")


class Elements(HTMLParser):
    """The names of a page's elements and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def entry(tmp_path_factory):
    folder = tmp_path_factory.mktemp("entries")
    return load_entry(
        write_synthetic(folder, "one", 1, board=LEVEL3, tasks=LEVEL3.tasks[:6], skill=3.0)
    )


@pytest.fixture(scope="module")
def view(entry):
    return view_of(entry)


def hostile_entry(entry, view):
    """An entry all of whose texts are hostile; reading one from disk would refuse the name."""
    info = dataclasses.replace(entry.info)
    for field in ("name", "agent", "model", "harness", "licence"):
        object.__setattr__(info, field, HOSTILE)
    object.__setattr__(info, "authors", (HOSTILE,))
    object.__setattr__(info, "links", ("javascript:alert(1)", "https://example.org/"))
    first = entry.results[0]
    verdict = dataclasses.replace(
        first.verdict, outcome=Outcome.REJECTED, reason=HOSTILE, message=HOSTILE, output=HOSTILE
    )
    result = dataclasses.replace(first, verdict=verdict, sources={"model_new.py": HOSTILE})
    scores = dataclasses.replace(
        view.scores,
        tasks=(
            TaskScore(first.task, Outcome.REJECTED, reason=HOSTILE),
            *view.scores.tasks[1:],
        ),
    )
    return (
        dataclasses.replace(entry, info=info, results=(result,)),
        dataclasses.replace(view, info=info, stamp=HOSTILE, scores=scores),
    )


def test_hostile_texts_are_shown_and_do_nothing(entry, view):
    plain = entry_pages(entry, view)
    pages = entry_pages(*hostile_entry(entry, view))
    row = TaskRow("one", HOSTILE, Status.VERIFIED, TaskScore("L3/1", Outcome.REJECTED, HOSTILE))
    page = TaskPage(LEVEL3, "L3/1", (row,), None, None, clean=True)
    shown = 0
    for path, text in [*pages.items(), *task_pages(page).items()]:
        if not path.endswith(".html"):
            continue
        elements = Elements(text)
        assert elements.names.count("script") == 1, path  # the site's own
        assert "img" not in elements.names, path
        assert "\x1b" not in text, path
        assert "\u202e" not in text, path
        assert "<script>alert(1)</script>" in elements.text, path
        shown += 1
    assert shown == 3
    assert Elements(next(iter(plain.values()))).names.count("script") == 1


def test_links_lead_to_the_web_and_vouch_for_nothing(entry, view):
    pages = entry_pages(*hostile_entry(entry, view))
    overview = next(text for path, text in pages.items() if path.endswith("one/index.html"))
    assert 'href="javascript' not in overview
    assert "javascript:alert(1)" in overview
    assert '<a href="https://example.org/" rel="nofollow noopener noreferrer">' in overview


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "data:text/html,x", "//example.org", "/boards", "ftp://example.org/",
     "https://", "https://user@example.org/", "https://[half", "https://example.org/ x",
     "https://example.org\\@evil", " https://example.org", "java\nscript:alert(1)", ""],
)  # fmt: skip
def test_an_address_that_is_no_web_page_is_no_link(address):
    assert safe_url(address) is None


@pytest.mark.parametrize(
    "address", ["https://arxiv.org/abs/2602.24286", "http://example.org:80/a?b=c#d"]
)
def test_a_web_page_is_a_link(address):
    assert safe_url(address) == address


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", "  =1", "\uff1d1", "-"]
)
def test_no_text_in_a_csv_is_a_formula(text):
    ((_, cell),) = list(csv.reader(io.StringIO(csv_text(("a", "b"), [(1, text)]))))[1:]
    assert cell.startswith("'")


def test_numbers_and_unknowns_in_a_csv():
    text = csv_text(("a", "b", "c", "d"), [(-1.5, None, "plain, with a comma", True)])
    assert text == 'a,b,c,d\r\n-1.5,,"plain, with a comma",True\r\n'


def test_json_holds_no_number_that_is_none():
    text = json_text({"a": [1.5, None, float("nan"), "ä"]})
    assert json.loads(text) == {"a": [1.5, None, None, "ä"]}
    assert text.endswith("}\n")


def test_a_listing_holds_the_source_and_what_the_reference_had():
    start = "import torch\nx = 1\nkeep = 2\n"
    text = "import torch\ny = '<b>'\nkeep = 2"
    main, other = listings({"k.cu": "__global__\n", "model_new.py": text}, start)
    assert (main.path, other.path) == ("model_new.py", "k.cu")
    assert (main.language, other.language) == ("python", "cuda")
    assert (main.added, main.removed, main.compared, other.compared) == (1, 1, True, False)
    lines = re.findall(r'<span class="(\w+)">(.*?)\n</span>', main.body, re.DOTALL)
    assert lines == [
        ("same", "import torch"),
        ("removed", "x = 1"),
        ("added", "y = &#39;&lt;b&gt;&#39;"),
        ("same", "keep = 2"),
    ]


def test_a_very_long_source_is_shown_without_a_comparison():
    (one,) = listings({"model_new.py": "x = 1\n" * 5000}, "x = 2\n")
    assert not one.compared
    assert one.body.count('class="same"') == 5000


def task(number: int, speed: float | None, light: float | None = None) -> TaskScore:
    if speed is None:
        return TaskScore(f"L1/{number}", Outcome.INCORRECT)
    speedup = Speedup(speed, speed, speed)
    return TaskScore(
        f"L1/{number}", Outcome.CORRECT, eager=speedup, compile=speedup, light_fraction=light
    )


def test_fast_p_is_kernelbenchs():
    # KernelBench: the share of all tasks that are correct with a speedup of more than p.
    rows = [task(1, 0.8), task(2, 1.0), task(3, 1.5), task(4, 4.0), task(5, None)]
    table = {row[0]: row[1:] for row in plots.fast_curve(rows).rows}
    assert table["0.5"] == ("80.0%", "80.0%")
    assert table["0.75"] == ("80.0%", "80.0%")
    assert table["1"] == ("40.0%", "40.0%")  # 1.0 is not more than 1
    assert table["1.5"] == ("20.0%", "20.0%")
    assert table["5"] == ("0.0%", "0.0%")


def test_every_task_is_in_the_distribution_once():
    rows = [task(1, 0.01), task(2, 1.0), task(3, 1.3), task(4, 1000.0), task(5, None)]
    plot = plots.distribution(rows)
    counts = {label: int(count) for label, count in plot.rows}
    assert sum(counts.values()) == len(rows)
    assert counts["no correct solution"] == 1
    assert counts["below 0.25"] == 1
    assert counts["1.00–1.41"] == 2
    assert counts["16.00 and more"] == 1


def test_the_roofline_shows_what_has_the_figures():
    rows = [task(1, 1.0, 0.5), task(2, 1.0, 1.0), task(3, 1.0), task(4, None)]
    plot = plots.roofline(rows, {"L1/1": 100.0, "L1/2": 0.0})
    assert plot.rows == (("L1/1", "100", "50.0%"), ("L1/2", "none", "100.0%"))
    assert plot.svg.count("<title>L1/") == 2
    assert plots.roofline(rows, {}) is None


def test_plots_without_any_solution():
    rows = [task(1, None)]
    assert plots.distribution(rows).rows[0] == ("no correct solution", "1")
    assert plots.fast_curve(rows).header == ("p",)


def test_an_interval_stays_inside_its_bar():
    bar = plots.interval_bar(Estimate(2.0, 0.1, 90.0), 0.8, 3.0)
    numbers = [float(number) for number in re.findall(r"M([\d.]+) 6H([\d.]+)", bar)[0]]
    assert numbers == [2.0, 94.0]


def test_correct_solutions_come_first_and_fast_ones_before_slow():
    rows = [
        TaskRow(name, name, Status.VERIFIED, score)
        for name, score in (("a", task(1, None)), ("b", task(1, 1.0)), ("c", task(1, 2.0)))
    ]
    assert [row.slug for row in sorted(rows, key=fastest_first)] == ["c", "b", "a"]


def test_published_figures_are_kept_apart_by_protocol():
    reported = load_reported()
    pages = reported_pages(reported)
    text = Elements(pages["reported/index.html"]).text
    assert "not verified" in text
    for protocol in reported.protocols.values():
        assert protocol.title in text
        assert " ".join(protocol.text.split())[:60] in text
    rows = list(csv.DictReader(io.StringIO(pages["reported/index.csv"])))
    cuda_agent = [row for row in rows if row["system"] == "CUDA Agent" and row["tasks"] == "all"]
    assert [row["geomean_compile"] for row in cuda_agent] == ["2.11"]
    assert json.loads(pages["reported/index.json"])["verified"] is False


def test_costs_are_of_the_tasks_as_they_are():
    file = importlib.resources.files("kernelgym.leaderboard.site") / "task_costs.json"
    table = json.loads(file.read_text("utf-8"))
    assert tuple(table) == catalogue.ids()
    stale = [one for one in table if table[one]["text"] != text_hash(catalogue.get(one).text)]
    assert stale == [], "python -m kernelgym.leaderboard.site.costs > .../task_costs.json"
    few = ("L1/1", "L1/19", "L2/76")
    assert json.loads(cost_table(few)) == {one: table[one] for one in few}
    assert intensities("full")["L1/19"] == 0
    # 4096³ multiply-adds, over three fp32 matrices.
    assert intensities("full")["L1/1"] == pytest.approx(2 * 4096**3 / (3 * 4096**2 * 4))


def luminance(color: str) -> float:
    digits = color.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("back", ["back", "raised", "added", "removed"])
def test_texts_have_contrast(scheme, back):
    blocks = re.findall(r":root \{(.*?)\n\s*\}", read_style("tokens.css"), re.DOTALL)
    colors = dict(re.findall(r"--(\w+): (#\w+)", blocks[scheme]))
    for name in ("text", "faint", "good", "bad", "warn", "other", "accent"):
        one, other = sorted((luminance(colors[name]), luminance(colors[back])))
        assert (other + 0.05) / (one + 0.05) >= 4.5, f"{name} on {back}: WCAG AA asks for 4.5"


def test_templates_escape():
    assert environment().autoescape is True
