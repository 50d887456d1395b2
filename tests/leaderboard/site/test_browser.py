"""The pages in a real browser: sorting, filtering, following links, narrow screens, dark mode."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelgym.leaderboard.site import build_site, serve_site

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

PHONE = {"width": 360, "height": 740}
BOARD = "boards/nvidia-h200--audited--strict--default--level3-full--10"
MODELLED = "boards/emulator--audited--strict--default--level3-small--10"
ENTRY = f"{BOARD}/entries/quick"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        installed = next((path for name in NAMES if (path := shutil.which(name))), None)
        try:
            made = driver.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium: {error.message.splitlines()[0]}")
        yield made
        made.close()


@pytest.fixture(scope="module")
def address(
    tmp_path_factory: pytest.TempPathFactory, write_entries: Callable[[Path], None]
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("browser")
    write_entries(folder / "entries")
    build_site(folder / "entries", folder / "site", jobs=1)
    with serve_site(folder / "site", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens pages; none may log an error, violate its policy or ask another host for anything."""
    contexts: list[Any] = []
    problems: list[str] = []

    def open_(path: str, **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda said: problems.append(said.text) if said.type == "error" else None
        )
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(address) else problems.append(asked.url),
        )
        page.goto(f"{address}/{path}")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert problems == []


def visible(page: Any, selector: str) -> list[str]:
    return [one.inner_text().strip() for one in page.locator(selector).all() if one.is_visible()]


def test_a_board_can_be_sorted_by_mouse_and_keyboard(open_page: Callable[..., Any]) -> None:
    page = open_page(f"{BOARD}/index.html")
    names = "table.entries tbody th a"
    assert visible(page, names) == ["quick", "hasty", "slow"]
    head = page.get_by_role("columnheader", name="Entry")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert visible(page, names) == ["hasty", "quick", "slow"]
    page.keyboard.press("Enter")  # the button has the focus
    assert head.get_attribute("aria-sort") == "descending"
    assert visible(page, names) == ["slow", "quick", "hasty"]
    mean = page.get_by_role("columnheader", name="Mean vs eager")
    mean.get_by_role("button").click()
    assert head.get_attribute("aria-sort") is None
    shown = [
        float(text.split("×")[0])
        for text in visible(page, "table.entries tbody:not(.reference) td b")
    ]
    assert shown == sorted(shown, reverse=True)


def test_pytorchs_rows_stay_last_and_take_no_part_in_filters(open_page: Callable[..., Any]) -> None:
    page = open_page(f"{MODELLED}/index.html")
    rows = "table.entries tbody th"
    assert [text.split("\n")[0] for text in visible(page, rows)] == [
        "on-a-laptop", "PyTorch eager", "torch.compile",
    ]  # fmt: skip
    page.get_by_role("columnheader", name="Entry").get_by_role("button").dblclick()
    page.get_by_label("Filter entries").fill("nobody")
    assert [text.split("\n")[0] for text in visible(page, rows)] == [
        "PyTorch eager", "torch.compile",
    ]  # fmt: skip


def test_unverified_entries_are_ranked_only_when_asked_for(open_page: Callable[..., Any]) -> None:
    page = open_page(f"{BOARD}/index.html")
    ranks = "table.entries td.rank span"
    assert visible(page, ranks) == ["1", "–", "2"]
    page.get_by_label("Rank unverified entries too").check()
    assert "–" not in visible(page, ranks)
    page.get_by_label("Hide unverified entries").check()
    assert visible(page, "table.entries tbody th a") == ["quick", "slow"]


def test_tasks_can_be_filtered(open_page: Callable[..., Any]) -> None:
    page = open_page(f"{ENTRY}/index.html")
    rows = page.locator("table.sortable tbody tr")
    all_of_them = rows.count()
    page.get_by_label("Filter tasks").fill("L3/9")
    assert visible(page, "table.sortable tbody th") == ["L3/9"]
    assert page.get_by_role("status").inner_text() == f"1 of {all_of_them} shown"
    page.get_by_label("Filter tasks").fill("")
    page.get_by_label("Outcome").select_option("incorrect")
    outcomes = visible(page, "table.sortable tbody .outcome")
    assert outcomes
    assert set(outcomes) == {"incorrect"}


def test_one_gets_from_the_boards_to_a_source(open_page: Callable[..., Any]) -> None:
    page = open_page("index.html")
    page.get_by_role("link", name="NVIDIA H200").first.click()
    page.get_by_role("link", name="quick", exact=True).click()
    page.get_by_role("link", name="L3/9", exact=True).click()
    assert page.locator("h1").inner_text().startswith("L3/9")
    listing = page.locator(".listing").first
    # The CUDA program inside a Python string is read as CUDA.
    assert "__global__" in [one.inner_text() for one in listing.locator(".t-keyword").all()]
    before = listing.inner_text()
    assert not listing.locator(".removed").first.is_visible()
    page.get_by_label("Changes to the reference").check()
    assert listing.locator(".removed").first.is_visible()
    page.get_by_label("Source", exact=True).check()
    assert listing.inner_text() == before


@pytest.mark.parametrize(
    "path",
    ["index.html", f"{BOARD}/index.html", f"{ENTRY}/index.html", f"{ENTRY}/L3-009.html",
     f"{BOARD}/tasks/L3-009.html", "reported/index.html"],
)  # fmt: skip
def test_nothing_sticks_out_on_a_phone(open_page: Callable[..., Any], path: str) -> None:
    page = open_page(path, viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_dark_mode_is_dark(open_page: Callable[..., Any]) -> None:
    def back(scheme: str) -> list[int]:
        page = open_page("index.html", color_scheme=scheme)
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return json.loads(color.replace("rgb(", "[").replace(")", "]"))

    assert max(back("dark")) < 64
    assert min(back("light")) > 192


def test_pages_read_without_a_script(open_page: Callable[..., Any]) -> None:
    page = open_page(f"{BOARD}/index.html", java_script_enabled=False)
    assert visible(page, "table.entries tbody th a") == ["quick", "hasty", "slow"]
    assert not page.locator(".filters").first.is_visible()  # nothing that would do nothing
    page.get_by_label("Hide unverified entries").check()
    assert visible(page, "table.entries tbody th a") == ["quick", "slow"]


def test_the_first_thing_to_tab_to_skips_the_header(open_page: Callable[..., Any]) -> None:
    page = open_page("index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
