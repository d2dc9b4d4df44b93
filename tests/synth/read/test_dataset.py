"""SynthKDDataset: Megatron's sampling, aligned mask and span, index caches, refusals."""

import ast
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gristmill.provenance import record_path
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.synth import span_normalized_loss
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.format import megatron
from gristmill.synth.format.megatron import MappedValues, UnmappedValues
from gristmill.synth.read.documents import INDEX_FILES
from tests.later import later
from tests.paths import CHECKOUT

torch = later("torch")
gpt = later("megatron.core.datasets.gpt_dataset")
builders = later("megatron.core.datasets.blended_megatron_dataset_builder")
splits = later("megatron.core.datasets.utils")
reader = later("gristmill.synth.read.dataset", "torch", "megatron.core")
shard = later("gristmill.synth.read.dataset", "megatron.core")

LENGTH = 128
# Megatron warns about the pad token -1, and numpy warns about Megatron.
pytestmark = pytest.mark.filterwarnings("ignore")


def tokenizer(**changed: Any) -> Any:
    return SimpleNamespace(
        **{
            "vocab_size": 201_088,
            "eod": 199_999,
            "pad": -1,
            "unique_identifiers": {"name": "o200k"},
        }
        | changed
    )


def config(path: Path | None = None, **changed: Any) -> Any:
    values = {
        "random_seed": 11,
        "sequence_length": LENGTH,
        "tokenizer": tokenizer(),
        "reset_position_ids": False,
        "reset_attention_mask": False,
        "eod_mask_loss": False,
        "create_attention_mask": False,
        "path_to_cache": None if path is None else str(path),
    }
    blend: Any = [([changed.pop("prefix")], None), None, None] if "prefix" in changed else None
    return gpt.GPTDatasetConfig(
        blend_per_split=changed.pop("blend_per_split", blend or [(["x"], None), None, None]),
        **values | changed,
    )


def dataset(prefix: Path, settings: Any, kind: Any = None, samples: int | None = None) -> Any:
    kind = kind or reader.SynthKDDataset
    low = kind.build_low_level_dataset(str(prefix), settings)
    documents = np.arange(kind.numel_low_level_dataset(low), dtype=np.int32)
    split = splits.Split[prefix.parent.name]
    return kind(low, str(prefix), documents, samples, split, settings)


@pytest.fixture(scope="module")
def root(harmony: Path, vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reader") / "kd"
    build_kd_shard(harmony, out, KDConfig(vocabulary, 0.3))
    return out


@pytest.fixture
def copied(root: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(root, tmp_path / "data/kd"))


def streams(prefix: Path, made: Any) -> dict[str, np.ndarray]:
    """The three datasets in the shuffled document order, back to back."""
    return {
        name: np.concatenate(
            [megatron.read(megatron.sibling(prefix, name))[int(d)] for d in made.document_index]
        ).astype(np.int64)
        for name in megatron.DTYPES
    }


@pytest.mark.parametrize("samples", [None, 0, 500])
def test_samples_are_megatrons_with_aligned_sidecars(root, tmp_path, samples):
    prefix = root / "train/shard_00_tokens"
    made = dataset(prefix, config(tmp_path), samples=samples)
    theirs = dataset(prefix, config(tmp_path), gpt.GPTDataset, samples or None)
    assert len(made) == len(theirs) > 100
    flat = streams(prefix, made)
    for index in range(len(made)):
        sample, megatron_sample = made[index], theirs[index]
        assert torch.equal(sample["tokens"], megatron_sample["tokens"])
        assert torch.equal(sample["labels"], megatron_sample["labels"])
        assert torch.equal(sample["position_ids"], megatron_sample["position_ids"])
        at = slice(int(made.shuffle_index[index]) * LENGTH, None)
        for key, name in (("tokens", "tokens"), ("loss_mask", "lossmask"), ("span_id", "span")):
            assert sample[key].tolist() == flat[name][at][:LENGTH].tolist()
        assert set(sample) == {"tokens", "labels", "loss_mask", "position_ids", "span_id"}
        assert {k: v.dtype for k, v in sample.items()} == {
            k: torch.float32 if k == "loss_mask" else torch.int64 for k in sample
        }
    masked = made[None]
    assert torch.equal(masked["tokens"], made[0]["tokens"])
    assert not masked["loss_mask"].any()
    assert not masked["span_id"].any()


@pytest.mark.parametrize("extra", [True, False])
@pytest.mark.parametrize("split", ["train", "valid"])
def test_the_pieces_of_a_sample_are_the_tokens_that_megatron_reads(root, tmp_path, split, extra):
    prefix = root / split / "shard_00_tokens"
    settings = config(
        tmp_path, drop_last_partial_validation_sequence=False, add_extra_token_to_sequence=extra
    )
    made = dataset(prefix, settings)
    documents = megatron.read(prefix)
    filled = 0
    for number in range(len(made)):
        pieces = made.pieces(number)
        tokens = [int(t) for d, begin, end in pieces for t in documents[d][begin:end]]
        sample = made[number]
        read = [*sample["tokens"].tolist(), int(sample["labels"][-1])]
        short = LENGTH + extra - len(tokens)
        assert tokens == (read if extra else read[:-1])[: len(tokens)]
        assert short == 0 or (split == "valid" and not sample["loss_mask"][-short:].any())
        filled += short > 0
    assert filled == (split == "valid")
    assert made.pieces(-1) == made.pieces(len(made) - 1)
    assert sum(len(made.pieces(number)) > 1 for number in range(len(made))) > 2
    with pytest.raises(IndexError, match="no sample"):
        made.pieces(len(made))


def test_pieces_map_an_index_that_is_not_yet_mapped(root, tmp_path):
    prefix = root / "train/shard_00_tokens"
    made = dataset(prefix, config(tmp_path))
    again = dataset(prefix, config(tmp_path, fast_cache_load=True, defer_npy_index_mmap=True))
    assert again.shuffle_index is None
    assert again.pieces(3) == made.pieces(3)
    assert torch.equal(again[3]["tokens"], made[3]["tokens"])


def test_short_samples_are_padded_and_so_is_the_last_label_without_the_extra_token(root, tmp_path):
    prefix = root / "valid/shard_00_tokens"
    settings = config(tmp_path, drop_last_partial_validation_sequence=False)
    made = dataset(prefix, settings)
    flat = streams(prefix, made)
    last = made.shuffle_index.tolist().index(len(made) - 1)
    sample = made[last]
    left = len(flat["tokens"]) - (len(made) - 1) * LENGTH - 1
    assert 0 < left < LENGTH
    assert sample["labels"][:left].tolist() == flat["tokens"][-left:].tolist()
    for key in ("labels", "loss_mask", "span_id"):
        assert not sample[key][left:].any()
    prefix = root / "train/shard_00_tokens"
    made = dataset(prefix, config(tmp_path, add_extra_token_to_sequence=False))
    flat = streams(prefix, made)
    for index in range(20):
        at = int(made.shuffle_index[index]) * LENGTH
        sample = made[index]
        expected = flat["span"][at : at + LENGTH].tolist()
        assert sample["span_id"].tolist() == [*expected[:-1], 0]
        assert sample["labels"].tolist() == [*flat["tokens"][at + 1 : at + LENGTH].tolist(), 0]
        assert sample["loss_mask"][-1] == 0


def test_flags_of_the_config(root, tmp_path):
    prefix = root / "train/shard_00_tokens"
    default = dataset(prefix, config(tmp_path))
    (ordinary, *_) = default[3]["tokens"][default[3]["loss_mask"] != 0].tolist()
    asked = config(tmp_path, eod_mask_loss=True, create_attention_mask=True)
    masked = dataset(prefix, asked)
    asked.tokenizer.eod = ordinary  # so that a mask of Megatron's would be seen
    assert asked.eod_mask_loss
    assert torch.equal(default[3]["loss_mask"], masked[3]["loss_mask"])
    assert masked[3]["attention_mask"].shape == (1, LENGTH, LENGTH)
    reset = dataset(prefix, config(tmp_path, reset_position_ids=True))
    ends = [int(i) for i in torch.nonzero(reset[3]["tokens"] == 199_999)]
    assert all(int(reset[3]["position_ids"][end + 1]) == 0 for end in ends if end + 1 < LENGTH)
    ambiguous = dataset(prefix, config(tmp_path, tokenizer=tokenizer(pad=199_999)))
    assert torch.equal(ambiguous[3]["loss_mask"], default[3]["loss_mask"])
    unmapped = dataset(prefix, config(tmp_path, mmap_bin_files=False))
    assert torch.equal(unmapped[3]["span_id"], default[3]["span_id"])
    assert isinstance(unmapped.dataset.bin_reader, UnmappedValues)
    assert isinstance(default.dataset.bin_reader, MappedValues)


@pytest.fixture
def process_group(tmp_path: Path) -> Iterator[None]:
    """Megatron asks for its rank before it writes the blend's cache."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()


def test_a_prefix_that_does_not_end_in_tokens_is_refused(root, tmp_path):
    for path in (str(root / "train/shard_00_span"), None):
        with pytest.raises(ValueError, match="_tokens"):
            reader.SynthKDDataset.build_low_level_dataset(path, config(tmp_path))


def rewrite(prefix: Path, lengths: np.ndarray, dtype: str = "u1") -> None:
    values = megatron.read(prefix).values.astype(dtype)
    for kind in ("bin", "idx"):
        prefix.with_name(f"{prefix.name}.{kind}").unlink()
    with megatron.IndexedWriter(prefix, dtype) as writer:
        writer.add(values[: int(lengths.sum())], lengths.astype(np.int32))


@pytest.mark.parametrize("name", ["lossmask", "span"])
@pytest.mark.parametrize("change", ["lengths", "count", "dtype", "truncated", "missing"])
def test_any_misalignment_is_refused(copied, tmp_path, name, change):
    """Also if counts and last document index agree, which is all that the reference compares."""
    prefix = copied / "train/shard_00_tokens"
    sidecar = megatron.sibling(prefix, name)
    lengths = megatron.read(prefix).lengths.copy()
    if change == "lengths":
        lengths[[0, 1]] += [1, -1]
        rewrite(sidecar, lengths)
    elif change == "count":
        rewrite(sidecar, lengths[:-1])
    elif change == "dtype":
        rewrite(sidecar, lengths, "<i4")
    else:
        path = sidecar.with_name(sidecar.name + ".bin")
        data = path.read_bytes()
        path.unlink()
        if change == "truncated":
            path.write_bytes(data[:-1])
    with pytest.raises(RuntimeError, match="shard_00_tokens"):
        dataset(prefix, config(tmp_path))


def test_a_mask_that_differs_from_the_span_is_refused(copied, tmp_path):
    prefix = copied / "train/shard_00_tokens"
    path = prefix.with_name("shard_00_span.bin")
    path.write_bytes(bytes(path.stat().st_size))
    made = dataset(prefix, config(tmp_path))
    with pytest.raises(RuntimeError, match="loss mask and span differ"):
        [made[index] for index in range(len(made))]


def test_a_rebuilt_shard_does_not_read_an_old_cache(root, harmony, vocabulary, tmp_path):
    """Same path, seed and length, other data: see `docs/formats/synth.md#index-cache`."""
    place, cache = tmp_path / "data/kd", tmp_path / "cache"
    shutil.copytree(root, place)
    prefix = place / "train/shard_00_tokens"
    first = dataset(prefix, config(cache))
    before = set(cache.iterdir())
    assert dataset(prefix, config(cache)).unique_description_hash == first.unique_description_hash
    assert set(cache.iterdir()) == before
    shutil.rmtree(place)
    build_kd_shard(harmony, place, KDConfig(vocabulary, 0.5))
    second = dataset(prefix, config(cache))
    assert set(cache.iterdir()) > before
    fresh = dataset(prefix, config(tmp_path / "empty"))
    assert np.array_equal(second.sample_index, fresh.sample_index)
    assert len(second) != len(first)


def test_the_cache_is_outside_of_the_published_folder(copied):
    listed = sorted(copied.rglob("*"))
    made = dataset(copied / "train/shard_00_tokens", config())
    assert sorted(copied.rglob("*")) == listed
    folder = copied.parent / "cache/synth/kd/train/shard_00_tokens"
    assert len(list(folder.iterdir())) == 4
    assert made.config.path_to_cache is None


def test_an_index_appears_in_the_cache_once_all_its_files_are_written(root, tmp_path, monkeypatch):
    """A second process without torch.distributed would read what stands there."""
    save, seen = np.save, []

    def looking(path: Any, *arguments: Any, **keywords: Any) -> None:
        save(path, *arguments, **keywords)
        seen.append((Path(path).name, [file.name for file in tmp_path.glob("*.*")]))

    monkeypatch.setattr(np, "save", looking)
    prefix = root / "train/shard_00_tokens"
    made = dataset(prefix, config(tmp_path))
    assert [name.split("-")[-1] for name, _ in seen] == [
        "document_index.npy",
        "sample_index.npy",
        "shuffle_index.npy",
    ]
    assert not any(name.endswith((".npy", ".txt")) for _, names in seen for name in names)
    key = f"{made.unique_description_hash}-SynthKDDataset-train"
    assert {file.name for file in tmp_path.iterdir()} == {f"{key}-{name}" for name in INDEX_FILES}
    again = dataset(prefix, config(tmp_path))
    assert len(seen) == 3
    assert np.array_equal(again.shuffle_index, made.shuffle_index)
    assert isinstance(again.shuffle_index, np.memmap)


def published(harmony: Path, root: Path, settings: KDConfig) -> Any:
    """Publish shard 00 in `megatron/synth_kd_v1` of a data root."""
    return publish(
        Build(
            root=root,
            artifact="megatron/synth_kd_v1",
            asset="synth/kd_shards",
            partition="00",
            code_version=KDConfig.CODE_VERSION,
            config=settings,
            inputs=[],
            make=lambda attempt: build_kd_shard(harmony, attempt.out, settings, attempt.parts),
            shared=True,
        )
    )


def test_a_split_without_documents_is_not_one_whose_files_are_gone(harmony, vocabulary, tmp_path):
    """To build such a shard again, as for files that are gone, would change nothing."""
    published(harmony, tmp_path, KDConfig(vocabulary, 0))
    prefix = tmp_path / "megatron/synth_kd_v1/valid/shard_00_tokens"
    with pytest.raises(RuntimeError, match=r"_tokens: the shard has no documents in valid, and so"):
        reader.SynthKDDataset.build_low_level_dataset(str(prefix), config())
    train = prefix.parent.with_name("train") / prefix.name
    assert len(dataset(train, config())) > 0
    train.with_name(f"{train.name}.idx").unlink()
    with pytest.raises(RuntimeError, match=r"_tokens\.idx: the file is missing"):
        reader.SynthKDDataset.build_low_level_dataset(str(train), config())


def test_a_published_shard_is_compared_with_its_record(harmony, vocabulary, tmp_path):
    done = published(harmony, tmp_path, KDConfig(vocabulary, 0.3))
    prefix = tmp_path / "megatron/synth_kd_v1/train/shard_00_tokens"
    assert megatron.digest(prefix) == done.record.data_version
    assert megatron.cache_folder(prefix).is_relative_to(tmp_path / "cache")
    made = dataset(prefix, config())
    assert made.unique_identifiers["data_digest"] == done.record.data_version
    path = record_path(prefix.parent.parent, "00", shared=True)
    path.write_bytes(done.record.model_copy(update={"asset": "synth/other"}).to_bytes())
    with pytest.raises(RuntimeError, match=r"00\.json: was changed after it was written"):
        dataset(prefix, config())
    path.write_bytes(done.record.to_bytes())
    lengths = megatron.read(prefix).lengths.copy()
    lengths[[0, 1]] += [1, -1]
    for name, dtype in (("tokens", "<i4"), ("lossmask", "u1"), ("span", "u1")):
        rewrite(megatron.sibling(prefix, name), lengths, dtype)
    with pytest.raises(RuntimeError, match="not the file in its provenance record"):
        dataset(prefix, config())


@pytest.mark.real
def test_the_shards_blend_by_their_samples(real, vocabulary, tmp_path):
    """Samples at length 1024, as in `docs/formats/synth.md#reference-totals`."""
    sizes = []
    for number in ("00", "01", "02", "03"):
        shard = real / f"synth_harmony/synth_harmony_shard_{number}.parquet"
        build_kd_shard(shard, tmp_path / number, KDConfig(vocabulary, 0.1))
        prefix = tmp_path / number / f"train/shard_{number}_tokens"
        made = dataset(prefix, config(tmp_path / "cache", sequence_length=1024))
        sizes.append(len(made))
        assert made[0]["loss_mask"].sum() > 0
    assert sizes == [185, 182, 188, 188]


@pytest.mark.parametrize(
    "module", ["gristmill.synth", "gristmill.synth.builders.kd_shard", "gristmill.synth.laws"]
)
def test_importing_the_library_imports_neither_torch_nor_megatron(module):
    heavy = {"torch", "megatron", "pyarrow", "tiktoken", "openai_harmony", "huggingface_hub"}
    code = f"import sys, {module}; print(sorted({heavy!r} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_remote_dataset_is_compared_by_its_indices(copied):
    def opened(name: str) -> Any:
        return reader.IndexedDataset(str(copied / f"train/shard_00_{name}"))

    sidecars = {name: opened(name) for name in ("lossmask", "span")}
    compare = vars(import_module("gristmill.synth.read.dataset"))["_compare_remote"]
    compare("s3://b/shard_00_tokens", opened("tokens"), sidecars)
    with pytest.raises(RuntimeError, match=r"lossmask is .*int32.*, not uint8"):
        wrong = sidecars | {"lossmask": opened("tokens")}
        compare("s3://b/shard_00_tokens", opened("tokens"), wrong)
    lengths = megatron.read(copied / "train/shard_00_span").lengths.copy()
    lengths[[0, 1]] += [1, -1]
    rewrite(copied / "train/shard_00_span", lengths)
    with pytest.raises(RuntimeError, match="sequence_lengths of tokens and span differ"):
        compare("s3://b/shard_00_tokens", opened("tokens"), {"span": opened("span")})


def test_training_steps_from_the_dataset(root, tmp_path):
    """A torch model, batches of a data loader, the span-normalised loss."""
    made = dataset(root / "train/shard_00_tokens", config(tmp_path))
    batches = [b for _, b in zip(range(6), torch.utils.data.DataLoader(made, 4), strict=False)]
    known = torch.unique(torch.cat([torch.cat([b["tokens"], b["labels"]]) for b in batches]))
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(len(known), 24), torch.nn.Linear(24, len(known)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    combined = []
    for _ in range(4):
        total = 0.0
        for batch in batches:
            assert batch["span_id"].shape == (4, LENGTH)
            logits = model(torch.searchsorted(known, batch["tokens"]))
            labels = torch.searchsorted(known, batch["labels"])
            losses = torch.nn.functional.cross_entropy(
                logits.transpose(1, 2), labels, reduction="none"
            )
            loss = span_normalized_loss(losses, batch["loss_mask"], batch["span_id"], 1.0, 2.0)
            optimizer.zero_grad()
            (loss.loss / loss.tokens).backward()
            optimizer.step()
            assert int(loss.tokens) == int(batch["loss_mask"].sum())
            total += loss.combined.item()
        combined.append(total)
    assert combined == sorted(combined, reverse=True)
    assert combined[-1] < 0.8 * combined[0]


def test_expected_counts_that_differ_are_refused(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    prefix = root / "train/shard_00_tokens"
    count = len(megatron.read(prefix))
    for named in (prefix, Path("train/shard_00_tokens")):
        settings = config(tmp_path, sequences_per_dataset={str(named): (count, count + 1)})
        assert len(dataset(named, settings)) == len(dataset(prefix, config(tmp_path)))
    settings = config(tmp_path, sequences_per_dataset={str(prefix): (count - 1, count)})
    with pytest.raises(RuntimeError, match=rf"has \({count}, .*, and sequences_per_dataset says"):
        dataset(prefix, settings)


def test_the_padding_of_the_first_sample_is_not_that_of_the_others(root, tmp_path):
    """Megatron's cached mask keeps it."""
    prefix = root / "valid/shard_00_tokens"
    settings = config(tmp_path, drop_last_partial_validation_sequence=False)
    expected = [dataset(prefix, settings)[index] for index in range(3)]
    made = dataset(prefix, settings)
    made[made.shuffle_index.tolist().index(len(made) - 1)]
    for index in range(3):
        assert torch.equal(made[index]["span_id"], expected[index]["span_id"])


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"eod": 200_002, "pad": 199_999}, "tokenizer.eod is 200002, .* is 199999"),
        ({"pad": 199_999, "special_tokens_dict": {"eos_token": "e"}}, "tokenizer.pad is 199999, "),
        ({"pad": 1}, r"tokenizer.pad is 1, .* is ordinary text, .* tokenizer.eod is 199999: give"),
        ({"vocab_size": 50_257}, "tokenizer.vocab_size is 50257, .* up to 200012: give"),
    ],
)
def test_a_tokenizer_of_other_tokens_is_refused_at_once(root, tmp_path, changed, rule):
    prefix = root / "train/shard_00_tokens"
    with pytest.raises(shard.Misaligned, match=rf"train/shard_00_tokens: {rule}"):
        dataset(prefix, config(tmp_path, tokenizer=tokenizer(**changed)))
    assert list(tmp_path.iterdir()) == []
    other = reader.SynthKDDataset.build_low_level_dataset(
        str(root / "valid/shard_00_tokens"), config()
    )
    with pytest.raises(shard.Misaligned, match=r"its tokens were opened from .*valid/shard"):
        reader.SynthKDDataset(
            other, str(prefix), np.arange(1), None, splits.Split.train, config(tmp_path)
        )


PRIVATE = {"_build_document_sample_shuffle_indices", "_build_indices"}
"""Names of Megatron that no public name replaces: what breaks is in the test of each."""


def test_no_other_private_name_of_megatron_is_used():
    """Imported names, and attributes of Megatron's classes and of `super()`."""
    used, files = set(), 0
    for file in sorted((CHECKOUT / "gristmill").rglob("*.py")):
        if "megatron" not in (text := file.read_text()):
            continue
        tree = ast.parse(text)
        imports = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("megatron")
        ]
        files += bool(imports)
        names = {alias.name for node in imports for alias in node.names}
        used |= {name for name in names if name.startswith("_")}
        for node in ast.walk(tree) if imports else ():
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                owner = ast.unparse(node.value)
                if node.attr[:2] != "__" and (owner == "super()" or owner in names):
                    used.add(node.attr)
    assert files > 1
    assert used == PRIVATE


def test_megatron_builds_its_indices_in_the_method_that_is_extended(root, tmp_path, monkeypatch):
    """`_build_document_sample_shuffle_indices` puts the digest of the data into the cache's key.

    Where Megatron no longer calls it, or takes the key from elsewhere, a rebuilt shard would meet
    an old cache: then find what builds the indices, and extend that.
    """
    calls = []
    extended = gpt.GPTDataset._build_document_sample_shuffle_indices

    def build(self: Any) -> Any:
        calls.append((self.unique_identifiers["data_digest"], self.unique_description_hash))
        return extended(self)

    monkeypatch.setattr(gpt.GPTDataset, "_build_document_sample_shuffle_indices", build)
    made = dataset(root / "train/shard_00_tokens", config(tmp_path))
    ((digest, key),) = calls
    assert digest == megatron.digest(root / "train/shard_00_tokens")
    assert key == hashlib.md5(made.unique_description.encode(), usedforsecurity=False).hexdigest()
    assert {file.name.split("-")[0] for file in tmp_path.iterdir()} == {key}
    for array in (made.document_index, made.sample_index, made.shuffle_index):
        assert len(array) > 0, (
            "Megatron keeps its indices elsewhere: the slices of sidecars need them"
        )


def test_megatron_reads_index_and_values_through_two_attributes(root):
    """HeldIndexedDataset sets `index` and `bin_reader` to objects of our own.

    Where IndexedDataset reads otherwise, it would not read the files of one generation.
    """
    held = reader.SynthKDDataset.build_low_level_dataset(
        str(root / "train/shard_00_tokens"), config()
    )
    reads = []
    held.bin_reader = SimpleNamespace(read=lambda **asked: reads.append(asked))
    members = {"dtype": np.int32, "__getitem__": lambda _, document: (40, 5, None)}
    held.index = type("Index", (), members)()
    held.get(0, offset=2, length=3)
    assert reads == [{"dtype": np.int32, "count": 3, "offset": 48}]
