"""The parsers of recipe files, and of the names of files in a source."""

from __future__ import annotations

from tests.fuzz.parser import Parser, file, folder

_WORDS = (
    *(b'kind = "', b"sources = [", b"[settings]\n", b'"arc"', b'"sudoku"', b'"maze"', b'"domino"'),
    *(b"num_aug = ", b"../", b"/", b'"', b"nan", b"true", b"1e999", b"\n", b"[[", b"\xff"),
)
_GRID = b'[{"input": [[1]], "output": [[2]]}]'
_TEXTS = (
    (b".json", b'{"train": %b, "test": %b}' % (_GRID, _GRID)),
    (b".csv", b"source,question,answer,rating\n"),
    (b".txt", b"." * 81),
)


def recipe(data: bytes) -> None:
    """A recipe file: its settings are those of a config of its kind, and its sources are below."""
    from gristmill.puzzles.raw.recipes import CONFIGS, read_recipe_file

    read = read_recipe_file(file("recipes/mine.toml", data))
    assert read.name == "mine"
    CONFIGS[read.kind](**read.settings)
    for source in read.sources:
        assert not source.startswith("/")
        assert not {"", ".", ".."} & set(source.split("/"))


def source_names(data: bytes) -> None:
    """The names of files in a source, one a line; those that begin with `a` are a level below."""
    from gristmill.puzzles.raw.drops import account, source_files
    from gristmill.puzzles.raw.file_forms import check_names
    from gristmill.puzzles.raw.recipes import KINDS

    with folder("drop") as place:
        (place / "tasks").mkdir()
        for line in data.split(b"\n")[:20]:
            name = line.replace(b"\0", b"").replace(b"/", b"")[:200]
            below = b"/tasks/" if name.startswith(b"a") else b"/"
            if name not in (b"", b".", b"..", b"tasks"):
                with open(bytes(place) + below + name, "wb") as held:  # noqa: PTH123 - need not be UTF-8
                    held.write(next((t for e, t in _TEXTS if name.lower().endswith(e)), b""))
        found = [path for kind in KINDS for path in source_files(kind, place)]
        assert all(path.is_file() for path in found)
        names = [path.name for path in place.iterdir()]
        check_names(place, names, lambda name: name.lower().endswith(".json"))
        account_of = account(place)
        for path in place.rglob("*"):
            name = path.relative_to(place).as_posix()
            if path.is_file() and not any(part.startswith(".") for part in path.parts):
                folders = [f"{each.as_posix()}/" for each in path.relative_to(place).parents]
                named = {*account_of.taken[""], *account_of.left_out}
                assert named & {name, *folders} or name in ("SHA256SUMS", "gristmill.toml")


PARSERS = (
    Parser(
        "puzzles_recipe",
        recipe,
        ("gristmill.puzzles.raw.recipes",),
        most_bytes=1000,
        words=_WORDS,
    ),
    Parser(
        "puzzles_source_names",
        source_names,
        ("gristmill.puzzles.raw.drops", "gristmill.puzzles.raw.file_forms"),
        covers=("gristmill.puzzles.raw.arc_tasks",),
        most_bytes=400,
        words=(b".json", b".csv", b".txt", b".gz", b".JSON", b"\n", b"\xff", b"LICENSE"),
    ),
)
