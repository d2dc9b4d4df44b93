"""Files beside the data name a licence."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.look.licences import licence_of
from gristmill.untrusted.files import REFUSE_LINKS

TEXTS = {
    "README.md": ("---\nlicense: cc-by-nc-4.0\n---\nUnder the MIT License.", "CC-BY-NC-4.0"),
    "LICENSE": ("MIT License\n\nCopyright (c) 2020 somebody", "MIT"),
    "LICENCE.txt": ("   Apache License\n   Version 2.0, January 2004", "Apache-2.0"),
    "dataset_card.md": ("license: openrail", "openrail"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_card_or_a_licence_file_says_it(name: str, tmp_path: Path) -> None:
    text, licence = TEXTS[name]
    (tmp_path / name).write_text(text)
    assert licence_of(tmp_path, [name], REFUSE_LINKS) == (licence, name)


def test_other_files_and_links_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("MIT License")
    (tmp_path / "LICENSE").symlink_to(tmp_path / "notes.txt")
    (tmp_path / "README.md").write_bytes(b"\xff\xfe")
    names = ["notes.txt", "LICENSE", "README.md", "README.gone"]
    assert licence_of(tmp_path, names, REFUSE_LINKS) == ("", "")
