"""Token shards of one rank, in batches, by arrays. Source: `docs/formats/reasoning.md#reader`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError, Trace
from gristmill.families import Request
from gristmill.loading.source import Identity, Source, only, place_of
from gristmill.reading import StaleDataset, Verify
from gristmill.reading.folder import Opening
from gristmill.reading.reader import Reader, located
from gristmill.reading.sample_numbers import number_of, numbers_of
from gristmill.reading.torch_batch import ColumnBatch
from gristmill.reasoning.format import names
from gristmill.reasoning.format.index import Selection
from gristmill.reasoning.format.shards import Shard, ShardList, shard_list
from gristmill.reasoning.read import shard_order
from gristmill.reasoning.read.shard_files import record_in
from gristmill.reasoning.read.shard_order import UNEVEN, Order, Piece, Uneven, Walk
from gristmill.reasoning.read.supervised import Held, Supervision, open_held, refuse_drift
from gristmill.reasoning.read.trace import sequence_origins, traces_of_row
from gristmill.vocabularies.pinned import GPT2

if TYPE_CHECKING:
    from gristmill.reasoning.read.torch_sequences import TorchSequences

__all__ = ["ShardReader", "StaleDataset"]

Columns = dict[str, npt.NDArray[Any]]
Numbers = npt.NDArray[np.int64]


class ShardReader(Reader[Held]):
    """The sequences of the shards `manifest[rank::world_size]`, each once in an epoch.

    root: the folder of all shards: in the data root, staged, in a mirror, of the seed's tools, or a
        dataset of any tokenizer.
    rank, world_size: of the training job; default one rank.
    corpora, splits: those to read; default all.
    verify: how much is compared with the records, default "sizes".
    uneven: where ranks own different numbers of sequences: "each" (default) lets every rank read
        its own once, so that some end earlier; "pad" has ranks with fewer begin their own again,
        up to the number of the longest; "stop" ends all ranks where the shortest ends.
    allow_empty: with more ranks than shards, ranks without a shard read nothing; default an error.
    seed: shuffles shards, and sequences in a shard, otherwise in each epoch: the loader's order
        with windows of one shard. Default None, the order of the manifest.
    rotate: by how many of its shards a rank moves its start in each epoch, default 0.
    steps: the folder of the alignments; default None, no supervision.
    least_confidence: of an alignment whose steps are used, default 0.
    select: values by extra of the index, such as {"difficulty": "hard"}: only sequences that hold
        such an example are read; default all.
    documents: whether a batch says where the documents of a sequence begin, for attention that
        stays in one; default False.
    dtype: of `input_ids`, "int32" (default) or "int64".

    A batch has `input_ids` [n, seq_len], `shard` and `row` int32 [n]: the number of the shard in
    `shards`, and the sequence in it. With `steps` also `step_id` int32 [n, seq_len], the number of
    the step in its example from 1, 0 outside, and `example` int64 [n, seq_len], the row of the
    example in the index of its split from 0, -1 for padding. With `select` also `selected` bool
    [n, seq_len], the tokens of selected examples, and `example`. With `documents` also `example`,
    `labels`, `loss_mask`, `position_ids`, `cu_seqlens` [n, seq_len + 1] and `segments`, as
    `gristmill.loading.Packed` has them: no label is of another document.

    It can be pickled; each process maps the files itself, two shards at a time, and up to 128 where
    sequences are read by number.

    Raises BadInput where a file is missing or damaged or has nothing to read, StaleDataset where
    another version is published than was opened, GristmillError for ranks that do not fit, and at
    "hash" where the newest report has drifted.
    """

    def __init__(
        self,
        root: Path | str,
        *,
        rank: int = 0,
        world_size: int = 1,
        corpora: Sequence[str] = (),
        splits: Sequence[str] = (),
        verify: Verify | bool = "sizes",
        uneven: Uneven = "each",
        allow_empty: bool = False,
        seed: int | None = None,
        rotate: int = 0,
        steps: Path | str | None = None,
        least_confidence: float = 0.0,
        select: Mapping[str, Any] | None = None,
        documents: bool = False,
        dtype: str = "int32",
    ) -> None:
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} of {world_size}: ranks count from 0")
        if uneven not in UNEVEN or dtype not in ("int32", "int64") or rotate < 0:
            raise ValueError(f"uneven {uneven!r}, dtype {dtype!r}, rotate {rotate}: not allowed")
        self.root, self.rank, self.world_size = located(root), rank, world_size
        self.dtype = np.dtype(dtype)
        self._corpora, self._splits = tuple(corpora), tuple(splits)
        self._supervision = Supervision(
            None if steps is None else located(steps),
            least_confidence,
            Selection.of(select),
            documents,
        )
        self._listed: ShardList
        self._kept: dict[int, npt.NDArray[np.int64]] | None = None
        self.start(verify)
        if world_size > len(self.shards) and not allow_empty:
            raise GristmillError(
                f"{self.root}: {world_size} ranks for {len(self.shards)} shards: use fewer ranks,"
                " build smaller shards, or allow_empty=True"
            )
        sizes = [shard.sequences for shard in self.shards]
        if self._kept is not None:
            sizes = [len(self._kept.get(number, ())) for number in range(len(sizes))]
        self._order = Order(
            np.array(sizes, np.int64),
            world_size,
            uneven,
            seed,
            rotate,
            identity=_named(self._identity).text,
        )
        self._position = shard_order.Position()
        self._walked: tuple[int, Walk] = -1, Walk([])
        self._shuffled: tuple[tuple[int, int], npt.NDArray[np.int64] | None] = ((-1, -1), None)
        self._current = -1

    def open_files(self, opening: Opening) -> Held:
        """Open manifest and shards; at the first opening also choose the sequences."""
        folder = opening.folder(self.root, record_in(self.root, names.MANIFEST_RECORD))
        manifest = folder.file(names.MANIFEST)
        if opening.first:
            data = manifest.read_bytes()
            file = self.root / names.MANIFEST
            if opening.level == "hash":
                refuse_drift(self.root)
            self._listed = shard_list(data, file, self._corpora, self._splits)
        own = range(self.rank, len(self.shards), self.world_size)
        held = open_held(opening, self.root, self.shards, own, self._supervision)
        if opening.first and self._supervision.selection:
            self._kept = held.kept(self._supervision.selection)
        return held

    @property
    def shards(self) -> tuple[Shard, ...]:
        """All shards that were chosen, of every rank, in the order of the manifest."""
        return self._listed.shards

    @property
    def seq_len(self) -> int:
        """Tokens of a sequence."""
        return self._listed.seq_len

    @property
    def epoch(self) -> int:
        """The epoch that is read now, from 0."""
        return self._position.epoch

    @property
    def read(self) -> int:
        """Sequences of the epoch that `batches` has given, or that a state had."""
        return self._position.read

    @property
    def epoch_length(self) -> int:
        """Sequences that this rank reads in the epoch, those that were read included."""
        return len(self._walk(self.epoch))

    def start_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch, from 0."""
        if epoch < 0:
            raise ValueError(f"epoch {epoch}: epochs count from 0")
        self._position = shard_order.Position(epoch)

    def batches(self, batch_size: int, *, drop_last: bool = False) -> Iterator[Columns]:
        """Yield the rest of the epoch in batches; after the last begins the next epoch.

        batch_size: sequences of a batch, at least 1; the last batch of an epoch may have fewer.
        drop_last: leave such a batch out; default False.

        Once a batch is given, `state()` continues after it. Raises BadInput for a file that was
        damaged since the opening, StaleDataset as the class.
        """
        epoch = self.epoch
        while size := self.batch_length(self._position.read, batch_size, drop_last):
            read = self._position.read + size
            yield self._moved(epoch, read, self.between(read - size, read))
            if self.epoch != epoch:
                return  # start_epoch or load_state was called meanwhile
        self._position = shard_order.Position(epoch + 1)

    def _moved(self, epoch: int, read: int, columns: Columns) -> Columns:
        # The generator keeps no batch, so that the next one can have its memory.
        self._position = shard_order.Position(epoch, read)
        return columns

    def batch_length(self, first: int, batch_size: int, drop_last: bool = False) -> int:
        """Sequences of the batch that begins at sequence `first` of the epoch; 0 for none."""
        if batch_size < 1:
            raise ValueError(f"batch_size {batch_size}: at least 1")
        size = max(min(batch_size, self.epoch_length - first), 0)
        return 0 if drop_last and size < batch_size else size

    def between(self, first: int, stop: int) -> Columns:
        """The sequences of the epoch from `first` up to `stop`, as one batch."""
        walk = self._walk(self.epoch)
        if not 0 <= first <= stop <= len(walk):
            raise IndexError(f"sequences {first} to {stop} of {len(walk)}")
        pieces = walk.cut(first, stop)
        columns = self.held.columns(
            [(p.shard, self._rows(p)) for p in pieces], self.seq_len, self.dtype
        )
        if pieces and pieces[-1].shard != self._current:
            self._current = pieces[-1].shard
            for piece in walk.pieces[walk.place(stop - 1).shard_position + 1 :][:1]:
                self.held.files.prefetch(piece.shard, self._current)
        return columns

    def state(self, read: int | None = None) -> dict[str, Any]:
        """The state of this rank: an object of JSON, for a checkpoint.

        read: sequences of the epoch that were used; default those that `batches` has given.

        Raises IndexError for more than the epoch has.
        """
        position = self._position if read is None else self._position._replace(read=read)
        if not 0 <= position.read <= self.epoch_length:
            raise IndexError(f"{read} sequences of {self.epoch_length}")
        paths = [shard.path for shard in self.shards]
        return shard_order.state_of(self._order, self._identity, paths, self.rank, position)

    def load_state(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Continue where a state was written.

        state: of this rank, or the states of all ranks of the checkpoint. All are needed where
            the number of ranks is another one now; every rank is given the same.

        Raises GristmillError for the state of other shards or of another order, and where the
        states of some ranks are missing.
        """
        states = [state] if isinstance(state, Mapping) else list(state)
        now = replace(self._order, rests={})
        self._order, self._position = shard_order.resumed(states, now, self._identity, self.rank)
        self._walked = -1, Walk([])

    def source(self) -> Source:
        """The sequences by number, for `gristmill.loading`; columns as a batch has them.

        Raises GristmillError for a reader of one of several ranks: the loader shares out itself.
        """
        if self.world_size > 1:
            raise GristmillError(
                f"{self.root}: rank {self.rank} of {self.world_size} reads some shards alone: open"
                " it without rank and world_size, and give these to the Loader"
            )
        is_part = bool(self._corpora or self._splits)
        return SequenceSource(self, self._order.sizes, self._identity, is_part)

    def rows_by_number(self, numbers: Numbers) -> Columns:
        """The columns of sequences int64 [N], in the order asked; each shard is read once."""
        ends = self._ends
        place = np.searchsorted(ends, numbers, "right")
        rows = numbers - np.append(0, ends)[place]
        shards = self.rank + place * self.world_size
        if self._kept is not None:
            for shard in np.unique(shards).tolist():
                at = np.flatnonzero(shards == shard)
                rows[at] = self._kept[shard][rows[at]]
        return self.held.rows(shards, rows, self.seq_len, self.dtype)

    def as_torch(self, batch_size: int | None = None, *, drop_last: bool = False) -> TorchSequences:
        """The rest of the epoch as an IterableDataset of torch; see `TorchSequences`."""
        from gristmill.reasoning.read.torch_sequences import TorchSequences

        return TorchSequences(self, batch_size, drop_last=drop_last)

    def __len__(self) -> int:
        """Sequences of the shards of this rank."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, number: int) -> dict[str, Any]:
        """One sequence by number, in the order of the manifest, as tensors.

        A negative number counts from the end. Raises IndexError outside, TypeError for anything
        but an integer.
        """
        return self.__getitems__([number_of(number, len(self), "sequence")])[0]

    def __getitems__(self, numbers: Sequence[int]) -> ColumnBatch:
        """Sequences by number as one batch; a data loader of torch calls it."""
        from torch import from_numpy

        listed = numbers_of(numbers, len(self), "sequence")
        columns = self.rows_by_number(listed)
        return ColumnBatch({name: from_numpy(column) for name, column in columns.items()})

    @property
    def _ends(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self._order.sizes[self.rank :: self.world_size])

    @property
    def _identity(self) -> dict[str, Any]:
        select = str(self._supervision.selection) if self._kept is not None else None
        return {"manifest_sha256": self._listed.sha256, "select": select}

    def _walk(self, epoch: int) -> Walk:
        if self._walked[0] != epoch:
            self._walked = epoch, Walk(self._order.pieces(self.rank, epoch))
        return self._walked[1]

    def _rows(self, piece: Piece) -> slice | npt.NDArray[np.int64]:
        """The rows of a piece in the file of its shard."""
        if self._shuffled[0] != (self.epoch, piece.shard):
            shuffled = self._order.sequences(piece.shard, self.epoch)
            self._shuffled = (self.epoch, piece.shard), shuffled
        if (shuffled := self._shuffled[1]) is not None:
            return self._file_rows(piece.shard, shuffled[piece.start : piece.stop])
        if self._kept is not None:
            return self._file_rows(piece.shard, np.arange(piece.start, piece.stop))
        return slice(piece.start, piece.stop)

    def _file_rows(self, shard: int, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return numbers if self._kept is None else self._kept[shard][numbers]


def _named(chosen: Mapping[str, Any], artifact: str = "") -> Identity:
    """The name of the chosen sequences, by the digest of their entries of the manifest."""
    version = f"manifest {chosen['manifest_sha256']}"
    return Identity("reasoning/manifest", (version,), None, {"select": chosen["select"]}, artifact)


class SequenceSource:
    """Sequences by number over the chosen shards in the order of the manifest.

    data: of one rank. sizes: int64 [S], chosen sequences of each shard.
    chosen: the digest of the chosen entries of the manifest, and the selection of sequences. The
        digest has that of each file, so that shards of the seed's tools have an identity, too.
    """

    def __init__(
        self, data: ShardReader, sizes: Numbers, chosen: Mapping[str, Any], is_part: bool
    ) -> None:
        self._data = data
        # Several sources may be of one folder: each is named by the splits that it reads.
        keys = dict.fromkeys(f"{shard.corpus}__{shard.split}" for shard in data.shards)
        place = place_of(data.generations[0])
        artifact = f"{place} {'+'.join(keys)}" if is_part else place
        self.identity = _named(chosen, artifact)
        self.cuts: Numbers = np.append(0, np.cumsum(sizes)).astype(np.int64)
        first = data.shards[0]
        name = first.tokenizer or GPT2.name
        sha256 = first.tokenizer_sha256 or (None if first.tokenizer else GPT2.sha256)
        self.words = f"tokenizer {name} of sha256 {sha256}, seq_len {data.seq_len}"

    def read(self, numbers: Numbers) -> Columns:
        """`input_ids`, `shard`, `row`, and with supervision its columns."""
        return self._data.rows_by_number(numbers)

    def lengths(self) -> Numbers:
        """Tokens of each sequence, all alike."""
        return np.full(int(self.cuts[-1]), self._data.seq_len, np.int64)

    def shown(self, number: int) -> Iterator[Request]:
        """Each example of a sequence."""
        shard, row = self._place(number)
        for found in traces_of_row(self._data.root, shard.partition, shard.path, row):
            yield Request(self._data.root, found.example_id)

    def origin(self, number: int) -> Iterator[Trace]:
        """Each example of a sequence, its record and its raw row."""
        return sequence_origins(self._data.root, *self._place(number))

    def _place(self, number: int) -> tuple[Shard, int]:
        """The shard of a sequence, and its row there."""
        read = self.read(np.array([number]))
        return self._data.shards[int(read["shard"][0])], int(read["row"][0])


def opened(
    folders: Sequence[Path],
    *,
    corpora: Sequence[str] = (),
    splits: Sequence[str] = (),
    select: Mapping[str, Any] | None = None,
    documents: bool = False,
) -> Source:
    """Token shards as a source; arguments as `ShardReader`."""
    reader = ShardReader(
        only(folders), corpora=corpora, splits=splits, select=select, documents=documents
    )
    return reader.source()
