"""Imports point down: packages of the checkout, packages of the library, rooms of a family."""

import subprocess
import sys

import pytest

from gristmill.families import FAMILIES
from tests.architecture.graph import graph, imported, imports
from tests.paths import CHECKOUT

LAYERS = ["gristmill", "resources", "assets", "sensors", "definitions", "commands", "operate"]
HEAVY = ["numpy", "torch", "polars", "numba", "pyarrow", "dagster", "megatron", "tiktoken"]

ROOMS = ["format", "OWN", "raw", "read", "builders", "laws", "show"]
OUTSIDE = {"builds", "code", "commands", "config", "family", "samples", ""}
"""Modules of a family beside its rooms; "" is its `__init__`."""

BASE = {"contract", "hashing", "keys", "layout", "lazy_exports", "markdown", "printable", "svg"}
BELOW = {
    **dict.fromkeys(BASE, BASE),
    "run": BASE,
    "code": BASE | {"run"},
    "untrusted": BASE | {"run"},
    "standing": BASE | {"untrusted"},
    "settings": BASE | {"untrusted"},
    "laws": BASE | {"run"},
    "families": BASE | {"code", "inbox", "laws", "run", "settings"},
    "inbox": BASE | {"run", "untrusted"},
    "asset": BASE | {"data_root", "families", "inbox", "provenance", "publish", "settings"},
    "corpora": BASE | {"data_root", "inbox", "run", "settings", "untrusted"},
    "vocabularies": BASE | {"run", "settings", "untrusted"},
    "provenance": BASE | {"run", "families", "inbox", "settings", "untrusted"},
    "history": BASE | {"cli", "corpora", "families", "provenance", "settings", "untrusted"},
    "publish": BASE
    | {"code", "history", "run", "families", "inbox", "provenance", "settings", "untrusted"},
    "reading": BASE | {"provenance"},
    "loading": BASE
    | {"browse", "cli", "dispatch", "families", "history", "mirror", "provenance", "publish"}
    | {"reading", "run", "untrusted"},
    "browse": BASE
    | {"asset", "data_root", "dispatch", "exports", "families", "history", "provenance"}
    | {"untrusted", "vocabularies"},
    "leaks": BASE
    | {"cli", "corpora", "data_root", "families", "inbox", "provenance", "run", "settings"}
    | {"untrusted"},
    "takedowns": BASE
    | {"corpora", "data_root", "families", "inbox", "leaks", "loading", "mirror", "provenance"}
    | {"publish"}
    | {"run", "settings", "untrusted"},
    "exports": BASE | {"dispatch", "families", "provenance", "run"},
    "mirror": BASE
    | {"cli", "exports", "families", "inbox", "run", "provenance", "publish", "reading"},
}
"""What each package of the library may import, itself apart."""


@pytest.fixture(scope="module")
def arrows() -> dict[str, set[str]]:
    return graph(CHECKOUT)


@pytest.mark.parametrize("layer", LAYERS)
def test_no_module_imports_from_a_layer_above(layer, arrows):
    above = set(LAYERS[LAYERS.index(layer) + 1 :])
    own = [name for name in arrows if name.split(".")[0] == layer]
    assert own, f"{layer}: no such layer"
    for name in own:
        wrong = {target for target in arrows[name] if target.split(".")[0] in above}
        assert not wrong, f"{name} imports {sorted(wrong)}"


def _importers(begin: tuple[str, ...], inside: str = "") -> list[str]:
    """The modules, of a package, that import anything whose name begins so."""
    return [
        name
        for name, forms in imports(CHECKOUT).items()
        if name.startswith(inside) and any(form[-1].startswith(begin) for form in forms)
    ]


def test_no_module_imports_tests_or_benches_and_the_library_does_not_know_dagster():
    assert _importers(("tests", "bench")) == []
    assert _importers(("dagster",), "gristmill") == []
    assert "definitions" in _importers(("dagster",))


@pytest.mark.parametrize("package", sorted(BELOW))
def test_a_core_package_imports_only_what_is_below_it(package, arrows):
    own = [name for name in arrows if name.split(".")[:2] == ["gristmill", package]]
    assert own, f"gristmill/{package}: no such package"
    for name in own:
        used = {target.split(".")[1] for target in arrows[name] if "." in target} - {package}
        assert used <= BELOW[package], f"{name} imports {sorted(used - BELOW[package])}"


def _rooms(family: str) -> set[str]:
    """The packages in a family's folder, and the rooms that are one module."""
    folder = CHECKOUT / "gristmill" / family
    packages = {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}
    return packages | {path.stem for path in folder.glob("*.py")} & {*ROOMS}


def _own_room(family: str) -> str | None:
    """The family's own room: the package that other families do not have."""
    return next(iter(_rooms(family) - set(ROOMS)), None)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_the_same_rooms(family):
    folder = CHECKOUT / "gristmill" / family
    rooms, expected = _rooms(family), {room for room in ROOMS if room != "OWN"}
    assert expected <= rooms
    assert len(rooms - expected) <= 1, "a family has at most one room of its own"
    loose = {path.stem for path in folder.glob("*.py")} - {"__init__", *ROOMS}
    assert loose <= OUTSIDE
    assert {"config", "family"} <= loose


@pytest.mark.parametrize("family", FAMILIES)
def test_a_room_imports_only_from_rooms_before_it(family, arrows):
    order = [_own_room(family) if room == "OWN" else room for room in ROOMS]
    seen = 0
    for name, targets in arrows.items():
        room = _room(name, family)
        if room not in order:
            continue
        allowed = {*order[: order.index(room) + 1], "config"}
        for target in targets:
            if target.split(".")[:2] == ["gristmill", family]:
                seen += 1
                assert _room(target, family) in allowed, f"{name} imports {target}"
    assert seen > 10


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_imports_no_other_family(family, arrows):
    others = set(FAMILIES) - {family}
    for name, targets in arrows.items():
        if name.split(".")[:2] == ["gristmill", family]:
            wrong = {target for target in targets if set(target.split(".")[1:2]) & others}
            assert not wrong, f"{name} imports {sorted(wrong)}"


def _room(name: str, family: str) -> str | None:
    """The room of a module, its own name beside the rooms, None outside."""
    parts = name.split(".")
    if parts[:2] != ["gristmill", family]:
        return None
    return parts[2] if len(parts) > 2 else ""


def test_every_form_of_import_is_seen():
    source = "import a.b as c\ndef f():\n    from d.e import g\nif 1:\n    import h, i\n"
    assert set(imported(source)) == {("a.b",), ("h",), ("i",), ("d.e.g", "d.e")}
    with pytest.raises(ValueError, match="line 1"):
        list(imported("from . import a"))


LIGHT = [
    *("contract", "markdown", "families", "settings.tables", "inbox", "publish.publish"),
    *("publish.remove", "provenance", "provenance.verification", "untrusted.child"),
    *("untrusted.toml", "run.workers", "run.parts", "run.progress"),
]


def test_the_core_is_light():
    """One process imports one after another; what the first loads is never taken away."""
    names = [f"gristmill.{module}" for module in LIGHT]
    code = (
        "import sys, importlib\n"
        f"for name in {names}:\n"
        "    before = set(sys.modules)\n"
        "    importlib.import_module(name)\n"
        "    print(name, *{n.partition('.')[0] for n in set(sys.modules) - before})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    loaded = {line.split()[0]: set(line.split()[1:]) for line in done.stdout.splitlines()}
    assert list(loaded) == names
    assert {name: heavy for name, tops in loaded.items() if (heavy := tops & {*HEAVY})} == {}
