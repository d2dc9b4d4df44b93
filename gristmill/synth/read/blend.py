"""A blend of several shards, whose index is cached as the indices of its datasets are.

This module imports torch and Megatron-Core, so only training jobs and tests import it.
Source: `docs/formats/synth.md#index-cache`.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from megatron.core.datasets.blended_dataset import BlendedDataset
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder

from gristmill.synth.read.dataset import makes_index
from gristmill.synth.read.index_cache import folder_of

FILES: Final = ("description.txt", "dataset_index.npy", "dataset_sample_index.npy")


class BlendedSynthKDDataset(BlendedDataset):  # type: ignore[misc]
    """A BlendedDataset whose index is made apart and appears whole in the cache of its config.

    It has Megatron's arguments and samples. Several processes may begin with an empty cache, with
    torch.distributed or without, where Megatron's own class ends in an error.
    """

    def _build_indices(self) -> Any:
        """Build or load the index of the blend."""
        config = self.config  # type: ignore[has-type]
        if not config.path_to_cache or not makes_index(config):
            return super()._build_indices()
        key = f"{self.unique_description_hash}-{type(self).__name__}-{self.split.name}"
        cache = Path(config.path_to_cache)
        with folder_of(cache, key, FILES) as folder:
            # Megatron asks for its rank before it writes, which a process alone has not.
            is_alone = folder != cache and not torch.distributed.is_initialized()
            self.config = copy.copy(config)
            self.config.path_to_cache = None if is_alone else str(folder)
            try:
                indices = super()._build_indices()
            finally:
                self.config = config
            if is_alone:
                description, *arrays = (folder / f"{key}-{name}" for name in FILES)
                description.write_text(self.unique_description)
                for path, array in zip(arrays, indices, strict=True):
                    np.save(path, array)
            return indices


class SynthKDBlendBuilder(BlendedMegatronDatasetBuilder):  # type: ignore[misc]
    """Megatron's builder, whose blends are BlendedSynthKDDataset; its arguments are Megatron's."""

    @staticmethod
    def build_generic_dataset(cls: Any, *args: Any) -> Any:  # noqa: PLW0211  Megatron's name
        """Build a dataset as Megatron does, a blend as ours."""
        mine = BlendedSynthKDDataset if cls is BlendedDataset else cls
        return BlendedMegatronDatasetBuilder.build_generic_dataset(mine, *args)
