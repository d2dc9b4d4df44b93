"""Corpus files and looks: what a person writes of files, and files that nobody described."""

import json

from tests.fuzz.parser import TEN_THOUSAND, Parsers, file, folder, split

PARSERS = Parsers()
_RAW = "gristmill.corpora.raw"
_CHAT = "gristmill.corpora.raw.chat"
_LOOK = "gristmill.look"
_ENDINGS = ("jsonl", "json", "csv", "tsv")
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
    covers=("gristmill.corpora.corpus", "gristmill.corpora.raw.heads"),
    inputs=TEN_THOUSAND,
    words=(*_TOML, *_ROWS),
)
def corpus_file(data: bytes) -> None:
    """A corpus file, and rows: what it makes of them breaks no law, and its counters add up."""
    from gristmill.contract import NothingToBuild
    from gristmill.corpora.raw import drops
    from gristmill.corpora.raw.heads import corpus_columns
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
    from gristmill.corpora.raw.chat import messages as chats
    from gristmill.corpora.raw.heads import chat_columns
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
    *tuple(
        f"{_LOOK}.{name}"
        for name in (*("columns", "finding", "proposal", "reading", "roles", "report", "chats"),)
    ),
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
