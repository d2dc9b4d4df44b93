"""Hostile text of drops in a real browser: the UI makes no link, picture or script of it."""

import shutil
import subprocess
import sys
from typing import Any

import pytest

from bench.servers import plain_environment
from tests.e2e import browser
from tests.e2e.live_instance import LiveInstance
from tests.hostile import HOST
from tests.paths import CHECKOUT

pytestmark = pytest.mark.slow

PAGES = {
    "partition of a pack": "assets/macroxue/pack?view=partitions&partition=hostile",
    "events of packs": "assets/macroxue/pack?view=events",
    "check of packs": "assets/macroxue/pack?view=checks&checkDetail=intact",
    "refused drops": "assets/macroxue/raw_drop?view=events",
    "a month": "assets/chess/valid_games?view=partitions&partition=2024-01",
    "a shard": "assets/synth/kd_shards?view=partitions&partition=00",
    "chosen text": "assets/synth/harmony?view=partitions&partition=00",
}
# Reports, in the copy of the checkout, what the code of every family makes of hostile text.
REPORT = """
import sys
from pathlib import Path
import dagster as dg
from commands.checkout import open_instance
from tests.e2e.hostile_events import events
with open_instance() as instance:
    instance.add_dynamic_partitions("macroxue_drops", ["hostile"])
    instance.add_dynamic_partitions("chess_collections", ["2024-01"])
    for event in events(Path(sys.argv[1])):
        instance.report_runless_asset_event(event)
"""


@pytest.fixture(scope="module")
def pages(request: pytest.FixtureRequest, tmp_path_factory: Any) -> dict[str, Any]:
    """What the browser found on each page."""
    browser.chromium()
    live_instance: LiveInstance = request.getfixturevalue("live_instance")
    live_instance.server.stop_sensors()
    shutil.copytree(CHECKOUT / "tests", live_instance.checkout / "tests", dirs_exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", REPORT, str(tmp_path_factory.mktemp("hostile"))],
        cwd=live_instance.checkout,
        env={
            **plain_environment(),
            "GRISTMILL_DATA": str(live_instance.data),
            "PYTHONPATH": str(live_instance.checkout),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with browser.opened() as context:
        return {
            name: browser.looked_at(context, f"http://{live_instance.server.place}/{page}")
            for name, page in PAGES.items()
        }


@pytest.mark.parametrize("name", PAGES)
def test_no_page_makes_anything_of_text_but_text(pages: dict[str, Any], name: str) -> None:
    found = pages[name]
    states = [found["page"], *found["opened"]]
    assert any(HOST in state["text"] for state in states), "the hostile text is not on the page"
    for state in states:
        for kind in ("links", "sources", "handlers", "headings"):
            # What an image draws of a text is pixels.
            found_in = [each for each in state[kind] if not each.startswith("IMG data:image/svg")]
            assert not [value for value in found_in if HOST in value.lower()], kind
    assert found["dialogs"] == []
    assert not [url for url in found["requests"] if "//127.0.0.1:" not in url]
