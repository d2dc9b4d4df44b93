"""The parsers of puzzles: drops of each kind, recipes, datasets as training reads them, traces."""

import csv
import io
import json
from pathlib import Path

import numpy as np

from tests.fuzz.parser import JSON, TEN_THOUSAND, Parsers, file, folder, split

PARSERS = Parsers()
_ARC_WORDS = (
    *(b'{"', b'":', b"null", b"true", b"1e999", b"-0", b"[[", b"\\u0000", b"\\ud800", b"NaN"),
    *(b'{"train":[', b'"test":[', b'{"input":[[', b'"output":[[', b'"name":"', b"]]}", b"]}"),
)
_MAZE_WORDS = (
    *(b"source,question,answer,rating\n", b"x,S  G,So G,1\n", b'x,"S  G","So G",1\n'),
    *(b"\r\n", b"\xef\xbb\xbf", b"#", b" ", b"S", b"G", b"o", b",", b'"', b'""', b"\n"),
    *(b"SG##,SG##", b"S    #  G,So  o# oG,4"),
)
_READ = "gristmill.puzzles.read"
_FIELDS = ("inputs", "labels", "puzzle_identifiers", "puzzle_indices", "group_indices")
_RECIPE_WORDS = (
    *(b'kind = "', b"sources = [", b"[settings]\n", b'"arc"', b'"sudoku"', b'"maze"', b'"domino"'),
    *(b"num_aug = ", b"../", b"/", b'"', b"nan", b"true", b"1e999", b"\n", b"[[", b"\xff"),
)
_GRID = b'[{"input": [[1]], "output": [[2]]}]'
_TEXTS = (
    (b".json", b'{"train": %b, "test": %b}' % (_GRID, _GRID)),
    (b".csv", b"source,question,answer,rating\n"),
    (b".txt", b"." * 81),
)
_HEADER = b"source,question,answer,rating\n"
_QUESTION = b"080020090020050000000001600030000000700000005000000040006900000000070020010040060"
_ANSWER = b"185726394629354817374891652438569271792413568561287943246938175953172486817645239"
_FORMAT = "gristmill.puzzles.format"


@PARSERS.add(
    "puzzles_arc_task",
    "gristmill.puzzles.raw.arc_tasks",
    "gristmill.puzzles.domains.arc_grid",
    words=_ARC_WORDS,
)
def task(data: bytes) -> None:
    """A task: its grids are those that the standard library reads, and survive encoding."""
    from gristmill.puzzles.domains.arc_grid import (
        Augmentation,
        aug_id,
        decode,
        encode,
        flat,
        inverse,
        parse_id,
    )
    from gristmill.puzzles.domains.arc_kernels import kept_draws
    from gristmill.puzzles.raw.arc_tasks import parse_task

    place = ("training", "evaluation")[(data[:1] or b"0")[0] % 2]
    read = parse_task(data[1:], Path("arc"), f"{place}/a.json")
    value = json.loads(data[1:])
    listed = [pair for key in value if key in ("train", "test") for pair in value[key]]
    grids = [[grid.tolist() for grid in pair] for pair in read.pairs]
    assert grids == [[pair["input"], pair["output"]] for pair in listed]
    assert sorted(read.numbers("train") + read.numbers("test")) == list(range(len(listed)))
    change = Augmentation(3, "0912345678")
    name = aug_id(read.base, change)
    assert parse_id(name) == (read.base, change)
    for pair in read.pairs[:3]:
        for grid in pair:
            after = change.apply(grid)
            found = decode(encode(after, 30 - after.shape[0], 30 - after.shape[1])).grid
            np.testing.assert_array_equal(inverse(name, found), grid)
    numbers, _, _ = kept_draws(np.uint64(1), 3, 15, *flat(read.pairs))
    assert numbers[0] == 0 and (np.diff(numbers) > 0).all()


@PARSERS.add(
    "puzzles_arc_collection",
    "gristmill.puzzles.raw.arc_tasks",
    "gristmill.puzzles.raw.drops",
    covers=("gristmill.untrusted.json_text",),
    words=(*_ARC_WORDS, b"\xff\xfe", b'{"a":', b'{"test":[{"input":[[1]]}],"train":[]}'),
)
def collection(data: bytes) -> None:
    """Challenges and their solutions: each task has the outputs that the standard library reads."""
    from gristmill.puzzles.raw.arc_tasks import read_subset, read_tasks, subsets_of
    from gristmill.puzzles.raw.drops import tasks_in
    from gristmill.untrusted.files import REFUSE_LINKS
    from gristmill.untrusted.limits import Limits

    challenges, solutions = split(data, 2)
    path = file("arc/a_training_challenges.json", challenges)
    other = file("arc/a_training_solutions.json", solutions)
    together = tasks_in(path.parent, {path.name: len(challenges)}, REFUSE_LINKS)
    assert together is None or together.file in together.cure
    read_tasks(path.parent)  # refuses what is no task
    (subset,) = subsets_of(path.parent, [path.name, other.name])
    limits = Limits(bytes=1 << 20, depth=8, values=1 << 16, digits=20)
    tasks, _ = read_subset(path.parent, subset, limits, REFUSE_LINKS)
    outputs = json.loads(solutions)
    assert [task for task, _ in tasks] == list(json.loads(challenges))
    for name, task in tasks:
        assert [pair["output"] for pair in task["test"]] == outputs[name]


@PARSERS.add(
    "puzzles_maze_csv",
    "gristmill.puzzles.raw.tables",
    covers=("gristmill.puzzles.domains.grid",),
    words=_MAZE_WORDS,
)
def mazes(data: bytes) -> None:
    """A CSV file: its mazes are those of Python's csv, square, with shortest paths."""
    from gristmill.puzzles.domains.grid import decoded
    from gristmill.puzzles.raw.tables import COLUMN_NAMES, read_mazes
    from tests.puzzles.plain_mazes import broken

    found = [
        ("".join(decoded(question)), "".join(decoded(answer)), line)
        for rows in read_mazes(file("mazes/train.csv", data))
        for question, answer, line in zip(
            rows.inputs, rows.labels, rows.lines.tolist(), strict=True
        )
    ]
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    lines = io.StringIO(text, newline="\n").read().split("\n")
    (head,) = csv.reader([lines[0].removesuffix("\r")]) if found else ([],)
    names = [name.strip().lower() for name in head]
    places = [
        next(place for place, name in enumerate(names) if name in COLUMN_NAMES[role])
        for role in ("question", "answer")
        if found
    ]
    for question, answer, line in found:
        assert broken(question, answer) == set()
        (fields,) = csv.reader([lines[line - 1].removesuffix("\r")])
        assert [fields[place] for place in places] == [question, answer]
    filled = [line for line in lines[1:] if line.strip()]
    assert len(found) == len(filled)
    assert len({len(question) for question, _, _ in found}) <= 1


@PARSERS.add(
    "puzzles_dataset",
    *(f"{_READ}.{name}" for name in ("rows", "dataset")),
    "gristmill.puzzles.format.dataset",
    "gristmill.untrusted.npy_header",
    "numpy.lib._format_impl",
    inputs=TEN_THOUSAND,
    words=(
        *(b"\x93NUMPY\x01\x00", b"'descr':", b"'shape':", b"(0,)", b"(2, 3)", b"<i4", b"|u1"),
        *(b">i4", b"<u8", b"<f4", b"|V", b"'fortran_order':", b"True", b"\xff\xfe"),
        *(b'"pad_id":', b'"ignore_label_id":', b'"seq_len":', b'"sets":', b"null", b"1e999"),
    ),
    interpreted=True,
)
def dataset(data: bytes) -> None:
    """dataset.json and the arrays of the set `all`: the batches are those of a plain reader."""
    import numpy as np

    from gristmill.puzzles.read.dataset import PuzzleDataset, PuzzleDatasetConfig
    from gristmill.reading.reader import Reader
    from tests.puzzles.read.plain_reader import PlainReader

    metadata, *arrays = split(data, 6)
    with folder("puzzles") as root:
        file("puzzles/train/dataset.json", metadata)
        for field, octets in zip(_FIELDS, arrays, strict=True):
            file(f"puzzles/train/all__{field}.npy", octets)
        for test in (False, True):
            config = PuzzleDatasetConfig(1, root, 2, test, 1, 0, 1)
            reader = Reader.__new__(PuzzleDataset)  # without torch
            PuzzleDataset.__init__(reader, config)
            batches = list(reader)
            if not test and any(len(made.inputs) > made.groups for made in reader.held.sets):
                continue  # which examples of a puzzle are chosen is our own
            plain = PlainReader(root, "train", seed=1, size=2, test=test)
            for ours, theirs in zip(batches, plain, strict=True):
                assert ours[::2] == theirs[::2]
                for field, column in ours[1].items():
                    np.testing.assert_array_equal(column, theirs[1][field])


@PARSERS.add("puzzles_recipe", "gristmill.puzzles.config", most_bytes=1000, words=_RECIPE_WORDS)
def recipe(data: bytes) -> None:
    """A recipe file: its settings are those of a config of its kind, and its sources are below."""
    from gristmill.puzzles.config import CONFIGS, read_recipe_file

    read = read_recipe_file(file("recipes/mine.toml", data))
    assert read.name == "mine"
    CONFIGS[read.kind](**read.settings)
    for source in read.sources:
        assert not source.startswith("/")
        assert not {"", ".", ".."} & set(source.split("/"))


@PARSERS.add(
    "puzzles_source_names",
    "gristmill.puzzles.raw.drops",
    "gristmill.puzzles.raw.file_forms",
    covers=("gristmill.puzzles.raw.arc_tasks",),
    most_bytes=400,
    words=(b".json", b".csv", b".txt", b".gz", b".JSON", b"\n", b"\xff", b"LICENSE"),
)
def source_names(data: bytes) -> None:
    """The names of files in a source, one a line; those that begin with `a` are a level below."""
    from gristmill.puzzles.config import KINDS
    from gristmill.puzzles.raw.drops import account, source_files
    from gristmill.puzzles.raw.file_forms import check_names

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


@PARSERS.add(
    "puzzles_rated_csv",
    "gristmill.puzzles.raw.tables",
    "gristmill.puzzles.raw.fitness",
    words=(
        *(_HEADER, b"s,12,34,5\n", b"s,#o,# ,0\r\n", b'"', b'""', b",", b"\n", b"7.2", b"\xff"),
    ),
)
def rated_csv(data: bytes) -> None:
    """A rated CSV file: its rows are those of the standard library."""
    from gristmill.puzzles.raw.fitness import fitness
    from gristmill.puzzles.raw.tables import COLUMN_NAMES, read_rows

    path = file("train.csv", data)
    judged = fitness(path)
    assert judged is None or judged.fit <= judged.rows
    found, seen = [], []
    for rows in read_rows(path):
        for row in range(len(rows)):
            question, answer = rows.questions[row].tobytes(), rows.answers[row].tobytes()
            rating = ((rows.rating(row) if rows.rating else None) or b"").decode("utf-8", "replace")
            found.append((question, answer, rating))
        assert (rows.lines[1:] > rows.lines[:-1]).all()
        assert rows.questions.shape == rows.answers.shape
        seen.append(rows)
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    lines = csv.reader(io.StringIO(text, newline=""))
    header = [name.strip().lower() for name in next(lines)]
    question, answer = (
        next(at for at, name in enumerate(header) if name in COLUMN_NAMES[role])
        for role in ("question", "answer")
    )
    expected = [row for row in lines if len(row) == len(header) and "".join(row).strip()]
    assert [row[:2] for row in found] == [
        (row[question].encode("latin-1"), row[answer].encode("latin-1")) for row in expected
    ]
    for rows in seen:
        rows.whole_ratings()


@PARSERS.add(
    "puzzles_sudoku_bank",
    "gristmill.puzzles.raw.tables",
    inputs=TEN_THOUSAND,
    words=(_QUESTION + b"\n", _QUESTION + b" " + _ANSWER, b"\n", b" 1.2\n", b"id ", b"."),
)
def sudoku_bank(data: bytes) -> None:
    """A bank: what is built of it breaks no law."""
    from gristmill.puzzles.builders.sudoku import build_sudoku
    from gristmill.puzzles.config import SudokuConfig
    from gristmill.puzzles.laws.contract import contract_laws
    from gristmill.puzzles.laws.games import sudoku_laws

    with folder("sudoku") as place:
        file("sudoku/drop/bank.txt", data)
        config = SudokuConfig(num_aug=2, test_share=0.5, unique="drop")
        build_sudoku(place / "drop", place / "out", config)
        assert [*contract_laws(place / "out"), *sudoku_laws(place / "out")] == []


@PARSERS.add(
    "puzzles_grids",
    "gristmill.puzzles.raw.grid_rows",
    words=(b'{"input":[[', b'"output":[[', b"]]}\n", b'"group":"a"', b'"set":"x"', b"[1,2]"),
)
def grids(data: bytes) -> None:
    """Rows of grids: their cells are those that the standard library reads."""
    from gristmill.puzzles.domains.grid import Symbols
    from gristmill.puzzles.raw.grid_rows import cells_of, read_grids

    path = file("grids/train.jsonl", data)
    cells_of(path)
    numbers = Symbols.of(None, 300, None)
    lines = data.decode("utf-8-sig").split("\n")
    for row in read_grids(path, numbers):
        value = json.loads(lines[row.line - 1])
        for name, cells in (("input", row.input), ("output", row.output)):
            assert (cells.astype(int) - 1).tolist() == value[name]


@PARSERS.add("puzzles_identifiers", f"{_FORMAT}.dataset", words=(*JSON, b'"<blank>"', b'["'))
def identifiers(data: bytes) -> None:
    """`identifiers.json`: a list of texts."""
    from gristmill.puzzles.format.dataset import read_identifiers

    assert all(isinstance(name, str) for name in read_identifiers(file("identifiers.json", data)))


@PARSERS.add(
    "puzzles_sources",
    f"{_FORMAT}.dataset",
    words=(*JSON, b'"files": [', b'"path": ', b'"sha256": ', b'"kind": ', b'"config": {'),
)
def sources(data: bytes) -> None:
    """`trace/sources.json`: it is written as it was read."""
    from gristmill.puzzles.format.dataset import read_sources

    read = read_sources(file("sources.json", data))
    again = read_sources(file("sources.json", read.text().encode()))
    assert repr(again) == repr(read)
