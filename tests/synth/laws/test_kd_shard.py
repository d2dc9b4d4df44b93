"""Laws of the files of a shard: present, readable, of equal boundaries."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import Violation
from gristmill.families import Subject
from gristmill.synth.format import indexed
from gristmill.synth.laws.kd_shard import kd_laws, law
from tests.synth.damage import broken_laws, train_tokens


def test_a_built_shard_breaks_no_law(kd_root: Path) -> None:
    assert list(kd_laws(kd_root, "00", 0.3)) == []
    assert list(kd_laws(kd_root)) == []
    assert list(law(Subject(kd_root, "00", config={"valid_fraction": 0.3}))) == []


def test_the_law_of_a_shard_takes_the_fraction_of_its_config(kd_root: Path) -> None:
    subject = Subject(kd_root, "00", config={"valid_fraction": 0.001})
    assert {violation.law for violation in law(subject)} == {"split rule", "split share"}


def test_other_lengths_break_equal_boundaries(kd_copy: Path) -> None:
    path = kd_copy / "train/shard_00_span"
    lengths = train_tokens(kd_copy).lengths.copy()
    lengths[:2] += [1, -1]
    values = np.fromfile(path.with_suffix(".bin"), dtype="u1")
    path.with_suffix(".bin").unlink()
    path.with_suffix(".idx").unlink()
    with indexed.IndexedWriter(path, "u1") as writer:
        writer.add(values, lengths)
    assert broken_laws(kd_copy) == {"equal boundaries"}


def test_a_wrong_dtype_breaks_dtypes(kd_copy: Path) -> None:
    path = kd_copy / "train/shard_00_span"
    values = np.fromfile(path.with_suffix(".bin"), dtype="u1").astype("<i4")
    path.with_suffix(".bin").unlink()
    path.with_suffix(".idx").unlink()
    with indexed.IndexedWriter(path, "<i4") as writer:
        writer.add(values, train_tokens(kd_copy).lengths)
    assert broken_laws(kd_copy) == {"dtypes"}


@pytest.mark.parametrize(
    ("path", "law"),
    [
        ("train/shard_00_tokens.idx", "empty split"),
        ("train/shard_00_span.bin", "readable"),
        ("trace/trace_00.parquet", "trace"),
    ],
)
def test_a_missing_file_breaks_its_law(kd_copy: Path, path: str, law: str) -> None:
    (kd_copy / path).unlink()
    assert law in broken_laws(kd_copy)


def test_an_empty_folder_has_no_shard_and_no_trace(tmp_path: Path) -> None:
    assert broken_laws(tmp_path, None) == {"trace"}
    assert [v.law for v in kd_laws(tmp_path)] == ["shards"]


def test_each_file_of_a_split_without_tokens_is_a_violation(kd_copy: Path) -> None:
    (kd_copy / "valid/shard_00_tokens.idx").unlink()
    names = ["lossmask.bin", "lossmask.idx", "span.bin", "span.idx", "tokens.bin"]
    assert list(kd_laws(kd_copy, "00"))[:5] == [
        Violation("empty split", f"valid/shard_00_{name}", "there is no tokens index")
        for name in names
    ]


def test_a_missing_split_is_no_violation_but_for_its_trace(kd_copy: Path) -> None:
    shutil.rmtree(kd_copy / "valid")
    assert broken_laws(kd_copy) == {"trace"}
