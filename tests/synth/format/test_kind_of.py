"""Which artifact a folder holds."""

from pathlib import Path

import pytest

from gristmill.synth.format.kind_of import kind_of


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (["synth_harmony_shard_00.parquet", "manifest.json"], "harmony"),
        (["trace/trace_00.parquet", "train/shard_00_tokens.bin"], "megatron"),
        (["trace/trace_00.parquet", "synth_harmony_shard_00.parquet"], "megatron"),
        (["trace/readme.txt", "train/shard_00_tokens.bin"], None),
        (["synth_001.parquet"], None),
        ([], None),
    ],
)
def test_a_folder_is_known_by_the_names_of_its_files(
    tmp_path: Path, files: list[str], kind: str | None
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert kind_of(tmp_path) == kind


def test_a_missing_folder_is_of_no_kind(tmp_path: Path) -> None:
    assert kind_of(tmp_path / "missing") is None
