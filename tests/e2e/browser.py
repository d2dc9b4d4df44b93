"""What a browser makes of pages of the UI. Runs in a Python that has Playwright, see `hostile`.

Reads from standard input the addresses, writes to standard output what each page holds, as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
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


def main() -> None:
    from playwright.sync_api import sync_playwright  # type: ignore[import-not-found]

    addresses, executable = json.load(sys.stdin)
    results = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        browser = playwright.chromium.launch_persistent_context(
            profile, executable_path=executable, headless=True, args=FLAGS
        )
        for address in addresses:
            page = browser.new_page()
            dialogs: list[str] = []
            requests: list[str] = []
            page.on(
                "dialog", lambda dialog, to=dialogs: (to.append(dialog.message), dialog.dismiss())
            )
            page.on("request", lambda request, to=requests: to.append(request.url))
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
            results.append(
                {
                    "address": address,
                    "page": page.evaluate(FOUND),
                    "opened": opened,
                    "dialogs": dialogs,
                    "requests": [url for url in requests if not url.startswith("data:")],
                }
            )
            page.close()
        browser.close()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
