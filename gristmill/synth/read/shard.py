"""The files of one shard and split as Megatron's datasets read them.

`dataset.py` samples from them. This module imports torch and Megatron-Core.

Source: `docs/formats/synth.md#alignment-check`.
"""

from __future__ import annotations

from typing import Any

from megatron.core.datasets.indexed_dataset import IndexedDataset

from gristmill.synth.format import aligned
from gristmill.synth.format.megatron_files import Index, MappedValues, UnmappedValues
from gristmill.synth.read.shard_files import Misaligned, ShardFiles

__all__ = ["HeldIndexedDataset", "Misaligned", "ShardFiles"]


class HeldIndexedDataset(IndexedDataset):  # type: ignore[misc]
    """An IndexedDataset over held files, which a worker opens again in the same generation.

    mmap: whether the values are mapped.
    counts: numbers of sequences and documents that the job expects; None for any.

    Raises Misaligned for other numbers.
    """

    def __init__(
        self,
        files: ShardFiles,
        name: str,
        mmap: bool,
        counts: tuple[int, int] | None = None,
    ) -> None:
        self.files, self.name = files, name
        self.path_prefix = str(aligned.sibling(files.prefix, name))
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
            self.index = Index(path, aligned.DTYPES[self.name])
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
