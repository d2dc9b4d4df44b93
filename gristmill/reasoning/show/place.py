"""Which example a person asks to see, by id or number, its record, and `gristmill trace` of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from gristmill.contract import Trace
from gristmill.corpora.corpus import is_key
from gristmill.families import Misuse, Request
from gristmill.reasoning.format import names
from gristmill.reasoning.format.names import example_id
from gristmill.reasoning.format.published import splits_in

_ID: Final = re.compile(r"(.+)_([a-z0-9]+)_([0-9]{6,12})")


class Place(NamedTuple):
    """An example. record: line of the normalised file that is not blank, from 0."""

    corpus: str
    split: str
    record: int

    @property
    def partition(self) -> str:
        """Key of the partition."""
        return f"{self.corpus}__{self.split}"

    @property
    def example_id(self) -> str:
        """Id of the example."""
        return example_id(*self)


def parsed(sample: str) -> Place | None:
    """The example of an id, None for a text that is no id."""
    found = _ID.fullmatch(sample)
    if found is None or not is_key(f"{found[1]}__{found[2]}"):
        return None
    return Place(found[1], found[2], int(found[3]))


def chosen(request: Request, published: Collection[str]) -> Place:
    """The example that a command names.

    request: its sample is an id, or a number beside the options `corpus` and `split`.
    published: partitions of the folder.

    Without the options the first published split is taken. Raises Misuse for a sample that is
    neither, and for a split that is not published.
    """
    if (place := parsed(request.sample)) is None:
        if not request.sample.isdigit():
            raise Misuse(f"{request.sample!r} is neither a number nor an id as gsm8k_test_000012")
        place = Place(*split_of(request, published), request.number)
    if place.partition not in published:
        raise Misuse(f"{place.partition} is not in {request.path}: {_named(published)}")
    return place


def split_of(request: Request, published: Collection[str]) -> tuple[str, str]:
    """Corpus and split by the options of a command; the first published ones without them."""
    corpus, split = request.options.get("corpus"), request.options.get("split")
    for key in published:
        name, other = key.rsplit("__", 1)
        if corpus in (None, name) and split in (None, other):
            return name, other
    wanted = " ".join(word for word in (corpus, split) if word)
    raise Misuse(f"no split {wanted} in {request.path}: {_named(published)}".replace("  ", " "))


def normalized_beside(folder: Path) -> Path:
    """The folder of the normalised files, beside the folder of the alignments."""
    return folder.absolute().parent / Path(names.NORMALIZED).name


def _named(published: Collection[str]) -> str:
    return f"it has {', '.join(published)}" if published else "it has none"


def traced_token(request: Request) -> Iterable[Trace]:
    """Where a token, or the first token of an example, came from.

    request: path is the folder of the token shards. The sample is the id of an example; the
        option `token` is then the number of a token of it. Or the sample is a row of the shard that
        the options `corpus`, `split` and `shard` name, and `token` is a column, 0 by default.
    """
    from gristmill.reasoning.read import origins

    keys = splits_in(request.path, "{split}/index.jsonl")
    token = request.options.get("token") or 0
    if parsed(request.sample) is not None:
        place = chosen(request, keys)
        return origins.example_origins(request.path, place.partition, place.example_id, token)
    shard = str(request.options.get("shard") or "0")
    if not (shard.isascii() and shard.isdigit() and len(shard) < 10):
        raise Misuse(f"--shard {shard}: must be the number of a shard")
    partition = "__".join(split_of(request, keys))
    return origins.token_origins(request.path, partition, int(shard), request.number, token)


def traced_record(request: Request) -> Iterable[Trace]:
    """Which raw row a normalised record is from."""
    from gristmill.reasoning.read import origins

    place = chosen(request, splits_in(request.path, "{split}.jsonl"))
    return origins.record_origins(request.path, place.partition, place.record)


def traced_conversation(request: Request) -> Iterable[Trace]:
    """Which raw row a conversation is from; the sample is its number, from 0."""
    from gristmill.reasoning.read import origins

    return origins.conversation_origins(request.path, request.number)


def traced_alignment(request: Request) -> Iterable[Trace]:
    """Which normalised record and raw row the steps of an example are from."""
    from gristmill.reasoning.read import origins

    place = chosen(request, splits_in(request.path, "{split}.align.jsonl"))
    return origins.alignment_origins(request.path, place.partition, place.record)


def traced_spans(request: Request) -> Iterable[Trace]:
    """Which normalised record and raw row the annotations of an example are from."""
    from gristmill.reasoning.read import origins

    place = chosen(request, splits_in(request.path, "{split}.spans.jsonl"))
    return origins.span_origins(request.path, place.partition, place.record)


def traced_export(request: Request) -> Iterable[Trace]:
    """Where a token of an example of an exported dataset came from, or a text of nanochat.

    request: the sample is the id of an example, with the option `token`; or the number of a text,
        with the option `shard`, the number of its file.
    """
    from gristmill.reasoning.read import origins

    if (place := parsed(request.sample)) is None:
        shard = str(request.options.get("shard") or "0")
        if not (shard.isascii() and shard.isdigit() and len(shard) < 10):
            raise Misuse(f"--shard {shard}: must be the number of a file")
        return origins.text_origins(request.path, int(shard), request.number)
    token = request.options.get("token") or 0
    return origins.export_origins(request.path, place.partition, place.example_id, token)
