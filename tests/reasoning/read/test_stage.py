"""Staging: verified copies for the ranks of a node, continued after a kill, removed exactly."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.hashing import HashedFile
from gristmill.publish.build import DiskFull
from gristmill.reasoning.format import names
from gristmill.reasoning.format.published import STAGED
from gristmill.reasoning.read import stage as staging
from gristmill.reasoning.read.shard_files import verify_shards
from gristmill.reasoning.read.shard_reader import ShardReader
from gristmill.reasoning.read.stage import stage, unstage
from tests.chess.laws.damage import flip
from tests.publish.tiny import snapshot
from tests.reading.readers import publish_part
from tests.reasoning.exported_root import build_dataset
from tests.reasoning.published import parts, publish
from tests.reasoning.published_root import built
from tests.reasoning.shard_folders import tokens, write_folder, write_shard
from tests.reasoning.supervised_folder import Supervised, write_supervised

SPLIT = "openr1_math_220k/train"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Supervised:
    return write_supervised(tmp_path_factory.mktemp("made"), examples=40)


@pytest.fixture(scope="module")
def published(made: Supervised, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("published")
    return publish(root / "data", made, root / "work")


@pytest.fixture
def shards(published: Path, tmp_path: Path) -> Path:
    """The folder of all shards in a data root that a test may damage."""
    root = tmp_path / "data"
    shutil.copytree(published.parents[2], root, ignore=shutil.ignore_patterns(".gristmill"))
    return root / names.TOKENIZED


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "local" / "job"


def staged_for(shards: Path, target: Path, *ranks: int, world_size: int = 2, **options: Any) -> Any:
    return stage(shards, target, ranks=ranks, world_size=world_size, job="j", **options)


@pytest.mark.parametrize("outputs", [["bin"], ["safetensors", "bin"]])
def test_a_dataset_of_any_tokenizer_is_staged_and_verified(tmp_path, target, outputs):
    build_dataset(tmp_path)
    built(tmp_path, "reasoning/tokens", "mine", outputs=outputs)
    dataset, name = tmp_path / names.TOKENS / "mine", f"gsm8k/train/shard_00000.{outputs[0]}"
    assert verify_shards(dataset) == []
    staged_for(dataset, target, 0, world_size=1, index=True)
    assert {f"gsm8k/train/{each}" for each in ("index.jsonl", "shard_00000.meta.json")} | {
        name,
        "manifest.json",
        "provenance.json",
    } <= set(snapshot(target / "shards"))
    copies, theirs = (ShardReader(each, verify="hash") for each in (target / "shards", dataset))
    for copied, wanted in zip(copies.batches(3), theirs.batches(3), strict=True):
        assert all((copied[each] == wanted[each]).all() for each in wanted)
    unstage(target)
    flip(dataset / name, -1)
    assert {each.law for each in verify_shards(dataset)} == {"sha256", "file_sha256"}
    with pytest.raises(BadInput, match="it was not staged"):
        staged_for(dataset, target, 0, world_size=1)
    (dataset / name).with_name(f"shard_00009.{outputs[0]}").write_bytes(b"")
    with pytest.raises(BadInput, match="has no meta file"):
        staged_for(dataset, target, 0, world_size=1)


def test_only_the_shards_of_the_ranks_are_copied(published, target):
    staged = staged_for(published, target, 1)
    count = len(ShardReader(published).shards)
    own = {f"{SPLIT}/shard_{n:05d}" for n in range(1, count, 2)}
    assert set(snapshot(target / "shards")) == {
        *(f"{name}{end}" for name in own for end in (".pt", ".meta.json")),
        *("manifest.json", "provenance/manifest.json"),
        "provenance/openr1_math_220k__train.json",
    }
    assert {e.path for e in staged.entries.values()} == {
        f"shards/{p}" for p in snapshot(target / "shards")
    }
    for path, content in snapshot(target / "shards").items():
        assert (published / path).read_bytes() == content
    written = json.loads((target / STAGED).read_text())
    assert (written["job"], written["ranks"], written["world_size"]) == ("j", [1], 2)
    assert written["source"] == str(published)


@pytest.mark.parametrize("verify", ["none", "sizes", "hash"])
def test_a_staged_folder_is_read_as_its_source(published, made, target, verify):
    staged_for(published, target, 0, alignment=published.parents[1] / "alignment")
    options: dict[str, Any] = {"rank": 0, "world_size": 2, "seed": 3, "verify": verify}
    here = ShardReader(target / "shards", steps=target / "alignment", **options)
    there = ShardReader(published, steps=published.parents[1] / "alignment", **options)
    for own, other in zip(here.batches(4), there.batches(4), strict=True):
        assert {name: column.tolist() for name, column in own.items()} == {
            name: column.tolist() for name, column in other.items()
        }
    here.load_state(there.state())
    with pytest.raises(BadInput, match=r"shard_00001\.pt: is missing"):
        ShardReader(target / "shards", rank=1, world_size=2)


def test_a_folder_of_the_seeds_tools_is_staged_by_the_hashes_of_tensors(tmp_path, target):
    root = tmp_path / "gpt2"
    write_folder(root, {"gsm8k/train": [3, 2, 4]})
    staged_for(root, target, 0)
    reader = ShardReader(target / "shards", rank=0, world_size=2)
    assert len(reader) == 7
    shard = root / "gsm8k/train/shard_00001.pt"
    manifest = (root / "manifest.json").read_text()
    meta = (root / "gsm8k/train/shard_00001.meta.json").read_text()
    shard.unlink()
    write_shard(root, "gsm8k/train/shard_00001.pt", tokens(90, 2))
    (root / "gsm8k/train/shard_00001.meta.json").write_text(meta)
    assert manifest == (root / "manifest.json").read_text()
    with pytest.raises(BadInput, match=r"shard_00001\.pt: its tensor sha256 is .* the manifest"):
        staged_for(root, target, 1)
    assert not (target / "shards/gsm8k/train/shard_00001.pt").exists()
    assert shard.exists()


def test_a_manifest_or_alignment_of_another_build_is_not_copied(made, tmp_path, target):
    other = write_supervised(tmp_path / "other", examples=30, seed=1)
    listed = parts([made, other], tmp_path / "work")
    for number in (0, 1, 2):
        publish_part(tmp_path / "data", listed, number, 0)
    shards = tmp_path / "data" / names.TOKENIZED
    aligned = {"alignment": tmp_path / "data" / names.ALIGNMENT}
    publish_part(tmp_path / "data", listed, 0, 1)
    with pytest.raises(BadInput, match=r"manifest\.json: was built from another version of openr1"):
        staged_for(shards, target, 0)
    publish_part(tmp_path / "data", listed, 1, 1)
    with pytest.raises(BadInput, match=r"alignment.*: was built from another version of"):
        staged_for(shards, target, 0, **aligned)
    assert not target.exists()
    publish_part(tmp_path / "data", listed, 2, 1)
    staged_for(shards, target, 0, **aligned)


def _other_length(meta: Path) -> None:
    meta.write_text(meta.read_text().replace('"seq_len": 8', '"seq_len": 9'))


MISMATCHES: dict[str, tuple[Callable[[Path], object], str]] = {
    "changed meta": (
        lambda root: _other_length(root / "gsm8k/train/shard_00002.meta.json"),
        r"manifest\.json: differs from gsm8k/train/shard_00002\.meta\.json",
    ),
    "shard of another rank that is not listed": (
        lambda root: write_shard(root, "gsm8k/train/shard_00003.pt", tokens(9, 2)),
        r"manifest\.json: does not list gsm8k/train/shard_00003\.pt",
    ),
    "shard without meta": (
        lambda root: (root / "gsm8k/train/shard_00000.meta.json").unlink(),
        r"shard_00000\.pt: has no meta file",
    ),
    "meta without shard": (
        lambda root: (root / "gsm8k/train/shard_00001.pt").unlink(),
        r"shard_00001\.meta\.json: its shard is missing",
    ),
    "entry without files": (
        lambda root: [path.unlink() for path in root.rglob("shard_00002.*")],
        r"lists 'gsm8k/train/shard_00002\.pt', which is not there",
    ),
    "damaged meta": (
        lambda root: (root / "gsm8k/train/shard_00001.meta.json").write_text("{"),
        r"shard_00001\.meta\.json: is no JSON",
    ),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_manifest_and_metas_that_differ_are_not_copied(tmp_path, target, name):
    root = tmp_path / "gpt2"
    write_folder(root, {"gsm8k/train": [3, 2, 4], "wiqa/dev": [2]})
    damage, rule = MISMATCHES[name]
    target.mkdir(parents=True)
    damage(root)
    with pytest.raises(BadInput, match=rule) as caught:
        staged_for(root, target, 0, corpora=["gsm8k"])
    assert "nothing was staged" in str(caught.value)
    assert not list(target.iterdir())
    staged_for(root, target, 0, corpora=["wiqa"])


def test_files_of_other_ranks_may_be_elsewhere(tmp_path, target):
    root = tmp_path / "gpt2"
    write_folder(root, {"gsm8k/train": [3, 2, 4]})
    for path in root.rglob("shard_00001.*"):
        path.unlink()
    assert staged_for(root, target, 0).ranks == (0,)
    with pytest.raises(BadInput, match="which is not there"):
        staged_for(root, target, 1)


def test_a_source_that_is_not_that_of_its_record_is_not_staged(shards, target):
    for path in (f"{SPLIT}/shard_00001.pt", f"{SPLIT}/shard_00001.meta.json", "manifest.json"):
        file = shards / path
        content = file.read_bytes()
        flip(file, len(content) // 2)
        with pytest.raises(GristmillError):
            staged_for(shards, target, 0, world_size=1)
        assert not (target / "shards" / path).exists() or path == "manifest.json"
        assert not list(target.rglob("*.staging"))
        file.write_bytes(content)
    staged_for(shards, target, 0, world_size=1)
    assert len(ShardReader(target / "shards", verify="hash"))


def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are copied from now on."""
    found: list[str] = []
    written = staging._write

    def counted(copy: Any, *rest: Any) -> Any:
        found.append(Path(copy.path).name)
        return written(copy, *rest)

    monkeypatch.setattr(staging, "_write", counted)
    return found


def test_what_is_there_and_right_is_not_copied_again(published, target, monkeypatch):
    before = staged_for(published, target, 0)
    copied = copies(monkeypatch)
    assert staged_for(published, target, 0) == before
    assert copied == []
    both = staged_for(published, target, 1)
    assert both.ranks == (0, 1)
    assert "shard_00001.pt" in copied
    assert "shard_00000.pt" not in copied
    assert set(both.entries) > set(before.entries)


def test_a_copy_that_was_changed_is_copied_again(published, target, monkeypatch):
    staged_for(published, target, 0)
    whole = snapshot(target / "shards")
    flip(target / "shards" / SPLIT / "shard_00000.pt", 800)
    copied = copies(monkeypatch)
    staged_for(published, target, 0)
    assert copied == ["shard_00000.pt"]
    assert snapshot(target / "shards") == whole


def test_a_file_that_staging_did_not_put_there_is_never_replaced_nor_removed(published, target):
    file = target / "shards" / SPLIT / "shard_00000.pt"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"mine")
    with pytest.raises(GristmillError, match="another file is in the way"):
        staged_for(published, target, 0)
    assert file.read_bytes() == b"mine"
    shutil.copy(published / SPLIT / "shard_00000.pt", file)
    staged = staged_for(published, target, 0)
    assert not staged.entries[f"shards/{SPLIT}/shard_00000.pt"].own
    content = file.read_bytes()
    file.write_bytes(b"mine again")
    with pytest.raises(GristmillError, match="another file is in the way"):
        staged_for(published, target, 0)
    file.write_bytes(content)
    assert unstage(target) == []
    assert list(snapshot(target)) == [f"shards/{SPLIT}/shard_00000.pt"]


def test_a_link_in_the_way_is_refused(published, target, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target.mkdir(parents=True)
    (target / "shards").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(GristmillError, match="its folder is a link"):
        staged_for(published, target, 0)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_disk_with_too_little_room_is_refused_at_once(published, target, monkeypatch):
    needed = sum(
        path.stat().st_size
        for path in published.rglob("*")
        if path.is_file() and path.name not in ("index.jsonl",) and ".gristmill" not in path.parts
    )
    free = needed + staging.SPARE_BYTES - 1
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, free))  # type: ignore[attr-defined]
    with pytest.raises(DiskFull, match=rf"needs {free + 1:,} bytes .* {free:,} are free"):
        staged_for(published, target, 0, world_size=1)
    assert list(snapshot(target)) == [".staging.lock"]
    free += 1
    staged_for(published, target, 0, world_size=1)


def test_a_disk_that_fills_up_keeps_what_was_copied(published, target, monkeypatch):
    write = HashedFile.write

    def full(self: Any, data: Any) -> int:
        if "shard_00002" in str(self._file.name):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    with monkeypatch.context() as patched:
        patched.setattr(HashedFile, "write", full)
        with pytest.raises(DiskFull, match="make room and stage again"):
            staged_for(published, target, 0, world_size=1)
    assert not list(target.rglob("*.staging"))
    with pytest.raises(BadInput, match=r"manifest\.json: is missing"):
        ShardReader(target / "shards")
    copied = copies(monkeypatch)
    staged_for(published, target, 0, world_size=1)
    assert "shard_00001.pt" not in copied
    assert "shard_00002.pt" in copied


def killed(work: Callable[[], object], step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run `work` in a child that dies in the third shard."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 9
        return
    try:
        write, rename = HashedFile.write, Path.rename

        def dying_write(self: Any, data: Any) -> int:
            done = write(self, data[: len(data) // 2])
            if "shard_00002" in str(self._file.name):
                os._exit(9)
            return done + write(self, data[len(data) // 2 :])

        def dying_rename(self: Path, other: Any) -> Path:
            if step == "before the rename" and "shard_00002" in self.name:
                os._exit(9)
            done = rename(self, other)
            if step == "after the rename" and "shard_00002" in self.name:
                os._exit(9)
            return done

        if step == "in a write":
            monkeypatch.setattr(HashedFile, "write", dying_write)
        monkeypatch.setattr(Path, "rename", dying_rename)
        work()
    finally:
        os._exit(1)


KILLS = ["in a write", "before the rename", "after the rename"]


@pytest.mark.parametrize("step", KILLS)
def test_a_killed_staging_continues(published, target, tmp_path, step, monkeypatch):
    killed(lambda: staged_for(published, target, 0, world_size=1), step, monkeypatch)
    shutil.copytree(target, tmp_path / "left")
    assert unstage(tmp_path / "left") == []
    assert not (tmp_path / "left").exists()
    copied = copies(monkeypatch)
    staged = staged_for(published, target, 0, world_size=1)
    assert "shard_00001.pt" not in copied
    assert ("shard_00002.pt" in copied) == (step != "after the rename")
    fresh = staged_for(published, tmp_path / "fresh", 0, world_size=1)
    assert staged.entries == fresh.entries
    assert snapshot(target / "shards") == snapshot(tmp_path / "fresh" / "shards")
    assert unstage(target) == []
    assert not target.exists()


def test_unstaging_removes_only_what_is_listed_and_unchanged(published, target):
    staged_for(published, target, 0, 1)
    (target / "shards" / "notes.txt").write_text("mine")
    changed = target / "shards" / SPLIT / "shard_00000.meta.json"
    whole = changed.read_bytes()
    changed.write_text("{}")
    name = f"shards/{SPLIT}/shard_00000.meta.json"
    assert unstage(target) == [name]
    assert set(snapshot(target)) == {name, "shards/notes.txt", STAGED}
    changed.write_bytes(whole)
    assert unstage(target) == []
    assert snapshot(target) == {"shards/notes.txt": b"mine"}
    with pytest.raises(GristmillError, match="nothing is staged there"):
        unstage(target)


@pytest.mark.parametrize("path", ["../outside", "/etc/hostname", "shards/../../outside"])
def test_a_list_that_leads_out_of_the_folder_is_refused(published, target, path):
    staged_for(published, target, 0)
    (target.parent / "outside").write_text("mine")
    value = json.loads((target / STAGED).read_text())
    value["entries"][0]["path"] = path
    (target / STAGED).write_text(json.dumps(value))
    with pytest.raises(BadInput, match=r"staged\.json: is not of the form"):
        unstage(target)
    assert (target.parent / "outside").exists()
    assert (target / "shards/manifest.json").exists()


def test_a_folder_that_became_a_link_is_not_followed(published, target, tmp_path):
    staged_for(published, target, 0)
    (target / "shards").rename(tmp_path / "moved")
    (target / "shards").symlink_to(tmp_path / "moved")
    assert f"shards/{SPLIT}/shard_00000.pt" in unstage(target)
    assert (tmp_path / "moved" / SPLIT / "shard_00000.pt").exists()


def test_another_job_is_not_mixed_in(shards, target):
    staged_for(shards, target, 0)
    for options, name in (
        ({"job": "other", "world_size": 2}, "job"),
        ({"job": "j", "world_size": 3}, "world_size"),
        ({"job": "j", "world_size": 2, "splits": ["train"]}, "splits"),
    ):
        with pytest.raises(GristmillError, match=f"something else is staged there: {name} is"):
            stage(shards, target, ranks=[0], **options)  # type: ignore[arg-type]
    (shards / "provenance/manifest.json").unlink()
    manifest = shards / "manifest.json"
    manifest.write_text(manifest.read_text() + "\n")
    with pytest.raises(GristmillError, match="manifest_sha256 is"):
        staged_for(shards, target, 1)


@pytest.mark.parametrize("ranks", [[], [2], [-1]])
def test_ranks_outside_of_the_job_are_refused(published, target, ranks):
    with pytest.raises(GristmillError, match="of 2: name some"):
        stage(published, target, ranks=ranks, world_size=2, job="j")


def test_drift_is_not_staged_nor_read_by_a_verified_reader(shards, target):
    report = shards.parents[1] / "reports" / "2026-11-22.json"
    report.parent.mkdir()
    value = {"date": "2026-11-22", "gate": {"passed": False, "breaches": ["gsm8k: tokens"]}}
    report.write_text(json.dumps(value))
    with pytest.raises(GristmillError, match=r"2026-11-22\.json"):
        staged_for(shards, target, 0)
    assert not target.exists()
    with pytest.raises(GristmillError, match=r"2026-11-22\.json"):
        ShardReader(shards, verify="hash")
    assert len(ShardReader(shards, verify="sizes"))


@pytest.mark.parametrize(
    "content", [b"[", b"[]", b"{}", b'{"version": 2}', b'{"version": 1, "entries": 3}', b"null"]
)
def test_a_damaged_list_is_refused(published, target, content):
    target.mkdir(parents=True)
    (target / STAGED).write_bytes(content)
    for work in (lambda: unstage(target), lambda: staged_for(published, target, 0)):
        with pytest.raises(BadInput, match=r"staged\.json: is "):
            work()


def test_the_error_for_shards_that_were_not_staged_names_what_was(published, target):
    staged_for(published, target, 1)
    with pytest.raises(BadInput, match="staged for rank 1 of 2; opened as rank 0 of 1: give the"):
        ShardReader(target / "shards")
    with pytest.raises(BadInput, match="opened as rank 0 of 2"):
        ShardReader(target / "shards", rank=0, world_size=2)
    staged_for(published, target, 0)
    assert len(ShardReader(target / "shards")) == len(ShardReader(published))
    next((target / "shards").rglob("*.pt")).unlink()
    with pytest.raises(BadInput, match="staged for ranks 0, 1 of 2; opened as rank 0 of 1"):
        ShardReader(target / "shards")
