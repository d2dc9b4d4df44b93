"""The parsers of what training reads of the reasoning family beside tokens."""

from tests.fuzz.parser import JSON, Parsers, file, folder

PARSERS = Parsers()
_FORMAT = "gristmill.reasoning.format"
_META = tuple(
    f'"{name}": '.encode()
    for name in ("dataset", "split", "path", "seq_len", "num_sequences", "token_count", "sha256")
)


@PARSERS.add("reasoning_shard_list", f"{_FORMAT}.shards", words=(*JSON, *_META))
def shard_list(data: bytes) -> None:
    """A manifest of shards, as the reader chooses from it: no path leads out of its folder."""
    from gristmill.reasoning.format.shards import shard_list as chosen

    for shard in chosen(data, file("manifest.json", data)).shards:
        assert shard.sequences * shard.seq_len > 0
        assert ".." not in shard.path.split("/") and not shard.path.startswith("/")


@PARSERS.add(
    "reasoning_shards",
    f"{_FORMAT}.shards",
    words=(*JSON, *_META, b'"source_files": [', b'"compression": ', b'"created_at": '),
)
def shards(data: bytes) -> None:
    """A manifest of shards, as its laws read it, and the meta of a single one."""
    from gristmill.reasoning.format import shards as form

    with folder("shards") as place:
        path = file(f"shards/{form.names.MANIFEST}", data)
        if data[:1] == b"[":
            assert b"".join(form.manifest_entries(form.read_manifest(place))).startswith(b"[")
        else:
            form.read_meta(path)


@PARSERS.add(
    "reasoning_index", f"{_FORMAT}.index", words=(*JSON, b'"spans": [{', b'"extras": {', b"\n")
)
def index(data: bytes) -> None:
    """An index: what is read of a line has its form again when it is written."""
    import json

    from gristmill.reasoning.format import index as form

    path = file("index.jsonl", data)
    for number, row in enumerate(form.objects(path), 1):
        form.parsed(json.dumps(row).encode(), path, number)


@PARSERS.add(
    "reasoning_staged",
    f"{_FORMAT}.published",
    "gristmill.provenance.record",
    words=(*JSON, b'"entries": [', b'"path": "', b'"own": true', b'"ranks": [', b"../"),
)
def staged(data: bytes) -> None:
    """`staged.json`, or with 1 as its first byte the journal of a staging."""
    from gristmill.reasoning.format import published as form

    with folder("staged") as place:
        name = form.JOURNAL if data[:1] == b"1" else form.STAGED
        file(f"staged/{name}", data[1:])
        if name == form.JOURNAL:
            journal = form.Journal(place)
            journal.mend()
            begun, ended = journal.read()
            paths = {*begun, *ended}
            assert set(ended) <= begun
        else:
            read = form.read(place)
            assert read is not None
            paths = set(read.entries)
            assert isinstance(read.source, str) and isinstance(read.job, str)
        for path in paths:
            assert ".." not in path.split("/") and not path.startswith("/")


@PARSERS.add(
    "reasoning_origins",
    f"{_FORMAT}.index",
    "gristmill.untrusted.npy_header",
    "numpy.lib._format_impl",
    words=(
        *(b"\x93NUMPY\x01\x00", b"'descr':", b"'shape':", b"(0, 2)", b"(2, 2)", b"<i8"),
        *(b"'fortran_order':", b"True", b"(-1, 2)", b"|O", b"1e9", b"\x93NUMPY\x03\x00"),
    ),
)
def origins(data: bytes) -> None:
    """The origins of a split: all of its rows are there."""
    import numpy as np

    from gristmill.reasoning.format.index import mapped

    found = mapped(file("origins.npy", data))
    assert found.nbytes == 16 * len(found) <= len(data)
    assert np.array_equal(found, np.array(found.tolist(), np.int64).reshape(-1, 2))
