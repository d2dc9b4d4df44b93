"""The tree of docs/architecture.md is that of the code."""

import re
from collections.abc import Iterator

from gristmill.families import FAMILIES
from tests.paths import CHECKOUT

_PAGE = (CHECKOUT / "docs/architecture.md").read_text()
_TREE = _PAGE.partition("## The tree")[2].split("```")[1]


def _listed() -> Iterator[str]:
    """The paths of the first column, each below the nearest line that is less indented."""
    above: dict[int, str] = {}
    for line in _TREE.strip("\n").splitlines():
        indent = len(line) - len(line.lstrip())
        if indent > 8:
            continue  # it continues with the text of the line before
        names = re.split(r" {2,}", line.strip())[0].split(" ")
        parent = next((above[at] for at in sorted(above, reverse=True) if at < indent), "")
        above = {at: path for at, path in above.items() if at < indent}
        above[indent] = parent + names[0]
        yield from (parent + name for name in names if name)


def test_every_path_of_the_tree_is_there_and_every_module_is_in_the_tree() -> None:
    listed = list(_listed())
    gone = [
        path
        for path in listed
        if not any((CHECKOUT / path.replace("<family>", name)).exists() for name in FAMILIES)
    ]
    assert gone == []
    assert len(listed) > 60 and "gristmill/<family>/laws/" in listed
    named = {*_listed(), *(f"gristmill/{name}" for name in re.findall(r"\w+\.py", _TREE))}
    modules = {f"gristmill/{path.name}" for path in (CHECKOUT / "gristmill").glob("*.py")}
    packages = {
        f"{path.parent.relative_to(CHECKOUT)}/"
        for top in ("gristmill", "assets", "commands")
        for path in (CHECKOUT / top).glob("*/__init__.py")
        if path.parent.name not in FAMILIES
    }
    assert sorted((modules | packages) - named) == ["gristmill/__init__.py"]
