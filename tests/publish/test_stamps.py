"""A file of a shared folder is not hashed only because a commit of another partition linked it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from gristmill.contract import Summary
from gristmill.provenance import Record, inventory
from gristmill.publish import stamps
from gristmill.publish.build import Attempt, Build, InputDamaged, lock_of_folder
from gristmill.publish.publish import publish
from gristmill.run import locks
from tests.publish.test_input_proof import flip_and_keep_the_time, replace_by_a_copy
from tests.publish.tiny import TinyConfig, made_from, tiny_build

SOURCE = "family/source"
NOTES = "family/.gristmill/stamps/source.json"


def source(root: Path, partition: str, seed: int = 1) -> Build:
    config = TinyConfig(seed=seed)
    return tiny_build(
        root, SOURCE, partition=partition, shared=True, config=config, asset="test/source"
    )


def user(root: Path, partition: str = "p1") -> Build:
    """A build with one partition of the shared folder as its input."""

    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        (attempt.out / "made").write_bytes(b"made")
        return Summary(files={})

    item = made_from(publish(source(root, partition)).record)
    return tiny_build(root, "family/user", inputs=[item], make=make, asset="test/user")


def test_files_of_a_shared_folder_are_not_hashed(tmp_path, hashed):
    build = user(tmp_path)
    for partition in ("p2", "p3"):
        publish(source(tmp_path, partition))
    publish(source(tmp_path, "p2", seed=2))
    assert publish(build).rebuilt
    assert hashed == []


def test_a_file_without_a_note_is_hashed(tmp_path, hashed):
    build = user(tmp_path)
    publish(source(tmp_path, "p2"))
    (tmp_path / NOTES).unlink()
    assert publish(build).rebuilt
    assert tmp_path / SOURCE / "train/p1_steps.npy" in hashed
    hashed.clear()
    publish(source(tmp_path, "p3"))
    publish(build, rebuild=True)
    assert hashed == []  # it was noted when it was hashed


def test_what_changed_since_it_was_hashed_is_not_noted(tmp_path):
    folder = tmp_path / SOURCE
    publish(source(tmp_path, "p1"))
    publish(source(tmp_path, "p2"))
    before = dict(stamps.read(folder))
    (tmp_path / NOTES).unlink()
    flip_and_keep_the_time(folder / "train/p1_steps.npy")
    stamps.add(folder, before, is_shared=True)
    assert set(before) - set(stamps.read(folder)) == {"train/p1_steps.npy"}


def test_nothing_is_noted_while_a_commit_is_under_way(tmp_path):
    folder = tmp_path / SOURCE
    publish(source(tmp_path, "p1"))
    before = dict(stamps.read(folder))
    (tmp_path / NOTES).unlink()
    with locks.locked(lock_of_folder(folder), "source"):
        stamps.add(folder, before, is_shared=True)
    assert not (tmp_path / NOTES).exists()
    stamps.add(folder, before, is_shared=True)
    assert stamps.read(folder) == before


def test_an_artifact_is_published_though_its_notes_cannot_be_written(tmp_path, hashed):
    (tmp_path / NOTES).parent.parent.mkdir(parents=True)
    (tmp_path / NOTES).parent.write_text("a file in the place of the folder")
    build = user(tmp_path)
    assert publish(source(tmp_path, "p2")).rebuilt
    assert publish(build).rebuilt
    assert hashed


@pytest.mark.parametrize("later", [False, True])
def test_a_flipped_bit_is_found_though_a_commit_linked_the_file(tmp_path, later):
    build = user(tmp_path)
    publish(source(tmp_path, "p2"))
    flip_and_keep_the_time(tmp_path / SOURCE / "train/p1_steps.npy")
    if later:
        publish(source(tmp_path, "p3"))
    with pytest.raises(InputDamaged, match=r"p1_steps\.npy: sha256"):
        publish(build)


def _records(folder: Path) -> Sequence[Record]:
    return inventory.others(folder, SOURCE, None).records


def test_a_file_that_is_replaced_during_a_commit_gets_no_note(tmp_path):
    publish(source(tmp_path, "p1"))
    folder = tmp_path / SOURCE
    before = stamps.unchanged(folder, _records(folder))
    assert before == stamps.read(folder)
    replace_by_a_copy(folder / "train/p1_steps.npy")
    stamps.keep(folder, before, [])
    assert set(before) - set(stamps.read(folder)) == {"train/p1_steps.npy"}


def test_a_file_that_is_gone_has_no_note(tmp_path):
    publish(source(tmp_path, "p1"))
    publish(source(tmp_path, "p2"))
    paths = set(stamps.read(tmp_path / SOURCE))
    assert {"train/p1_steps.npy", "train/p2_steps.npy"} <= paths
    assert all((tmp_path / SOURCE / path).is_file() for path in paths)
    stamps.keep(tmp_path / SOURCE, {}, ["train/p1_steps.npy", "gone"])
    assert list(json.loads((tmp_path / NOTES).read_text())) == ["train/p1_steps.npy"]


def test_a_record_that_cannot_be_read_leaves_its_files_without_a_note(tmp_path):
    publish(source(tmp_path, "p1"))
    publish(source(tmp_path, "p2"))
    (tmp_path / SOURCE / "provenance/p1.json").write_text("{")
    assert all(
        "p2" in path for path in stamps.unchanged(tmp_path / SOURCE, _records(tmp_path / SOURCE))
    )
