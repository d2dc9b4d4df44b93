"""Builds and the records that they are current by: recipe, code digest, libraries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import pytest

from gristmill import families
from gristmill.code.digest import Code
from gristmill.provenance import Input, Record, Tokenizer, environment, recorded_values
from gristmill.publish.build import Slot
from gristmill.publish.publish import publish, reason_to_build
from gristmill.settings.fields import COUNTED_BEFORE, NO_EFFECT
from tests.publish.tiny import TinyConfig, tiny_build

ENTRIES = ("gristmill.macroxue.builders.pool.merge",)


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Sets the code of the tiny asset."""
    return monkeypatch


def _set(patch: pytest.MonkeyPatch, **fields: object) -> Code:
    values: dict[str, object] = {"entries": ENTRIES, "libraries": ("numpy",)} | fields
    code = Code(**values)  # type: ignore[arg-type]
    patch.setattr(families, "code_of_asset", lambda _: code)
    return code


def _undigested(record: Record, **changes: object) -> Record:
    fields: dict[str, object] = {"schema_version": 1, "code_digest": None, "platform": None}
    return record.model_copy(update=fields | changes).sealed()


def test_a_record_of_the_same_code_is_current(tmp_path: Path, code: pytest.MonkeyPatch) -> None:
    _set(code)
    record = publish(tiny_build(tmp_path)).record
    assert record.code_digest == Code(ENTRIES).digest
    assert tiny_build(tmp_path).made(record)
    assert not tiny_build(tmp_path, config=TinyConfig(seed=2)).made(record)


def test_a_record_of_other_code_is_current_only_if_it_is_listed(
    tmp_path: Path, code: pytest.MonkeyPatch
) -> None:
    _set(code)
    record = publish(tiny_build(tmp_path)).record
    other = ("gristmill.chess.raw.download.take_drop",)
    _set(code, entries=other)
    assert not tiny_build(tmp_path).made(record)
    assert publish(tiny_build(tmp_path)).rebuilt
    _set(code, entries=other, compatible_with=(str(record.code_digest),))
    assert tiny_build(tmp_path).made(record)


def test_another_version_of_a_declared_library_is_another_fingerprint(
    tmp_path: Path, code: pytest.MonkeyPatch
) -> None:
    _set(code)
    record = publish(tiny_build(tmp_path)).record
    installed = environment.libraries() | {"numpy": "0.1"}
    code.setattr(environment, "libraries", lambda: installed)
    assert not tiny_build(tmp_path).made(record)
    code.setattr(environment, "libraries", lambda: installed | {"numpy": record.libraries["numpy"]})
    assert tiny_build(tmp_path).made(record)


def test_a_record_without_a_digest_counts_as_built_by_the_code_of_0_2_0(
    tmp_path: Path, code: pytest.MonkeyPatch
) -> None:
    first = _set(code)
    build = tiny_build(tmp_path)
    record = _undigested(publish(build).record, fingerprint=build.recipe)
    assert tiny_build(tmp_path).made(record)
    _set(code, undigested=first.digest)
    assert tiny_build(tmp_path).made(record)
    _set(code, undigested="earlier", compatible_with=("earlier",))
    assert tiny_build(tmp_path).made(record)
    _set(code, undigested="earlier")
    assert not tiny_build(tmp_path).made(record)


def test_a_record_without_a_digest_is_of_its_recipe_and_its_libraries(
    tmp_path: Path, code: pytest.MonkeyPatch
) -> None:
    _set(code)
    build = tiny_build(tmp_path)
    record = _undigested(publish(build).record, fingerprint=build.recipe)
    assert not tiny_build(tmp_path, config=TinyConfig(seed=2)).made(record)
    assert not build.made(_undigested(record, libraries=record.libraries | {"numpy": "0.1"}))
    without = {name: text for name, text in record.libraries.items() if name != "numpy"}
    assert build.made(_undigested(record, libraries=without))


def test_an_edited_builder_is_built_again(tmp_path: Path, code: pytest.MonkeyPatch) -> None:
    """The number of the code version is the same: a person forgot it."""
    _set(code)
    publish(tiny_build(tmp_path))
    assert not publish(tiny_build(tmp_path)).rebuilt
    _set(code, entries=("gristmill.macroxue.builders.values.value_sidecar",))
    again = publish(tiny_build(tmp_path))
    assert again.rebuilt and again.record.replaced is None


def test_what_differs_from_a_record_is_named(tmp_path: Path, code: pytest.MonkeyPatch) -> None:
    _set(code)
    assert reason_to_build(tiny_build(tmp_path)) == "not published"
    raw = [Input(asset="raw", path=f"drops/{name}", sha256=name) for name in ("a", "b", "c")]
    publish(tiny_build(tmp_path, inputs=raw[:2]))
    assert reason_to_build(tiny_build(tmp_path, inputs=raw[:2])) == ""
    assert reason_to_build(tiny_build(tmp_path, inputs=raw[:1])) == "input changed (drops/b)"
    other = tiny_build(tmp_path, inputs=raw[1:], config=TinyConfig(seed=2, workers=3))
    more = "input changed (drops/a and 1 more)"
    assert reason_to_build(other) == f"config changed (seed 1 -> 2); {more}"
    newer = replace(tiny_build(tmp_path, inputs=raw[:2]), code_version="2")
    assert reason_to_build(newer) == "code version 1 -> 2"
    vocabulary = Tokenizer(name="gpt2", path="x", sha256="y")
    named = replace(tiny_build(tmp_path, inputs=raw[:2]), tokenizer=vocabulary)
    assert reason_to_build(named) == "vocabulary changed"
    _set(code, entries=("gristmill.macroxue.builders.values.value_sidecar",))
    assert reason_to_build(tiny_build(tmp_path, inputs=raw[:2])) == "code changed"
    _set(code)
    installed = environment.libraries()
    code.setattr(environment, "libraries", lambda: installed | {"numpy": "0.1"})
    newest = f"libraries changed (numpy {installed['numpy']} -> 0.1)"
    assert reason_to_build(tiny_build(tmp_path, inputs=raw[:2])) == newest


def test_what_stands_and_is_not_whole_is_named(tmp_path: Path) -> None:
    build = tiny_build(tmp_path)
    folder = publish(build).folder
    next(folder.glob("train/*.npy")).write_bytes(b"")
    assert reason_to_build(build) == "its files are not those of its record"
    Slot.of(build).work.mkdir(parents=True)
    assert reason_to_build(build) == "a build of it was ended before its end"


@dataclass(frozen=True)
class _Counted(TinyConfig):
    """A config with a field that counted, and a number that was an int."""

    bound: int = 3
    fraction: float = 1


@dataclass(frozen=True)
class _NotCounted(TinyConfig):
    """The same config since the field does not count and the number is a float."""

    bound: Annotated[int, NO_EFFECT, COUNTED_BEFORE] = 0
    fraction: float = 1.0


def test_a_record_stays_current_when_a_field_no_longer_counts(
    tmp_path: Path, code: pytest.MonkeyPatch
) -> None:
    _set(code)
    record = publish(tiny_build(tmp_path, config=_Counted())).record
    assert record.config["fraction"] == 1
    assert tiny_build(tmp_path, config=_NotCounted()).made(record)
    assert tiny_build(tmp_path, config=_NotCounted(bound=7)).made(record)
    assert not tiny_build(tmp_path, config=_NotCounted(fraction=1.5)).made(record)
    assert not tiny_build(tmp_path, config=_NotCounted(seed=2)).made(record)
    undigested = _undigested(record, fingerprint=tiny_build(tmp_path, config=_Counted()).recipe)
    assert tiny_build(tmp_path, config=_NotCounted()).made(undigested)
    assert not publish(tiny_build(tmp_path, config=_NotCounted())).rebuilt


def test_a_field_that_never_counted_takes_no_value_of_a_record(tmp_path: Path) -> None:
    config = _NotCounted(workers=2)
    recorded = {"bound": 9, "fraction": 1, "workers": 5, "gone": 1, "seed": 0, "rows": True}
    assert recorded_values(config, recorded) == {"bound": 9, "fraction": 1}
