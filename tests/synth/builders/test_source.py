"""Which drop the Harmony dataset is built from."""

from pathlib import Path

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.synth.builders import drop_in_use
from gristmill.synth.raw import READY_FILES
from gristmill.synth.samples import write_drop
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from tests.marked import mark


def chosen(drops: Path, name: str | None = None) -> str:
    return drop_in_use.chosen(drops, name, lambda _: 4).name


def _refusal(folder: Path, expected: int, links: LinkRule = REFUSE_LINKS) -> str | None:
    return drop_in_use.refusal(drop_in_use.Source(drop_in_use.RAW, folder), expected, links)


def test_the_one_complete_drop_is_chosen(tmp_path: Path) -> None:
    with pytest.raises(GristmillError, match="there is no drop: put raw files into synth/<name>/"):
        chosen(tmp_path)
    write_drop(tmp_path / "synth/a", files=4, rows=1, done=False)
    write_drop(tmp_path / "synth/b", files=3, rows=1, done=False)
    assert chosen(tmp_path) == "synth/a"
    assert chosen(tmp_path, "synth/a") == "synth/a"
    with pytest.raises(GristmillError, match="3 Parquet files of 4"):
        chosen(tmp_path, "synth/b")
    with pytest.raises(GristmillError, match="there is no drop 'synth/c', which gristmill"):
        chosen(tmp_path, "synth/c")


def test_several_complete_drops_need_a_name(tmp_path: Path) -> None:
    for name in "ab":
        write_drop(tmp_path / "synth" / name, files=4, rows=1)
    with pytest.raises(GristmillError, match=r"several drops are complete \(synth/a, synth/b\)"):
        chosen(tmp_path)
    assert chosen(tmp_path, "synth/b") == "synth/b"


def test_the_sample_drop_is_used_only_without_another_one(tmp_path: Path) -> None:
    write_drop(tmp_path / "synth/samples", files=4, rows=1)
    assert chosen(tmp_path) == "synth/samples"
    write_drop(tmp_path / "synth/z", files=4, rows=1)
    assert chosen(tmp_path) == "synth/z"


def test_real_files_make_a_drop_of_the_sample_s_name_a_drop_like_others(tmp_path: Path) -> None:
    mark(write_drop(tmp_path / "synth/samples", files=4, rows=1)[0].parent)
    write_drop(tmp_path / "synth/z", files=4, rows=1)
    assert chosen(tmp_path) == "synth/z"
    write_drop(tmp_path / "synth/samples", files=4, rows=1, seed=2)
    with pytest.raises(
        GristmillError, match=r"several drops are complete \(synth/samples, synth/z"
    ):
        chosen(tmp_path)


def test_a_marked_sample_of_another_name_is_used_only_without_another_drop(tmp_path: Path) -> None:
    mark(write_drop(tmp_path / "synth/a", files=4, rows=1)[0].parent)
    assert chosen(tmp_path) == "synth/a"
    write_drop(tmp_path / "synth/z", files=4, rows=1)
    assert chosen(tmp_path) == "synth/z"


def test_hidden_folders_are_not_drops(tmp_path: Path) -> None:
    for name in ("synth/.x", "synth/b", "synth_harmony/a"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "synth/file").touch()
    names = [each.name for each in drop_in_use.present_sources(tmp_path)]
    assert names == ["synth/b", "synth_harmony/a"]


def test_a_drop_with_fewer_files_than_shards_is_refused(tmp_path: Path) -> None:
    write_drop(tmp_path / "synth/a", files=3, rows=1)
    refusal = _refusal(tmp_path / "synth/a", 500)
    assert refusal == f"{tmp_path / 'synth/a'}: 3 files: 4 shards need a file each"


@pytest.mark.parametrize(
    ("numbers", "rule"),
    [
        (["00", "01", "03"], "there is no synth_harmony_shard_02.parquet"),
        (["00", "01", "02", "03", "04"], "shard 04 is none of 00, 01, 02, 03"),
        (["00", "01", "02", "03"], "there is no manifest.json"),
    ],
)
def test_a_finished_conversion_needs_its_four_shards(
    tmp_path: Path, numbers: list[str], rule: str
) -> None:
    for number in numbers:
        (tmp_path / f"synth_harmony_shard_{number}.parquet").touch()
    assert rule in str(drop_in_use.refusal(drop_in_use.Source(drop_in_use.READY, tmp_path), 4))


def test_what_a_finished_conversion_holds_is_looked_at_after_its_names(tmp_path: Path) -> None:
    for name in READY_FILES:
        (tmp_path / name).touch()
    ready = drop_in_use.Source(drop_in_use.READY, tmp_path)
    with pytest.raises(BadInput, match=r"manifest\.json: manifest: ") as raised:
        drop_in_use.account(ready, 4)
    assert str(raised.value).startswith(f"{tmp_path}: ")
    assert drop_in_use.refusal(ready, 4) == str(raised.value)


def test_wrong_settings_of_one_drop_do_not_hide_another(tmp_path: Path) -> None:
    for name in "ab":
        write_drop(tmp_path / "synth" / name, files=4, rows=1)

    def files_of(folder: Path) -> int:
        if folder.name == "a":
            raise BadInput(folder / "gristmill.toml", "not TOML")
        return 4

    assert drop_in_use.chosen(tmp_path, None, files_of).name == "synth/b"
    with pytest.raises(GristmillError, match=r"gristmill\.toml: not TOML"):
        drop_in_use.chosen(tmp_path, "synth/a", files_of)


def test_a_drop_with_a_link_is_refused_unless_links_are_allowed(tmp_path: Path) -> None:
    paths = write_drop(tmp_path / "synth/a", files=4, rows=1)
    target = paths[2].rename(tmp_path / "elsewhere.parquet")
    paths[2].symlink_to(target)
    rule = LinkRule(True, (str(tmp_path),))
    assert "synth_003.parquet: is a link" in str(_refusal(tmp_path / "synth/a", 4))
    assert _refusal(tmp_path / "synth/a", 4, rule) is None
    with pytest.raises(GristmillError, match=r"synth_003\.parquet: is a link"):
        chosen(tmp_path)
    assert drop_in_use.chosen(tmp_path, None, lambda _: 4, rule).name == "synth/a"
