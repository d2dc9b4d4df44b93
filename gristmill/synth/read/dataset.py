"""The training reader: Megatron's GPTDataset with an aligned loss mask and span codes.

It imports torch and Megatron-Core, so only training jobs and tests import it.
Source: `docs/formats/synth.md#training-reader`.
"""

from __future__ import annotations

import copy
import hashlib
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDataset
from megatron.core.datasets.object_storage_utils import ObjectStorageConfig, is_object_storage_path
from megatron.core.datasets.utils import Split

from gristmill.reading import StaleDataset, Verify
from gristmill.reading.folder import verify_level
from gristmill.reading.reader import located
from gristmill.reading.sample_numbers import number_of
from gristmill.synth.format import megatron
from gristmill.synth.format.megatron import Index, MappedValues, UnmappedValues
from gristmill.synth.read.documents import (
    HARMONY,
    Misaligned,
    ShardFiles,
    contradiction,
    index_folder,
)


class HeldIndexedDataset(IndexedDataset):  # type: ignore[misc]
    """An IndexedDataset over held files, which a worker opens again in the same generation."""

    def __init__(
        self, files: ShardFiles, name: str, mmap: bool, counts: tuple[int, int] | None = None
    ) -> None:
        self.files, self.name = files, name
        self.path_prefix = str(megatron.sibling(files.prefix, name))
        self.mmap, self.multimodal = mmap, False
        self._read()
        held = (self.index.sequence_count, self.index.document_count)
        if counts and tuple(counts) != held:
            raise Misaligned(
                files.prefix,
                f"has {held} sequences and documents, and sequences_per_dataset says "
                f"{tuple(counts)}: make that list again",
            )

    def _read(self) -> None:
        """Open index and values of the held files."""
        values, index = (self.files.held[f"{self.name}.{kind}"] for kind in ("bin", "idx"))
        with index.reading() as path:
            self.index = Index(path, megatron.DTYPES[self.name])
        with values.reading() as path:
            self.bin_reader = MappedValues(path) if self.mmap else UnmappedValues(values)

    def __getattr__(self, name: str) -> Any:
        # Not in a pickle: a worker opens them at its first read.
        if name not in ("index", "bin_reader") or "files" not in self.__dict__:
            raise AttributeError(name)
        self._read()
        return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("index", "bin_reader")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __del__(self) -> None:
        for name in ("bin_reader", "index"):
            self.__dict__.pop(name, None)


__all__ = ["StaleDataset", "SynthKDDataset"]


class SynthKDDataset(GPTDataset):  # type: ignore[misc]
    """A GPTDataset over `.._tokens` whose samples also have `loss_mask` and `span_id` of labels.

    indexed_dataset: what `build_low_level_dataset` returns.
    dataset_path: prefix of the tokens dataset, which ends in `_tokens`.
    indexed_indices: [D], numbers of the documents to sample from.
    num_samples: number of samples; None or 0 for one epoch.
    index_split: split of the documents.
    config: Megatron's. `eod_mask_loss` has no effect.

    A sample of sequence length S is a dict of [S] tensors: `tokens`, `labels`,
    `position_ids` and `span_id` int64, `loss_mask` float32, and `attention_mask` if
    the config asks for it. Mask and span are stored for labels, so they are not
    shifted. Both are 0 where a label is padding, and everywhere for index None.

    Sampling is Megatron's own. The key of the index cache has the digest of the
    data, so a rebuilt shard never reads an old cache. If the config names no cache
    folder, the cache is outside of the published dataset.

    It belongs to the generation of the shard that it was opened on. A worker of a
    data loader raises StaleDataset at its first read if the shard was rebuilt.
    `verify` of the class says how much is compared with the shard's record when it is
    opened, "sizes" by default; `with_verify` gives a class with another level.

    Raises ValueError for another dataset_path, and Misaligned, which is a BadInput and
    a RuntimeError, if a file is missing or damaged, the three datasets are not
    aligned, or the tokenizer's `eod`, `pad` or `vocab_size` is not that of the tokens.
    """

    verify: ClassVar[Verify] = "sizes"

    def __init__(
        self,
        indexed_dataset: IndexedDataset,
        dataset_path: str | None,
        indexed_indices: np.ndarray[Any, Any],
        num_samples: int | None,
        index_split: Split,
        config: GPTDatasetConfig,
    ) -> None:
        path = _checked(dataset_path)
        if not is_object_storage_path(path):
            indexed_dataset = self._held(path, indexed_dataset, config)
            files = indexed_dataset.files
            self._data_digest = files.data_digest
            self._own = files.tokenizer
            sidecars = {name: _sidecar(path, files, name, config) for name in ("lossmask", "span")}
        else:
            self._own = HARMONY
            sidecars = {name: _open_remote(path, name, config) for name in ("lossmask", "span")}
            _compare_remote(path, indexed_dataset, sidecars)
            lengths = np.ascontiguousarray(indexed_dataset.sequence_lengths)
            self._data_digest = hashlib.sha256(lengths.view(np.uint8).data).hexdigest()
        if config.eod_mask_loss:
            # A label without loss is padding then, and nothing else.
            config = copy.copy(config)
            config.eod_mask_loss = False
        super().__init__(
            indexed_dataset, dataset_path, indexed_indices, num_samples or None, index_split, config
        )
        # Megatron's cached loss mask keeps the padding of the first sample for all others.
        self.masks_and_position_ids_are_cacheable = False
        self._mask, self._span = sidecars["lossmask"], sidecars["span"]

    @classmethod
    def build_low_level_dataset(cls, dataset_path: str, config: GPTDatasetConfig) -> IndexedDataset:
        """Open the tokens dataset as GPTDataset does, in one generation with its sidecars.

        dataset_path: prefix of the tokens dataset, which ends in `_tokens`.
        config: Megatron's.

        Raises ValueError for another dataset_path, else as the class.
        """
        path = _checked(dataset_path)
        if is_object_storage_path(path):
            return GPTDataset.build_low_level_dataset(path, config)
        counts = config.sequences_per_dataset
        return HeldIndexedDataset(
            ShardFiles(located(path), cls.verify),
            "tokens",
            config.mmap_bin_files,
            counts[path] if counts else None,
        )

    @classmethod
    def with_verify(cls, verify: Verify) -> type[SynthKDDataset]:
        """The class that compares this much with the record, for Megatron's builder.

        verify: "none", "sizes" or "hash".

        Raises ValueError for another level.
        """
        return {
            "none": UncheckedSynthKDDataset,
            "sizes": SynthKDDataset,
            "hash": HashedSynthKDDataset,
        }[verify_level(verify)]

    def _held(
        self, path: str, given: IndexedDataset, config: GPTDatasetConfig
    ) -> HeldIndexedDataset:
        """The tokens dataset with its files; another kind is opened again and compared."""
        if isinstance(given, HeldIndexedDataset):
            if (prefix := given.files.prefix) != located(path):
                raise Misaligned(path, f"its tokens were opened from {prefix}: give both one path")
            return given
        held: HeldIndexedDataset = self.build_low_level_dataset(path, config)
        if not np.array_equal(held.sequence_lengths, given.sequence_lengths):
            raise StaleDataset(
                f"{path}: was rebuilt after its tokens were opened: open the dataset again"
            )
        return held

    def _build_document_sample_shuffle_indices(self) -> Any:
        """Build or load the indices, under a key that has the digest of the data.

        Megatron knows by now what it takes for padding, and has built nothing yet.
        """
        if rule := contradiction(self.config.tokenizer, self._pad_token_id, self._own):  # type: ignore[has-type]
            raise Misaligned(str(self.dataset_path), rule)
        self.unique_identifiers["data_digest"] = self._data_digest
        self.unique_description = json.dumps(
            self.unique_identifiers, indent=4, default=lambda obj: obj.unique_identifiers
        )
        self.unique_description_hash = hashlib.md5(
            self.unique_description.encode(), usedforsecurity=False
        ).hexdigest()
        config = self.config  # type: ignore[has-type]
        cache = config.path_to_cache
        if cache is None and not is_object_storage_path(self.dataset_path):
            # GPTDataset's default is a folder in the published dataset.
            cache = str(megatron.cache_folder(located(self.dataset_path)))
        with ExitStack() as made:
            if cache and makes_index(config):
                name = f"{type(self).__name__}-{self.index_split.name}"
                key = f"{self.unique_description_hash}-{name}"
                cache = str(made.enter_context(index_folder(Path(cache), key)))
            self.config = copy.copy(config)
            self.config.path_to_cache = cache
            try:
                return super()._build_document_sample_shuffle_indices()
            finally:
                self.config = config

    def __getitem__(self, idx: int | None) -> dict[str, torch.Tensor]:
        """Return one sample.

        idx: number of the sample, a negative one from the end; None gives sample 0 with mask and
            span 0 everywhere.

        Raises IndexError for a number outside, TypeError for anything but an integer, and
        Misaligned if mask and span of the sample differ.
        """
        if idx is not None:
            idx = self._number(idx)
        sample: dict[str, torch.Tensor] = super().__getitem__(idx)
        padding = sample["loss_mask"] == 0
        mask, span = self._sidecar_slices(0 if idx is None else idx)
        mask[padding] = span[padding] = 0
        return sample | {"loss_mask": mask.float(), "span_id": span}

    def pieces(self, idx: int) -> list[tuple[int, int, int]]:
        """The documents of a sample, in order: its number in the shard and a range of its tokens.

        idx: number of the sample, a negative one from the end.

        A range has its first token and the one behind its last, from 0. Together they are what
        `tokens` and the last label are made from: sequence_length + 1 tokens, without the one where
        the config adds no extra token; fewer in a sample that is filled with padding.
        `gristmill trace` leads from a document to its raw row.

        Raises IndexError for a number outside, and TypeError for anything but an integer.
        """
        idx = self._number(idx)
        if self.shuffle_index is None:
            super().__getitem__(idx)  # maps the index
        *whole, (document, begin, end) = self._labelled(idx)
        return [*whole, (document, begin, end + self.config.add_extra_token_to_sequence)]

    def _number(self, idx: int) -> int:
        # Before the index is mapped, Megatron computes the length from all documents.
        length = len(self if self.shuffle_index is None else self.shuffle_index)
        return number_of(idx, length, "sample")

    def _labelled(self, idx: int) -> list[tuple[int, int, int]]:
        """As `pieces`, without the extra token: its label is in the next sample."""
        number = int(self.shuffle_index[idx])
        (first, begin), (last, end) = self.sample_index[number : number + 2].tolist()
        documents = self.document_index[first : last + 1].tolist()
        ends = [*map(int, self.dataset.sequence_lengths[documents[:-1]]), end]
        begins = [begin, *[0] * (last - first)]
        return list(zip(documents, begins, ends, strict=True))

    def _sidecar_slices(self, idx: int) -> list[torch.Tensor]:
        """Mask and span of one sample, int64 [S] each."""
        pieces = self._labelled(idx)
        slices = []
        for sidecar in (self._mask, self._span):
            values = np.zeros(self.config.sequence_length, np.int64)
            filled = 0
            for document, begin, end in pieces:
                values[filled : filled + end - begin] = sidecar.get(document, begin, end - begin)
                filled += end - begin
            slices.append(values)
        if not np.array_equal(slices[0] != 0, slices[1] != 0):
            raise Misaligned(
                str(self.dataset_path),
                f"sample {idx}: loss mask and span differ: build the shard again",
            )
        return [torch.from_numpy(values) for values in slices]


class HashedSynthKDDataset(SynthKDDataset):
    """A SynthKDDataset that hashes all files of the shard when it is opened."""

    verify = "hash"


class UncheckedSynthKDDataset(SynthKDDataset):
    """A SynthKDDataset that does not compare sizes with the record."""

    verify = "none"


def makes_index(config: GPTDatasetConfig) -> bool:
    """Whether Megatron makes an index that is not there, in this process."""
    if config.fast_cache_load or config.defer_npy_index_mmap:
        return False
    return not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0


def _checked(dataset_path: str | None) -> str:
    if dataset_path is None or not dataset_path.endswith("_tokens"):
        raise ValueError(f"{dataset_path}: the prefix of a SYNTH dataset must end in `_tokens`")
    return dataset_path


def _sidecar(
    path: str, files: ShardFiles, name: str, config: GPTDatasetConfig
) -> HeldIndexedDataset:
    """The dataset `name` of the same shard as the tokens, which the config calls `path`."""
    counts = config.sequences_per_dataset
    given = counts[path] if counts else None
    return HeldIndexedDataset(files, name, config.mmap_bin_files, given)


def _open_remote(path: str, name: str, config: GPTDatasetConfig) -> IndexedDataset:
    """Open the dataset `name` of an object store as GPTDataset opens the tokens."""
    return IndexedDataset(
        f"{path.removesuffix('_tokens')}_{name}",
        multimodal=False,
        mmap=config.mmap_bin_files,
        object_storage_config=ObjectStorageConfig(
            path_to_idx_cache=config.object_storage_cache_path
        ),
    )


def _compare_remote(path: str, tokens: IndexedDataset, sidecars: dict[str, IndexedDataset]) -> None:
    """Compare the indices of datasets in an object store, where file sizes are not known."""
    for name, sidecar in sidecars.items():
        for array in ("sequence_lengths", "document_indices"):
            if not np.array_equal(getattr(tokens, array), getattr(sidecar, array)):
                raise RuntimeError(f"{path}: {array} of tokens and {name} differ")
        if sidecar.index.dtype != np.uint8:
            raise RuntimeError(f"{path}: {name} is {sidecar.index.dtype}, not uint8")
    if tokens.index.dtype != np.int32:
        raise RuntimeError(f"{path}: tokens are {tokens.index.dtype}, not int32")
