"""Which drop the Harmony dataset is built from, and what each artifact is built from."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.drop import drop as command
from gristmill import families
from gristmill.asset import Asset, Wanted
from gristmill.contract import BadInput, GristmillError
from gristmill.data_root import NotReady
from gristmill.inbox import GONE, REFUSED, UNREAD
from gristmill.inbox import READY as READY_STATE
from gristmill.inbox.listing import Account
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.synth.builders import drop_in_use
from gristmill.synth.builders.drop_in_use import Source, drop_inputs
from gristmill.synth.builds import is_asked, settings_of_shard
from gristmill.synth.raw import RAW, READY, READY_FILES
from gristmill.synth.samples import write_drop, write_samples
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from resources import Lake
from tests.marked import mark


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(data_root=str(tmp_path))


def declared(key: str) -> Asset:
    asset = families.kind_of_asset(key)
    assert isinstance(asset, Asset)
    return asset


def build_of(lake: Lake, number: str, **chosen: object) -> Build:
    """The build of a Harmony shard, with values that a run chooses."""
    asset = declared("synth/harmony")
    return asset.build(Wanted(asset, lake, number, chosen))


@pytest.mark.parametrize("key", ["synth/harmony", "synth/kd_shards", "synth_smoke/kd_shards"])
def test_another_partition_than_the_four_shards_is_refused_by_its_name(lake, key):
    write_samples(lake.inbox("synth") / "samples")
    asset = declared(key)
    for number in ("04", "", "../00"):
        with pytest.raises(ValueError, match=rf"^'{number}' is none of 00, 01, 02, 03$"):
            asset.build(Wanted(asset, lake, number))


def test_shards_can_be_built_while_a_drop_is_in_use_and_datasets_of_those_that_stand(lake):
    harmony, datasets = declared("synth/harmony"), declared("synth/kd_shards")
    assert [*harmony.ready(lake), *datasets.ready(lake)] == []
    write_drop(lake.inbox("synth") / "first", files=4, rows=3)
    assert list(harmony.ready(lake)) == ["00", "01", "02", "03"]
    assert list(datasets.ready(lake)) == []
    publish(build_of(lake, "02"))
    assert list(datasets.ready(lake)) == ["02"]
    assert list(declared("synth/kd_manifest").ready(lake)) == [""]


def test_a_value_of_a_run_comes_before_those_of_files(lake):
    write_drop(lake.inbox("synth") / "first", files=4, rows=3)
    (lake.root / "gristmill.toml").write_text("[synth.harmony]\nrows_per_group = 7\n")
    configs = [build_of(lake, "00").config, build_of(lake, "00", developer="").config]
    configs.append(build_of(lake, "00", rows_per_group=9).config)
    assert [config.rows_per_group for config in configs] == [7, 7, 9]  # type: ignore[attr-defined]
    assert configs[1].developer is None  # type: ignore[attr-defined]
    with pytest.raises(BadInput, match="num_shards = 5: must be 4, one for each partition"):
        build_of(lake, "00", num_shards=5)


def test_files_give_for_a_shard_what_the_drop_says_that_it_was_built_from(lake):
    drop = lake.inbox("synth") / "first"
    write_drop(drop, files=4, rows=3)
    (lake.root / "gristmill.toml").write_text("[synth.harmony]\nrows_per_group = 7\n")
    (drop / "gristmill.toml").write_text('[synth.harmony]\ndeveloper = ""\n')
    assert settings_of_shard("synth/harmony", lake, "00") == {"rows_per_group": 7}
    publish(build_of(lake, "00"))
    given = settings_of_shard("synth/harmony", lake, "00")
    assert (given, given.file) == ({"developer": None}, drop / "gristmill.toml")
    assert settings_of_shard("synth/kd_shards", lake, "00") == {}
    drop.rename(lake.inbox("synth") / "second")
    given = settings_of_shard("synth/harmony", lake, "00")
    assert (given, given.file) == ({"rows_per_group": 7}, lake.root / "gristmill.toml")


def test_files_give_for_conversations_what_their_drop_says(lake):
    drop = lake.inbox("chat") / "talks"
    drop.mkdir(parents=True)
    (lake.root / "gristmill.toml").write_text("[chat.kd_shards]\nbad_rows = 2\n")
    (drop / "gristmill.toml").write_text("[chat.kd_shards]\nbad_rows = 3\n")
    given = [settings_of_shard("chat/kd_shards", lake, f"{name}__00") for name in ("talks", "gone")]
    assert given == [{"bad_rows": 3}, {"bad_rows": 2}]
    assert is_asked("chat/kd_shards", lake, "talks__00")
    assert not is_asked("chat/distill", lake, "talks__00")


@pytest.fixture
def drops(tmp_path: Path) -> Path:
    return tmp_path / "drops"


def chosen(drops: Path, name: str | None = None) -> str:
    """The drop in use, where the settings name one or none."""
    text = "[synth.raw]\nfiles = 4\n" + (f'[synth.harmony]\ndrop = "{name}"\n' if name else "")
    (drops.parent / "gristmill.toml").write_text(text)
    return drop_in_use.source_of(Lake(data_root=str(drops.parent))).name


def test_the_one_complete_drop_is_chosen_and_of_several_the_one_that_is_named(drops):
    with pytest.raises(
        NotReady, match="there is no drop: put raw files into synth/<name>/"
    ) as none:
        chosen(drops)
    write_drop(drops / "synth/a", files=4, rows=1, done=False)
    write_drop(drops / "synth/b", files=3, rows=1, done=False)
    assert chosen(drops) == chosen(drops, "synth/a") == "synth/a"
    with pytest.raises(GristmillError, match="3 Parquet files of 4"):
        chosen(drops, "synth/b")
    with pytest.raises(NotReady, match="there is no drop 'synth/c', which gristmill") as unknown:
        chosen(drops, "synth/c")
    (drops / "synth/b/.done").touch()
    write_drop(drops / "synth/b", files=4, rows=1, seed=2)
    with pytest.raises(NotReady, match=r"several drops are complete \(synth/a, synth/b\)") as both:
        chosen(drops)
    assert [each.value.state for each in (none, unknown, both)] == [GONE, GONE, UNREAD]
    assert chosen(drops, "synth/b") == "synth/b"


@pytest.mark.parametrize(("name", "marked"), [("samples", False), ("a", True), ("samples", True)])
def test_samples_are_used_only_without_another_drop(drops, name, marked):
    folder = write_drop(drops / "synth" / name, files=4, rows=1)[0].parent
    if marked:
        mark(folder)
    assert chosen(drops) == f"synth/{name}"
    write_drop(drops / "synth/z", files=4, rows=1, seed=3)
    assert chosen(drops) == "synth/z"
    if marked:  # with real files it is a drop like others
        write_drop(folder, files=4, rows=1, seed=2)
        with pytest.raises(GristmillError, match=rf"several drops are complete \(synth/{name}, "):
            chosen(drops)


def test_hidden_folders_are_no_drops_and_a_finished_conversion_is_known_by_names(tmp_path):
    for name in ("synth/.x", "synth/b", "synth_harmony/a"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "synth/file").touch()
    names = [each.name for each in drop_in_use.present_sources(tmp_path)]
    assert names == ["synth/b", "synth_harmony/a"]
    for name in READY_FILES:
        (tmp_path / name).write_text(name)
    with pytest.raises(BadInput, match=r"manifest\.json: manifest: cannot be read") as raised:
        drop_in_use.account(READY, tmp_path, REFUSE_LINKS)
    assert str(raised.value).startswith(f"{tmp_path}: ")


def test_wrong_settings_of_one_drop_do_not_hide_another(drops):
    for seed, name in enumerate("ab"):
        write_drop(drops / "synth" / name, files=4, rows=1, seed=seed)
    (drops / "synth/a/gristmill.toml").write_text("[")
    assert chosen(drops) == "synth/b"
    with pytest.raises(GristmillError, match=r"gristmill\.toml: "):
        chosen(drops, "synth/a")


def test_a_drop_with_a_link_is_refused_unless_links_are_allowed(drops):
    paths = write_drop(drops / "synth/a", files=4, rows=1)
    paths[2].symlink_to(paths[2].rename(drops.parent / "elsewhere.parquet"))
    with pytest.raises(GristmillError, match=r"synth_003\.parquet: is a link"):
        chosen(drops)
    rule = LinkRule(True, (str(drops.parent),))
    assert drop_in_use.account(RAW, drops / "synth/a", rule).taken["02"] == ["synth_003.parquet"]


def test_a_folder_that_gristmill_drop_brought_is_complete_without_a_mark(tmp_path, monkeypatch):
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


def test_raw_files_with_equal_sums_are_refused_where_a_look_did_not_compare_them(tmp_path):
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


@pytest.mark.parametrize("drop", ["/mine", "/drops/mine"])
def test_a_folder_near_the_root_of_the_disk_is_looked_at_like_any_other(drop):
    with pytest.raises(BadInput, match="0 Parquet files of 500"):
        drop_in_use.account(RAW, Path(drop), REFUSE_LINKS)


def test_columns_that_neither_messages_nor_metadata_take_are_named(drops):
    drop = drops / "synth/a"
    write_drop(drop, files=4, rows=3)

    def states() -> dict[str, tuple[str, str]]:
        account = drop_in_use.account(RAW, drop, REFUSE_LINKS)
        found = drop_in_use.column_states(RAW, drop, REFUSE_LINKS, account, {})
        return {each.name: (each.state, each.what) for each in found}

    assert states()["query"] == ("read", "messages")
    assert states()["model"] == ("read", "metadata_fields")
    assert states()["words"][0] == "unread"
    (drop / "gristmill.toml").write_text('[synth.harmony]\nmetadata_fields = ["synth_id"]\n')
    assert states()["model"][0] == "unread"
    assert drop_in_use.column_states(READY, drop, REFUSE_LINKS, Account(), {}) == []
