"""The sample of rows of a part that tiktoken encodes, too, where gigatoken encodes all.

See also `gristmill.vocabularies.compare`: which rows, and the error.
Source: `docs/formats/vocabularies.md#sample-of-a-build`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gristmill.synth.render import documents
from gristmill.synth.render.documents import Documents
from gristmill.synth.render.shapes import Conversation
from gristmill.vocabularies import compare
from gristmill.vocabularies.encode import encoder
from gristmill.vocabularies.engine import TIKTOKEN
from gristmill.vocabularies.pinned import O200K


class Sample:
    """Compares rows of one part. The sample is the same for any number of workers.

    shard: the Harmony shard.
    vocabulary: the vocabulary file.
    engine: one of `engine.ENGINES`; without gigatoken there is nothing to compare.

    `rows` counts those that the seed chose. The first row of the part is not among them
    for its place alone, so that the count does not depend on the size of parts.
    """

    def __init__(self, shard: Path, vocabulary: Path, engine: str) -> None:
        self.rows = 0
        self._is_first = True
        self._shard, self._vocabulary = shard, vocabulary
        self._is_needed = encoder(O200K, vocabulary, engine).why_tiktoken_alone is None

    def check(
        self,
        made: Mapping[str, Documents],
        conversations: Mapping[str, Sequence[Conversation]],
        places: Mapping[str, Sequence[int]],
        ids: Sequence[object],
        before: int,
    ) -> None:
        """Compare the sampled rows of a batch, and the first row of the part.

        made: documents of each split.
        conversations: of each split, in the same order.
        places: of each split the rows of its documents, counted in the batch from 0.
        ids: synth_id of each row of the batch.
        before: number of rows of the shard before the batch.

        Raises EnginesDiffer with the row where tiktoken's tokens are others.
        """
        kept = sorted(place for places_of_split in places.values() for place in places_of_split)
        if not (self._is_needed and kept):
            return
        chosen = set(compare.sampled(self._shard.name, before, len(ids)).tolist())
        self.rows += len(chosen.intersection(kept))
        if self._is_first:
            chosen.add(kept[0])
            self._is_first = False
        for split, rows in places.items():
            ends = np.cumsum(made[split].lengths, dtype=np.int64)
            for number, place in enumerate(rows):
                if place in chosen:
                    one = conversations[split][number : number + 1]
                    expected = documents.assemble(one, self._vocabulary, TIKTOKEN).tokens
                    begin = int(ends[number]) - int(made[split].lengths[number])
                    where = f"{self._shard}:{before + place + 1}: synth_id {ids[place]!r}"
                    compare.check_equal(where, made[split].tokens[begin : ends[number]], expected)
