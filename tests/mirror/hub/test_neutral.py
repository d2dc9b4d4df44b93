"""What goes to a dataset repository names no folder, person or host of the machine."""

from __future__ import annotations

import getpass
import re
import socket
from pathlib import Path

import pytest

from gristmill import provenance
from gristmill.contract import BadInput
from gristmill.hashing import sha256_file
from gristmill.mirror import push
from gristmill.mirror.hub import neutral
from gristmill.reading.folder import OpenFolder
from tests.hub_server import Hub
from tests.mirror.hub.test_push import URL, hub, repository
from tests.mirror.roots import built
from tests.sample_root import SampleRoot

__all__ = ["hub"]
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")


def placed(root: Path, text: str) -> dict[str, bytes]:
    """What is pushed of an artifact whose `place.json` has this text."""
    built(root)
    folder, name = root / "family/tiny", provenance.RECORD
    (folder / "place.json").write_text(text)
    record = provenance.read_record(folder / name)
    outputs = [
        each.model_copy(update={"sha256": sha256_file(folder / each.path)})
        for each in record.outputs
    ]
    opened = OpenFolder(folder, "none", name)
    try:
        return neutral(opened, name, record.model_copy(update={"outputs": outputs}))[1]
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/data/family/tiny", "/family/tiny"),
        ("/data/family/tiny/a b.jsonl", "/family/tiny/a b.jsonl"),
        ("/family/tiny/family/tiny/x", "/family/tiny/x"),
        (r"/d\"/family/tiny/\u00e9", r"/family/tiny/\u00e9"),
    ],
)
def test_a_place_in_a_data_root_is_written_from_the_root(
    before: str, after: str, tmp_path: Path
) -> None:
    said = placed(tmp_path, f'{{"a": ["x", "{before}"], "b": "/"}}')
    assert said["place.json"].decode() == f'{{"a": ["x", "{after}"], "b": "/"}}'
    record = provenance.Record.model_validate_json(said[provenance.RECORD])
    assert record.digest == record.computed_digest()
    (listed,) = (each for each in record.outputs if each.path == "place.json")
    assert listed.bytes == len(said["place.json"])


@pytest.mark.parametrize(
    "text", ['{"a": "/family/tiny/x", "b": "family/tiny"}', '["/d/family/tiny2", "x/family/tiny"]']
)
def test_a_file_without_such_a_place_goes_as_it_stands(text: str, tmp_path: Path) -> None:
    assert placed(tmp_path, text) == {}


def test_a_file_that_is_not_the_recorded_one_is_refused(tmp_path: Path) -> None:
    built(tmp_path)
    folder = tmp_path / "family/tiny"
    (folder / "place.json").write_text('{"place": "/elsewhere/family/tiny"}')
    opened = OpenFolder(folder, "none", provenance.RECORD)
    with pytest.raises(BadInput, match="not the file that its provenance record lists"):
        neutral(opened, provenance.RECORD, provenance.read_record(folder / provenance.RECORD))
    opened.close()


@pytest.mark.slow
def test_what_all_families_push_names_nothing_of_this_machine_and_verifies(
    hub: Hub, sample_root: SampleRoot, tmp_path: Path
) -> None:
    assert not any(each.error for each in push(sample_root.data, URL))
    places = {str(sample_root.data), str(sample_root.home.parent), f"/{getpass.getuser()}/"}
    host = re.compile(rb"\b" + re.escape(socket.gethostname().encode()) + rb"\b")
    copy = tmp_path / "copy"
    for path, data in repository(hub).files.items():
        assert [place for place in places if place.encode() in data] == [], path
        assert not (path.endswith((".json", ".md")) and host.search(data)), path
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(data)
    assert list(provenance.verify(copy, check_inputs=False)) == []
    assert not any(each.created for each in push(sample_root.data, URL))
