"""`gristmill trace` of shards, records and alignments: an example by its id, or by its place."""

from __future__ import annotations

from collections.abc import Iterable

from gristmill.contract import Trace
from gristmill.families import Misuse, Request
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.show.place import chosen, parsed, split_of


def traced_token(request: Request) -> Iterable[Trace]:
    """Where a token, or the first token of an example, came from.

    request: path is the folder of the token shards. The sample is the id of an example; the
        option `token` is then the number of a token of it. Or the sample is a row of the shard that
        the options `corpus`, `split` and `shard` name, and `token` is a column, 0 by default.

    Raises Misuse for a sample that is neither, and BadInput where there is no such token.
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
