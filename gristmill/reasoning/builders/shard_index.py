"""The index of one split under construction: lines of each rank, merged by record.

See also `gristmill.reasoning.format.index`: the form of a line.
Source: `docs/formats/reasoning.md#index`.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from gristmill.contract import FileNote
from gristmill.hashing import HashedFile
from gristmill.reasoning.builders.shard_part import Part
from gristmill.reasoning.format import index, names

_LINES: Final = 4096


class SplitIndex:
    """Writes the index of a split. The lines of one rank come in the order of its records.

    path_prefix: first folder of `shard_path`.
    seq_len, tokens_per_shard, world_size: of the config.
    """

    def __init__(
        self,
        out: Path,
        corpus: str,
        split: str,
        path_prefix: str,
        sizes: tuple[int, int, int],
    ) -> None:
        self.name = names.split_index(corpus, split)
        self._path = out / self.name
        self._names = (corpus, split, path_prefix)
        self._seq_len, self._tokens_per_shard, self._world_size = sizes
        first = names.example_id(corpus, split, 0).removesuffix("000000")
        self._start = f'{{"example_id": {json.dumps(first)[:-1]}'
        self._shard_texts: dict[int, tuple[str, str]] = {}
        self._files: dict[int, Path] = {}
        self._open: HashedFile | None = None
        self._rank = -1
        self.rows = 0

    def add(self, rank: int, before: int, part: Part) -> None:
        """Append the lines of a part.

        rank: of the part; the ranks come one after the other.
        """
        if rank != self._rank:
            self.close_rank()
            self._rank = rank
            alone = self._world_size == 1
            path = self._path if alone else self._path.with_name(f"index.{rank:05d}.jsonl")
            self._files[rank] = path
            self._open = HashedFile(path)
        assert self._open is not None
        lines = self._lines(rank, before, part)
        while some := list(islice(lines, _LINES)):
            self._open.write("".join(some).encode())
            self.rows += len(some)

    def close_rank(self) -> None:
        """Close the file of the rank that was added last."""
        if self._open is not None:
            self._open.close()

    def finish(self) -> FileNote:
        """Complete the file of the split; return its note."""
        self.close_rank()
        if self._world_size == 1 and self._open is not None:
            file = self._open
        else:
            with HashedFile(self._path) as file:
                self._merge(file)
        return FileNote(rows=self.rows, sha256=file.sha256, bytes=file.bytes)

    def _merge(self, file: HashedFile) -> None:
        """Write the lines of all ranks by record, and remove the files of the ranks."""
        at = len(self._start.encode())

        def record(line: bytes) -> int:
            return int(line[at : line.index(b'"', at)])

        with ExitStack() as stack:
            opened = [stack.enter_context(path.open("rb")) for path in self._files.values()]
            merged = heapq.merge(*opened, key=record)
            while some := list(islice(merged, _LINES)):
                file.write(b"".join(some))
        for path in self._files.values():
            path.unlink()

    def _lines(self, rank: int, before: int, part: Part) -> Iterator[str]:
        """Yield the lines of a part, as `index.line` would make them."""
        seq_len, per_shard = self._seq_len, self._tokens_per_shard
        with_eos = part.lengths + 1
        ends = before + np.cumsum(with_eos)
        starts = ends - with_eos
        in_one = ((ends - 1) // seq_len == starts // seq_len).tolist()
        columns = (starts // per_shard, starts % per_shard // seq_len, starts % seq_len)
        rows = zip(
            part.records.tolist(),
            *(column.tolist() for column in columns),
            part.lengths.tolist(),
            strict=True,
        )
        head, digests = self._start, part.digests
        extras: Sequence[str] = part.extras or [""] * len(in_one)
        for place, (record, shard, row, column, length) in enumerate(rows):
            path, span = self._texts_of(rank, shard)
            if in_one[place]:
                spans = f'{span}{row}, "start": {column}, "end": {column + length + 1}}}'
            else:
                spans = self._spans(rank, int(starts[place]), int(ends[place]))
            yield (
                f'{head}{record:06d}{path}{row}, "token_start": {column}, "num_tokens": {length}, '
                f'"num_tokens_with_eos": {length + 1}, "spans": [{spans}], "rank": {rank}, '
                f'"text_sha256": "{digests[64 * place : 64 * place + 64]}"{extras[place]}}}\n'
            )

    def _spans(self, rank: int, start: int, end: int) -> str:
        """The spans of an example in several sequences. start, end: tokens of the rank."""
        spans = []
        while start < end:
            shard, inside = divmod(start, self._tokens_per_shard)
            row, column = divmod(inside, self._seq_len)
            stop = min(self._seq_len, column + end - start)
            text = self._texts_of(rank, shard)[1]
            spans.append(f'{text}{row}, "start": {column}, "end": {stop}}}')
            start += stop - column
        return ", ".join(spans)

    def _texts_of(self, rank: int, local: int) -> tuple[str, str]:
        """What follows an id up to the row, and how a span begins."""
        number = local * self._world_size + rank
        if number not in self._shard_texts:
            corpus, split, prefix = self._names
            path = json.dumps(index.shard_path(prefix, names.shard(corpus, split, number)))
            self._shard_texts[number] = (
                f'", "shard_path": {path}, "sequence_index": ',
                f'{{"shard_path": {path}, "sequence_index": ',
            )
        return self._shard_texts[number]
