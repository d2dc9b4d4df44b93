"""The parsers of the reasoning family: raw files, corpus files, looks, steps, training files."""

import bz2
import gzip
import json
import lzma
from typing import Any

from tests.fuzz.parser import JSON, TEN_THOUSAND, Parsers, file, folder, put_names, split

PARSERS = Parsers()
_FORMAT = "gristmill.reasoning.format"
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
        put_names(place, lines)
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
    """`staged.json`."""
    from gristmill.reasoning.format import published as form

    with folder("staged") as place:
        file(f"staged/{form.STAGED}", data)
        read = form.read(place)
        assert read is not None
        assert isinstance(read.source, str) and isinstance(read.job, str)
        for path in read.entries:
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


_RENDER = "gristmill.reasoning.render"


@PARSERS.add(
    "reasoning_audits",
    "gristmill.reasoning.read.alignment",
    words=(*JSON, b'"verdict": "right"', b'"wrong"', b'"text_sha256": "', b"\n"),
)
def audits(data: bytes) -> None:
    """A file of audits: the last verdict of an example and text counts."""
    from gristmill.reasoning.read import alignment as audits

    path = file("audits.jsonl", data)
    assert set(audits.latest(path)) == {audit.key for audit in audits.read(path)}


@PARSERS.add(
    "reasoning_alignment",
    f"{_FORMAT}.align",
    "gristmill.reasoning.laws.quality",
    words=(*JSON, b"gsm8k_test_", b"no-steps", b"; verified", b'"Step 1"', b"\n", b"0.89"),
)
def alignment(data: bytes) -> None:
    """An alignment: its laws end with what they found, and a row is written as it was read."""
    from gristmill.reasoning.format import align
    from gristmill.reasoning.laws.quality import alignment_laws

    with folder("aligned") as place:
        path = file("aligned/gsm8k/test.align.jsonl", data)
        list(alignment_laws(place, "gsm8k__test"))
        for number, row in enumerate(align.rows(path), 1):
            try:
                line = align.line(row)
            except UnicodeEncodeError:
                continue  # a lone surrogate, which no builder meets
            assert repr(align.parsed(line, path, number)) == repr(row)


@PARSERS.add(
    "reasoning_report",
    f"{_FORMAT}.reports",
    "gristmill.reasoning.laws.quality",
    most_bytes=8192,
    words=(*JSON, b'"gsm8k__test": {', b'"breaches": ["', b"2026-11-22", b"false"),
)
def report(data: bytes) -> None:
    """A daily report: its laws and the gate end with what they found."""
    from gristmill.reasoning.format import reports
    from gristmill.reasoning.laws.quality import report_laws
    from gristmill.reasoning.read.supervised import check_gate

    with folder("reports") as place:
        path = file("reports/2026-11-22.json", data)
        list(report_laws(place))
        assert reports.problem({"splits": {}}) is not None
        found = reports.read(path)
        reports.reference(found)
        check_gate(place)


@PARSERS.add(
    "reasoning_steps",
    *tuple(f"{_RENDER}.{name}" for name in ("steps", "regions")),
    words=(b"Step 1: ", b"\n2. ", b"\n#### ", b"<<1+1=2>>", b"\n\n", b". ", b"\0", b"Effect"),
)
def steps(data: bytes) -> None:
    """The texts of a record: its steps ascend within their block. Three texts, apart by NUL.

    The first byte chooses the corpus.
    """
    from gristmill.corpora.corpus import CORPORA
    from gristmill.reasoning.render.steps import is_label, steps_of
    from gristmill.reasoning.render.text import rendered

    corpus = list(CORPORA)[(data[:1] or b"0")[0] % len(CORPORA)]
    texts = [part.decode("utf-8", "replace") for part in data[1:].split(b"\0")]
    question, cot, answer, *listed = [*texts, "", "", ""]
    record = {"question": question, "cot": cot or None, "answer": answer, "cot_steps": listed}
    text = rendered(record)
    found = steps_of(record, text, corpus)
    assert all(map(is_label, found.labels)) and len(found.labels) == len(found.ranges)
    start = (text.cot or text.answer or (0, 0))[0]
    bounds = [start, *(place for pair in found.ranges for place in pair), len(text.text)]
    assert bounds == sorted(bounds)
    assert all(text.text[a:b].strip() == text.text[a:b] != "" for a, b in found.ranges)


_CHAT = "gristmill.corpora.raw.chat"
_LOOK = "gristmill.look"
_TOML = (
    *(b'question = "q"\n', b"answer = {", b'cot = "c"\n', b'texts = "{q}"', b"[[form]]\n"),
    *(b"template", b"choice", b"pick", b"join", b"between", b"map", b"first", b"think", b"column"),
    *(b"keep = [{", b"dedup", b"sample = {", b"split = {", b"group = {", b"parse = {", b"extras"),
    *(b"steps = {", b"headerless", b"files = {", b"leave", b"{{", b"}}", b"\xff\xfe"),
)
_ROWS = (b'{"', b'":', b"null", b'"question":', b'"answer":', b"[{", b"<think>", b"####", b"\n")
_MESSAGES = (
    *(
        b'"messages":',
        b'"role":',
        b'"content":',
        b'"from":',
        b'"value":',
        b'"user"',
        b'"assistant"',
    ),
    *(b'"parts":', b'"text":', b"marks = {", b"history = ", b"control = ", b"Human:", b"[[", b'",'),
    *(b"</think>", b"[render]\n", b"template = ", b"tree = {", b"turns = {", b"roles = {"),
)


@PARSERS.add(
    "reasoning_corpus_file",
    *tuple(f"{_RAW}.{name}" for name in ("corpus_file", "values", "transforms", "rules", "reader")),
    covers=("gristmill.corpora.corpus", "gristmill.corpora.account"),
    inputs=TEN_THOUSAND,
    words=(*_TOML, *_ROWS),
)
def corpus_file(data: bytes) -> None:
    """A corpus file, and rows: what it makes of them breaks no law, and its counters add up."""
    from gristmill.contract import NothingToBuild
    from gristmill.corpora.account import corpus_columns
    from gristmill.corpora.raw import drops
    from gristmill.provenance.record import Accounted
    from gristmill.reasoning.builders.normalize import normalize
    from gristmill.reasoning.config import CorpusConfig
    from gristmill.reasoning.laws.texts import normalized_laws
    from gristmill.untrusted.files import REFUSE_LINKS

    recipe, rows = split(data, 2)
    with folder("corpora") as place:
        file("corpora/mine/corpus.toml", recipe)
        file("corpora/mine/train.jsonl", rows)
        corpus = drops.corpus_of(place / "mine")
        account = drops.account(place / "mine")
        Accounted.of([], corpus_columns(place / "mine", REFUSE_LINKS, account))
        taken = account.taken
        config = CorpusConfig(bad_rows=10**6, corpus=corpus.table)
        for number, name in enumerate(taken):
            out = place / f"out{number}"
            try:
                found = normalize(place / "mine", out, config, corpus="mine", split=name)
            except NothingToBuild:
                continue
            assert list(normalized_laws(out, f"mine__{name}", table=corpus.table)) == []
            made = found.records + found.rejected - found.from_groups
            assert made + found.grouped == found.raw_rows


@PARSERS.add(
    "reasoning_forgotten",
    f"{_RAW}.forgotten",
    words=(b'{"file":', b'"row":', b'"split":"train"', b'"number":', b'"hash":null', b'"date":'),
)
def forgotten_rows(data: bytes) -> None:
    """Tombstones of a drop: they are written again as they were read."""
    from gristmill.corpora.raw.forgotten import add, read

    drop = file("mine/forgotten.jsonl", data).parent
    found = read(drop, ("train", "test"))
    assert add(drop, found, ("train", "test")) == 0
    keys = [(each.split, each.number) for each in found if each.number is not None]
    assert len({*keys}) == len(keys)


@PARSERS.add(
    "reasoning_token_recipe",
    "gristmill.reasoning.raw",
    words=(b"corpora = [", b"tokenizer = ", b"seq_len = ", b"outputs = [", b'"gsm8k"', b"inf"),
)
def token_recipe(data: bytes) -> None:
    """The recipe of a token dataset."""
    from gristmill.reasoning.raw import read_recipe

    recipe = read_recipe(file("mine.toml", data))
    assert recipe["corpora"] and recipe["tokenizer"]


@PARSERS.add(
    "tokenizer_file",
    "gristmill.vocabularies.pinned",
    words=(b"form = ", b"file = ", b"sha256 = ", b"eod = ", b"[special]\n", b'"tiktoken"'),
)
def tokenizer_file(data: bytes) -> None:
    """tokenizer.toml of a person, beside ranks of three tokens."""
    from gristmill.vocabularies.pinned import FILE, read_declared

    with folder("tokenizers") as place:
        file("tokenizers/mine/mine.tiktoken", b"YQ== 0\nYg== 1\nYWI= 2\n")
        file(f"tokenizers/mine/{FILE}", data)
        declared = read_declared(place / "mine")
        assert declared.tokenizer(place / "mine" / declared.file).form == declared.form


@PARSERS.add(
    "chat_recipe",
    *tuple(f"{_CHAT}.{name}" for name in ("lists", "messages", "recipe")),
    covers=("gristmill.synth.raw",),
    inputs=TEN_THOUSAND,
    words=(*_TOML, *_ROWS, *_MESSAGES),
)
def chat_recipe(data: bytes) -> None:
    """A recipe of conversations, its template, and rows: what they become breaks no law."""
    from gristmill.corpora.account import chat_columns
    from gristmill.corpora.raw.chat import messages as chats
    from gristmill.families import Subject
    from gristmill.provenance.record import Accounted
    from gristmill.reasoning.builders.conversations import normalize_conversations
    from gristmill.reasoning.config import ChatConfig
    from gristmill.reasoning.laws.texts import conversation_laws
    from gristmill.synth.raw import read_render
    from gristmill.untrusted.files import REFUSE_LINKS

    recipe, template, rows = split(data, 3)
    with folder("chats") as place:
        drop = place / "mine"
        file("chats/mine/corpus.toml", recipe)
        file("chats/mine/t.jinja", template)
        file("chats/mine/train_sft.jsonl", rows)
        chat = chats.chat_of(drop)
        files = {
            name: [drop / each for each in names]
            for name, names in chats.account(drop).taken.items()
        }
        assert json.loads(read_render(drop).recorded)
        Accounted.of([], chat_columns(drop, REFUSE_LINKS, chats.account(drop)))
        config = ChatConfig(bad_rows=10**6, recipe=chat.table)
        found = normalize_conversations(drop, files, place / "out", "mine__00", config)
        assert list(conversation_laws(Subject(place / "out", has_record=False))) == []
        assert found.raw_rows == found.rows + found.rejected or chat.tree is not None


@PARSERS.add(
    "look",
    *tuple(f"{_LOOK}.{name}" for name in ("finding", "proposal", "reading", "roles", "report")),
    inputs=TEN_THOUSAND,
    words=(*_ROWS, b"question,answer\n", b"q\ta\n", b"sep=;", b"\xff\xfe"),
)
def look(data: bytes) -> None:
    """Two files that nobody described; a recipe that is proposed is one that the drop takes.

    The first byte chooses the endings of both.
    """
    from gristmill.corpora.raw.corpus_file import read_corpus_file
    from gristmill.look import finding, report

    first, second = divmod((data[:1] or b"0")[0] % 16, len(_ENDINGS))
    one, other = split(data[1:], 2)
    with folder("looked") as place:
        file(f"looked/mine/train.{_ENDINGS[first]}", one)
        file(f"looked/mine/more/test.{_ENDINGS[second]}", other)
        found = finding.look(place / "mine")
        said = "\n".join(report.lines(found))
        assert all(character.isprintable() or character == "\n" for character in said)
        if found.proposal.good and not found.takers:
            finding.write(found)
            assert read_corpus_file(place / "mine/corpus.toml", "mine").forms
