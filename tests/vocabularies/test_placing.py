"""Tokenizers from a person's file: declared, proved, placed, and refused."""

import hashlib
import http.server
import io
import logging
import shutil
import string
import sysconfig
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import orjson
import pytest
from tokenizers import Tokenizer as Loaded
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.normalizers import Normalizer

from gristmill.contract import BadInput, GristmillError
from gristmill.settings.tables import PlacingSettings
from gristmill.vocabularies import placing, proving
from gristmill.vocabularies.pinned import FILE, GPT2, O200K, VOCABULARIES, Proof, read_declared
from gristmill.vocabularies.placing import place_tokenizer, put, tokenizer_laws
from gristmill.vocabularies.tokenizer import Tokenizer, open_tokenizer
from tests.paths import CHECKOUT
from tests.vocabularies import mixed_texts
from tests.vocabularies.places import drop as place_of

EOD = "<|end|>"
_ALL_TEXTS = proving.fixed_texts
_PLAIN = (
    "the number of apples that Tom has is a number, and the answer to the problem is that number"
)


@pytest.fixture(scope="module", autouse=True)
def _few_texts() -> Iterator[None]:
    """Prove with a tenth of the fixed texts."""
    few = proving.fixed_texts()[:500]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(proving, "fixed_texts", lambda: few)
        yield


@cache
def _trained() -> str:
    made = Loaded(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=alphabet, special_tokens=[EOD], show_progress=False
    )
    made.train_from_iterator(proving.fixed_texts()[:100], trainer)
    made.add_tokens(["<think>"])
    return str(made.to_str())


def trained(path: Path, normalizer: Normalizer | None = None) -> Path:
    """A small byte-level tokenizer of 600 ids, with one control token, and one that is none."""
    made = Loaded.from_str(_trained())
    made.normalizer = normalizer
    path.write_text(made.to_str())
    return path


@pytest.fixture(scope="module")
def drop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    return put(trained(root / "tokenizer.json"), root, name="mine", eod=EOD).parent


@pytest.fixture(scope="module")
def folder(drop: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "tokenizer"
    with pytest.MonkeyPatch.context() as patched:
        # The child would compare every code point.
        patched.setattr("gristmill.vocabularies.placing.child.run", in_this_process)
        patched.setattr(proving, "_PLANES", (range(0x100),))
        place_tokenizer(drop, read_declared(drop), out)
    return out


def in_this_process(function: object, *arguments: object, **_: object) -> object:
    assert callable(function)
    return function(*arguments)


def ids(tokenizer: Tokenizer, text: str, engine: str = "auto") -> list[int]:
    found: list[int] = np.frombuffer(tokenizer.encode([text], engine).ids[0], "<i4").tolist()
    return found


def test_a_placed_file_is_a_tokenizer_of_two_engines_with_its_end_by_text(folder):
    found = open_tokenizer(folder / "mine")
    assert (found.name, found.size, found.eod, found.special) == ("mine", 601, 0, {EOD: 0})
    assert found.dtype == np.dtype("<u2")
    assert found.proof is not None and found.proof.why_not == ""
    assert not list(tokenizer_laws(folder, "mine"))
    back = b"".join(found.token_bytes[token] for token in ids(found, "Ответ: x²\n"))
    assert back.decode() == "Ответ: x²\n"


def test_both_engines_give_the_same_ids_and_no_control_token(folder):
    found = open_tokenizer(folder / "mine")
    for text in (f"a{EOD}b", "x <think> y", *proving.fixed_texts()[300:]):
        assert ids(found, text) == ids(found, text, "reference")
        assert 0 not in ids(found, text)
    assert 600 in ids(found, "x<think>y"), "a token that is no control token stays one"
    assert found.encode(["a", "\U00010000"]).by_reference == {1}, "it was not compared"


def test_what_looks_like_a_control_token_has_the_ids_of_its_text(tmp_path, monkeypatch):
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*string.printable, *[_PLAIN] * 3]),
        model_writer=model,
        model_type="bpe",
        vocab_size=600,
        byte_fallback=True,
        user_defined_symbols=["<sep>"],
        remove_extra_whitespaces=False,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    file = tmp_path / "own.model"
    file.write_bytes(model.getvalue())
    placed = put(file, tmp_path, name="own", eod="</s>").parent
    monkeypatch.setattr("gristmill.vocabularies.placing.child.run", in_this_process)
    monkeypatch.setattr(proving, "_PLANES", (range(0x100),))
    place_tokenizer(placed, read_declared(placed), tmp_path / "out")
    tokenizer = open_tokenizer(tmp_path / "out/own")
    assert tokenizer.proof is not None and not tokenizer.proof.why_not
    assert {"<s>", "</s>", "<sep>"} <= set(tokenizer.proof.marks)
    texts = [f"a {mark} b" for mark in ("<s>", "</s>", "<unk>", "<0x0A>", "<sep>", "s>")]
    texts += ["x<sep>y", "<sep><sep>"]
    assert mixed_texts.differing(tokenizer, texts) == []
    assert not {1, 2} & {each for text in texts for each in ids(tokenizer, text)}
    # Without the marks of the proof a text would end a document.
    unmarked = replace(tokenizer, proof=replace(tokenizer.proof, marks=()))
    assert mixed_texts.differing(unmarked, texts) != []


def test_mixed_texts_have_the_ids_of_the_library(folder, monkeypatch):
    # All that is installed would be listed for a few texts.
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"purelib": str(CHECKOUT / "gristmill")})
    tokenizer, texts = open_tokenizer(folder / "mine"), list(mixed_texts.mixed(40))
    assert mixed_texts.differing(tokenizer, texts) == []


def test_a_normaliser_leaves_no_offsets_and_says_why(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("gristmill.vocabularies.placing.child.run", in_this_process)
    source = trained(tmp_path / "tokenizer.json", normalizers.NFKC())
    drop = put(source, tmp_path, name="nfkc", eod=EOD).parent
    with caplog.at_level(logging.WARNING):
        summary = place_tokenizer(drop, read_declared(drop), tmp_path / "out")
    assert (summary.fast, summary.offsets) == (False, False)
    assert [record.message.count("NFKC") for record in caplog.records] == [1]
    found = open_tokenizer(tmp_path / "out/nfkc")
    assert "comes back as" in found.no_offsets
    assert ids(found, "\ufb01") == ids(found, "fi")
    assert found.encode(["a"]).by_reference == {0}


def test_a_child_that_dies_of_the_proof_leaves_the_reference(drop, tmp_path, monkeypatch):
    def dying(function: object, *arguments: object, **_: object) -> object:
        if function is proving.prove:
            raise BadInput("x", "crashes the library that reads it")
        return in_this_process(function, *arguments)

    monkeypatch.setattr("gristmill.vocabularies.placing.child.run", dying)
    assert not place_tokenizer(drop, read_declared(drop), tmp_path / "out").fast
    found = open_tokenizer(tmp_path / "out/mine")
    assert found.proof is not None and "crashes the library" in found.proof.why_not


def test_an_end_that_is_no_control_token_is_refused_with_those_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.vocabularies.placing.child.run", in_this_process)
    monkeypatch.setattr(proving, "_PLANES", ())
    drop = put(trained(tmp_path / "t.json"), tmp_path, name="mine", eod="</s>").parent
    with pytest.raises(BadInput, match=r'eod = "</s>": is no control token: it has <\|end\|>'):
        place_tokenizer(drop, read_declared(drop), tmp_path / "out")


def test_a_model_that_draws_its_merges_is_refused_before_it_is_compared(tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.vocabularies.placing.child.run", in_this_process)
    monkeypatch.setattr("gristmill.vocabularies.placing.prove", None)
    content = orjson.loads(trained(tmp_path / "t.json").read_bytes())
    content["model"]["dropout"] = 0.1
    (tmp_path / "t.json").write_bytes(orjson.dumps(content))
    drop = put(tmp_path / "t.json", tmp_path, name="mine", eod=EOD).parent
    with pytest.raises(BadInput, match=r"t\.json: model\.dropout = 0\.1: .*: write null"):
        place_tokenizer(drop, read_declared(drop), tmp_path / "out")


@pytest.mark.parametrize("place", ["added_tokens", "vocab"])
def test_two_tokens_of_one_id_are_refused(tmp_path, monkeypatch, place):
    monkeypatch.setattr("gristmill.vocabularies.placing.child.run", in_this_process)
    content = orjson.loads(trained(tmp_path / "t.json").read_bytes())
    if place == "vocab":
        content["model"]["vocab"]["<b>"] = 5
    else:
        content[place] += [content[place][-1] | {"content": "<b>"}]
    (tmp_path / "t.json").write_bytes(orjson.dumps(content))
    drop = put(tmp_path / "t.json", tmp_path, name="mine", eod=EOD).parent
    with pytest.raises(BadInput, match=r'drops/.*t\.json: ".*" have the id \d+: write one id'):
        place_tokenizer(drop, read_declared(drop), tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits", [PlacingSettings(seconds=1), PlacingSettings(memory_bytes=1 << 26)]
)
def test_what_takes_more_than_the_limits_ends_in_words_that_name_the_setting(tmp_path, limits):
    content = orjson.loads(trained(tmp_path / "t.json").read_bytes())
    # Several times what the quickest machine reads in a second, and nothing else to refuse.
    content["model"]["vocab"] |= {"<think>": 600} | {f"w{at}": at for at in range(601, 3_000_000)}
    (tmp_path / "t.json").write_bytes(orjson.dumps(content))
    drop = put(tmp_path / "t.json", tmp_path, name="mine", eod=EOD).parent
    with pytest.raises(
        BadInput, match=r"t\.json: (takes|crashes) .*`seconds` .*tokenizers\.placed"
    ):
        place_tokenizer(drop, read_declared(drop), tmp_path / "out", limits=limits)


@pytest.mark.parametrize(("taken", "left"), [(1, [9]), (9, [1]), (10, []), (11, [])])
def test_facts_and_proof_together_keep_the_seconds(drop, tmp_path, monkeypatch, taken, left):
    given: list[int] = []

    def run(function: object, *arguments: object, seconds: int, **_: object) -> object:
        given.append(seconds)
        found = Proof("not proved") if given[1:] else in_this_process(function, *arguments)
        return found if given[1:] else replace(found, seconds=taken)  # type: ignore[type-var]

    monkeypatch.setattr("gristmill.vocabularies.placing.child.run", run)
    limits = PlacingSettings(seconds=10)
    assert not place_tokenizer(drop, read_declared(drop), tmp_path / "out", limits=limits).fast
    assert given == [10, *left]


def test_a_model_that_makes_its_end_of_ordinary_text_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.vocabularies.placing.child.run", in_this_process)
    made = Loaded(models.WordLevel({"</s>": 0, "a": 1, "[UNK]": 2}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(["</s>"])
    made.save(str(tmp_path / "t.json"))
    drop = put(tmp_path / "t.json", tmp_path, name="words", eod="</s>").parent
    with pytest.raises(BadInput, match=r"the text </s> becomes a control token \(id 0\)"):
        place_tokenizer(drop, read_declared(drop), tmp_path / "out")


def test_a_file_that_no_library_reads_is_refused_by_a_child(tmp_path):
    (tmp_path / "t.json").write_text('{"model": 5}')
    drop = put(tmp_path / "t.json", tmp_path, name="mine", eod="x").parent
    with pytest.raises(BadInput, match="tokenizers does not read it"):
        place_tokenizer(drop, read_declared(drop), tmp_path / "out")


def test_another_file_than_the_declared_one_is_refused(drop, tmp_path):
    declared = read_declared(drop)
    other = tmp_path / "mine"
    other.mkdir()
    (other / declared.file).write_bytes(b"{}")
    with pytest.raises(BadInput, match=f"sha256 {hashlib.sha256(b'{}').hexdigest()}"):
        place_tokenizer(other, declared, tmp_path / "out")
    (other / declared.file).unlink()
    with pytest.raises(BadInput, match=r"is missing, and tokenizer\.toml names it"):
        place_tokenizer(other, declared, tmp_path / "out")


def test_the_laws_find_a_changed_file_and_ids_beyond_the_size(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "t")
    facts = tmp_path / "t/mine/facts.json"
    values = orjson.loads(facts.read_bytes())
    facts.write_bytes(orjson.dumps(values | {"size": 0}))
    (tmp_path / "t/mine/tokenizer.json").write_bytes(b"{}")
    assert [each.law for each in tokenizer_laws(tmp_path / "t", "mine")] == ["sha256", "ids"]
    facts.write_bytes(b"[]")
    assert [each.law for each in tokenizer_laws(tmp_path / "t", "mine")] == ["readable"]


def test_the_end_is_never_guessed_and_a_refused_folder_is_not_left(tmp_path):
    file = tmp_path / "x.tiktoken"
    file.write_bytes(b"IQ== 0\n")
    with pytest.raises(BadInput, match="never guessed: give --eod"):
        put(file, tmp_path, name="mine")
    with pytest.raises(BadInput, match="pattern = None"):
        put(file, tmp_path, name="mine", eod="<|x|>")
    assert not (tmp_path / "drops/tokenizers/mine").exists()
    special = {"<|x|>": 1}
    put(file, tmp_path, name="mine", eod="<|x|>", pattern="gpt2", special=special)
    with pytest.raises(GristmillError, match="is there already"):
        put(file, tmp_path, name="mine", eod="<|x|>", pattern="gpt2", special=special)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("forms = 1", 'unknown key "forms"'),
        ('form = "gguf"', 'form = "gguf": must be one of tiktoken'),
        ('file = "../x"', "must be the name of a file beside it"),
        ('sha256 = "ab"', "must have 64 hexadecimal digits"),
        ('pattern = "gpt2"', "pattern: the file of the form tokenizer.json says it"),
        ("eod = 5", "eod = 5: must be a text"),
    ],
)
def test_a_wrong_key_is_refused_by_its_name(tmp_path, line, rule):
    good = {"form": '"tokenizer.json"', "file": '"t.json"', "sha256": f'"{"0" * 64}"'}
    good |= {"eod": '"</s>"'}
    key, _, value = line.partition(" = ")
    text = "\n".join(f"{name} = {each}" for name, each in (good | {key: value}).items())
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / FILE).write_text(text)
    with pytest.raises(BadInput) as refused:
        read_declared(folder)
    assert rule in refused.value.rule and refused.value.file.endswith(FILE)


def test_the_fixed_texts_stay(monkeypatch):
    monkeypatch.setattr(proving, "fixed_texts", _ALL_TEXTS)
    assert len(proving.fixed_texts()) == 5000
    assert (
        proving.fixed_digest() == "c7f8b07fe43566cff7e5e03bdd5e143a90653cd6b8620655e9769b24159b8c50"
    )


NOWHERE = "http://127.0.0.1:9/none"
PREFIX = "litellm/litellm_core_utils/tokenizers/"


def test_files_of_this_machine_are_fetched_without_network(tmp_path, vocabulary_root):
    for vocabulary in VOCABULARIES:
        source = tmp_path / "tokenizer" / vocabulary.relative
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_bytes(place_of(vocabulary_root, vocabulary).read_bytes())
    fetched = placing.fetch(tmp_path, wheel=None, base=NOWHERE)
    assert fetched == [place_of(tmp_path, vocabulary) for vocabulary in VOCABULARIES]
    for vocabulary, path in zip(VOCABULARIES, fetched, strict=True):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == vocabulary.sha256
    before = [path.stat().st_mtime_ns for path in fetched]
    placing.fetch(tmp_path, wheel=None, base=NOWHERE)
    assert [path.stat().st_mtime_ns for path in fetched] == before
    assert sorted(path.name for path in fetched[0].parent.iterdir()) == sorted(
        vocabulary.file for vocabulary in VOCABULARIES
    )


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, vocabulary_root: Path) -> Iterator[tuple[Path, str]]:
    """A folder with the vocabularies, and the address where it is served."""
    folder = tmp_path / "served"
    folder.mkdir()
    for vocabulary in VOCABULARIES:
        (folder / vocabulary.file).write_bytes(place_of(vocabulary_root, vocabulary).read_bytes())
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(_Silent, directory=folder)
    ) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_answers_that_are_wrong_and_wheels_with_other_members_leave_no_file(tmp_path, served):
    folder, base = served
    root, right = tmp_path / "root", (folder / GPT2.file).read_bytes()
    (folder / GPT2.file).write_bytes(b"<html>no</html>")
    with pytest.raises(GristmillError, match=r"r50k_base.*by hand"):
        placing.fetch(root, wheel=None, base=base)
    assert [path.name for path in (root / "drops" / "tokenizers").iterdir()] == [O200K.file]
    (folder / GPT2.file).write_bytes(right)
    for path in placing.fetch(root, wheel=None, base=base):
        assert path.read_bytes() == (folder / path.name).read_bytes()
    wheel = tmp_path / "other.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(PREFIX + "fb374d419588a4632f3f557e76b4b70aebbca790", bytes(50_000_000))
    placing.fetch(tmp_path / "root", wheel=wheel, base=base)
    assert place_of(tmp_path / "root", O200K).read_bytes() == (folder / O200K.file).read_bytes()
    with pytest.raises(GristmillError, match=r"does not have 3613922 bytes.*127\.0\.0\.1"):
        placing.fetch(tmp_path / "other", wheel=wheel, base=NOWHERE)


def test_the_wheels_members_give_the_pinned_bytes(tmp_path, vocabulary_root):
    # p50k_base is r50k_base and 24 tokens of 2 to 25 spaces more.
    import base64

    extra = b"".join(base64.b64encode(b" " * (2 + i)) + b" %d\n" % (50257 + i) for i in range(24))
    wheel = tmp_path / "made.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            PREFIX + "fb374d419588a4632f3f557e76b4b70aebbca790",
            place_of(vocabulary_root, O200K).read_bytes(),
        )
        archive.writestr(
            PREFIX + "ec7223a39ce59f226a68acc30dc1af2788490e15",
            place_of(vocabulary_root, GPT2).read_bytes() + extra,
        )
        archive.writestr("../escape", b"never extracted")
    paths = placing.fetch(tmp_path / "root", wheel=wheel, base=NOWHERE)
    for vocabulary, path in zip(VOCABULARIES, paths, strict=True):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == vocabulary.sha256
    assert not (tmp_path / "escape").exists()
