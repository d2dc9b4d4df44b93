"""`gristmill stage` and `gristmill unstage` as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gristmill.contract import GristmillError
from gristmill.reasoning import commands
from gristmill.reasoning.read.shard_reader import ShardReader
from tests.reasoning.published import publish
from tests.reasoning.shard_folders import write_folder
from tests.reasoning.supervised_folder import write_supervised


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("published")
    publish(root / "data", write_supervised(root / "made", examples=20), root / "work")
    return root / "data"


def run(command: Any, *words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])


def test_shards_are_staged_read_and_removed(data: Path, tmp_path: Path) -> None:
    words = ("j", "--rank", 0, "--rank", 2, "--world-size", 3, "--to", tmp_path)
    done = run(commands.stage, *words, "--data-root", data, "--steps")
    assert done.exit_code == 0, done.output
    assert f"{tmp_path}/j/shards: " in done.output
    assert "bytes, ranks 0, 2 of 3" in done.output
    shards = tmp_path / "j" / "shards"
    reader = ShardReader(
        shards, rank=2, world_size=3, steps=tmp_path / "j/alignment", verify="hash"
    )
    assert {"step_id", "example"} <= set(next(reader.batches(2)))
    (shards / "manifest.json").write_text("[]")
    left = run(commands.unstage, "j", "--to", tmp_path)
    assert left.exit_code == 1
    assert left.output == f"{shards}/manifest.json: was changed, it stays\n"
    (shards / "manifest.json").unlink()
    gone = run(commands.unstage, "j", "--to", tmp_path)
    assert (gone.exit_code, gone.output) == (0, f"{tmp_path}/j: removed\n")
    assert not (tmp_path / "j").exists()


def test_a_folder_outside_of_a_data_root_is_staged(tmp_path: Path) -> None:
    write_folder(tmp_path / "gpt2", {"gsm8k/test": [2], "wiqa/test": [3]})
    words = ("j", "--rank", 0, "--world-size", 1, "--to", tmp_path, "--from", tmp_path / "gpt2")
    assert run(commands.stage, *words, "--corpus", "wiqa").exit_code == 0
    reader = ShardReader(tmp_path / "j/shards", corpora=["wiqa"])
    assert len(reader) == 3
    both = run(commands.stage, *words, "--steps")
    assert both.exit_code == 2
    assert "--steps needs a data root" in both.output


@pytest.mark.parametrize("job", ["", ".", "..", "a/b"])
def test_a_job_has_the_name_of_a_folder(job: str, tmp_path: Path) -> None:
    for words in ((commands.unstage, job), (commands.stage, job, "--rank=0", "--world-size=1")):
        done = run(*words, "--to", tmp_path)
        assert done.exit_code == 2
        assert "cannot be the name of a folder" in done.output


def test_an_error_of_the_library_is_left_to_the_group(tmp_path: Path) -> None:
    done = run(commands.unstage, "j", "--to", tmp_path)
    assert isinstance(done.exception, GristmillError)
    assert "nothing is staged there" in str(done.exception)
