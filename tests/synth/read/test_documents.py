"""Documents by number: tokens, mask and span of Megatron's files, and the raw row of each."""

import json
import pickle
import shutil
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.loading import Loader, Packed, Plan, mixture
from gristmill.provenance import RECORD
from gristmill.reading import StaleDataset
from gristmill.synth.read import distill
from gristmill.synth.read.documents import DistilledRows, SynthKDDocuments
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


def test_documents_are_mixed_by_tokens(prefixes):
    sources = {prefix.name: SynthKDDocuments([prefix]) for prefix in prefixes}
    lengths = {name: source.lengths() for name, source in sources.items()}
    wanted = {name: int(each.sum()) // 2 for name, each in lengths.items()}
    mixed = mixture(sources, tokens=wanted)
    for (name, each), quota in zip(lengths.items(), mixed.quotas, strict=True):
        assert each[: quota - 1].sum() < wanted[name] <= each[:quota].sum()


def test_a_source_that_was_pickled_reads_the_same(prefixes):
    source = SynthKDDocuments(prefixes)
    again = pickle.loads(pickle.dumps(source))
    for name, column in source.read(np.array([3, 0])).items():
        assert np.array_equal(again.read(np.array([3, 0]))[name], column)


def test_documents_of_two_splits_or_none_are_refused(prefixes):
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
