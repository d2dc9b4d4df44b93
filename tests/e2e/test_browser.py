"""The UI as a person sees it: pages of the sample data in a real browser, light and dark.

The tests are one visit: they share an instance. Their pages are the pictures of the docs.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from gristmill.svg import OVERVIEW
from tests.e2e import browser
from tests.e2e.live_instance import RUNNING, LiveInstance, drop, until
from tests.free_port import free_port

pytestmark = pytest.mark.slow

PACKS = "assets/macroxue/pack"
# Whether a picture is loaded, and the part of it that the page and its boxes let see.
SEEN = """image => {
  const box = image.getBoundingClientRect();
  let [left, right] = [box.left, box.right];
  for (let e = image.parentElement; e; e = e.parentElement) {
    if (getComputedStyle(e).overflowX === 'visible') continue;
    const outer = e.getBoundingClientRect();
    left = Math.max(left, outer.left); right = Math.min(right, outer.right);
  }
  return {loaded: image.complete && image.naturalWidth > 0, width: box.width, height: box.height,
    seen: Math.min(right, innerWidth) - Math.max(left, 0), top: box.top, bottom: box.bottom};
}"""

COLOUR = "() => getComputedStyle(document.body).backgroundColor"

PICTURE = "img[src^='data:image/svg']"

# The names of the nodes that are in the window as a whole.
GRAPH = """() => {
  const all = [...document.querySelectorAll('foreignObject')]
    .map(e => [[...e.querySelectorAll('div,span')].map(inner => inner.innerText),
               e.getBoundingClientRect()])
    .filter(([, r]) => r.left > 300 && r.top > 108 && r.right < innerWidth - 40
                       && r.bottom < innerHeight);
  return {names: all.flatMap(([texts]) => texts)};
}"""


@pytest.fixture(scope="module")
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveInstance]:
    """An instance that serves a copy of the sample data."""
    browser.chromium()
    root = request.getfixturevalue("sample_root")
    started = LiveInstance(tmp_path_factory.mktemp("browser").resolve(), root=root)
    yield started
    started.server.stop()


@pytest.fixture(scope="module")
def browsed(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address at which `gristmill browse` serves the sample data."""
    root = request.getfixturevalue("sample_root").data
    command = [sys.executable, "-m", "gristmill.cli", "browse", str(root)]
    with subprocess.Popen(
        [*command, "--port", str(free_port())], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().removeprefix("open ").strip()
        server.terminate()


@pytest.fixture(scope="module")
def window(served: LiveInstance) -> Iterator[Any]:
    with browser.opened() as context:
        yield context


@pytest.fixture
def page(window: Any) -> Iterator[Any]:
    opened = window.new_page()
    yield opened
    opened.close()


def go(page: Any, served: LiveInstance, path: str, text: str) -> None:
    """Open a page and wait until it shows a text."""
    page.goto(f"http://{served.server.place}/{path}")
    page.get_by_text(text).first.wait_for()


def show_document(page: Any, title: str) -> None:
    """Open a document that is behind a link."""
    row = page.locator("tr", has=page.get_by_text(title, exact=True))
    row.get_by_text("[Show Markdown]").first.click()
    page.get_by_text("Copy", exact=False).last.wait_for()
    page.wait_for_timeout(1_000)


def menu_of_materialize(page: Any) -> None:
    """Open the menu beside the button Materialize, which has no name."""
    button = page.get_by_role("button", name="Materialize").first
    button.wait_for()
    button.locator("xpath=following::button[1]").click()


def test_the_home_page_lists_runs(page, served):
    go(page, served, "", "Timeline")
    assert page.url.endswith("/overview/activity/timeline")
    go(page, served, "runs", "Success")
    browser.keep(page, "runs")


def test_a_picture_is_seen_on_the_overview_of_its_asset(page, served):
    go(page, served, PACKS, "Latest materialization")
    page.get_by_text("Columns", exact=True).first.click()  # they stand above all metadata
    image = page.locator(PICTURE).first
    image.wait_for()
    until("the picture is loaded", lambda: image.evaluate(SEEN)["loaded"])
    seen = image.evaluate(SEEN)
    assert seen["width"] == OVERVIEW
    assert seen["seen"] >= seen["width"] - 1, "cut off on the right"
    # A smaller window shows most of it without scrolling.
    assert seen["top"] > 0
    assert browser.HEIGHT - seen["top"] > 0.6 * seen["height"]
    image.evaluate("image => image.scrollIntoView({block: 'center'})")
    browser.keep(page, "pack")


def test_the_text_for_the_launchpad_is_on_the_page_of_its_asset(page, served):
    go(page, served, PACKS, "Latest materialization")
    show_document(page, "launchpad")
    block = page.get_by_role("dialog").locator("code").first
    assert 'layout: "aligned48"' in block.inner_text()


@pytest.mark.parametrize(
    "address",
    [
        "macroxue/pack?view=partitions&partition=sample_d7",
        "chess/valid_games?view=partitions&partition=2024-01",
        "synth/kd_shards?view=partitions&partition=00",
        "reasoning/alignment?view=partitions&partition=wiqa__test",
        "puzzles/sudoku?view=partitions&partition=sudoku-sample",
    ],
)
def test_the_picture_of_each_family_is_seen_whole(page, served, address):
    go(page, served, f"assets/{address}", "Latest materialization")
    image = page.locator(PICTURE).first
    until("the picture is loaded", lambda: image.evaluate(SEEN)["loaded"])
    seen = image.evaluate(SEEN)
    assert seen["width"] == OVERVIEW
    assert seen["seen"] >= seen["width"] - 1
    assert 0 < seen["top"] < seen["bottom"] < browser.HEIGHT


@pytest.mark.parametrize(
    ("asset", "address"),
    [
        ("macroxue/pack", "macroxue/packs/sample_d6"),
        ("chess/valid_games", "chess/validated/elite_2024-01"),
        ("synth/kd_shards", "rows"),
        ("reasoning/alignment", "rows"),
        ("puzzles/sudoku", "rows"),
    ],
)
def test_rows_of_each_family_are_browsed(page, browsed, asset, address):
    page.goto(f"{browsed}?asset={asset}")
    page.locator(f".list a[href*='{address}']").first.click()
    page.get_by_text("rows 0 to").wait_for()
    # Rejected, the test fails: the picture is none.
    page.locator(".rows img").first.evaluate("image => image.decode()")
    if asset == "macroxue/pack":
        browser.keep(page, "browser")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(".rows th[scope=row] a").first.click()
    # The raw record itself is on the page of the row, and no page scrolls sideways.
    page.locator("#origin pre").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # A key that is pressed before the script of a page runs is lost.
    for heading, key in (("Row 0", "n"), ("Row 1", "t"), ("Row 1", "u")):
        page.get_by_role("heading", name=heading).first.wait_for()
        page.wait_for_load_state("load")
        page.keyboard.press(key)
    page.locator("h1", has_text=asset).wait_for()
    if asset == "synth/kd_shards":
        page.set_viewport_size({"width": browser.WIDTH, "height": browser.HEIGHT})
        page.go_back()
        page.get_by_role("heading", name="Row 1").wait_for()
        assert "You are a helpful" in page.locator(".tokens").first.inner_text()
        browser.keep(page, "tokens")


def test_a_person_goes_from_home_to_the_raw_line_of_a_move(page, browsed):
    page.goto(browsed)
    page.locator("[data-fresh]", has_text="current").first.wait_for()
    assert re.search(r"(\d+) artifacts, \1 current", page.locator("main p").first.inner_text())
    board = page.locator(".card", has_text="macroxue").locator("img")
    assert board.evaluate("image => image.decode().then(() => image.naturalWidth)") == OVERVIEW
    # The header's switch is kept for all pages.
    light = page.evaluate(COLOUR)
    page.keyboard.press("d")
    dark = page.evaluate(COLOUR)
    page.goto(f"{browsed}rows/macroxue/packs/sample_d6")
    assert page.evaluate(COLOUR) == dark != light
    page.locator("[data-theme-switch]").click()
    assert page.evaluate(COLOUR) == light
    # State, lineage and checks; statistics come meanwhile, and a click on a bar is a filter.
    assert page.locator(".state").first.inner_text() == "current"
    assert page.locator(".about a", has_text="macroxue/pool").get_attribute("href")
    page.locator(".about", has_text="lawful").wait_for()
    bars = page.locator("svg[aria-label='histogram of step_index'] a")
    bars.first.wait_for()
    said = bars.nth(1).locator("title").text_content()
    bars.nth(1).click()
    page.locator("[role=status]", has_text="looked at").wait_for()
    first, last = map(int, re.findall(r"\d+", said)[:2])
    steps = page.locator(".rows td[data-name=step_index]").all_inner_texts()
    assert steps
    assert all(first <= int(step) <= last for step in steps)
    assert "tile_65536_mask (0 in all rows)" in page.locator(".wide p").inner_text()
    # The query is in the address of the row, whose move is a line of the log.
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Row").first.wait_for()
    assert "column=step_index" in page.url
    move = page.locator(".columns dt", has_text="step_index").locator("+ dd").inner_text()
    line = json.loads(page.locator("#origin pre").first.inner_text())
    assert line["step_index"] == int(move)
    # A game is found by its player where the row itself has no names.
    page.goto(f"{browsed}?asset=chess/valid_games")
    page.locator(".list a").first.click()
    player = page.locator(".rows td[data-name='headers.White']").first.inner_text()
    page.locator(".about a", has_text="chess/game_dataset").click()
    page.locator("#search").fill(player)
    page.keyboard.press("Enter")
    page.locator(".rows td[data-name=game_id]").first.wait_for()


def test_the_graph_opens_with_a_box_for_each_group(page, served):
    until(
        "no run is under way", lambda: not any(run.status in RUNNING for run in served.runs(None))
    )
    # Before another test expands the groups, which the browser keeps.
    go(page, served, "asset-groups", "tokenizers")
    nodes = served.server.ask("{ assetNodes { groupName } }")["assetNodes"]
    groups = {node["groupName"].split("/")[0] for node in nodes}
    until("each group has a box", lambda: groups <= set(page.evaluate(GRAPH)["names"]))
    # The numbers in the boxes come later, for some assets at a time.
    page.wait_for_timeout(20_000)
    browser.keep(page, "lineage")


def test_the_graph_shows_every_asset(page, served):
    nodes = served.server.ask("{ assetNodes { assetKey { path } groupName } }")["assetNodes"]
    groups = {name for node in nodes for name in node["groupName"].split("/")}
    assets = {node["assetKey"]["path"][-1] for node in nodes} - groups
    # A window in which the whole graph is as large as its names can be read.
    page.set_viewport_size({"width": 1280, "height": 2000})
    go(page, served, "asset-groups", "tokenizers")
    until("the groups are drawn", lambda: groups & set(page.evaluate(GRAPH)["names"]))

    def is_expanded() -> bool:
        # A key that is pressed before the graph listens is lost.
        page.keyboard.press("Alt+e")
        page.wait_for_timeout(3_000)
        return not assets.isdisjoint(page.evaluate(GRAPH)["names"])

    def is_whole() -> bool:
        missing = (groups | assets) - set(page.evaluate(GRAPH)["names"])
        if missing:
            page.locator("[aria-label=zoom_out]").first.click()
            page.wait_for_timeout(1_500)
        return not missing

    until("the groups are expanded", is_expanded)
    until("the window holds the whole graph", is_whole)


def test_materialize_by_click_makes_a_new_event(page, served):
    before = len(served.runs("sample_d7"))
    go(page, served, PACKS, "Latest materialization")
    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_text("Select a partition or create one").click()
    page.get_by_role("menuitem", name="sample_d7").first.click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Launch 1 run").click()
    latest, *_ = served.ended("sample_d7", before + 1)
    assert latest.status == "SUCCESS"
    assert served.partition("sample_d7").run_id == latest.run_id
    go(page, served, f"{PACKS}?view=events", "sample_d7")
    page.get_by_text(latest.run_id[:8]).first.wait_for()


def test_the_reason_of_a_failed_drop_is_seen(page, served):
    folder = drop(served.drops.parent / "broken", seed=90)
    game = sorted(folder.iterdir())[0]
    game.write_text("this is no game\n")
    folder.rename(served.drops / "broken")
    (run,) = served.ended("broken")
    assert run.status == "FAILURE"
    go(page, served, f"runs/{run.run_id}", "Failure")
    page.get_by_text(game.name).first.wait_for()
    go(page, served, f"{PACKS}?view=events", "observed in run")
    page.get_by_text(game.name).first.wait_for()
    page.get_by_text("What to do").first.wait_for()
    browser.keep(page, "failed")
    # A partition that was never built has no metadata; its events have the reason.
    go(page, served, f"{PACKS}?view=partitions&partition=broken", "did not materialize")
    page.get_by_text("View all historical events").click()
    events = page.get_by_role("dialog")
    events.get_by_text("broken", exact=True).first.click()
    row = events.locator("tr", has=page.get_by_text("reason", exact=True))
    row.get_by_text(game.name).first.wait_for()
    row = events.locator("tr", has=page.get_by_text("cure", exact=True))
    row.get_by_text("gristmill retire broken").first.wait_for()
    browser.keep(page, "reason")
    go(page, served, f"{PACKS}?view=checks&checkDetail=built", "Latest execution")
    page.get_by_text(game.name).first.wait_for()
    # The page is as wide as the window, although the name of the file is long.
    for shown in (page.get_by_text("Execute", exact=True), page.locator("th", has_text="cure")):
        box = shown.last.bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= browser.WIDTH
        assert 0 <= box["y"] < box["y"] + box["height"] <= browser.HEIGHT
    browser.keep(page, "checks")


def test_the_launchpad_helps(page, served):
    go(page, served, PACKS, "Latest materialization")
    menu_of_materialize(page)
    page.get_by_text("Open launchpad").click()
    page.locator(".CodeMirror").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("ops:\n  macroxue__pack:\n    config:\n      ")
    page.keyboard.press("Control+Space")
    # The completion has a sentence on each field, the pane beside it its choices and default.
    page.get_by_text("layout", exact=True).first.wait_for()
    page.get_by_text("Row layout of the steps files.").first.wait_for()
    page.get_by_text('Default: "refuse".').first.wait_for()
    browser.keep(page, "launchpad")


def test_a_schedule_is_switched_on_and_off(page, served):
    go(page, served, "automation", "chess_elite_months")
    row = page.get_by_text("chess_elite_months").locator("xpath=ancestor::*[@data-index][1]")
    page.get_by_text("only on Monday").first.wait_for()
    # The switch comes after the checkbox, once its state is loaded.
    switch = row.locator("input").nth(1)
    switch.wait_for(state="attached")
    assert not switch.is_checked()
    browser.keep(page, "automation")
    # The page shows what was clicked before the instance has it; a page that is left by then
    # takes its request back.
    row.locator("label").last.click()
    until("the instance knows that it is on", lambda: served.is_on("chess_elite_months"))
    page.reload()
    page.get_by_text("only on Monday").first.wait_for()
    until("the page shows that it is on", switch.is_checked)
    row.locator("label").last.click()
    until("the instance knows that it is off", lambda: not served.is_on("chess_elite_months"))
    until("the page shows that it is off", lambda: not switch.is_checked())


def test_pictures_suit_the_dark_theme(page, served):
    go(page, served, f"{PACKS}?view=partitions&partition=sample_d6", "Latest materialization")
    page.get_by_text("Settings", exact=True).click()
    page.get_by_text("Use system setting").click()
    page.get_by_text("Dark", exact=True).click()
    page.get_by_role("button", name="Done").click()
    image = page.locator(PICTURE).first
    image.wait_for()
    until("the page is dark", lambda: max(map(int, page.evaluate(COLOUR)[4:-1].split(","))) < 60)
    until("the picture is loaded", lambda: image.evaluate(SEEN)["loaded"])
    browser.keep(page, "dark")
    page.evaluate("() => localStorage.clear()")
