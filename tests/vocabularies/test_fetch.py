"""Fetching: from this machine, a wheel or an address; only the pinned bytes are kept."""

import hashlib
import http.server
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from gristmill.contract import GristmillError
from gristmill.vocabularies import placing
from gristmill.vocabularies.pinned import GPT2, O200K, VOCABULARIES
from tests.vocabularies.places import drop

NOWHERE = "http://127.0.0.1:9/none"
PREFIX = "litellm/litellm_core_utils/tokenizers/"


def test_files_of_this_machine_are_fetched_without_network(
    tmp_path: Path, vocabulary_root: Path
) -> None:
    for vocabulary in VOCABULARIES:
        source = tmp_path / "tokenizer" / vocabulary.relative
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_bytes(drop(vocabulary_root, vocabulary).read_bytes())
    fetched = placing.fetch(tmp_path, wheel=None, base=NOWHERE)
    assert fetched == [drop(tmp_path, vocabulary) for vocabulary in VOCABULARIES]
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
        (folder / vocabulary.file).write_bytes(drop(vocabulary_root, vocabulary).read_bytes())
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(_Silent, directory=folder)
    ) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_wrong_answer_leaves_no_file_and_the_right_one_is_fetched(
    tmp_path: Path, served: tuple[Path, str]
) -> None:
    folder, base = served
    root, right = tmp_path / "root", (folder / GPT2.file).read_bytes()
    (folder / GPT2.file).write_bytes(b"<html>no</html>")
    with pytest.raises(GristmillError, match=r"r50k_base.*by hand"):
        placing.fetch(root, wheel=None, base=base)
    assert [path.name for path in (root / "drops" / "tokenizers").iterdir()] == [O200K.file]
    (folder / GPT2.file).write_bytes(right)
    for path in placing.fetch(root, wheel=None, base=base):
        assert path.read_bytes() == (folder / path.name).read_bytes()


def test_a_wheel_with_another_member_is_not_used(tmp_path: Path, served: tuple[Path, str]) -> None:
    folder, base = served
    wheel = tmp_path / "other.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(PREFIX + "fb374d419588a4632f3f557e76b4b70aebbca790", bytes(50_000_000))
    placing.fetch(tmp_path / "root", wheel=wheel, base=base)
    assert drop(tmp_path / "root", O200K).read_bytes() == (folder / O200K.file).read_bytes()
    with pytest.raises(GristmillError, match=r"does not have 3613922 bytes.*127\.0\.0\.1"):
        placing.fetch(tmp_path / "other", wheel=wheel, base=NOWHERE)


def test_the_wheels_members_give_the_pinned_bytes(tmp_path: Path, vocabulary_root: Path) -> None:
    # p50k_base is r50k_base and 24 tokens of 2 to 25 spaces more.
    import base64

    extra = b"".join(base64.b64encode(b" " * (2 + i)) + b" %d\n" % (50257 + i) for i in range(24))
    wheel = tmp_path / "made.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            PREFIX + "fb374d419588a4632f3f557e76b4b70aebbca790",
            drop(vocabulary_root, O200K).read_bytes(),
        )
        archive.writestr(
            PREFIX + "ec7223a39ce59f226a68acc30dc1af2788490e15",
            drop(vocabulary_root, GPT2).read_bytes() + extra,
        )
        archive.writestr("../escape", b"never extracted")
    paths = placing.fetch(tmp_path / "root", wheel=wheel, base=NOWHERE)
    for vocabulary, path in zip(VOCABULARIES, paths, strict=True):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == vocabulary.sha256
    assert not (tmp_path / "escape").exists()
