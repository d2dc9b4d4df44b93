"""A real browser that looks at pages of the UI: Chromium, driven by Playwright.

Without one, tests are skipped, or fail where GRISTMILL_REQUIRE lists `browser`. Where
GRISTMILL_PICTURES names a folder, pages that the docs show are stored there: `make pictures`.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.requirements import cannot_run

PICTURES = "GRISTMILL_PICTURES"
WIDTH, HEIGHT = 1280, 720
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
]
FOUND = """() => ({
  text: document.body.innerText,
  links: [...document.querySelectorAll('a')].map(a => a.getAttribute('href') || ''),
  sources: [...document.querySelectorAll('img,script,iframe,object,embed,video,audio,source,link')]
    .map(e => `${e.tagName} ${e.getAttribute('src') || e.getAttribute('href')
                            || e.getAttribute('data') || ''}`),
  handlers: [...document.querySelectorAll('*')].flatMap(e => [...e.attributes])
    .filter(a => a.name.startsWith('on')).map(a => `${a.name}=${a.value}`),
  headings: [...document.querySelectorAll('h1,h2,h3')].map(e => e.innerText),
})"""


def chromium() -> str:
    """The path of Chromium; skips or fails the test where it or Playwright is missing."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    found = found or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        cannot_run("browser", "Chromium is not installed: apt-get install chromium")
    try:
        import playwright  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        cannot_run("browser", "Playwright is not installed: make install")
    return found


@contextmanager
def opened(width: int = WIDTH, height: int = HEIGHT) -> Iterator[Any]:
    """A context of a new browser: `new_page()` opens pages, all with the same settings."""
    executable = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, headless=True, args=FLAGS)
        context = browser.new_context(
            viewport={"width": width, "height": height},
            timezone_id="UTC",
            locale="en-US",
            reduced_motion="reduce",
        )
        context.set_default_timeout(90_000)
        yield context
        browser.close()


def looked_at(context: Any, address: str) -> dict[str, Any]:
    """What a page holds, and what it holds with each of its Markdown texts opened."""
    page = context.new_page()
    dialogs: list[str] = []
    requests: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    opened = []
    shown = page.get_by_text("[Show Markdown]", exact=True)
    try:
        shown.first.wait_for(timeout=30_000)
    except Exception:  # noqa: BLE001  a page without Markdown is looked at as it is
        page.wait_for_timeout(3_000)
    for number in range(shown.count()):
        shown.nth(number).click()
        page.wait_for_timeout(700)
        opened.append(page.evaluate(FOUND))
        page.keyboard.press("Escape")
        page.wait_for_timeout(300)
    result = {
        "address": address,
        "page": page.evaluate(FOUND),
        "opened": opened,
        "dialogs": dialogs,
        "requests": [url for url in requests if not url.startswith("data:")],
    }
    page.close()
    return result


def keep(page: Any, name: str) -> None:
    """Store the window as NAME.png where GRISTMILL_PICTURES names a folder."""
    folder = os.environ.get(PICTURES)
    if folder:
        page.mouse.move(0, 0)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(500)
        page.screenshot(path=Path(folder) / f"{name}.png", animations="disabled")
