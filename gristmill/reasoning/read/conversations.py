"""Records, and shards of conversations, as messages. Source: `docs/consumers.md#messages`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gristmill.corpora.records import records
from gristmill.exports.messages import Row, Talks, of_shard, row
from gristmill.provenance import RECORD, SHARED_RECORDS, read_record
from gristmill.provenance.find_artifacts import artifacts_in
from gristmill.reasoning.format import names
from gristmill.reasoning.format.numbers import Numbers
from gristmill.reasoning.format.published import NORMALIZED, corpus_of_record, recorded


def talks(asset: str, folder: Path) -> Iterator[Talks]:
    """Yield the splits of a shard of conversations, or those of the corpora of a folder."""
    if asset == "chat/conversations":
        yield from of_shard(folder, read_record(folder / RECORD))
    elif asset == NORMALIZED:
        for partition in recorded(artifacts_in(folder)):
            record = read_record(folder / SHARED_RECORDS / f"{partition}.json")
            licence = corpus_of_record(record).licence.id
            corpus, split = partition.split("__")
            path = folder / names.normalized(corpus, split)
            yield Talks(split, partial(asked, path, corpus, split, licence), licence)


def asked(path: Path, corpus: str, split: str, licence: str) -> Iterator[Row | None]:
    """A question, and its answer with the thought before it; None without one of both."""
    numbers = Numbers(path)
    for place, record in records(path):
        question, thought, answer = (
            (record.get(name) or "").strip() for name in ("question", "cot", "answer")
        )
        if not question or not answer:
            yield None
            continue
        said = {"role": "assistant", "content": answer} | ({"thinking": thought} if thought else {})
        name = names.example_id(corpus, split, numbers.of(place))
        yield row(name, corpus, licence, [{"role": "user", "content": question}, said])
