"""Paths of artifacts, whichever form they are published in."""

from pathlib import Path

import pytest

from gristmill.contract import GristmillError
from gristmill.layout import published_path, refuse_missing_root, without_dots

VERSION = "a" * 32


@pytest.fixture
def family(tmp_path: Path) -> Path:
    """A folder with the artifact `tiny` in the link form."""
    family = tmp_path.resolve() / "family"
    (family / ".gristmill/versions/tiny" / VERSION / "runtime").mkdir(parents=True)
    (family / "tiny").symlink_to(f".gristmill/versions/tiny/{VERSION}")
    (family / "real").mkdir()
    return family


def test_a_version_has_the_path_of_its_artifact(family: Path) -> None:
    assert published_path(family / "tiny") == family / "tiny"
    assert published_path(family / "tiny/runtime/x.json") == family / "tiny/runtime/x.json"
    assert published_path(family / "real/../tiny") == family / "tiny"


def test_every_other_path_is_resolved(family: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (family / "moved").symlink_to(family / "real")
    assert published_path(family / "moved/x") == family / "real/x"
    assert published_path(family) == family
    store = family / ".gristmill/versions/tiny"
    assert published_path(store) == store and published_path(store.parent) == store.parent
    monkeypatch.chdir(family)
    assert published_path(Path("real")) == family / "real"


def test_dots_go_and_a_link_at_the_end_stays(family: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_dots(family / "real/../tiny") == family / "tiny"
    assert without_dots(family / "real/..") == family
    assert without_dots(family / "tiny") == family / "tiny"
    (family / "aside").symlink_to(family)
    assert without_dots(family / "aside/tiny") == family / "aside/tiny"
    monkeypatch.chdir(family / "real")
    assert without_dots(Path("../tiny")) == family / "tiny"


def test_a_data_root_that_is_not_there_is_named_and_not_made(tmp_path: Path) -> None:
    refuse_missing_root(tmp_path)
    gone, file = tmp_path / "no disk", tmp_path / "file"
    file.touch()
    with pytest.raises(GristmillError) as caught:
        refuse_missing_root(gone)
    assert str(caught.value) == (
        f"{gone}: the data root is not there: correct its name, mount its disk, or begin a new one "
        f"with `mkdir -p '{gone}'` or `gristmill samples '{gone}'`"
    )
    assert not gone.exists()
    with pytest.raises(GristmillError, match="the data root is no folder"):
        refuse_missing_root(file)
