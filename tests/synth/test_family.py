"""Which artifact a folder without a record holds."""

import pytest

from gristmill.synth.family import asset_of


@pytest.mark.parametrize(
    ("files", "asset"),
    [
        (["synth_harmony_shard_00.parquet", "manifest.json"], "synth/harmony"),
        (["trace/trace_00.parquet", "train/shard_00_tokens.bin"], "synth/kd_shards"),
        (["trace/trace_00.parquet", "synth_harmony_shard_00.parquet"], "synth/kd_shards"),
        (["train/shard_00_tokens.idx"], "synth/kd_shards"),
        (["dataset_dict.json", "trace/trace_00.parquet"], "synth/distill"),
        (["trace/readme.txt", "train/shard_00_tokens.bin"], None),
        (["synth_001.parquet"], None),
        ([], None),
    ],
)
def test_a_folder_is_known_by_the_names_of_its_files(tmp_path, files, asset):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert asset_of(tmp_path) == asset
    assert asset_of(tmp_path / "missing") is None
