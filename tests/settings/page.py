"""The tables of docs/configuration.md. `python -m tests.settings.page` writes them again."""

from __future__ import annotations

from collections.abc import Iterator

from gristmill import families
from gristmill.settings.fields import FieldRule, toml_value
from gristmill.settings.tables import Table
from tests.paths import CHECKOUT

PAGE = CHECKOUT / "docs" / "configuration.md"
START, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"


def rendered() -> str:
    """The Markdown of all tables, in the order of the families."""
    return "\n".join(line for table in families.tables().values() for line in _table(table))


def on_the_page() -> str:
    """What the page has between its two marks."""
    return PAGE.read_text().partition(START)[2].partition(END)[0]


def _table(table: Table) -> Iterator[str]:
    places = [f"`drops/{inbox}/<drop>/gristmill.toml`" for inbox in table.inboxes]
    if table.name == "macroxue/pool":
        places = ["the pool's file, `drops/pools/<pool>.toml`"]
    yield f"### {table.name.replace('/', '.')}\n"
    yield f"Read from: {', '.join([*places, '`gristmill.toml` of the data root'])}.\n"
    yield "| key | allowed | unit | default | meaning |"
    yield "|---|---|---|---|---|"
    for name, rule in table.rules().items():
        drop_key = name in table.rules(in_root=False)
        help_text = rule.help if drop_key else f"{rule.help} In the data root's file only."
        cells = (f"`{name}`", _cell(rule.words), rule.unit, _default(rule), _cell(help_text))
        yield f"| {' | '.join(cells)} |"
    yield ""


def _default(rule: FieldRule) -> str:
    return "not set" if rule.default is None else f"`{_cell(toml_value(rule.default))}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(START)
    PAGE.write_text(before + START + rendered() + END + rest.partition(END)[2])
