"""What others wrote into a mirror names nothing outside it, and is refused with its title."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gristmill.mirror.layout import Manifest, Place, parsed_manifest, sha256_of
from gristmill.mirror.store import MirrorError
from gristmill.provenance.inventory import Entry
from tests.mirror.test_published import VERSION

SHA256 = "0" * 64
PLACE = Place(Entry("family/tiny"))
MANIFEST: dict[str, Any] = {
    "format": 1,
    "artifact": "family/tiny",
    "partition": None,
    "shared": False,
    "record": "provenance.json",
    "part_bytes": 4,
    "files": [
        {"path": "a/b", "bytes": 5, "sha256": SHA256, "parts": [SHA256, SHA256]},
        {"path": "empty", "bytes": 0, "sha256": SHA256, "parts": []},
    ],
}


def _parsed(value: object) -> Manifest:
    data = json.dumps(value).encode()
    said = {"number": 1, "partition": None, "total_bytes": 5, "files": 2}
    version = VERSION.model_copy(update=said | {"manifest": sha256_of(data)})
    return parsed_manifest(data, version, PLACE)


def _with_file(**values: object) -> dict[str, Any]:
    return MANIFEST | {"files": [MANIFEST["files"][0] | values]}


def test_a_manifest_is_read() -> None:
    manifest = _parsed(MANIFEST)
    assert list(manifest.files[0].sizes(4)) == [(0, 4, SHA256), (4, 1, SHA256)]
    assert manifest.total_bytes == 5
    assert _parsed(MANIFEST | {"partition": "p"}).partition == "p"


@pytest.mark.parametrize(
    "value",
    [
        *([], 7, None, MANIFEST | {"other": 1}, MANIFEST | {"format": 2}),
        *(MANIFEST | {"part_bytes": size} for size in (0, (1 << 30) + 1)),
        MANIFEST | {"artifact": "family/other"},
        MANIFEST | {"shared": True, "partition": "p"},
        *(_with_file(path=path) for path in ("../a", "/a", "a/../../b", "", "a\0b")),
        MANIFEST | {"files": [MANIFEST["files"][1], MANIFEST["files"][1]]},
        *(_with_file(bytes=size) for size in (-1, 4, 9)),
        *(_with_file(parts=[SHA256, part]) for part in ("../../../etc/passwd", "0" * 63, "F" * 64)),
        _with_file(parts=[SHA256, f"{SHA256}\n"]),
        _with_file(sha256="x"),
    ],
)
def test_a_manifest_that_names_something_else_is_refused(value: object) -> None:
    with pytest.raises(MirrorError, match="the manifest of version 1 of family/tiny: "):
        _parsed(value)
