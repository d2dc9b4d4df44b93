"""What is a version, which one is meant, and what others wrote into a mirror is refused."""

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.mirror import MirrorError
from gristmill.mirror.versions import Version, lines
from gristmill.provenance import Output, Record
from gristmill.provenance.inventory import Entry
from tests.mirror.roots import built, clean, files, posted, pulled, pushed, versions

NAME = f"{'1' * 20}-{'a' * 64}-{'b' * 64}-7"


def test_a_version_is_what_its_key_says_and_any_other_key_is_none():
    for entry in (Entry("a"), Entry("a/b_c.d"), Entry("a/b", "2024-01")):
        version = Version(entry, "1" * 20, "a" * 64, "b" * 64, 7)
        assert Version.of(version.key) == version
    for place in ("../x", "a/../b", ".gristmill/x", "drops/x", "drops", "a b", "a//b", "/a", ""):
        assert Version.of(f"artifacts/{place}/@/{NAME}.json") is None
    for name in (NAME[1:], NAME.upper(), f"{NAME}0" * 2, f"{NAME}\n", "1", "", "..", f"x/{NAME}"):
        assert Version.of(f"artifacts/a/@/{name}.json") is None
    for key in (f"artifacts/a/@/{NAME}", f"artifacts/a/{NAME}.json", f"objects/a/@/{NAME}.json"):
        assert Version.of(key) is None
    assert Version.of(f"artifacts/a/@../{NAME}.json") is None


def output(path: str = "x", size: int = 1, sha256: str = "c" * 64, time: int = 0) -> Output:
    return Output(path=path, bytes=size, sha256=sha256, mtime_ns=time)


def sealed(record: Record, *outputs: Output, **more: Any) -> Record:
    """A record that is right but for the outputs that it has more."""
    listed = [*record.outputs, *outputs]
    said = {"outputs": listed, "data_version": provenance.data_version(listed), **more}
    return record.model_copy(update=said).sealed()


HOSTILE: dict[str, Callable[[Record], Record | bytes]] = {
    "leads out of its folder": lambda record: sealed(record, output("a/../../b")),
    "is absolute": lambda record: sealed(record, output("/etc/passwd")),
    "is empty or has a null byte": lambda record: sealed(record, output("a\0b")),
    "is there more than once": lambda record: sealed(record, output("a/b"), output("a//b")),
    "'provenance.json' is there more": lambda record: sealed(record, output("provenance.json")),
    "that no file has": lambda record: sealed(record, output(sha256="../" * 21 + "b")),
    "sha256, size": lambda record: sealed(record, output(size=-1)),
    "size or time that": lambda record: sealed(record, output(time=1 << 63)),
    "is of family/other, which was moved": lambda record: sealed(record, artifact="family/other"),
    "not that of its outputs": lambda record: sealed(record, data_version="d" * 64),
    "was changed after it was written": lambda record: record.model_copy(update={"digest": "e"}),
    "schema version 99": lambda record: record.model_copy(update={"schema_version": 99}),
    "not a provenance record": lambda _: b"[" * 100_000,
    "1 validation error for Record Input should be an object": lambda _: b"[]",
    "JSON compliant": lambda record: re.sub(
        rb'"seconds": [0-9.e-]+', b'"seconds": NaN', record.to_bytes()
    ),
}


def planted(mirror: Path, data: bytes, record: Record | None = None, name: str = "") -> Path:
    """Put a record into the place of the newest version of `family/x`, under its right name."""
    (old,) = versions(mirror, "family/x")
    found = Version.of(old.relative_to(mirror).as_posix())
    assert found is not None
    total = found.size if record is None else sum(each.bytes for each in record.outputs) + len(data)
    said = found.data_version if record is None else record.data_version
    sha256 = hashlib.sha256(data).hexdigest()
    key = Version(found.entry, found.pushed, said, sha256, max(total, 0)).key
    (mirror / (name or key)).write_bytes(data)
    return mirror / (name or key)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A mirror with `family/x` and `family/y`, made from the data root `a`."""
    built(tmp_path / "a", "family/x", 1)
    built(tmp_path / "a", "family/y", 2)
    pushed(tmp_path / "a", tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize("says", HOSTILE)
def test_what_others_wrote_is_refused_and_stops_no_other(two, tmp_path, says):
    (old,) = versions(two, "family/x")
    made = HOSTILE[says](provenance.read_record(tmp_path / "a/family/x/provenance.json"))
    data = made if isinstance(made, bytes) else made.to_bytes()
    new = planted(two, data, None if isinstance(made, bytes) else made)
    old.unlink()
    bad, good = pulled(tmp_path / "b", two)
    assert bad.error is not None and says in bad.error and new.name in bad.error
    assert good.changed and clean(tmp_path / "b") and not (tmp_path / "b/family/x").exists()
    # A push makes a right version after it, and a pull takes that one.
    assert [each.created for each in pushed(tmp_path / "a", two)] == [True, False]
    assert [each.error for each in pulled(tmp_path / "b", two)] == [None, None]
    assert files(tmp_path / "b") == files(tmp_path / "a")


@pytest.mark.parametrize("what", ["large", "link", "pipe", "folder", "other", "name"])
def test_a_version_that_is_no_record_is_not_read(two, tmp_path, what):
    (path,) = versions(two, "family/x")
    data, says = path.read_bytes(), "has another sha256"
    path.unlink()
    if what == "large":
        path.touch()
        os.truncate(path, (64 << 20) + 1)
        says = "has 67,108,865 bytes, and 67,108,864 are read"
    elif what == "link":
        (tmp_path / "elsewhere").write_bytes(data)
        path.symlink_to(tmp_path / "elsewhere")
        says = "is gone"
    elif what == "pipe":
        os.mkfifo(path)
        says = "is gone"
    elif what == "folder":
        path.mkdir()
    elif what == "other":
        path.write_bytes(data.replace(b"test/tiny", b"test/tuny"))
    else:
        path = path.with_name(path.name.replace(".json", "0.json"))
        path.write_bytes(data)
        says = "its name says other contents than the record"
    done = {each.title: each for each in pulled(tmp_path / "b", two)}
    assert done["family/y"].changed and not (tmp_path / "b/family/x").exists()
    if what not in ("folder", "pipe"):  # which no listing has
        error = done["family/x"].error
        assert error is not None and f"{path.name}: {says}" in error


@pytest.mark.slow
def test_a_record_of_300_000_files_that_are_not_there_is_one_error(two, tmp_path):
    (old,) = versions(two, "family/x")
    record = provenance.read_record(tmp_path / "a/family/x/provenance.json")
    made = sealed(record, *(output(str(number)) for number in range(300_000)))
    planted(two, made.model_dump_json().encode(), made)
    old.unlink()
    (got,) = pulled(tmp_path / "b", two, "family/x")
    assert got.error is not None and "is gone" in got.error


def test_names_are_paths_folders_partitions_and_assets(tmp_path):
    built(tmp_path / "a", "one/x", asset="test/x")
    built(tmp_path / "a", "one/y", asset="test/y")
    for key in ("p1", "p2"):
        built(tmp_path / "a", "two/z", asset="test/x", partition=key, shared=True)
    pushed(tmp_path / "a", tmp_path / "m")

    def names(*wanted: str) -> list[str]:
        return [each.title for each in pulled(tmp_path / "b", tmp_path / "m", *wanted)]

    assert names("one") == ["one/x", "one/y"]
    assert names("one/y/") == ["one/y"]
    assert names("two/z@p2") == ["two/z [p2]"]
    assert names("test/x") == ["one/x", "two/z [p1]", "two/z [p2]"]
    assert names("test/y", "two") == ["one/y", "two/z [p1]", "two/z [p2]"]
    for take in (pulled, pushed):
        with pytest.raises(GristmillError, match="no artifact or asset on is here"):
            take(tmp_path / "a", tmp_path / "m", "on")
    with pytest.raises(GristmillError, match="2 are asked for: name one"):
        pulled(tmp_path / "b", tmp_path / "m", "one", version="a" * 12)


def test_a_data_version_or_a_sha256_pins_a_version(tmp_path):
    a, b, mirror = tmp_path / "a", tmp_path / "b", tmp_path / "m"
    made = [(built(a, seed=seed).record, posted(tmp_path, seed=seed))[0] for seed in (1, 2)]
    built(a, "family/tiny/inner", 3, inputs=[], outer="family/tiny")
    built(a, "family/other")
    pins = [hashlib.sha256(path.read_bytes()).hexdigest() for path in versions(mirror)]
    said = list(lines(str(mirror)))
    assert [line.rpartition("sha256 ")[2] for line in said] == pins[::-1]
    assert all(": pushed 20" in line and " UTC, data version " in line for line in said)
    for record, pin in zip(made, pins, strict=True):
        for more in (
            {"sha256": pin},
            {"version": record.data_version},
            {"version": record.data_version[:12], "sha256": pin},
        ):
            (got,) = pulled(b, mirror, "family/tiny", **more)
            assert got.error is None
            assert provenance.read_record(b / "family/tiny/provenance.json") == record
    for wrong in ({"sha256": "0" * 64}, {"version": "0" * 12}):
        with pytest.raises(MirrorError, match=r"no version of family/tiny has the .* --list"):
            pulled(b, mirror, "family/tiny", **wrong)
    with pytest.raises(MirrorError, match="no version of family/tiny has the"):
        pulled(b, mirror, "family/tiny", version=made[0].data_version, sha256=pins[1])


def test_a_number_is_answered_with_the_newest_version_also_of_0_9(tmp_path):
    made = [(built(tmp_path / "a", seed=n).record, posted(tmp_path, seed=n))[0] for n in (1, 2)]
    newest = f"{made[1].data_version[:12]} for the newest one"
    with pytest.raises(MirrorError, match=f"'1' names no version: .* {newest}"):
        pulled(tmp_path / "b", tmp_path / "m", "family/tiny", version="1")
    (tmp_path := tmp_path / "next").mkdir()
    built(tmp_path / "a", "family/x")
    old = tmp_path / "m/artifacts/family/x/@/00000001.json"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    with pytest.raises(MirrorError, match=r"no version .* is here \(Gristmill 0\.9\.0 alone"):
        pulled(tmp_path / "b", tmp_path / "m")
    assert pushed(tmp_path / "a", tmp_path / "m")[0].created and old.exists()
    assert [each.changed for each in pulled(tmp_path / "b", tmp_path / "m")] == [True]
