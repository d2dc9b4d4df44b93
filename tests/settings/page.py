"""The lists of docs/configuration.md. `python -m tests.settings.page` writes them again."""

from collections.abc import Iterator

from gristmill import families
from gristmill.settings.fields import FieldRule, toml_value
from gristmill.settings.tables import Table
from tests.paths import CHECKOUT

PAGE = CHECKOUT / "docs" / "configuration.md"
ROOT_ALONE = "In the data root's file only."
SHORTER = (
    ("a list; each item must be ", "list of "),
    ("a text of at most 100,000 characters", "text"),
    ("a whole number", "whole number"),
    ("a finite number", "number"),
    ("one of ", ""),
    ("true or false", ""),
    ("whole number, ", ""),
    ("whole number ", ""),
    ("number, ", ""),
    ("number ", ""),
    ("of at most 64 bits", ""),
)
"""What the head of the page says of all fields, or what a table need not repeat."""
START, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"


def rendered() -> str:
    """The Markdown of all tables, in the order of the families; equal tables stand together."""
    alike: dict[tuple[str, ...], list[Table]] = {}
    for table in families.tables().values():
        alike.setdefault((*_places(table), *_rows(table).values()), []).append(table)
    known: dict[tuple[str, ...], tuple[str, str]] = {}
    return "\n".join(line for tables in alike.values() for line in _section(tables, known))


def on_the_page() -> str:
    """What the page has between its two marks."""
    return PAGE.read_text().partition(START)[2].partition(END)[0]


def _section(tables: list[Table], known: dict[tuple[str, ...], tuple[str, str]]) -> Iterator[str]:
    """The lines of equal tables."""
    first = tables[0]
    yield f"### {', '.join(table.name.replace('/', '.') for table in tables)}\n"
    if files := _places(first):
        yield f"Also in {', '.join(files)}.\n"
    shown: dict[str, list[str]] = {}
    above: dict[str, list[str]] = {}
    rules = first.rules()
    for name, said in _rows(first).items():
        row = (name, _allowed(rules[name]), rules[name].help)
        if row in known:
            default = _default(rules[name])
            first_header, its = known[row]
            changed = "" if default == its else f" ({default})"
            above.setdefault(first_header, []).append(f"`{name}`{changed}")
        else:
            known[row] = (first.header, _default(rules[name]))
            shown.setdefault(said, []).append(f"`{name}`")
    for said, names in shown.items():
        yield f"- {', '.join(names)}: {said}"
    for header, names in above.items():
        yield f"- as in `{header}`: {', '.join(names)}"
    yield ""


def _places(table: Table) -> list[str]:
    """Which files a table is read from, beside that of the data root."""
    if table.name == "macroxue/pool":
        return ["the pool's file, `drops/pools/<pool>.toml`"]
    if table.name == "macroxue/training_view":
        return ["the view's file, `drops/views/<view>.toml`"]
    return [f"`drops/{inbox}/<drop>/gristmill.toml`" for inbox in table.inboxes]


def _rows(table: Table) -> dict[str, str]:
    """What is said of each key: what is allowed, its default, its meaning."""
    in_drops = table.rules(in_root=False)
    return {
        name: "; ".join(filter(None, (_allowed(rule), _default(rule))))
        + f". {_line(rule.help)}"
        + ("" if name in in_drops else f" {ROOT_ALONE}")
        for name, rule in table.rules().items()
    }


def _allowed(rule: FieldRule) -> str:
    """What a field allows, and its unit where the sentence of the field does not name it."""
    words = rule.words
    for long, short in SHORTER:
        words = words.replace(long, short)
    if words == "text" and rule.default is not None:
        words = ""
    known = rule.unit in ("", "none, any number") or rule.unit in rule.help.lower()
    unit = "" if known else rule.unit
    return _line(", ".join(filter(None, (words, unit))))


def _default(rule: FieldRule) -> str:
    return "not set" if rule.default is None else f"`{_line(toml_value(rule.default))}`"


def _line(text: str) -> str:
    return text.replace("\n", " ")


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(START)
    PAGE.write_text(before + START + rendered() + END + rest.partition(END)[2])
