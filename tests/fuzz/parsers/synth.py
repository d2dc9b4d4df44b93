"""The parsers of the SYNTH family."""

from contextlib import suppress
from pathlib import Path

from gristmill.contract import BadInput
from gristmill.untrusted.files import REFUSE_LINKS
from tests.fuzz.parser import JSON, TEN_THOUSAND, Parsers, file, folder, put_names, scratch, split

PARSERS = Parsers()
_FORMAT = "gristmill.synth.format"
_RENDER = "gristmill.synth.render"
_BUILD = "gristmill.synth.builders"
_RENDERER = []
_PARQUET = (b"PAR1", b"synth_id", b"query", b"synthetic_answer", b"\x15\x00", b"\x19", b"\x4c")
_HARMONY = (
    *(b'{"messages":[', b'{"role":"user","content":"'),
    *(b'{"role":"assistant","channel":"final","content":"', b'"role":"system"'),
    *(b'"role":"developer"', b'"channel":"analysis"', b'"content":[{"type":"text","text":"'),
    *(b'"recipient":"', b'"name":"', b"<|end|>", b"<|start|>", b"]}"),
    *(b'{"type":"system_content"',),
)


@PARSERS.add(
    "synth_index",
    f"{_FORMAT}.megatron",
    words=(b"MMIDIDX\x00\x00\x01\0\0\0\0\0\0\0", b"\x04", b"\x01\0\0\0\0\0\0\0", b"\xff\xfe"),
)
def index(data: bytes) -> None:
    """A Megatron index and its values."""
    from gristmill.synth.format import megatron

    idx, values = split(data, 2)
    file("shard.idx", idx)
    binary = file("shard.bin", values)
    opened = megatron.read(scratch() / "shard")
    if opened.size == 0 and not values:
        return
    assert binary.stat().st_size == opened.size * opened.dtype.itemsize
    assert sum(len(opened[number]) for number in range(len(opened))) == opened.size


@PARSERS.add(
    "synth_parquet",
    "gristmill.synth.raw",
    "gristmill.untrusted.parquet",
    inputs=TEN_THOUSAND,
    most_bytes=16_384,
    words=_PARQUET,
)
def parquet_file(data: bytes) -> None:
    """A raw Parquet file, as the child process reads it: its footer, its rows as values.

    Arrow ends the process for some files, which the child turns into BadInput. So a child reads
    each input first, and then this process, whose branches guide the fuzzer.
    """
    from gristmill.synth.format.parquet import UntrustedParquet

    path = file("x.parquet", data)
    with UntrustedParquet(path, [], ["synth_id"]) as opened:
        for _ in opened.batches(100, row_bytes=1 << 20):
            pass
    _read_parquet(path)


def _read_parquet(path: Path) -> None:
    import pyarrow as pa

    from gristmill.synth.builders.harmony import RawRows
    from gristmill.synth.format.parquet import _describe, _read
    from gristmill.synth.raw import TEXTS, check_columns

    with path.open("rb") as opened:
        schema, groups, _ = _describe(opened.fileno(), path, ["synth_id"])
        names = schema.names
        wanted = {"batch_size": 100, "columns": None, "row_groups": list(range(len(groups)))}
        for stream in _read(opened.fileno(), path, wanted, 0, 1 << 20):
            rows = RawRows(path, 0, pa.ipc.open_stream(stream).read_next_batch())
            for name in set(names):
                if names.count(name) == 1:
                    rows.values(name)
    check_columns(path, names, TEXTS)


@PARSERS.add(
    "synth_trace",
    f"{_FORMAT}.parquet",
    f"{_FORMAT}.trace",
    inputs=TEN_THOUSAND,
    most_bytes=16_384,
    words=_PARQUET,
)
def trace_file(data: bytes) -> None:
    """A trace file."""
    from gristmill.synth.format import parquet, trace

    path = file("trace.parquet", data)
    for batch in parquet.batches(path, trace.opened(path), 100):
        for column in batch.columns:
            parquet.values(column)


@PARSERS.add(
    "synth_harmony_shard",
    f"{_BUILD}.manifests",
    f"{_BUILD}.harmony_shard",
    inputs=TEN_THOUSAND,
    most_bytes=16_384,
    words=_PARQUET,
)
def harmony_shard(data: bytes) -> None:
    """A Harmony shard of a finished conversion: its laws find what is wrong."""
    from gristmill.synth.builders.manifests import shard_violations

    list(shard_violations(file("synth_harmony_shard_00.parquet", data)))


@PARSERS.add("synth_messages", f"{_RENDER}.harmony", f"{_RENDER}.documents", words=JSON + _HARMONY)
def row_texts(data: bytes) -> None:
    """The column messages_json: the fast renderer gives the tokens of openai-harmony."""

    from gristmill.synth.render import documents, harmony
    from gristmill.synth.render.documents import BadRow

    vocabulary, renderer = _renderer()
    try:
        text = data.decode("utf-8", "surrogatepass")  # with lone surrogates
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    try:
        expected = harmony.render(harmony.parse(text), harmony.encoding(vocabulary))
    except (*harmony.CONVERSATION_ERRORS, RecursionError):
        expected = None
    try:
        taken = renderer.read(text)
    except BadRow:
        assert expected is None, text
        return
    if expected is None:
        try:
            harmony.strict_json(text)
        except ValueError:
            assert not taken.is_strict, text  # the builder asks the strict reader of these
            return
    assert expected is not None, text
    assert documents.assemble([taken], vocabulary).tokens.tolist() == list(expected.tokens)


def _renderer():  # type: ignore[no-untyped-def]
    from gristmill.synth.render.documents import Renderer
    from gristmill.vocabularies.pinned import O200K, find
    from tests.kept_vocabularies import kept_vocabularies

    if not _RENDERER:
        vocabulary = find(O200K, kept_vocabularies())
        _RENDERER.append((vocabulary, Renderer(vocabulary)))
    return _RENDERER[0]


@PARSERS.add(
    "synth_conversion",
    f"{_BUILD}.manifests",
    words=(*JSON, b'"storage"', b'"total_rows"', b'"schema_version"', b"\xff\xfe"),
)
def finished_conversion(data: bytes) -> None:
    """manifest.json and metadata.json of a finished conversion, and names of shards."""
    from gristmill.synth.builders.drop_in_use import account
    from gristmill.synth.builders.manifests import folder_violations

    manifest, metadata = split(data, 2)
    with folder("conversion") as place:
        (place / "manifest.json").write_bytes(manifest)
        (place / "metadata.json").write_bytes(metadata)
        list(folder_violations(place))
        with suppress(BadInput):
            account("synth_harmony", place, REFUSE_LINKS)


@PARSERS.add(
    "synth_raw_names",
    "gristmill.synth.raw",
    most_bytes=400,
    words=(b".parquet", b".PARQUET", b".done", b"SHA256SUMS", b"\n", b"\xff"),
)
def raw_names(data: bytes) -> None:
    """The names of files in a raw drop, one a line."""
    from gristmill.inbox.division import contiguous_run
    from gristmill.synth.raw import SHARDS, files, raw_account

    with folder("raw") as place:
        put_names(place, data.split(b"\n")[:20])
        with suppress(BadInput):
            raw_account(place, expected=3)
        paths = files(place)
        runs = [contiguous_run(paths, number, SHARDS) for number in range(4)]
        assert [path for run in runs for path in run] == paths


@PARSERS.add("synth_holdout", "gristmill.inbox.division")
def holdout(data: bytes) -> None:
    """The value of a row's id."""
    from gristmill.inbox.division import value

    assert value(data.decode("utf-8", "replace")) >= 0
