"""Documents by number: tokens, mask and span of Megatron's files, and the raw row of each."""

import errno
import fcntl
import json
import os
import pickle
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.loading import Loader, Packed, Plan, mixture
from gristmill.provenance import RECORD
from gristmill.reading import StaleDataset
from gristmill.synth.read import distill, documents
from gristmill.synth.read.documents import (
    INDEX_FILES,
    DistilledRows,
    SynthKDDocuments,
    contradiction,
    index_folder,
)
from gristmill.synth.read.documents import opened as documents_of
from gristmill.vocabularies.pinned import O200K
from tests.later import later
from tests.sample_root import SampleRoot

indexed = later("megatron.core.datasets.indexed_dataset")
COLUMNS = {"tokens": "tokens", "loss_mask": "lossmask", "span_id": "span"}


@pytest.fixture
def prefixes(sample_root: SampleRoot) -> list[Path]:
    folder = sample_root.data / "megatron/synth_kd_v1/train"
    return [folder / f"shard_{shard:02d}_tokens" for shard in (0, 2)]


def test_documents_of_a_batch_are_those_of_megatron(prefixes):
    source = SynthKDDocuments(prefixes)
    batch = next(iter(Loader(Plan(source, seed=5), 12, form="numpy")))
    shards = np.searchsorted(source.cuts, batch["number"], "right") - 1
    assert set(shards.tolist()) == {0, 1}
    for column, name in COLUMNS.items():
        data = [indexed.IndexedDataset(str(p).replace("tokens", name)) for p in prefixes]
        for row, (number, shard) in enumerate(zip(batch["number"], shards, strict=True)):
            document = data[shard][int(number - source.cuts[shard])]
            length = int(batch["length"][row])
            assert np.array_equal(batch[column][row, :length], document)
            assert not batch[column][row, length:].any()


def test_packed_rows_have_the_tokens_masks_and_spans_of_their_documents(prefixes, sample_root):
    documents = SynthKDDocuments(prefixes)
    rows = Packed(documents, 1024)
    assert rows.lengths().sum() == documents.lengths().sum()
    read = rows.read(np.arange(len(rows)))
    for row in range(len(rows)):
        bounds = read["cu_seqlens"][row]
        for begin, (document, first, length) in zip(
            bounds, rows.pieces(row).tolist(), strict=False
        ):
            found = documents.read(np.array([document]))
            for name in COLUMNS:
                piece = found[name][0, first : first + length]
                assert np.array_equal(read[name][row, begin : begin + length], piece)
            labels = [*found["tokens"][0, first + 1 : first + length + 1], 0][:length]
            assert read["labels"][row, begin : begin + length].tolist() == labels
    # Where the mask asks for a loss there is a label of the same document.
    assert not (read["loss_mask"].astype(bool) & (read["labels"] == 0)).any()
    facts = next(iter(rows.origin(1))).facts()
    assert facts == next(iter(documents.origin(int(rows.pieces(1)[0, 0])))).facts()
    opened = documents_of([prefixes[0].parent.parent], split="valid", seq_len=512)
    assert isinstance(opened, Packed)
    assert opened.identity.numbering["packed"] == {"rule": 1, "seq_len": 512}


def test_documents_are_mixed_by_tokens_and_pickled_but_not_of_two_splits(prefixes):
    sources = {prefix.name: SynthKDDocuments([prefix]) for prefix in prefixes}
    lengths = {name: source.lengths() for name, source in sources.items()}
    wanted = {name: int(each.sum()) // 2 for name, each in lengths.items()}
    mixed = mixture(sources, tokens=wanted)
    for (name, each), quota in zip(lengths.items(), mixed.quotas, strict=True):
        assert each[: quota - 1].sum() < wanted[name] <= each[:quota].sum()
    source = SynthKDDocuments(prefixes)
    again = pickle.loads(pickle.dumps(source))
    for name, column in source.read(np.array([3, 0])).items():
        assert np.array_equal(again.read(np.array([3, 0]))[name], column)
    valid = prefixes[0].parent.parent / "valid" / prefixes[0].name
    for wrong in ([prefixes[0], valid], []):
        with pytest.raises(BadInput, match="of one split are read together"):
            SynthKDDocuments(wrong)


def test_documents_of_another_tokenizer_are_refused_by_both_names(prefixes, sample_root, tmp_path):
    name = "train/shard_00_tokens"
    talks = SynthKDDocuments([sample_root.data / "megatron/chat/talks__00" / name])
    own = SynthKDDocuments(prefixes[:1])
    mixture({"own": own, "talks": talks}, epochs={"own": 1, "talks": 1})
    copy = tmp_path / "talks__00"
    shutil.copytree(sample_root.data / "megatron/chat/talks__00", copy)
    record = copy / RECORD
    found = json.loads(record.read_bytes())
    found["tokenizer"]["sha256"] = "ab" * 32
    record.chmod(0o644)
    record.write_text(json.dumps(found))
    other = SynthKDDocuments([copy / name], verify="none")
    with pytest.raises(
        GristmillError, match=rf"synth_kd_v1 and .* of different .*{O200K.sha256}; .*abab"
    ):
        mixture({"own": own, "other": other}, epochs={"own": 1, "other": 1})
    with pytest.raises(BadInput, match=rf"ids of another tokenizer: .*abab.*{prefixes[0]}"):
        SynthKDDocuments([prefixes[0], copy / name], verify="none")


@pytest.fixture
def folders(sample_root: SampleRoot) -> list[Path]:
    return [sample_root.data / "distill/synth" / shard for shard in ("02", "00")]


@pytest.mark.parametrize("split", ["train", "valid"])
def test_rows_of_a_batch_are_those_of_the_files(folders, split):
    source = DistilledRows(folders, split)
    rows = [
        row
        for folder in folders
        for each in distill.batches(folder, split)
        for row in each.to_pylist()
    ]
    assert len(source) == len(rows) == source.cuts[-1] > source.cuts[1] > 0
    assert source.lengths().tolist() == [len(row["input_ids"]) for row in rows]
    mixed = mixture(
        {each.name: DistilledRows([each], split) for each in folders}, epochs={"00": 1, "02": 1}
    )
    loaders = [Loader(Plan(each, seed=5), 7, form="numpy") for each in (source, mixed)]
    for batch in chain(*loaders):
        assert batch["input_ids"].shape[1] == batch["length"].max()
        for at, number in enumerate(batch["number"] + source.cuts[batch["source"]]):
            length = int(batch["length"][at])
            for name, behind in (("input_ids", 0), ("labels", -100)):
                assert batch[name][at, :length].tolist() == rows[number][name]
                assert (batch[name][at, length:] == behind).all()
    assert source.read(np.empty(0, np.int64))["labels"].shape == (0, 0)


def test_it_can_be_pickled_until_it_is_rebuilt(folders, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folders[0], copy)
    source = DistilledRows([copy])
    again = pickle.loads(pickle.dumps(source))
    expected = source.read(np.array([3, 0]))
    for name, column in again.read(np.array([3, 0])).items():
        assert np.array_equal(column, expected[name])
    late = pickle.loads(pickle.dumps(source))
    shutil.rmtree(copy)
    shutil.copytree(folders[1], copy)
    with pytest.raises(StaleDataset):
        late.read(np.array([0]))
    assert np.array_equal(source.read(np.array([3, 0]))["labels"], expected["labels"])


def test_it_is_mixed_by_tokens_with_its_like_and_not_with_documents(folders, sample_root):
    one, other = (DistilledRows([folder]) for folder in folders)
    lengths = one.lengths()
    mixed = mixture({"a": one, "b": other}, tokens={"a": int(lengths[:3].sum()), "b": 1})
    assert mixed.quotas == (3, 1)
    documents = SynthKDDocuments([sample_root.data / "megatron/synth_kd_v1/train/shard_00_tokens"])
    unlike = mixture({"a": one, "b": documents}, epochs={"a": 1, "b": 1})
    with pytest.raises(GristmillError, match="differ in the column 'input_ids'"):
        list(Loader(Plan(unlike, seed=1), 64, form="numpy"))


@pytest.mark.parametrize("name", ["train/state.json", "train/data-00000-of-00001.arrow"])
def test_a_missing_or_damaged_file_is_named(folders, tmp_path, name):
    copy = tmp_path / "copy"
    shutil.copytree(folders[0], copy)
    size = (copy / name).stat().st_size
    (copy / name).write_bytes(b"\0" * size)
    with pytest.raises(BadInput, match=name.rpartition("/")[2]):
        DistilledRows([copy], verify="none")
    shutil.copyfile(folders[0] / name, copy / name)
    with (copy / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(BadInput, match=name.rpartition("/")[2]):
        DistilledRows([copy])
    (copy / name).unlink()
    with pytest.raises(BadInput, match=name.rpartition("/")[2]):
        DistilledRows([copy])


def test_a_folder_without_a_record_is_refused(folders, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folders[0], copy)
    (copy / "provenance.json").unlink()
    with pytest.raises(GristmillError, match="has no provenance record"):
        DistilledRows([copy])


WHOLE = {f"k-{name}": f"{name} of one" for name in INDEX_FILES}


def make(folder: Path, text: str = "one") -> None:
    for name in INDEX_FILES:
        (folder / f"k-{name}").write_text(f"{name} of {text}")


def found(cache: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in cache.iterdir() if file.is_file()}


def test_the_files_appear_when_all_are_made_and_nothing_else_stays(tmp_path):
    cache = tmp_path / "a/cache"
    with index_folder(cache, "k") as folder:
        assert folder.parent == cache
        assert list(folder.iterdir()) == []
        make(folder)
        assert found(cache) == {".k.lock": ""}
    assert found(cache) == WHOLE
    assert len(list(cache.iterdir())) == len(INDEX_FILES)
    with index_folder(cache, "k") as folder:
        assert folder == cache
    with index_folder(cache, "other") as folder:
        assert folder != cache
        for name in INDEX_FILES:
            (folder / f"other-{name}").touch()


def test_a_second_process_waits_and_finds_the_index(tmp_path):
    begun, go = Event(), Event()

    def first() -> None:
        with index_folder(tmp_path, "k") as folder:
            begun.set()
            assert go.wait(60)
            make(folder)

    def second() -> tuple[Path, dict[str, str]]:
        begun.wait(60)
        with index_folder(tmp_path, "k") as folder:
            return folder, {k: v for k, v in found(tmp_path).items() if k in WHOLE}

    with ThreadPoolExecutor(4) as pool:
        one = pool.submit(first)
        others = [pool.submit(second) for _ in range(3)]
        begun.wait(60)
        go.set()
        one.result()
        for other in others:
            assert other.result() == (tmp_path, WHOLE)
    assert found(tmp_path) == WHOLE


@pytest.mark.parametrize("missing", INDEX_FILES)
def test_a_part_of_an_index_is_made_again(tmp_path, missing):
    make(tmp_path, "a killed process")
    (tmp_path / f"k-{missing}").unlink()
    with index_folder(tmp_path, "k") as folder:
        assert folder != tmp_path
        make(folder)
    assert found(tmp_path) == WHOLE


def test_a_cache_that_failed_or_was_killed_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), index_folder(tmp_path, "k") as folder:
        make(folder)
        raise ZeroDivisionError
    with pytest.raises(FileNotFoundError), index_folder(tmp_path, "k") as folder:
        (folder / f"k-{INDEX_FILES[0]}").touch()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / f".k-{socket.gethostname()}-x").mkdir()
    (tmp_path / f".k-{socket.gethostname()}-x/half").touch()
    (tmp_path / ".k.lock").touch()
    (tmp_path / ".k-else-x").mkdir()
    with index_folder(tmp_path, "k") as folder:
        make(folder)
    assert {file.name for file in tmp_path.iterdir()} == {*WHOLE, ".k-else-x"}


def test_without_locks_each_makes_it_and_both_find_it_whole(tmp_path, monkeypatch):
    def refused(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refused)
    with index_folder(tmp_path, "k") as one:
        with index_folder(tmp_path, "k") as other:
            assert one != other
            make(other)
        assert found(tmp_path).items() >= WHOLE.items()
        make(one)
    assert {file.name for file in tmp_path.iterdir()} == WHOLE.keys()


def test_a_lock_file_that_its_holder_removed_is_not_taken_for_the_lock(tmp_path, monkeypatch):
    flock, taken = fcntl.flock, []

    def late(descriptor: int, kind: int) -> None:
        flock(descriptor, kind)
        taken.append(os.fstat(descriptor).st_ino)
        if len(taken) == 1:
            (tmp_path / ".k.lock").unlink()

    monkeypatch.setattr(documents.fcntl, "flock", late)
    with index_folder(tmp_path, "k") as folder:
        make(folder)
        assert len(taken) == 2
        assert (tmp_path / ".k.lock").stat().st_ino == taken[1]
    assert found(tmp_path) == WHOLE


CURE = "give the config a tokenizer with eod = 199999 and pad = -1, as docs/synth.md shows"


def said(pad: Any = -1, **changed: Any) -> str | None:
    return contradiction(SimpleNamespace(**{"vocab_size": 201_088, "eod": 199_999} | changed), pad)


def test_the_rule_has_both_numbers_and_a_tokenizer_without_an_eod_is_refused():
    assert said(199_999, eod=200_002) == (
        "tokenizer.eod is 200002, and the EOD of its documents (o200k_harmony) is 199999;"
        f" tokenizer.pad is 199999: {CURE}"
    )
    assert said(200_012) == (
        "tokenizer.pad is 200012, and in its documents (o200k_harmony) 200012 is <|call|>, of which"
        f" Megatron would make 0; tokenizer.eod is 199999: {CURE}"
    )
    assert said(vocab_size=200_012) == (
        "tokenizer.vocab_size is 200012, and its documents have ids up to 200012: give the config"
        " the vocabulary of o200k_harmony, padded to 201088 ids"
    )
    assert "tokenizer.eod is None, " in str(contradiction(SimpleNamespace(vocab_size=None), -1))
    assert said(vocab_size=None) is None
    assert said(vocab_size=200_013) is None
    assert said(vocab_size=300_000) is None


@pytest.mark.parametrize("pad", [0, 1, 199_997, 199_999, 200_002, 200_003, 200_005, 200_008])
def test_an_id_of_documents_is_no_padding(pad):
    assert f"tokenizer.pad is {pad}, " in str(said(pad))


@pytest.mark.parametrize("pad", [-1, None, 199_998, 200_000, 200_018, 201_087, 201_088])
def test_an_id_that_no_document_has_may_be_padding(pad):
    assert said(pad) is None
