"""Building again what a record names: what is compared, what is not judged, what stays as it is."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from gristmill import asset, families, provenance
from gristmill.cli import main
from gristmill.code.digest import Code
from gristmill.contract import FileNote, Summary
from gristmill.provenance import environment, find_artifacts
from gristmill.provenance.find_artifacts import Artifact
from gristmill.publish import remove
from gristmill.publish.build import Attempt, DiskFull
from gristmill.rebuilt import rebuilt, space
from tests.commands.drops import printed
from tests.sample_root import SampleRoot

PACK = "macroxue/packs/sample_d6"


@pytest.fixture
def root(sample_root: SampleRoot, tmp_path: Path) -> Path:
    """A data root with two packs, their drops and their pool."""
    data = tmp_path / "data"
    for path in ("drops/macroxue", "drops/pools", "macroxue/packs", "macroxue/pools"):
        shutil.copytree(sample_root.data / path, data / path, symlinks=True)
    return data


def _item(root: Path, place: str = PACK) -> Artifact:
    (item,) = find_artifacts.artifacts_in(root / place)
    return item


def _why(item: Artifact) -> str:
    (found,) = rebuilt([item])
    assert found.violations == []
    return found.not_judged


def _forge(item: Artifact, **fields: object) -> None:
    record = provenance.read_record(item.record_path).model_copy(update=fields)
    item.record_path.write_bytes(record.sealed().to_bytes())


def _files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (root / "macroxue").rglob("*") if path.is_file()}


def _replaced(patch: pytest.MonkeyPatch, **fields: object) -> None:
    """Let the asset of packs have other fields."""
    packs = replace(asset.declared()["macroxue/pack"], **fields)  # type: ignore[arg-type]
    patch.setattr("gristmill.rebuilt.declared", lambda: {"macroxue/pack": packs})


def _made_by(patch: pytest.MonkeyPatch, make: Callable[[Attempt], Summary]) -> None:
    build = asset.declared()["macroxue/pack"].build
    _replaced(patch, build=lambda wanted: replace(build(wanted), make=make))


def test_a_build_by_the_recorded_config_has_the_recorded_bytes(root):
    item, before = _item(root), _files(root)
    (root / "gristmill.toml").write_text("[macroxue.pack]\nshard_rows = 5\n")
    outputs = provenance.read_record(item.record_path).outputs
    assert space([item, item]) == sum(each.bytes for each in outputs)
    assert _why(item) == ""
    assert _files(root) == before
    assert list((root / ".gristmill/slots").iterdir()) == []


def test_what_is_not_as_recorded_is_not_judged(root, monkeypatch):
    item, pool = _item(root), _item(root, "macroxue/pools/samples")
    record = provenance.read_record(item.record_path)
    (root / "gristmill.toml").write_text("[macroxue.pack]\nshard_rows = -5\n")
    assert _why(item).startswith("config changed or does not load: ")
    (root / "gristmill.toml").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(environment, "libraries", lambda: record.libraries | {"numpy": "0.1"})
        numpy = record.libraries["numpy"]
        assert _why(item) == f"libraries changed (numpy {numpy} -> 0.1)"
    with monkeypatch.context() as patch:
        patch.setattr(families, "code_of_asset", lambda _: Code(("gristmill.keys.checked",)))
        assert _why(item) == "code changed"
    with monkeypatch.context() as patch:
        _replaced(patch, version="0")
        assert _why(item) == f"code version {record.code_version} -> 0"
    _forge(item, config=record.config | {"layout": "packed46", "shard_rows": "many"})
    assert _why(item).startswith("config changed")
    _forge(item, config=record.config, data_version="0" * 64)
    assert _why(pool) == "input changed (macroxue/packs/sample_d6)"
    _forge(item, asset="macroxue/nothing")
    assert _why(item) == "nothing here builds macroxue/nothing"
    shutil.rmtree(item.folder)
    assert _why(pool) == "inputs gone (macroxue/packs/sample_d6)"


def test_inputs_that_are_gone_damaged_or_downloaded_are_not_judged(root, monkeypatch):
    item, pool = _item(root), _item(root, "macroxue/pools/samples")
    with (item.folder / "steps.npy").open("r+b") as file:
        file.write(b"x")
    assert "is damaged" in _why(pool)
    drop = root / "drops/macroxue/sample_d6"
    drop.rename(drop.with_name("moved"))
    assert _why(item).startswith("inputs gone (drops/macroxue/sample_d6/")
    drop.with_name("moved").rename(drop)
    build = asset.declared()["macroxue/pack"].build
    _replaced(monkeypatch, build=lambda wanted: replace(build(wanted), fetches=True))
    assert _why(item) == "inputs gone (it was downloaded)"


def test_an_artifact_that_was_moved_out_of_its_root_is_judged_with_it(root):
    moved = root.parent / "moved"
    (root / PACK).rename(moved)
    (item,) = find_artifacts.artifacts_in(moved)
    assert _why(item) == f"it does not lie at {PACK} below a data root"
    (found,) = rebuilt([item], root)
    assert (found.violations, found.not_judged) == ([], "")


def test_files_that_are_other_missing_or_more_are_named(root, monkeypatch):
    item = _item(root)

    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        (attempt.out / "steps.npy").write_bytes(b"x")
        (attempt.out / "more").write_bytes(b"x")
        (attempt.out / "notes").write_bytes(b"x")
        return Summary(files={"notes": FileNote(payload=False)})

    _made_by(monkeypatch, make)
    (found,) = rebuilt([item])
    assert {(Path(each.where).name, each.found) for each in found.violations} == {
        ("steps.npy", "has other bytes when it is built again"),
        ("metadata.db", "is not made again"),
        ("trace.jsonl", "is not made again"),
        ("valuation_types.json", "is not made again"),
        ("more", "is made again, and no record lists it"),
    }
    assert {each.law for each in found.violations} == {"rebuilt"}


def test_a_builder_that_fails_is_a_violation_and_the_next_is_built(root, monkeypatch):
    items = [_item(root), _item(root, "macroxue/packs/sample_d7")]
    errors = iter([KeyError("steps"), DiskFull("no room")])

    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        raise next(errors)

    _made_by(monkeypatch, make)
    one, other = rebuilt(items)
    assert [each.found for each in one.violations] == ["cannot be built again: KeyError('steps')"]
    assert (other.violations, other.not_judged) == ([], "no room")
    assert list((root / ".gristmill/slots").iterdir()) == []


def test_nothing_is_left_after_an_interrupt_and_a_kill_is_cleaned_up_after(root, monkeypatch):
    item, slots = _item(root), root / ".gristmill/slots"

    def make(attempt: Attempt) -> Summary:
        assert not (slots / "verify-rebuild/left").exists()
        attempt.out.mkdir()
        (attempt.out / "steps.npy").write_bytes(b"x")
        raise KeyboardInterrupt

    _made_by(monkeypatch, make)
    (slots / "verify-rebuild/left").mkdir(parents=True)
    assert list(remove.abandoned_slots(root)) == [slots / "verify-rebuild"]
    with pytest.raises(KeyboardInterrupt):
        list(rebuilt([item]))
    assert list(slots.iterdir()) == []


def test_the_command_says_the_space_and_what_differs(root, monkeypatch):
    packs = root / "macroxue/packs"
    said = printed(CliRunner().invoke(main, ["verify", "--rebuild", str(packs), str(root / PACK)]))
    assert "building again, one after the other: needs " in said
    assert said.endswith(
        "3 of 3 built again with equal bytes\n3 artifacts are as their records say\n"
    )
    shutil.rmtree(root / "drops/macroxue/sample_d7")
    _made_by(monkeypatch, lambda attempt: Summary(attempt.out.mkdir() or {}))
    said = printed(CliRunner().invoke(main, ["verify", "--rebuild", "--no-laws", str(packs)]), 1)
    assert f"{packs / 'sample_d7'}: not judged: inputs gone (drops/macroxue/" in said
    assert f"{packs / 'sample_d6/steps.npy'}: rebuilt: is not made again" in said
    assert "0 of 2 built again" in said
    done = CliRunner().invoke(main, ["verify", "--rebuild"], env={"GRISTMILL_DATA": str(packs)})
    assert (done.exit_code, "0 of 2 built again" in done.output) == (1, True)
    done = CliRunner().invoke(main, ["verify", "--kind", "macroxue/pack", "--rebuild", str(packs)])
    assert done.exit_code == 2


@pytest.mark.slow
def test_all_samples_are_built_again_with_equal_bytes(sample_root, tmp_path):
    root = sample_root.copy(tmp_path).data
    found = list(rebuilt(find_artifacts.artifacts(root)))
    assert len(found) > 77
    assert [each for each in found if each.violations or each.not_judged] == []
