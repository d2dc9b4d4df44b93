"""What training imports: Megatron's GPTDataset with an aligned loss mask and span id.

Imports torch and Megatron-Core, so it is imported only where training happens.
Source: `docs/formats/synth.md#training-reader`.
"""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from megatron.core.datasets.gpt_dataset import (
    GPTDataset,
    GPTDatasetConfig,
    _get_ltor_masks_and_position_ids,
)
from megatron.core.datasets.indexed_dataset import IndexedDataset
from megatron.core.datasets.object_storage_utils import ObjectStorageConfig, is_object_storage_path
from megatron.core.datasets.utils import Split

from gristmill.synth.format import aligned

_SIDECAR_CODE = 1
_PAD = 0


class SynthKDDataset(GPTDataset):  # type: ignore[misc]
    """GPTDataset over `.._tokens` whose samples also hold `loss_mask` and `span_id` of labels.

    Sampling and index caches are Megatron's own. A sample of sequence length S
    is a dict of [S] tensors: tokens, labels, position_ids, span_id int64,
    loss_mask float32, and attention_mask if the config asks for it. Mask and
    span are stored for labels already, so they are not shifted again; where a
    label is padding both are 0, and for index None everywhere.
    `eod_mask_loss` has no effect.

    The index cache's key holds the data's digest, so a rebuilt shard never
    meets a stale cache; where the config names no cache folder, the cache lies
    beside the published dataset, not in it.

    Raises ValueError for a path that is null or does not end in `_tokens`, and
    RuntimeError for any misalignment of the three datasets.
    """

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
        remote = is_object_storage_path(path)
        if not remote:
            self._data_digest = aligned.digest(Path(path))
        sidecars = {name: _open_sidecar(path, name, config) for name in ("lossmask", "span")}
        if remote:
            _compare_remote(path, indexed_dataset, sidecars)
            lengths = np.ascontiguousarray(indexed_dataset.index.sequence_lengths)
            self._data_digest = hashlib.sha256(lengths.view(np.uint8).data).hexdigest()
        super().__init__(
            indexed_dataset, dataset_path, indexed_indices, num_samples or None, index_split, config
        )
        self._mask = self._view(sidecars["lossmask"])
        self._span = self._view(sidecars["span"])

    @staticmethod
    def build_low_level_dataset(dataset_path: str, config: GPTDatasetConfig) -> IndexedDataset:
        """Open the tokens dataset as GPTDataset does; ValueError for another prefix."""
        return GPTDataset.build_low_level_dataset(_checked(dataset_path), config)

    def _view(self, sidecar: IndexedDataset) -> GPTDataset:
        """This dataset, reading the same slices from a sidecar, padded with 0."""
        view = copy.copy(self)
        view.dataset = sidecar
        view._pad_token_id = _PAD
        return view

    def _build_document_sample_shuffle_indices(self) -> Any:
        """Build or load the indices under a key that includes the data's digest."""
        self.unique_identifiers["data_digest"] = self._data_digest
        self.unique_description = json.dumps(
            self.unique_identifiers, indent=4, default=lambda obj: obj.unique_identifiers
        )
        self.unique_description_hash = hashlib.md5(
            self.unique_description.encode(), usedforsecurity=False
        ).hexdigest()
        given = self.config  # type: ignore[has-type]
        if given.path_to_cache is None and not is_object_storage_path(self.dataset_path):
            # GPTDataset's default is a folder inside the published one.
            self.config = copy.copy(given)
            self.config.path_to_cache = str(aligned.cache_folder(Path(self.dataset_path)))
        try:
            return super()._build_document_sample_shuffle_indices()
        finally:
            self.config = given

    def __getitem__(self, idx: int | None) -> dict[str, torch.Tensor]:
        """One sample; index None gives sample 0 with nothing supervised."""
        at = 0 if idx is None else idx
        text = self._slices(self, at)
        mask, span = self._slices(self._mask, at), self._slices(self._span, at)
        if not torch.equal(mask != 0, span != 0):
            raise RuntimeError(f"{self.dataset_path}: sample {at}: loss mask and span differ")
        if self.config.add_extra_token_to_sequence:
            tokens, labels = text[:-1].contiguous(), text[1:].contiguous()
            mask, span = mask[:-1].contiguous(), span[:-1].contiguous()
        else:
            tokens, labels = text, torch.roll(text, shifts=-1, dims=0)
            labels[-1] = self._pad_token_id
            mask[-1] = span[-1] = 0
        attention_mask, _, position_ids = _get_ltor_masks_and_position_ids(
            tokens,
            self.config.tokenizer.eod,
            self.config.reset_position_ids,
            self.config.reset_attention_mask,
            False,
            self.config.create_attention_mask,
        )
        unsupervised = labels == self._pad_token_id
        if idx is None:
            unsupervised = torch.ones_like(unsupervised)
        mask[unsupervised] = span[unsupervised] = 0
        tokens[tokens == self._pad_token_id] = 0
        labels[labels == self._pad_token_id] = 0
        sample = {"tokens": tokens, "labels": labels}
        if self.config.create_attention_mask:
            sample["attention_mask"] = attention_mask
        return sample | {
            "loss_mask": mask.float(),
            "position_ids": position_ids,
            "span_id": span,
        }

    @staticmethod
    def _slices(view: GPTDataset, idx: int) -> torch.Tensor:
        values, _ = GPTDataset._query_document_sample_shuffle_indices(view, idx)
        return torch.from_numpy(values).long()


def _checked(dataset_path: str | None) -> str:
    if dataset_path is None or not dataset_path.endswith("_tokens"):
        raise ValueError(f"{dataset_path}: a SYNTH dataset's prefix ends in `_tokens`")
    return dataset_path


def _open_sidecar(path: str, name: str, config: GPTDatasetConfig) -> IndexedDataset:
    """Open a sidecar exactly as GPTDataset opens the tokens."""
    prefix = f"{path.removesuffix('_tokens')}_{name}"
    if is_object_storage_path(path):
        return IndexedDataset(
            prefix,
            multimodal=False,
            mmap=config.mmap_bin_files,
            object_storage_config=ObjectStorageConfig(
                path_to_idx_cache=config.object_storage_cache_path
            ),
        )
    counts = config.sequences_per_dataset
    return IndexedDataset(
        prefix,
        multimodal=False,
        mmap=config.mmap_bin_files,
        fast_cache_load=config.fast_cache_load,
        sequences_per_dataset=counts[path] if counts else None,
        dtype_code=_SIDECAR_CODE,
    )


def _compare_remote(path: str, tokens: IndexedDataset, sidecars: dict[str, IndexedDataset]) -> None:
    """Compare what the indices of an object store tell; file sizes are not to be had."""
    for name, sidecar in sidecars.items():
        for array in ("sequence_lengths", "document_indices"):
            if not np.array_equal(getattr(tokens.index, array), getattr(sidecar.index, array)):
                raise RuntimeError(f"{path}: {array} of tokens and {name} differ")
        if sidecar.index.dtype != np.uint8:
            raise RuntimeError(f"{path}: {name} is {sidecar.index.dtype}, not uint8")
    if tokens.index.dtype != np.int32:
        raise RuntimeError(f"{path}: tokens are {tokens.index.dtype}, not int32")
