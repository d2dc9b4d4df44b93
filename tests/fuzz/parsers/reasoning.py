"""The parsers of the reasoning family."""

import bz2
import gzip
import json
import lzma
from typing import Any

from tests.fuzz.parser import (
    JSON,
    TEN_THOUSAND,
    Parsers,
    file,
    folder,
)

PARSERS = Parsers()
_RAW = "gristmill.corpora.raw"
_ENDINGS = ("jsonl", "json", "csv", "tsv")
_COLUMNS = (
    *(b'"question":', b'"answer":', b'"rationale":', b'"source":', b'"target":', b'"problem":'),
    *(b'"generations":[', b'"is_reasoning_complete":[true', b'"correctness_llama":[true'),
    *(b"<think>", b"</think>", b'"query":', b'"response":', b"\\nThe answer is: ", b'"output":'),
    *(
        b'"answer_id":',
        b'"step_idx":"1"',
        b'"step":',
        b'"stories":[',
        b'"label":1',
        b'"sentences":',
    ),
    *(b'"confl_pairs":[[0,1]]', b'"states":{', b'"entities":[', b'"pair_plausible_story":0'),
    *(b'"question_stem":', b'"question_para_step":[', b'"answer_label":', b'"metadata":{'),
    *(
        b"suppose ",
        b" happens, how will it affect ",
        b"Options:\\n",
        b"\\\\boxed{",
        b"#### ",
        b"<<",
    ),
    *(b"\xef\xbb\xbf", b"\\r\\n", b"\t", b"\\n", b'""', b",", b'{"0":{'),
)
_CSV = (b"question,answer\n", b"question\tanswer\n", b'"', b'""', b",", b"\t", b"\r\n", b"\xff")


@PARSERS.add(
    "reasoning_normalized",
    *(f"{_RAW}.{name}" for name in ("texts", "tables", "rows", "corpus_file")),
    *(f"{_RAW}.{name}" for name in ("reader", "transforms", "texts")),
    "gristmill.reasoning.render.text",
    covers=(f"{_RAW}.drops",),
    inputs=TEN_THOUSAND,
    words=(*JSON, *_COLUMNS, *_CSV),
)
def normalized(data: bytes) -> None:
    """A raw file of a corpus: what is made of it breaks no law.

    The first byte chooses the corpus, the second the format and whether hooks clean the records.
    """
    from gristmill.corpora.corpus import CORPORA
    from gristmill.reasoning.builders.normalize import normalize
    from gristmill.reasoning.config import CLEANING, NormalizeConfig
    from gristmill.reasoning.laws.texts import normalized_laws

    corpus = list(CORPORA)[(data[:1] or b"0")[0] % len(CORPORA)]
    cleaning, ending = divmod((data[1:2] or b"0")[0] % 8, len(_ENDINGS))
    config = NormalizeConfig(bad_rows=10**6, cleaning=CLEANING if cleaning else ())
    with folder("reasoning") as place:
        file(f"reasoning/{corpus}/x.{_ENDINGS[ending]}", data[2:])
        summary = normalize(place / corpus, place / "out", config, split="train")
        assert list(normalized_laws(place / "out", f"{corpus}__train")) == []
        assert sum(summary.shapes.values()) == summary.records


@PARSERS.add(
    "reasoning_json",
    f"{_RAW}.rows",
    "gristmill.untrusted.lines",
    words=(*JSON, b'{"0":{', b"\n", b"\r", b"[{", b'"train":[', b'{"question":', b'"answer":'),
)
def json_rows(data: bytes) -> None:
    """A JSON file: its rows have the values that the standard library reads."""
    from gristmill.corpora.corpus import CORPORA
    from gristmill.corpora.raw.rows import rows

    path = file("x.jsonl", data)
    found = list(rows(path, CORPORA["gsm8k"]))
    assert [number for number, _ in found] == sorted({number for number, _ in found})
    text = data.removeprefix(b"\xef\xbb\xbf")
    objects = [row for _, row in found if isinstance(row, dict)]
    value = _standard(text)
    if isinstance(value, list):
        assert repr(objects) == repr([member for member in value if isinstance(member, dict)])
        return
    if isinstance(value, dict) and _is_number(next(iter(value), "")):
        # An object with an object for each number, or one row whose first column is a number. The
        # standard library keeps the last value of a number.
        members = {repr(member) for member in value.values() if isinstance(member, dict)}
        read = set(map(repr, objects))
        assert read >= members or read <= {repr(value)}
        return
    lines = text.split(b"\n")
    for number, row in found:
        if isinstance(row, dict) and len(found) > 1 and b"\n" in text:
            line = _standard(lines[number - 1])
            assert line is None or repr(row) == repr(line)


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdigit()


def _standard(text: bytes) -> Any:
    try:
        return json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


@PARSERS.add(
    "reasoning_packed",
    f"{_RAW}.rows",
    "gristmill.untrusted.walk",
    words=(b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"\0\0\0\0"),
)
def packed(data: bytes) -> None:
    """A packed file: the text is that of the standard library. The first byte chooses how."""
    from gristmill.corpora.raw.rows import unpacked

    which = (data[:1] or b"0")[0] % 4
    path = file(f"x.jsonl.{('gz', 'bz2', 'xz', 'zst')[which]}", data[1:])
    with unpacked(path) as texts:
        text = b"".join(texts)
    if which < 3:
        # Padding between members, which the standard library knows of xz in fours alone.
        try:
            expected = (gzip.decompress, bz2.decompress, lzma.decompress)[which](data[1:])
        except (OSError, EOFError, lzma.LZMAError):
            assert b"\0" in data
            return
        assert text == expected


@PARSERS.add(
    "reasoning_parquet",
    f"{_RAW}.parquet",
    "gristmill.untrusted.parquet",
    inputs=TEN_THOUSAND,
    most_bytes=16_384,
    words=(b"PAR1", b"question", b"\x15\x00", b"\x19", b"\x4c"),
)
def parquet_rows(data: bytes) -> None:
    """A Parquet file, as the child process reads it."""
    from gristmill.corpora.raw.parquet import read

    path = file("x.parquet", data)
    with path.open("rb") as opened:
        for batch in read(opened.fileno(), path):
            for row in batch:
                assert isinstance(row, str) or isinstance(json.loads(row), dict)


@PARSERS.add(
    "reasoning_drop_names",
    f"{_RAW}.drops",
    most_bytes=400,
    words=(
        *(b"gsm8k\n", b"train", b"-test", b"Dev", b".jsonl", b".json.gz", b".parquet", b"\xff"),
    ),
)
def drop_names(data: bytes) -> None:
    """The names of files in a drop, one a line; the first line is the corpus."""
    from gristmill.corpora.corpus import CORPORA
    from gristmill.corpora.raw import drops
    from tests.refusal import refusal

    first, *lines = data.split(b"\n")[:20]
    corpus = first.decode("utf-8", "replace").replace("/", "").replace("\0", "")[:40].strip(".")
    with folder("names") as outer:
        place = outer / (corpus or "gsm8k")
        place.mkdir()
        for line in lines:
            name = line.replace(b"\0", b"").replace(b"/", b"")[:200]
            if name not in (b"", b".", b".."):
                with open(bytes(place) + b"/" + name, "wb"):  # noqa: PTH123 - need not be UTF-8
                    pass
        refused = refusal(drops.account, place)
        found = drops.splits(place, CORPORA.get(corpus, CORPORA["wiqa"]))
        assert refused is not None or found
        paths = [path for paths in found.values() for path in paths]
        assert len(set(paths)) == len(paths)


@PARSERS.add(
    "reasoning_normalized_file",
    "gristmill.reasoning.laws.texts",
    "gristmill.corpora.records",
    words=(*JSON, b'"cot_steps": [', b'"question": ', b'"source_dataset": "wiqa"', b"\n"),
)
def normalized_file(data: bytes) -> None:
    """A normalised file: its laws and its reader end with what they found."""
    from gristmill.corpora.records import records
    from gristmill.reasoning.laws.texts import normalized_laws

    with folder("lawful") as place:
        path = file("lawful/wiqa/test.jsonl", data)
        list(normalized_laws(place, "wiqa__test"))
        numbers = [number for number, _ in records(path)]
        assert numbers == list(range(len(numbers)))


@PARSERS.add(
    "reasoning_raw_manifest",
    "gristmill.reasoning.laws.texts",
    words=(*JSON, b'"files": {', b'"licence": {', b'"source_shape": {'),
)
def raw_manifest(data: bytes) -> None:
    """A raw manifest: its laws end with what they found."""
    from gristmill.reasoning.laws.texts import raw_manifest_laws

    list(raw_manifest_laws(file("manifest/manifest.json", data).parent))
