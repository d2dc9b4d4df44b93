"""Drops of the puzzle family: where to fetch them, their files, what is in them, how rows go.

A drop is one folder for each source. Tasks of ARC that share a file, in any form of JSON, are found
by the way to the first grid in it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Any, Final, NamedTuple

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.trial import said_by
from gristmill.families import Forgets, Unit
from gristmill.inbox import hub
from gristmill.inbox.hub import HubError, Reached, Source
from gristmill.inbox.listing import Account
from gristmill.inbox.marks import FORGOTTEN, is_mark, left_out_of, not_samples
from gristmill.puzzles.config import BUILT_IN, Recipe
from gristmill.puzzles.raw.file_forms import unpack_hint
from gristmill.settings.fields import toml_value
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.json_text import Way, jq, members, way_to
from gristmill.untrusted.lines import line_places, lines, reads
from gristmill.untrusted.walk import Entry, list_files, visible_files

SOURCES: Final[Mapping[str, str]] = {
    "sudoku-extreme": "sapientinc/sudoku-extreme",
    "maze-30x30-hard-1k": "sapientinc/maze-30x30-hard-1k",
}
"""The repository of each drop that can be fetched."""
FILES: Final = ("train.csv", "test.csv")
"""The files of a repository that a drop gets."""


def reached(
    repo: str, revision: str = "main", endpoint: str | None = None, token: str | bool = False
) -> Reached:
    """Look at a repository: its commit and files. Raises HubError where a drop lacks them."""
    commit = hub.commit_of(repo, revision, endpoint, token)
    source = Source(repo, commit, endpoint, token)
    files = {file.path: file for file in hub.listed(source, lambda path: path in FILES)}
    if missing := sorted(set(FILES) - files.keys()):
        raise HubError(f"{repo} at {commit}: has no file {missing[0]}")
    return Reached(source, files)


_HEAD: Final = 1 << 20
_LINES: Final = (".jsonl", ".ndjson")
_ROWS: Final = (".json", ".csv", *_LINES)


class Tasks(NamedTuple):
    """Where a file has its tasks: the way to one, the key of pairs, the filter of an output."""

    file: str
    way: Way
    pairs: str
    output: str

    @property
    def cure(self) -> str:
        """What makes two files as Kaggle's of them."""
        above, tasks = self.way[:-1], jq(self.way[:-1])
        if None in self.way:
            first = len(self.way) - self.way[::-1].index(None)
            above, value = self.way[: first - 1], jq(("value", *self.way[first:]))
            listed = f'to_entries | map({{key: "t\\(.key)", value: {value}}}) | from_entries'
            tasks = f"{jq(above)} | {listed}"
        if self.pairs not in ("train", "test"):
            key = jq((self.pairs,))
            tasks += f" | map_values({{train: {key}[:-1], test: {key}[-1:]}})"
        subset = re.sub("[^A-Za-z0-9]+", "", next((key for key in above[::-1] if key), ""))
        # Tasks that are held out by the name of their file do not become training.
        subset = subset or ("evaluation" if said_by(self.file) - {"train"} else "training")
        name, slurp = f"arc_{subset}", " -s" if self.file.endswith(_LINES) else ""
        return (
            "tasks of ARC in one file: make two files as Kaggle's of them, in a folder of their "
            f"own: `jq{slurp} {quote(tasks)} {quote(self.file)} > {name}_challenges.json` and "
            f"`jq 'map_values([.test[] | {self.output}])' {name}_challenges.json > "
            f"{name}_solutions.json`"
            + f", and so for each other {f'key beside {above[-1]!r}' if above else 'file of tasks'}"
        )


def tasks_in(root: Path, sizes: Mapping[str, int], links: LinkRule) -> Tasks | None:
    """Where the smallest JSON file has tasks of ARC, by its first MiB; None for another one."""
    names = [name for name in sizes if name.endswith((".json", *_LINES))]
    if not names:
        return None
    name = min(names, key=lambda name: (sizes[name], name))
    with suppress(GristmillError, OSError), open_file(root / name, root=root, links=links) as file:
        lines: Way = (None,) if name.endswith(_LINES) else ()
        match way_to(
            file.read(_HEAD), lambda way, text: way[-2:] == (None, None) and len(text) == 1
        ):
            case (*above, str(key), None, ("input" | "output" | None) as pair, None, None):
                return Tasks(name, (*lines, *above), key, ".output" if pair else ".[1]")
    return None


INBOX: Final = "puzzles"

MAZE_FILES: Final = frozenset({"train.csv", "test.csv"})
"""Names of the files of a source of mazes."""
_ARC: Final = "arc"
_MAZE: Final = "maze"
_GRID: Final = "grid"
_ENDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    _ARC: (".json",),
    "sudoku": (".csv", ".txt"),
    _MAZE: (".csv", ".txt"),
    _GRID: (".jsonl",),
}
_EVERY: Final = tuple({ending for endings in _ENDINGS.values() for ending in endings})
_FIRST_TRY: Final = 20
"""Augmentations of a task in a recipe that is proposed, as `arc-1-aug-20` has them."""
_NAMED: Final = 5
_SPLITS: Final = frozenset({"train.csv", "test.csv", "train.jsonl", "test.jsonl"})
_SPLIT_NAMES: Final = "only train.csv and test.csv, or .jsonl, in one folder are splits"
_LOOKED_AT: Final = 1 << 20
"""Bytes of tasks in a folder that an account reads."""


def source_files(
    kind: str, folder: Path, links: LinkRule = REFUSE_LINKS, subsets: Collection[str] = ()
) -> list[Path]:
    """The files of a source that a builder reads, sorted; BadInput for one that is no file."""
    from gristmill.puzzles.raw.arc_tasks import subsets_of

    found = []
    depth, endings = int(kind == _ARC), _ENDINGS.get(kind, ())
    entries = list(
        list_files(folder, root=folder, links=links, enter=lambda name: name.count("/") < depth)
    )
    listed = (entry.name for entry in entries if kind == _ARC)
    collected = {name for each in subsets_of(folder, listed, subsets) for name in each[1:]}
    for entry in entries:
        above, _, name = entry.name.rpartition("/")
        if entry.name not in collected and (
            entry.name.count("/") != depth
            or name.startswith(".")
            or is_mark(name)
            or not name.lower().endswith(endings)
            or (subsets and above not in subsets)
        ):
            continue
        if entry.refusal is not None:
            raise BadInput(folder / entry.name, entry.refusal)
        if entry.stat.st_mode:
            found.append(entry.name)
    left = not_samples(folder, filter(_counts(kind), found))
    return sorted(folder / name for name in found if name not in left)


def source_of(kind: str, path: str) -> str:
    """The folder of the source that a file is read of, by the path of the file."""
    from gristmill.puzzles.raw.arc_tasks import is_collection

    file = PurePosixPath(path)
    is_task = kind == _ARC and not is_collection(file.name)
    return str(file.parent.parent if is_task else file.parent)


def _counts(kind: str) -> Callable[[str], bool]:
    """Whether a file that a builder of a kind lists takes the place of a sample."""
    from gristmill.puzzles.raw.tables import is_sudoku_file

    if kind in (_ARC, _GRID):
        return lambda _: True
    return MAZE_FILES.__contains__ if kind == _MAZE else is_sudoku_file


@dataclass
class _Seen:
    """What a look found: keys, folders and rows that are not read, and settings that help."""

    unread: dict[str, None] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)
    cure: str = ""
    kind: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, None] = field(default_factory=dict)


def account(
    drop: Path, links: LinkRule = REFUSE_LINKS, recipes: Collection[Recipe] = BUILT_IN.values()
) -> Account:
    """What becomes of each file of a drop, by names and first rows; BadInput where none fits."""
    entries = {entry.name: entry for entry in _visible(drop, links)}
    for name, entry in entries.items():
        if entry.refusal is not None:
            raise BadInput(drop / name, entry.refusal)
    seen, chosen = _Seen(), _named(drop.name, recipes) or _guessed(entries)
    read, refused = _judged(drop, chosen, links, seen)
    under = {
        (recipe.kind, f"{below}/{name}".lstrip("/")) for recipe, below, own in read for name in own
    }
    taken = {name for _, name in under}
    divided = {name for kind, name in under if kind != _ARC and _is_for_tests(name)}
    if not taken:
        raise _unread(drop, entries, links, [error for _, error in refused])
    notes = [f"not for the recipe {recipe}: {error}" for recipe, error in refused if recipe]
    if seen.unread:
        notes.append(f"keys of tasks that nothing reads: {', '.join(seen.unread)}")
    if seen.unfit:
        first = next(iter(seen.unfit.values()))
        notes.append(f"folders that do not fit: {', '.join(seen.unfit)} ({first}); {seen.cure}")
    notes += seen.wrong
    if divided:
        said = f"{', '.join(sorted(divided)[:_NAMED])} too: {_SPLIT_NAMES}"
        if taken - divided and not any(recipe.name for recipe, _ in chosen):
            cure = "rename them so, or take it out; a recipe that names the drop divides all of it"
            rule = f"says another split than {min(taken - divided)}: {_SPLIT_NAMES}: {cure}"
            raise BadInput(drop / min(divided), rule)
        notes.append(f"test_share divides all files, {said}")
    left_out = _left_out(entries, taken) | left_out_of(drop, taken)
    return Account({"": sorted(taken)}, left_out, notes)


def _judged(
    drop: Path, chosen: Collection[tuple[Recipe, str]], links: LinkRule, seen: _Seen
) -> tuple[list[tuple[Recipe, str, list[str]]], list[tuple[str, BadInput]]]:
    """The files that each recipe reads, of guessed ones of the first kind, and what refuses."""
    read: list[tuple[Recipe, str, list[str]]] = []
    refused = []
    for recipe, source in chosen:
        if read and not recipe.name and recipe.kind != read[-1][0].kind:
            break  # the guess was right
        try:
            if names := _read(recipe, drop / source, links, seen):
                read.append((recipe, source, names))
        except BadInput as error:
            refused.append((recipe.name, error))
    return read, refused


def _unread(
    drop: Path, entries: Mapping[str, Entry], links: LinkRule, refused: Sequence[BadInput]
) -> BadInput:
    """Why no recipe reads a drop, by the files that hold puzzles in another form, if any do."""
    from gristmill.puzzles.raw.arc_tasks import is_collection
    from gristmill.puzzles.raw.fitness import arrays_in, blocks_in

    sizes = {name: each.stat.st_size for name, each in entries.items()}
    tasks = tasks_in(drop, sizes, links)
    if tasks is not None and tasks.way and not is_collection(tasks.file):
        return BadInput(drop / tasks.file, tasks.cure)
    texts = [name for name in entries if not name.lower().endswith((".json", ".csv", *_LINES))]
    first = min(texts, key=lambda name: (sizes[name], name), default="")
    if first and (rule := blocks_in(drop / first, links)):
        return BadInput(drop / first, rule)
    if not refused and (rule := arrays_in(drop, sizes, links)):
        return BadInput(drop, rule)
    return refused[0] if refused else BadInput(drop, _no_file(entries))


def _is_for_tests(path: str) -> bool:
    """Whether the name of a file, or of its folder, says a split that nothing reads from it."""
    return path.lower().rpartition("/")[2] not in _SPLITS and bool(said_by(path) - {"train"})


def proposal(drop: Path, links: LinkRule = REFUSE_LINKS, name: str = "") -> str:
    """The recipe that would read a drop which no built-in one names, as TOML; or empty."""
    from gristmill.puzzles.raw.arc_tasks import subsets_of
    from gristmill.puzzles.raw.grid_rows import cells_of, grid_files

    names = [entry.name for entry in _visible(drop, links)]
    sources, _ = _judged(drop, _guessed(names), links, seen := _Seen())
    name = name or drop.name
    if _named(name, BUILT_IN.values()) or not sources:
        return ""
    recipe, first, _ = sources[0]
    own = [n.removeprefix(f"{first}/") for n in names if not first or n.startswith(f"{first}/")]
    listed = ", ".join(f'"{name}/{source}"'.replace('/"', '"') for _, source, _ in sources)
    lines = [f'kind = "{seen.kind or recipe.kind}"', f"sources = [{listed}]"]
    if seen.settings:
        lines += ["[settings]", *(f"{key} = {toml_value(it)}" for key, it in seen.settings.items())]
    if recipe.kind == _GRID:
        lines += ["[settings]", cells_of(grid_files(drop / first, links)[0].path, links)]
    elif recipe.kind == _ARC:
        folders = {name.partition("/")[0] for *_, files in sources for name in files}
        subsets = {each.name for each in subsets_of(drop / first, own)}
        lines += ["[settings]", *_arc_settings(subsets or folders, bool(seen.unfit))]
    return "\n".join(lines) + "\n"


def _arc_settings(names: Collection[str], is_part: bool) -> Iterator[str]:
    """Yield the settings of a recipe of ARC. names: of parts. is_part: whether others are left."""
    from gristmill.puzzles.raw.arc_tasks import EVALUATION

    version = {name: re.sub(r".*?([0-9]*)$", r"\1", name).zfill(9) for name in names}
    tested = [name for name in names if said_by(name) - {"train"}]
    last = max((version[name] for name in tested), default="")
    # As of evaluation and evaluation2: one has tasks for training that the other one tests.
    if len({version[name] for name in tested}) > 1:
        names, is_part = [name for name in names if version[name] == last], True
    if is_part:
        yield f"subsets = {json.dumps(sorted(names))}"
    if not tested:  # the test pairs of every task are tests, and others may have them
        yield 'leaks = "drop"'
    tested = [name for name in tested if version[name] == last] or [*names]
    if tested != [EVALUATION]:
        yield f"{EVALUATION} = {json.dumps(sorted(tested))}"
    yield f"num_aug = {_FIRST_TRY}"
    yield 'dtype = "uint8"'


def _visible(drop: Path, links: LinkRule) -> Iterator[Entry]:
    """The entries of a drop without marks, settings and hidden ones."""
    for entry in list_files(drop, root=drop.parent, links=links):
        is_hidden = any(part.startswith(".") for part in entry.name.split("/"))
        if not is_hidden and not is_mark(entry.name) and entry.name != FILE:
            yield entry


def _named(drop: str, recipes: Collection[Recipe]) -> list[tuple[Recipe, str]]:
    """Recipe and folder below the drop of each source that a recipe names."""
    return [
        (recipe, source.partition("/")[2])
        for recipe in recipes
        for source in recipe.sources
        if source.partition("/")[0] == drop
    ]


def _guessed(names: Collection[str]) -> list[tuple[Recipe, str]]:
    """Recipes without a name, and folders that they might name: tasks before tables."""
    from gristmill.puzzles.raw.arc_tasks import is_collection

    sources: dict[tuple[str, str], None] = {}
    for kind in (_ARC, "sudoku", _GRID):
        for name in sorted(names, key=lambda name: (name.count("/"), name)):
            if name.lower().endswith(_ENDINGS[kind]) and _is_puzzle(name):
                *folders, last = PurePosixPath(name).parts
                is_below = kind == _ARC and not is_collection(last)
                sources[kind, "/".join(folders[:-1] if is_below else folders)] = None
    return [(Recipe("", kind), source) for kind, source in sources]


def _is_puzzle(name: str) -> bool:
    from gristmill.puzzles.raw.tables import is_bank

    last = name.rpartition("/")[2]
    return not last.lower().endswith(".txt") or is_bank(last)


def _read(recipe: Recipe, folder: Path, links: LinkRule, seen: _Seen) -> list[str]:
    """Paths in a source of the files that a recipe reads. Raises BadInput as its builder does."""
    from gristmill.puzzles.raw.file_forms import both_tables, is_table, source_folders

    source_folders(folder)  # it raises for a file
    if recipe.kind == _ARC:
        return _tasks(recipe, folder, links, seen)
    from gristmill.puzzles.raw.fitness import fitness  # it loads NumPy
    from gristmill.puzzles.raw.grid_rows import grid_files, read_grids
    from gristmill.puzzles.raw.tables import check_header, columns_of, read_bank, sudoku_files

    if recipe.kind == _GRID:
        paths = [file.path for file in grid_files(folder, links)]
    elif recipe.kind == _MAZE:
        listed = [entry.name for entry in list_files(folder, root=folder, links=links, deep=False)]
        paths = list(both_tables(folder, listed).values())
    else:
        paths = [file.path for file in sudoku_files(folder, links)]
    # Without a recipe the rows say what it would be.
    known = (recipe.kind, recipe.settings) if recipe.name else ("", None)
    found = fitness(folder, links, files=paths, kind=known[0], settings=known[1])
    settings = recipe.settings if recipe.name else found.settings if found else {}
    columns = columns_of(*(settings.get(f"{role}_column") for role in ("question", "answer")))
    is_judged = not recipe.name and found is not None and found.wins
    for path in paths:
        if is_table(path.name):
            check_header(path, links, columns)
        elif not is_judged:
            read = read_bank if recipe.kind == "sudoku" else partial(read_grids, symbols=None)
            next(iter(read(path, links=links)), None)
    if found is not None and not recipe.name and recipe.kind != _GRID:
        seen.kind, seen.settings = found.kind, {**seen.settings, **found.settings}
    if found is not None and found.first is not None:
        seen.wrong[found.line] = None
    return [path.name for path in paths]


def _tasks(recipe: Recipe, folder: Path, links: LinkRule, seen: _Seen) -> list[str]:
    """Paths in a source of the files of ARC tasks; the first MiB of each folder is read."""
    from gristmill.puzzles.raw.arc_tasks import Parts, TooLarge, read_task, task_files

    given = recipe.settings
    parts = Parts(given.get("evaluation", Parts.evaluation), given.get("subsets", ()))
    entries, collected = task_files(folder, links, parts)
    looked, unfit = Counter[str](), dict[str, BadInput]()
    for entry in entries:
        below, size = entry.name.rpartition("/")[0], entry.stat.st_size
        if below not in unfit and (not size or looked[below] + size <= _LOOKED_AT):
            try:
                seen.unread |= dict.fromkeys(read_task(folder, entry.name, links).unread)
            except TooLarge as error:
                unfit[below] = error
        looked[below] += size
    if fit := sorted({*looked} - {*unfit}):
        seen.cure = f"[settings] subsets = {json.dumps(fit)} reads the others"
    for wrong in unfit.values():
        if not fit or recipe.name:
            raise BadInput(wrong.file, "; ".join([wrong.rule, *([seen.cure] if fit else [])]))
    seen.unfit |= {name: f"{Path(wrong.file).name}: {wrong.rule}" for name, wrong in unfit.items()}
    names = [entry.name for entry in entries if entry.name.rpartition("/")[0] not in unfit]
    return [*names, *(name for each in collected for name in each[1:])]


def _left_out(entries: Mapping[str, Entry], taken: Collection[str]) -> dict[str, str]:
    """Why each other file is not read; a folder of which nothing is read stands for its files."""
    used = {"/".join(parts[:k]) for parts in map(_parts, taken) for k in range(len(parts))}
    left: dict[str, str] = {}
    for name in sorted(set(entries) - set(taken)):
        parts = _parts(name)
        folders = ("/".join(parts[:k]) for k in range(1, len(parts)))
        unread = next((folder for folder in folders if folder not in used), None)
        if unread is not None:
            left[f"{unread}/"] = "no recipe reads this folder"
        else:
            is_one = name.lower().endswith(_EVERY) and _is_puzzle(name)
            left[name] = "other files are the source" if is_one else "no file of puzzles"
    return left


def _parts(name: str) -> tuple[str, ...]:
    return PurePosixPath(name).parts


def _no_file(names: Collection[str]) -> str:
    return (
        "holds no file of puzzles: put ARC tasks (.json) in folders below it, or puzzles as .csv,"
        f" .txt or .jsonl, or Kaggle's files of ARC, into it{unpack_hint(names)}"
    )


def forgets() -> Forgets:
    """How puzzles are forgotten."""
    return Forgets(_units, places=_places)


def _places(path: Path) -> list[tuple[int, int]] | None:
    """Begin and end of each line of a table; None for the tasks of one file."""
    with open_file(path, root=path.parent) as file:
        return None if path.suffix == ".json" else [*line_places(reads(file), path)]


def _units(_: Path, drop: Path) -> Iterator[Unit]:
    from gristmill.puzzles.raw.arc_tasks import is_collection

    for name in visible_files(drop, besides=(FORGOTTEN,)):
        path = drop / name
        with open_file(path, root=drop) as file:
            if is_collection(name.rpartition("/")[2]):
                for number, (key, task) in enumerate(members(reads(file), path), 1):
                    yield Unit(name, number, str(key), {"task": json.dumps(task)})
            elif name.endswith(".json"):
                task = file.read().decode("utf-8", "replace").strip()
                yield Unit(name, 0, path.stem, {"task": task})
            elif name.endswith((".csv", ".txt", ".jsonl")):
                yield from _lines(name, reads(file), path)


def _lines(name: str, texts: Iterator[bytes], path: Path) -> Iterator[Unit]:
    """Yield the lines of a table, by the columns of its header if it is a CSV."""
    header = list[str]()
    for number, line in enumerate(lines(texts, path), 1):
        text = line.decode("utf-8", "replace").strip()
        cells = [text] if name.endswith(".jsonl") else text.split(",")
        if number == 1 and name.endswith(".csv"):
            header = cells
        elif text:
            columns = header if len(header) == len(cells) else map(str, range(len(cells)))
            yield Unit(name, number, "", dict(zip(columns, cells, strict=True)))
