"""What becomes of each file of a drop: raw files, or a finished conversion."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.inbox.account import Account
from gristmill.synth.builders.harmony_shard import shard_name
from gristmill.synth.builders.manifests import MANIFEST, METADATA
from gristmill.synth.raw import (
    FILES,
    NUMBERS,
    READY,
    READY_FILES,
    READY_SHARDS,
    raw_account,
    ready_account,
)
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

RAW_NAMES = [f"synth_{number:03d}.parquet" for number in range(1, 6)]
RAW_TAKEN = {"00": RAW_NAMES[:2], "01": RAW_NAMES[2:3], "02": RAW_NAMES[3:4], "03": RAW_NAMES[4:]}
READY_TAKEN = {
    **{number: [shard_name(number)] for number in NUMBERS},
    "manifest": [MANIFEST, METADATA],
}


def drop(place: Path, *names: str) -> Path:
    """Write files, each with its name as contents."""
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    return place


def account(place: Path, links: LinkRule = REFUSE_LINKS, expected: int = FILES) -> Account:
    if place.parent.name == READY:
        return ready_account(place, links)
    return raw_account(place, links, expected)


def test_every_file_of_a_raw_drop_has_an_account(tmp_path: Path) -> None:
    others = ["README.md", "data/notes.txt", "synth.csv"]
    hidden = [
        ".done",
        ".parquet",
        "._00.parquet",
        ".cache/huggingface/a.parquet",
        ".source.json",
        "gristmill.toml",
    ]
    found = account(drop(tmp_path / "synth/a", *RAW_NAMES, *others, *hidden))
    assert found.taken == RAW_TAKEN
    assert found.left_out == dict.fromkeys(others, "no Parquet file")
    assert found.lines == [
        "00: 2 files taken",
        "01: 1 file taken",
        "02: 1 file taken",
        "03: 1 file taken",
        "3 left out: README.md, data/notes.txt, synth.csv (no Parquet file)",
    ]


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (RAW_NAMES[:3], "a: 3 files: 4 shards need a file each"),
        ([*RAW_NAMES, "b/1.parquet"], "a/b/1.parquet: is in a subfolder, which is not read beside"),
        (["b/1.parquet"], "a: 0 Parquet files of 500: put files whose names end in .parquet into"),
        ([*RAW_NAMES, "1.PARQUET"], "a/1.PARQUET: rename it so that it ends in .parquet in lower"),
    ],
)
def test_files_that_are_not_clear_refuse_a_raw_drop(
    tmp_path: Path, names: list[str], rule: str
) -> None:
    with pytest.raises(BadInput) as raised:
        account(drop(tmp_path / "a", *names, ".done"))
    assert str(raised.value).startswith(f"{tmp_path}/{rule}")


def test_a_list_of_just_its_files_says_that_a_raw_drop_is_complete(tmp_path: Path) -> None:
    place = drop(tmp_path / "a", *RAW_NAMES, "README.md")
    sums = place / "SHA256SUMS"

    def write(*names: str) -> None:
        sums.write_text("".join(f"{'0' * 64}  {name}\n" for name in names))

    with pytest.raises(BadInput) as raised:
        account(place)
    assert str(raised.value) == (
        f"{place}: 5 Parquet files of 500: add the others, or, if these are all, a file .done, or "
        "a SHA256SUMS that lists them"
    )
    write("README.md", *RAW_NAMES)
    assert account(place).taken == RAW_TAKEN
    assert account(place).left_out == {"README.md": "no Parquet file"}
    for names in (RAW_NAMES[:4], [*RAW_NAMES, "synth_006.parquet"], ["README.md"]):
        write(*names)
        with pytest.raises(BadInput, match="5 Parquet files of 500"):
            account(place)
        assert account(place, expected=5).taken == RAW_TAKEN
    sums.write_text("no sum\n")
    with pytest.raises(BadInput, match="SHA256SUMS: line 1: must be 64 hex digits"):
        account(place)


def test_a_finished_conversion_has_its_six_files_and_no_others(tmp_path: Path) -> None:
    assert (*(shard_name(number) for number in NUMBERS), MANIFEST, METADATA) == READY_FILES
    place = drop(tmp_path / "synth_harmony/a", *READY_FILES, "x.parquet", "old/manifest.json")
    found = account(place)
    assert found.taken == READY_TAKEN
    assert found.left_out == dict.fromkeys(
        ["old/manifest.json", "x.parquet"], "no file of a conversion"
    )
    drop(place, "synth_harmony_shard_4.parquet")
    with pytest.raises(BadInput, match=r"a: shard 4 is none of 00, 01, 02, 03$"):
        account(place)


@pytest.mark.parametrize("gone", READY_FILES)
def test_a_finished_conversion_without_one_of_its_files_is_refused(
    tmp_path: Path, gone: str
) -> None:
    place = drop(tmp_path / "synth_harmony/a", *(set(READY_FILES) - {gone}))
    with pytest.raises(BadInput, match=f"a: there is no {gone}$"):
        account(place)


@pytest.mark.parametrize(("inbox", "names"), [("synth", RAW_NAMES), ("synth_harmony", READY_FILES)])
def test_two_files_with_equal_bytes_and_links_refuse_a_drop(
    tmp_path: Path, inbox: str, names: list[str]
) -> None:
    place = drop(tmp_path / inbox / "a", *names, ".done")
    account(place)
    (place / names[3]).write_text(names[1])
    with pytest.raises(BadInput) as raised:
        account(place)
    assert str(raised.value) == (
        f"{place / names[3]}: has the bytes of {names[1]}: its records would count twice: take one "
        "of them out"
    )
    (place / names[3]).unlink()
    (tmp_path / "x").write_text("x")
    (place / names[3]).symlink_to(tmp_path / "x")
    with pytest.raises(BadInput, match=f"{names[3]}: is a link"):
        account(place)
    assert account(place, LinkRule(True, (str(tmp_path),))).taken == (
        RAW_TAKEN if inbox == "synth" else READY_TAKEN
    )


def test_equal_files_that_hold_no_records_are_taken(tmp_path: Path) -> None:
    place = drop(tmp_path / "synth_harmony/a", *READY_FILES)
    for name in (MANIFEST, METADATA):
        (place / name).write_text("{}")
    assert account(place).taken == READY_TAKEN
    assert READY_FILES[:4] == READY_SHARDS
