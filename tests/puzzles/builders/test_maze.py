"""Datasets of mazes, the real one byte for byte."""

import hashlib
import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.hashing import sha256_file
from gristmill.puzzles.builders.maze import MazeSummary, build_maze
from gristmill.puzzles.config import MazeConfig
from gristmill.puzzles.domains.randomness import source_key
from gristmill.puzzles.format.dataset import read_sources
from gristmill.puzzles.laws.contract import contract_laws
from gristmill.puzzles.laws.games import maze_laws
from gristmill.untrusted.files import LinkRule
from tests.marked import mark
from tests.puzzles.builders.test_arc import digests
from tests.puzzles.plain_mazes import BUILT, maze, symmetries, write_csv, write_drop

PLAIN = {
    "train": {
        "inputs": "bf1af5229de21225999d61a758d5d730d4e5092cda953c6329be52a9fbfba721",
        "labels": "87b8a768443c1161613933f3d421a633ebb2e28e5b2443d54779ecabe3934c88",
    },
    "test": {
        "inputs": "7867d1c03c21521a4049921e2dd8a116db3afe517a023fa935e808a5cf08ed16",
        "labels": "c475af832610c8cd5b6cbdb55a8cae5c4d6656e8b5104cf46292b27f9729f43d",
    },
}
AUGMENTED = {
    "inputs": "9c7f3907ba207e452056a08495aa5dca647ac24164bdade263f8b821cfc13142",
    "labels": "f45b9131df496cf20222207d7fbcfcbc137c2a2c2581b7d0534cf903c0a7ecab",
}
"""sha256 of the tokens that the original writes, as uint8."""
Pairs = list[tuple[str, str]]


def mazes(count: int, seed: int, side: int = 6) -> Pairs:
    random = Random(seed)
    return [maze(random, side) for _ in range(count)]


def drop(folder: Path, train: Pairs, test: Pairs) -> Path:
    folder.mkdir(parents=True)
    write_csv(folder / "train.csv", train)
    write_csv(folder / "test.csv", test)
    return folder


def build(source: Path, out: Path, **fields: object) -> MazeSummary:
    return build_maze(source, out, MazeConfig(**fields))  # type: ignore[arg-type]


def array(out: Path, split: str, field: str) -> np.ndarray:
    return np.load(out / split / f"all__{field}.npy")


def tokens(*texts: str) -> list[list[int]]:
    return [["?# SGo".index(character) for character in text] for text in texts]


def test_the_real_dataset_is_reproduced_but_for_the_key_of_trm(tmp_path):
    source = write_drop(tmp_path / "drop")
    summary = build(source, tmp_path / "out", dtype="uint8")
    assert (summary.duplicates_removed, summary.leaks_dropped) == (0, 0)
    assert summary.examples == {"train": 1000, "test": 1000}
    original = digests(BUILT)
    assert len(original) == 14
    for split in ("train", "test"):
        path = tmp_path / "out" / split / "dataset.json"
        assert path.read_text().endswith(', "total_puzzles": 1000}')
        path.write_text(path.read_text().replace(', "total_puzzles": 1000', ""))
    ours = digests(tmp_path / "out")
    assert {name: ours.get(name) for name in original if name != "LICENSE"} == {
        name: digest for name, digest in original.items() if name != "LICENSE"
    }
    for split, expected in PLAIN.items():
        for field, digest in expected.items():
            assert _digest(array(tmp_path / "out", split, field)) == digest
    assert [*contract_laws(tmp_path / "out"), *maze_laws(tmp_path / "out")] == []


def test_the_real_mazes_have_the_augmentations_of_the_original(tmp_path):
    source = write_drop(tmp_path / "drop")
    summary = build(source, tmp_path / "out", dtype="uint8", aug=True)
    assert summary.augmented == 7000
    for field, digest in AUGMENTED.items():
        assert _digest(array(tmp_path / "out", "train", field)) == digest
    for field, digest in PLAIN["test"].items():
        assert _digest(array(tmp_path / "out", "test", field)) == digest
    assert [*contract_laws(tmp_path / "out"), *maze_laws(tmp_path / "out")] == []


def _digest(values: np.ndarray) -> str:
    assert values.dtype == np.uint8
    return hashlib.sha256(values.tobytes()).hexdigest()


@pytest.mark.parametrize("aug", [False, True])
def test_every_row_is_that_of_plain_python(tmp_path, aug):
    train, test = mazes(7, 1), mazes(3, 2)
    summary = build(drop(tmp_path / "drop", train, test), tmp_path / "out", aug=aug)
    per_maze = 8 if aug else 1
    for split, pairs, turned in (("train", train, per_maze), ("test", test, 1)):
        for field, side in (("inputs", 0), ("labels", 1)):
            found = array(tmp_path / "out", split, field)
            assert found.dtype == np.int32
            rows = [each for pair in pairs for each in symmetries(pair[side])[:turned]]
            assert found.tolist() == tokens(*rows)
        origins = np.load(tmp_path / "out/trace" / split / "all.npy").tolist()
        number = ("train", "test").index(split)
        assert origins == [
            [number, line, k] for line in range(2, 2 + len(pairs)) for k in range(turned)
        ]
        metadata = json.loads((tmp_path / "out" / split / "dataset.json").read_text())
        assert metadata["seq_len"] == 36
        assert metadata["total_groups"] == len(pairs)
        assert metadata["mean_puzzle_examples"] == 1.0
        groups = array(tmp_path / "out", split, "group_indices")
        assert groups.tolist() == list(range(0, len(pairs) * turned + 1, turned))
    assert summary.augmented == 7 * (per_maze - 1)
    files = read_sources(tmp_path / "out/trace/sources.json").files
    assert [file.path for file in files] == ["drop/train.csv", "drop/test.csv"]
    for file in files:
        assert file.sha256 == sha256_file(tmp_path / file.path)


def test_duplicates_up_to_symmetry_are_removed_and_counted(tmp_path):
    train, test = mazes(4, 1), mazes(3, 2)
    twin = (symmetries(train[1][0])[3], symmetries(train[1][1])[3])
    source = drop(tmp_path / "drop", [*train, train[0], twin, train[2]], [*test, test[0]])
    summary = build(source, tmp_path / "out")
    assert summary.duplicates_removed == 4
    assert summary.first_repeats == {"drop/train.csv": 6, "drop/test.csv": 5}
    assert array(tmp_path / "out", "train", "inputs").tolist() == tokens(*[q for q, _ in train])
    assert np.load(tmp_path / "out/trace/train/all.npy")[:, 1].tolist() == [2, 3, 4, 5]


def test_test_mazes_that_training_has_are_refused_or_dropped(tmp_path):
    train, test = mazes(14, 1), mazes(3, 2)
    twins = [tuple(symmetries(text)[5] for text in pair) for pair in train[:12]]
    source = drop(tmp_path / "drop", train, [test[0], *twins, *test[1:]])  # type: ignore[list-item]
    with pytest.raises(BadInput, match="12 mazes of the test split") as caught:
        build(source, tmp_path / "refused")
    assert "drop/test.csv line 3 is drop/train.csv line 2, " in str(caught.value)
    assert "drop/test.csv line 12 is drop/train.csv line 11, ...; leaks = drop" in str(caught.value)
    assert not (tmp_path / "refused").exists()
    summary = build(source, tmp_path / "out", leaks="drop")
    assert summary.leaks_dropped == 12
    assert array(tmp_path / "out", "test", "inputs").tolist() == tokens(*[q for q, _ in test])
    assert np.load(tmp_path / "out/trace/test/all.npy")[:, 1].tolist() == [2, 15, 16]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drop", "out"]


def test_a_subsample_is_that_of_the_smallest_keys_in_their_order(tmp_path):
    train, test = mazes(12, 1), mazes(3, 2)
    source = drop(tmp_path / "drop", train, test)
    build(source, tmp_path / "out", subsample_size=5, seed=7)
    ordered = sorted(train, key=lambda pair: source_key(7, "maze:subsample", pair[0]))
    found = array(tmp_path / "out", "train", "labels").tolist()
    assert found == tokens(*[answer for _, answer in ordered[:5]])
    assert len(array(tmp_path / "out", "test", "labels")) == 3
    for size in (12, 13):  # no smaller than the total: all, in the order of the file
        out = _built(source, tmp_path / f"all{size}", subsample_size=size)
        assert array(out, "train", "labels").tolist() == tokens(*[answer for _, answer in train])


def test_a_test_maze_that_the_subsample_left_out_is_no_leak(tmp_path):
    train = mazes(6, 1)
    ordered = sorted(train, key=lambda pair: source_key(42, "maze:subsample", pair[0]))
    source = drop(tmp_path / "drop", train, [ordered[-1]])
    build(source, tmp_path / "out", subsample_size=5)
    assert list(maze_laws(tmp_path / "out")) == []
    with pytest.raises(BadInput, match="1 mazes"):
        build(source, tmp_path / "refused", subsample_size=6)


def test_several_folders_are_read_in_the_order_of_their_names(tmp_path):
    pairs = mazes(8, 1)
    one = drop(tmp_path / "one", pairs[:2], pairs[2:3])
    two = drop(tmp_path / "two", pairs[3:6], pairs[6:])
    build_maze([two, one], tmp_path / "out", MazeConfig())
    expected = tokens(*[question for question, _ in pairs[:2] + pairs[3:6]])
    assert array(tmp_path / "out", "train", "inputs").tolist() == expected
    files = read_sources(tmp_path / "out/trace/sources.json").files
    names = ["one/train.csv", "two/train.csv", "one/test.csv", "two/test.csv"]
    assert [file.path for file in files] == names
    origins = np.load(tmp_path / "out/trace/test/all.npy").tolist()
    assert origins == [[2, 2, 0], [3, 2, 0], [3, 3, 0]]
    build_maze([one, two], tmp_path / "again", MazeConfig())
    assert digests(tmp_path / "again") == digests(tmp_path / "out")


@pytest.mark.parametrize("gone", [["train.csv"], ["test.csv"], ["train.csv", "test.csv"]])
@pytest.mark.parametrize("which", ["one", "two"])
def test_a_source_that_lacks_a_table_is_refused_by_name(tmp_path, which, gone):
    one = drop(tmp_path / "one", mazes(2, 1), mazes(1, 2))
    two = drop(tmp_path / "two", mazes(2, 3), mazes(1, 4))
    for name in gone:
        (tmp_path / which / name).unlink()
    with pytest.raises(BadInput, match=f"{which}/{gone[0]}: is missing: a maze source needs it"):
        build_maze([one, two], tmp_path / "out", MazeConfig())
    assert not (tmp_path / "out").exists()


def test_one_real_table_beside_one_of_a_sample_is_refused(tmp_path):
    drop = tmp_path / "mazes"
    drop.mkdir()
    for name in ("train.csv", "test.csv"):
        write_csv(drop / name, [maze(Random(name), 5)])
    mark(drop)
    build_maze(drop, tmp_path / "sample", MazeConfig(leaks="drop"))
    write_csv(drop / "train.csv", [maze(Random(9), 5)])
    with pytest.raises(BadInput) as error:
        build_maze(drop, tmp_path / "mixed")
    assert error.value.file == str(drop / "test.csv")
    assert error.value.rule == "is of a sample, and the other file is real: bring the real one"


def test_mazes_of_another_size_and_an_empty_table_are_refused(tmp_path):
    source = drop(tmp_path / "drop", mazes(2, 1), mazes(2, 2, side=5))
    with pytest.raises(BadInput, match=r"test\.csv:2: .*25.*36"):
        build(source, tmp_path / "out")
    (source / "test.csv").write_text("source,question,answer,rating\n")
    with pytest.raises(BadInput, match=r"test\.csv: has no row below its header"):
        build(source, tmp_path / "empty")


@pytest.mark.parametrize(
    ("name", "rule"), [("test.csv.gz", "unpack it"), ("TEST.csv.gz", "unpack it")]
)
def test_a_table_that_would_be_passed_over_is_refused(name, rule, tmp_path):
    one = drop(tmp_path / "one", mazes(2, 1), mazes(2, 2))
    two = drop(tmp_path / "two", mazes(2, 3), mazes(2, 4))
    (two / "test.csv").rename(two / name)
    for sources in ([two], [one, two]):
        with pytest.raises(BadInput, match=f"two/{name}: .*{rule}"):
            build_maze(sources, tmp_path / "out", MazeConfig())
    (two / name).rename(two / "test.csv")
    (two / "test.csv.gz").write_text("packed")
    build_maze([one, two], tmp_path / "out", MazeConfig())


def test_tables_in_capitals_make_the_same_dataset(tmp_path):
    plain = drop(tmp_path / "a" / "drop", mazes(2, 1), mazes(2, 2))
    capitals = drop(tmp_path / "b" / "drop", mazes(2, 1), mazes(2, 2))
    (capitals / "train.csv").rename(capitals / "Train.CSV")
    for source, out in ((plain, "p"), (capitals, "q")):
        build(source, tmp_path / out)
    for split in ("train", "test"):
        for field in ("inputs", "labels"):
            first, second = (array(tmp_path / out, split, field) for out in "pq")
            assert first.tobytes() == second.tobytes()
    assert "drop/Train.CSV" in (tmp_path / "q/trace/sources.json").read_text()
    (capitals / "train.csv").write_bytes((capitals / "Train.CSV").read_bytes())
    with pytest.raises(BadInput, match=r"train\.csv: is there beside Train\.CSV: keep one"):
        build(capitals, tmp_path / "no")


def test_links_are_refused_unless_they_may_be_followed(tmp_path):
    source = drop(tmp_path / "drop", mazes(2, 1), mazes(2, 2))
    (tmp_path / "linked").mkdir()
    for name in ("train.csv", "test.csv"):
        (tmp_path / "linked" / name).symlink_to(source / name)
    with pytest.raises(BadInput, match="link"):
        build(tmp_path / "linked", tmp_path / "out")
    rule = LinkRule(follow=True, roots=(str(source),))
    build_maze(tmp_path / "linked", tmp_path / "out", links=rule)
    assert len(array(tmp_path / "out", "train", "inputs")) == 2


def _built(source: Path, out: Path, **fields: object) -> Path:
    build(source, out, **fields)
    return out
