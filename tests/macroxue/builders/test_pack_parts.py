"""Parts of a pack: where the runs are cut, and what names a part."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.builders import pack_parts
from gristmill.macroxue.builders.pack_parts import cut_parts, make_part, read_rows
from gristmill.macroxue.raw import read_run
from gristmill.macroxue.raw.drops import RunFiles, find_runs
from tests.macroxue.lines import step, write_run


@pytest.fixture
def runs(tmp_path: Path) -> tuple[RunFiles, ...]:
    """Five runs whose steps files have 30 bytes each, as cut_parts sees them."""
    for name in "abcde":
        write_run(tmp_path / "drop", name, [step()])
    return tuple(replace(run, steps_size=30) for run in find_runs(tmp_path / "drop").runs)


@pytest.mark.parametrize(
    ("part_bytes", "counts"),
    [(1, [1] * 5), (30, [1] * 5), (31, [2, 2, 1]), (60, [2, 2, 1]), (150, [5]), (151, [5])],
)
def test_a_part_is_full_at_its_bytes(
    runs: tuple[RunFiles, ...],
    monkeypatch: pytest.MonkeyPatch,
    part_bytes: int,
    counts: list[int],
) -> None:
    monkeypatch.setattr(pack_parts, "PART_BYTES", part_bytes)
    parts = cut_parts(runs, "aligned48", "strict", scanner=False)
    assert [len(part.runs) for part in parts] == counts
    assert [part.first_id for part in parts] == [sum(counts[:at]) for at in range(len(counts))]
    assert [part.size for part in parts] == [30 * count for count in counts]
    assert tuple(run for part in parts for run in part.runs) == runs


def test_the_name_of_a_part_depends_on_the_names_and_sizes_of_its_runs(
    runs: tuple[RunFiles, ...],
) -> None:
    others = [
        runs,
        runs[:4],
        (*runs[:4], replace(runs[4], steps_size=31)),
        (*runs[:4], replace(runs[4], drop="other")),
        (*runs[:4], replace(runs[4], meta_name="f.meta.json")),
    ]
    names = {cut_parts(each, "aligned48", "strict", scanner=False)[0].name for each in others}
    assert len(names) == len(others)
    assert all(name.startswith("rows-000000-") for name in names)


@pytest.mark.parametrize("scanner", [False, True])
def test_rows_of_a_run_that_is_set_aside_do_not_stay_in_the_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scanner: bool
) -> None:
    monkeypatch.setattr(read_run, "BATCH_ROWS", 4)
    write_run(tmp_path / "drop", "a", [step()] * 6)
    write_run(tmp_path / "drop", "b", [*[step()] * 9, step(move="UP")])
    runs = find_runs(tmp_path / "drop").runs
    (part,) = cut_parts(runs, "aligned48", "quarantine", scanner)
    summary = make_part(part, tmp_path / "part")
    assert (tmp_path / "part").stat().st_size == 6 * 48
    assert [rows["run_id"].tolist() for rows in read_rows(tmp_path / "part", "aligned48")] == [
        [0] * 6
    ]
    assert summary["runs"][1]["row"] == 10


@pytest.mark.parametrize(
    ("steps", "likely"),
    [
        (gzip.compress(step(board=[2, 32, *[0] * 14])), "a board holds exponents"),
        (step(), "a log that is not zipped needs `gzip`"),
        (gzip.compress(gzip.compress(step())), "write UTF-8, and zip it once"),
        (gzip.compress(b"\xff\xfe" + step()), "write UTF-8, and zip it once"),
        (gzip.compress(b"\xef\xbb\xbf" + step()), "write objects, without a byte order mark"),
        (gzip.compress(step(move="UP")), ""),
    ],
)
def test_a_refusal_says_what_is_likely_and_what_to_do(
    tmp_path: Path, steps: bytes, likely: str
) -> None:
    write_run(tmp_path / "drop", "a", steps=steps)
    (part,) = cut_parts(find_runs(tmp_path / "drop").runs, "aligned48", "strict", scanner=False)
    with pytest.raises(BadInput) as caught:
        make_part(part, tmp_path / "part")
    cure = '; mend the game, take it out, or set on_error = "quarantine" to set it aside'
    assert caught.value.rule.endswith(cure)
    assert f"({likely}" in caught.value.rule if likely else "(" not in caught.value.rule
