"""What a person reads who builds SYNTH without a Dagster run, and what files give for a shard."""

from pathlib import Path

import pytest

from assets.family import available
from gristmill import families
from gristmill.asset import Asset, Wanted
from gristmill.contract import BadInput
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.synth.builds import is_asked, settings_of_shard
from gristmill.synth.samples import write_drop, write_samples
from resources import Lake


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
    assert [*available(harmony, lake), *available(datasets, lake)] == []
    write_drop(lake.inbox("synth") / "first", files=4, rows=3)
    assert list(available(harmony, lake)) == ["00", "01", "02", "03"]
    assert list(available(datasets, lake)) == []
    publish(build_of(lake, "02"))
    assert list(available(datasets, lake)) == ["02"]
    assert list(available(declared("synth/kd_manifest"), lake)) == [""]


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
