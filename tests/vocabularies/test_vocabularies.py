"""Where vocabularies come from, and that only the pinned bytes are ever used."""

import hashlib
import http.server
import os
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tiktoken_ext import openai_public

from gristmill.contract import BadInput, GristmillError
from gristmill.vocabularies import fetch
from gristmill.vocabularies.find import find
from gristmill.vocabularies.load import load_gpt2, load_harmony
from gristmill.vocabularies.pinned import (
    GPT2,
    O200K,
    VOCABULARIES,
    MissingVocabulary,
    Vocabulary,
    place,
)

NOWHERE = "http://127.0.0.1:9/none"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("O200K_HARMONY_VOCAB_PATH", "TIKTOKEN_ENCODINGS_BASE"):
        monkeypatch.delenv(name, raising=False)


def drop(root: Path, vocabulary: Vocabulary) -> Path:
    return root / "drops" / "tokenizers" / vocabulary.file


def test_the_pins_are_tiktokens_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def note(address: str, expected_hash: str) -> dict[bytes, int]:
        seen[address.rsplit("/", 1)[1]] = expected_hash
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", note)
    openai_public.o200k_base()
    openai_public.r50k_base()
    assert seen == {vocabulary.file: vocabulary.sha256 for vocabulary in VOCABULARIES}


def test_nothing_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(MissingVocabulary, match="gristmill tokenizers"):
        find(O200K, tmp_path)


def test_the_order_of_places(
    tmp_path: Path, vocabulary_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = drop(vocabulary_root, O200K).read_bytes()
    places = [
        tmp_path / "named" / "any.name",
        tmp_path / "base" / O200K.file,
        tmp_path / "tokenizer" / O200K.relative,
        drop(tmp_path, O200K),
    ]
    for path in places:
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    assert find(O200K, tmp_path) == places[2]
    monkeypatch.setenv("TIKTOKEN_ENCODINGS_BASE", str(tmp_path / "base"))
    assert find(O200K, tmp_path) == places[1]
    monkeypatch.setenv("O200K_HARMONY_VOCAB_PATH", str(places[0]))
    assert find(O200K, tmp_path) == places[0]
    assert load_harmony(tmp_path).encode("hello world") == [24912, 2375]
    assert os.environ["TIKTOKEN_ENCODINGS_BASE"] == str(tmp_path / "base")
    places[0].unlink()
    with pytest.raises(BadInput, match="O200K_HARMONY_VOCAB_PATH names it"):
        find(O200K, tmp_path)
    monkeypatch.undo()
    places[2].unlink()
    assert find(O200K, tmp_path) == places[3]


@pytest.mark.parametrize("damage", ["short", "long", "changed", "empty"])
def test_a_wrong_file_is_refused_not_passed_over(
    tmp_path: Path, vocabulary_root: Path, damage: str
) -> None:
    data = drop(vocabulary_root, GPT2).read_bytes()
    good = drop(tmp_path, GPT2)
    good.parent.mkdir(parents=True)
    good.write_bytes(data)
    bad = tmp_path / "tokenizer" / "gpt2" / "r50k_base.tiktoken"
    bad.parent.mkdir(parents=True)
    wrong = {
        "short": data[:-1],
        "long": data + b"IA== 50256\n",
        "changed": data[:1000] + bytes([data[1000] ^ 1]) + data[1001:],
        "empty": b"",
    }[damage]
    bad.write_bytes(wrong)
    for use in (load_gpt2, partial(find, GPT2), fetch.fetch):
        with pytest.raises(BadInput) as caught:
            use(tmp_path)
        assert caught.value.file == str(bad)
        assert hashlib.sha256(wrong).hexdigest() in caught.value.rule
        assert GPT2.sha256 in caught.value.rule


def test_fetch_takes_what_is_there_without_network(tmp_path: Path, vocabulary_root: Path) -> None:
    for vocabulary in VOCABULARIES:
        source = tmp_path / "tokenizer" / vocabulary.relative
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_bytes(drop(vocabulary_root, vocabulary).read_bytes())
    fetched = fetch.fetch(tmp_path, wheel=None, base=NOWHERE)
    assert fetched == [drop(tmp_path, vocabulary) for vocabulary in VOCABULARIES]
    for vocabulary, path in zip(VOCABULARIES, fetched, strict=True):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == vocabulary.sha256
    before = [path.stat().st_mtime_ns for path in fetched]
    fetch.fetch(tmp_path, wheel=None, base=NOWHERE)
    assert [path.stat().st_mtime_ns for path in fetched] == before
    assert sorted(path.name for path in fetched[0].parent.iterdir()) == sorted(
        vocabulary.file for vocabulary in VOCABULARIES
    )


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    folder = tmp_path / "served"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(_Silent, directory=folder)
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_fetch_from_an_address(
    tmp_path: Path, vocabulary_root: Path, served: tuple[Path, str]
) -> None:
    folder, base = served
    root = tmp_path / "root"
    for vocabulary in VOCABULARIES:
        (folder / vocabulary.file).write_bytes(drop(vocabulary_root, vocabulary).read_bytes())
    for path in fetch.fetch(root, wheel=None, base=base):
        assert path.read_bytes() == (folder / path.name).read_bytes()


def test_a_wrong_answer_leaves_nothing(
    tmp_path: Path, vocabulary_root: Path, served: tuple[Path, str]
) -> None:
    folder, base = served
    root = tmp_path / "root"
    (folder / O200K.file).write_bytes(drop(vocabulary_root, O200K).read_bytes())
    (folder / GPT2.file).write_bytes(b"<html>no</html>")
    with pytest.raises(GristmillError, match=r"r50k_base.*by hand"):
        fetch.fetch(root, wheel=None, base=base)
    assert [path.name for path in (root / "drops" / "tokenizers").iterdir()] == [O200K.file]


def test_a_wheel_that_is_not_the_one_falls_through(
    tmp_path: Path, vocabulary_root: Path, served: tuple[Path, str]
) -> None:
    folder, base = served
    for vocabulary in VOCABULARIES:
        (folder / vocabulary.file).write_bytes(drop(vocabulary_root, vocabulary).read_bytes())
    prefix = "litellm/litellm_core_utils/tokenizers/"
    wheel = tmp_path / "other.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(prefix + "fb374d419588a4632f3f557e76b4b70aebbca790", bytes(50_000_000))
    fetch.fetch(tmp_path / "root", wheel=wheel, base=base)
    assert drop(tmp_path / "root", O200K).read_bytes() == (folder / O200K.file).read_bytes()
    with pytest.raises(GristmillError, match=r"not of 3613922 bytes.*127\.0\.0\.1"):
        fetch.fetch(tmp_path / "other", wheel=wheel, base=NOWHERE)


def test_the_wheels_members_give_the_pinned_bytes(tmp_path: Path, vocabulary_root: Path) -> None:
    # p50k_base is r50k_base and 24 tokens of 2 to 25 spaces more.
    import base64

    extra = b"".join(base64.b64encode(b" " * (2 + i)) + b" %d\n" % (50257 + i) for i in range(24))
    prefix = "litellm/litellm_core_utils/tokenizers/"
    wheel = tmp_path / "made.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            prefix + "fb374d419588a4632f3f557e76b4b70aebbca790",
            drop(vocabulary_root, O200K).read_bytes(),
        )
        archive.writestr(
            prefix + "ec7223a39ce59f226a68acc30dc1af2788490e15",
            drop(vocabulary_root, GPT2).read_bytes() + extra,
        )
        archive.writestr("../escape", b"never extracted")
    paths = fetch.fetch(tmp_path / "root", wheel=wheel, base=NOWHERE)
    for vocabulary, path in zip(VOCABULARIES, paths, strict=True):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == vocabulary.sha256
    assert not (tmp_path / "escape").exists()


def test_place_builds_the_artifact(tmp_path: Path, vocabulary_root: Path) -> None:
    for vocabulary, tokens in ((O200K, 199_998), (GPT2, 50_256)):
        out = tmp_path / vocabulary.name
        summary = place(vocabulary, drop(vocabulary_root, vocabulary), out)
        assert summary.tokens == tokens
        assert summary.bytes == vocabulary.bytes == (out / vocabulary.relative).stat().st_size
        assert list(summary.files) == [vocabulary.relative]
        assert [p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()] == [
            vocabulary.relative
        ]
        with pytest.raises(FileExistsError):
            place(vocabulary, drop(vocabulary_root, vocabulary), out)


def test_encodings_load_offline_and_give_known_ids(vocabulary_root: Path) -> None:
    harmony = load_harmony(vocabulary_root)
    assert harmony.encode("hello world") == [24912, 2375]
    assert harmony.encode("<|start|>", allowed_special={"<|start|>"}) == [200006]
    assert "TIKTOKEN_ENCODINGS_BASE" not in os.environ
    gpt2 = load_gpt2(vocabulary_root)
    assert gpt2.encode_ordinary("Hello world") == [15496, 995]
    assert gpt2.eot_token == 50256
    assert gpt2.n_vocab == 50257
    assert len(gpt2.encode_ordinary("<|endoftext|>")) > 1
