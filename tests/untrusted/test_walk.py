import os
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.untrusted.files import LinkRule
from gristmill.untrusted.walk import Entry, hard_links, list_files, visible_files


def _drop(tmp_path: Path) -> Path:
    drop = tmp_path / "inbox" / "d1"
    (drop / "inner" / "empty").mkdir(parents=True)
    (drop / "inner" / "a.txt").write_bytes(b"12")
    (drop / "b.txt").write_bytes(b"345")
    return drop


def test_every_file_is_listed_and_every_other_entry_has_a_reason(tmp_path):
    drop = _drop(tmp_path)
    os.mkfifo(drop / "inner" / "pipe")
    (drop / "link").symlink_to("b.txt")
    (drop / "outside").symlink_to(tmp_path)
    seen = {entry.name: entry for entry in list_files(drop, root=drop.parent)}
    assert set(seen) == {"b.txt", "inner/a.txt", "inner/pipe", "link", "outside"}
    assert {name: entry.stat.st_size for name, entry in seen.items() if not entry.refusal} == {
        "b.txt": 3,
        "inner/a.txt": 2,
    }
    assert str(seen["inner/pipe"].refusal).startswith("is a pipe")
    assert str(seen["link"].refusal).startswith("is a link")
    assert str(seen["outside"].refusal).startswith("is a link")
    flat = {entry.name for entry in list_files(drop, root=drop, deep=False)}
    assert flat == {"b.txt", "link", "outside"}
    flat = {entry.name for entry in list_files(drop, root=drop, enter=lambda name: name != "inner")}
    assert flat == {"b.txt", "link", "outside"}


def test_links_to_files_in_a_stated_root_count_as_the_files(tmp_path):
    drop, store = _drop(tmp_path), tmp_path / "store"
    store.mkdir()
    (store / "blob").write_bytes(b"12345")
    (drop / "good").symlink_to(store / "blob")
    (drop / "gone").symlink_to(store / "none")
    (drop / "other").symlink_to(drop / "b.txt")
    (drop / "folder").symlink_to(drop / "inner")
    rule = LinkRule(True, (str(store),))
    seen = {entry.name: entry for entry in list_files(drop, root=drop, links=rule)}
    assert (seen["good"].stat.st_size, seen["good"].refusal) == (5, None)
    assert "leads nowhere" in str(seen["gone"].refusal)
    assert "in none of the folders" in str(seen["other"].refusal)
    inside = LinkRule(True, (str(drop),))
    seen = {entry.name: entry for entry in list_files(drop, root=drop, links=inside)}
    assert seen["other"].refusal is None
    assert "is a folder" in str(seen["folder"].refusal)


def test_a_drop_that_is_a_link_is_listed_only_where_links_are_followed(tmp_path):
    drop = _drop(tmp_path)
    (drop.parent / "d2").symlink_to(drop)
    with pytest.raises(BadInput, match="d2: is a link"):
        list(list_files(drop.parent / "d2", root=drop.parent))
    rule = LinkRule(True, (str(tmp_path),))
    assert len(list(list_files(drop.parent / "d2", root=drop.parent, links=rule))) == 2


def test_folders_may_be_nested_64_levels(tmp_path):
    folder = tmp_path
    for _ in range(64):
        folder /= "x"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    assert len(list(list_files(tmp_path, root=tmp_path))) == 1
    (folder / "x").mkdir()
    with pytest.raises(BadInput, match="nested deeper than 64 levels"):
        list(list_files(tmp_path, root=tmp_path))


def test_a_file_that_vanishes_after_it_was_listed_has_no_size(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"1")
    listing = list_files(tmp_path, root=tmp_path)
    scandir = os.scandir

    def then_remove(folder):
        entries = scandir(folder)
        (tmp_path / "a").unlink(missing_ok=True)
        return entries

    monkeypatch.setattr("gristmill.untrusted.walk.os.scandir", then_remove)
    seen = list(listing)
    assert all(entry.stat.st_size == 0 and entry.refusal is None for entry in seen)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")
@pytest.mark.parametrize("follow", [False, True], ids=["links are refused", "links are followed"])
def test_a_file_of_another_owner_with_names_elsewhere_is_refused(tmp_path, follow):
    links = LinkRule(follow=follow)
    drop = _drop(tmp_path)
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    os.chown(secret, 12345, -1)
    (drop / "secret").hardlink_to(secret)
    (drop / "own").hardlink_to(drop / "b.txt")
    refused, noted = hard_links(list_files(drop, root=drop, links=links))
    assert set(refused) == {"secret"}
    assert "belongs to user 12345, its folder to user 0" in refused["secret"]
    assert noted == []
    secret.unlink()
    assert hard_links(list_files(drop, root=drop, links=links)) == ({}, [])


def test_a_file_of_the_same_owner_with_names_elsewhere_is_noted(tmp_path):
    drop = _drop(tmp_path)
    (tmp_path / "copy").hardlink_to(drop / "b.txt")
    (drop / "again").hardlink_to(drop / "b.txt")
    refused, noted = hard_links(list_files(drop, root=drop))
    assert (refused, sorted(noted)) == ({}, ["again", "b.txt"])


def test_the_visible_files_are_sorted_with_their_sizes(tmp_path):
    for name in ("b/a.json", "a.json", ".cache/x", "b/.x", "SUMS", "b/SUMS"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "empty").mkdir()
    assert list(visible_files(tmp_path, besides=("SUMS",)).items()) == [
        ("a.json", 6),
        ("b/SUMS", 6),
        ("b/a.json", 8),
    ]
    assert visible_files(tmp_path / "absent") == {}
    (tmp_path / ".cache/link").symlink_to("x")
    (tmp_path / "b/link").symlink_to("a.json")
    with pytest.raises(BadInput, match="b/link: is a link"):
        visible_files(tmp_path)
    followed = visible_files(tmp_path, LinkRule(True, (str(tmp_path),)))
    assert followed["b/link"] == followed["b/a.json"]


def test_a_folder_that_cannot_be_read_is_named_and_what_vanishes_is_left_out(tmp_path, monkeypatch):
    gone = Entry("x", os.stat_result((0,) * 10), None, 0)
    monkeypatch.setattr("gristmill.untrusted.walk.list_files", lambda *_, **__: iter([gone]))
    assert visible_files(tmp_path) == {}

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gristmill.untrusted.walk.list_files", refuse)
    with pytest.raises(BadInput, match="cannot be read: Permission denied"):
        visible_files(tmp_path)
