"""Drops of SYNTH and their files as inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.drop import drop as command
from gristmill.contract import BadInput
from gristmill.inbox import READY as READY_STATE
from gristmill.inbox import REFUSED
from gristmill.synth.builders.drop_in_use import RAW, READY, Source, drop_inputs, root_above
from gristmill.synth.samples import write_drop
from resources import Lake


def test_a_folder_that_gristmill_drop_brought_is_complete_without_a_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data/drops").mkdir(parents=True)
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "data"))
    paths = write_drop(tmp_path / "mine", files=4, rows=1, done=False)
    result = CliRunner().invoke(command, [str(tmp_path / "mine"), "--family", "synth"])
    assert (result.exit_code, "refused" in result.output) == (0, False), repr(result.exception)
    place = tmp_path / "data/drops/synth/mine"
    assert not (place / ".done").exists()
    assert Lake().judged("synth", place).state == READY_STATE
    (place / paths[0].name).unlink()
    found = Lake().judged("synth", place)
    assert (found.state, "is listed and not in the drop" in found.reason) == (REFUSED, True)
    (place / "SHA256SUMS").unlink()
    assert "3 Parquet files of 500" in Lake().judged("synth", place).reason


def test_raw_files_with_equal_sums_are_refused_where_a_look_did_not_compare_them(
    tmp_path: Path,
) -> None:
    lake = Lake(data_root=str(tmp_path))
    for inbox in (RAW, READY):
        folder = lake.inbox(inbox) / "a"
        folder.mkdir(parents=True)
        for name in "xy":
            (folder / name).write_text("{}")
    files = [lake.inbox(READY) / "a/x", lake.inbox(READY) / "a/y"]
    assert len(drop_inputs(lake, Source(READY, files[0].parent), files, "manifest")) == 2
    files = [lake.inbox(RAW) / "a/x", lake.inbox(RAW) / "a/y"]
    with pytest.raises(BadInput, match=r"a/y: has the bytes of drops/synth/a/x: its records would"):
        drop_inputs(lake, Source(RAW, files[0].parent), files, "00")


def test_a_folder_near_the_root_of_the_disk_is_looked_at_like_any_other() -> None:
    assert root_above(Path("/data/drops/synth/mine")) == Path("/data")
    assert root_above(Path("/mine")) == Path("/")
