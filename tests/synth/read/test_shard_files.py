"""An index is made once, apart, and appears whole, whoever else looks or dies."""

import errno
import fcntl
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from gristmill.synth.read import shard_files
from gristmill.synth.read.shard_files import INDEX_FILES, contradiction, index_folder

WHOLE = {f"k-{name}": f"{name} of one" for name in INDEX_FILES}


def make(folder: Path, text: str = "one") -> None:
    for name in INDEX_FILES:
        (folder / f"k-{name}").write_text(f"{name} of {text}")


def found(cache: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in cache.iterdir() if file.is_file()}


def test_the_files_appear_when_all_are_made_and_nothing_else_stays(tmp_path):
    cache = tmp_path / "a/cache"
    with index_folder(cache, "k") as folder:
        assert folder.parent == cache
        assert list(folder.iterdir()) == []
        make(folder)
        assert found(cache) == {".k.lock": ""}
    assert found(cache) == WHOLE
    assert len(list(cache.iterdir())) == len(INDEX_FILES)
    with index_folder(cache, "k") as folder:
        assert folder == cache
    with index_folder(cache, "other") as folder:
        assert folder != cache
        for name in INDEX_FILES:
            (folder / f"other-{name}").touch()


def test_a_second_process_waits_and_finds_the_index(tmp_path):
    begun, go = Event(), Event()

    def first() -> None:
        with index_folder(tmp_path, "k") as folder:
            begun.set()
            assert go.wait(60)
            make(folder)

    def second() -> tuple[Path, dict[str, str]]:
        begun.wait(60)
        with index_folder(tmp_path, "k") as folder:
            return folder, {k: v for k, v in found(tmp_path).items() if k in WHOLE}

    with ThreadPoolExecutor(4) as pool:
        one = pool.submit(first)
        others = [pool.submit(second) for _ in range(3)]
        begun.wait(60)
        go.set()
        one.result()
        for other in others:
            assert other.result() == (tmp_path, WHOLE)
    assert found(tmp_path) == WHOLE


@pytest.mark.parametrize("missing", INDEX_FILES)
def test_a_part_of_an_index_is_made_again(tmp_path, missing):
    make(tmp_path, "a killed process")
    (tmp_path / f"k-{missing}").unlink()
    with index_folder(tmp_path, "k") as folder:
        assert folder != tmp_path
        make(folder)
    assert found(tmp_path) == WHOLE


def test_what_failed_or_is_not_complete_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), index_folder(tmp_path, "k") as folder:
        make(folder)
        raise ZeroDivisionError
    with pytest.raises(FileNotFoundError), index_folder(tmp_path, "k") as folder:
        (folder / f"k-{INDEX_FILES[0]}").touch()
    assert list(tmp_path.iterdir()) == []


def test_folders_that_a_killed_process_left_go_and_those_of_other_hosts_stay(tmp_path):
    (tmp_path / f".k-{socket.gethostname()}-x").mkdir()
    (tmp_path / f".k-{socket.gethostname()}-x/half").touch()
    (tmp_path / ".k.lock").touch()
    (tmp_path / ".k-else-x").mkdir()
    with index_folder(tmp_path, "k") as folder:
        make(folder)
    assert {file.name for file in tmp_path.iterdir()} == {*WHOLE, ".k-else-x"}


def test_without_locks_each_makes_it_and_both_find_it_whole(tmp_path, monkeypatch):
    def refused(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refused)
    with index_folder(tmp_path, "k") as one:
        with index_folder(tmp_path, "k") as other:
            assert one != other
            make(other)
        assert found(tmp_path).items() >= WHOLE.items()
        make(one)
    assert {file.name for file in tmp_path.iterdir()} == WHOLE.keys()


def test_a_lock_file_that_its_holder_removed_is_not_taken_for_the_lock(tmp_path, monkeypatch):
    flock, taken = fcntl.flock, []

    def late(descriptor: int, kind: int) -> None:
        flock(descriptor, kind)
        taken.append(os.fstat(descriptor).st_ino)
        if len(taken) == 1:
            (tmp_path / ".k.lock").unlink()

    monkeypatch.setattr(shard_files.fcntl, "flock", late)
    with index_folder(tmp_path, "k") as folder:
        make(folder)
        assert len(taken) == 2
        assert (tmp_path / ".k.lock").stat().st_ino == taken[1]
    assert found(tmp_path) == WHOLE


CURE = "give the config a tokenizer with eod = 199999 and pad = -1, as docs/synth.md shows"


def said(pad: Any = -1, **changed: Any) -> str | None:
    return contradiction(SimpleNamespace(**{"vocab_size": 201_088, "eod": 199_999} | changed), pad)


def test_the_rule_has_both_numbers_and_the_cure():
    assert said(199_999, eod=200_002) == (
        "tokenizer.eod is 200002, and the EOD of its documents (o200k_harmony) is 199999;"
        f" tokenizer.pad is 199999: {CURE}"
    )
    assert said(200_012) == (
        "tokenizer.pad is 200012, and in its documents (o200k_harmony) 200012 is <|call|>, of which"
        f" Megatron would make 0; tokenizer.eod is 199999: {CURE}"
    )
    assert said(vocab_size=200_012) == (
        "tokenizer.vocab_size is 200012, and its documents have ids up to 200012: give the config"
        " the vocabulary of o200k_harmony, padded to 201088 ids"
    )


@pytest.mark.parametrize("pad", [0, 1, 199_997, 199_999, 200_002, 200_003, 200_005, 200_008])
def test_an_id_of_documents_is_no_padding(pad):
    assert f"tokenizer.pad is {pad}, " in str(said(pad))


@pytest.mark.parametrize("pad", [-1, None, 199_998, 200_000, 200_018, 201_087, 201_088])
def test_an_id_that_no_document_has_may_be_padding(pad):
    assert said(pad) is None


def test_a_tokenizer_without_an_eod_is_refused_and_one_without_a_size_is_not():
    assert "tokenizer.eod is None, " in str(contradiction(SimpleNamespace(vocab_size=None), -1))
    assert said(vocab_size=None) is None
    assert said(vocab_size=200_013) is None
    assert said(vocab_size=300_000) is None
