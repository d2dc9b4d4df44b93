"""Laws in threads: the findings, their texts and their order are those of one thread."""

import os
import re
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from gristmill import families
from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.laws import MOST
from gristmill.puzzles.config import KINDS
from gristmill.puzzles.laws.contract import _dataset
from gristmill.puzzles.read.rows import Dataset, Rows, _TokenFile
from gristmill.run.parts import PartStore
from tests.publish.tiny import snapshot
from tests.puzzles.kinds import built


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tasks and many batches of rows."""
    build, laws = "gristmill.puzzles.builders", "gristmill.puzzles.laws"
    monkeypatch.setattr(f"{build}.arc._PART_BYTES", 1)
    monkeypatch.setattr(f"{build}.sudoku._TASK_BYTES", 1)
    monkeypatch.setattr(f"{build}.maze._TASK_BYTES", 1)
    monkeypatch.setattr(f"{build}.domino._TASK_BYTES", 4000)
    monkeypatch.setattr(f"{build}.grid._TASK_BYTES", 1)
    monkeypatch.setattr("gristmill.puzzles.read.rows._BATCH_BYTES", 20_000)
    monkeypatch.setattr(f"{laws}.games._TOGETHER", 7)
    monkeypatch.setattr(f"{laws}.games._BATCH_BYTES", 20_000)


def _built(
    kind: str, folder: Path, workers: int, parts: PartStore | None = None
) -> dict[str, bytes]:
    return snapshot(built(kind, folder, parts, workers=workers))


def _laws(kind: str, folder: Path, workers: object) -> list[Violation]:
    subject = Subject(folder, config={"workers": workers})
    return list(families.check(f"puzzles/{kind}", subject))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_bytes_and_findings_are_equal_at_any_number_of_workers(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    expected = _built(kind, tmp_path / "w1", 1)
    for workers in (0, 3):
        assert _built(kind, tmp_path / f"w{workers}", workers) == expected
        assert _laws(kind, tmp_path / f"w{workers}/out", workers) == []
    out = tmp_path / "w1/out"
    for split in ("train", "test"):
        for field in ("inputs", "labels"):
            path = out / split / f"all__{field}.npy"
            tokens = np.load(path)
            tokens[1::3, 5] = np.where(tokens[1::3, 5] == 1, 2, 1)
            tokens[2::5, 40] = 3
            tokens[-2, 7] = -1
            np.save(path, tokens)
        path = out / "trace" / split / "all.npy"
        origins = np.load(path)
        origins[4::5, 2] += 1
        np.save(path, origins)
    findings = _laws(kind, out, 1)
    assert len({violation.law for violation in findings}) > 3
    assert len(findings) > 20
    for workers in (0, 3):
        assert _laws(kind, out, workers) == findings


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_equal_at_any_size_of_tasks_and_from_stored_parts(kind, tmp_path, monkeypatch):
    store = PartStore(tmp_path / "parts")
    small = [_built(kind, tmp_path / name, 1, store) for name in ("stored", "again")]
    assert len(list(store.folder.glob("*.part"))) > 2
    monkeypatch.undo()
    assert small == [_built(kind, tmp_path / "whole", 1)] * 2


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_split_without_an_example_is_a_finding_and_no_crash(kind, split, tmp_path):
    _built(kind, tmp_path / "built", 1)
    folder = tmp_path / "built/out"
    for field, kept in (
        *((field, 0) for field in ("inputs", "labels", "puzzle_identifiers")),
        *((field, 1) for field in ("puzzle_indices", "group_indices")),
    ):
        path = folder / split / f"all__{field}.npy"
        np.save(path, np.load(path)[:kept])
    origins = folder / "trace" / split / "all.npy"
    np.save(origins, np.load(origins)[:0])
    found = {violation.law: str(violation) for violation in _laws(kind, folder, 1)}
    assert found["examples"] == f"{split}/all__inputs.npy: examples: has no example"
    assert "readable" not in found


@pytest.mark.parametrize("kind", KINDS)
def test_many_findings_of_a_law_are_counted_and_what_cannot_be_read_is_one(kind, tmp_path):
    _built(kind, tmp_path / "built", 1)
    folder = tmp_path / "built/out"
    of_asset = families.kind_of_asset(f"puzzles/{kind}")
    (law,) = (each for each in (of_asset.laws if of_asset else ()) if each.name == kind)
    path = folder / "train/all__labels.npy"
    tokens = np.load(path)
    whole, tokens[:, 0] = tokens.copy(), 7 if kind == "grid" else 0
    np.save(path, tokens)
    found = list(law.check(Subject(folder)))
    per_law = Counter(each.law for each in found)
    assert max(per_law.values()) <= MOST + 1, "20 are named, and the rest is counted"
    assert any(re.search(r"\d+ (more|in all)", each.found) for each in found)
    np.save(path, whole)
    assert list(law.check(Subject(folder))) == []
    path.unlink()
    assert [each.law for each in law.check(Subject(folder))][-1:] == ["readable"]


def test_batches_are_looked_at_by_as_many_threads_in_order(tmp_path):
    _built("domino", tmp_path / "games", 1)
    names: set[str] = set()
    together = threading.Barrier(3, timeout=60)

    def look(rows: Rows) -> int:
        if rows.first < 30:
            together.wait()  # no thread passes alone
        names.add(threading.current_thread().name)
        return rows.first

    dataset = Dataset(tmp_path / "games/out", workers=3)
    count = len(dataset.arrays("train", "all").inputs)
    assert list(dataset.each("train", "all", look, 10)) == list(range(0, count, 10))
    assert len(names) == 3


def test_an_error_in_a_thread_is_the_error_of_the_law(tmp_path):
    _built("domino", tmp_path / "games", 1)

    def look(rows: Rows) -> int:
        if rows.first == 20:
            raise BadInput("here", "is wrong", 20)
        return rows.first

    dataset = Dataset(tmp_path / "games/out", workers=2)
    found = dataset.each("train", "all", look, 10)
    assert [next(found), next(found)] == [0, 10]
    with pytest.raises(BadInput, match="here"):
        next(found)


def test_a_file_that_becomes_shorter_is_refused(tmp_path):
    tokens = np.arange(400, dtype=np.int32).reshape(40, 10)
    path = tmp_path / "tokens.npy"
    np.save(path, tokens)
    with _TokenFile(path, tokens) as file:
        assert np.array_equal(file.read(7, 9), tokens[7:9])
        os.truncate(path, path.stat().st_size - 60)
        assert np.array_equal(file.read(30, 38), tokens[30:38])
        with pytest.raises(BadInput, match=r"tokens\.npy.*became shorter"):
            file.read(38, 40)


@pytest.mark.parametrize(
    ("asked", "expected"), [(0, 0), (1, 1), (3, 3), (500, 4), (None, 1), ("2", 1), (True, 1)]
)
def test_the_workers_of_the_config_are_those_of_the_laws(asked, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    subject = Subject(tmp_path, config={"workers": asked})
    assert _dataset(subject).workers == expected
    assert _dataset(subject) is _dataset(subject)
    assert _dataset(Subject(tmp_path)) is not _dataset(subject)
