"""Slots that no build will come back to."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill import locks, provenance, sweeping
from gristmill.artifact import Attempt, Build, publish
from gristmill.builds import Slot
from gristmill.contract import Summary
from tests.floor.killing import State
from tests.floor.scenarios import NESTED, OUTER
from tests.floor.tiny import TinyConfig, build_tiny, garbage, tiny_build


def _leave_parts(build: Build) -> Path:
    def make(attempt: Attempt) -> Summary:
        build_tiny(attempt, TinyConfig(), "")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(Build(**{**vars(build), "make": make}))
    assert Slot.of(build).work.exists()
    return Slot.of(build).work


def _sweep(root: Path) -> list[Path]:
    found = list(sweeping.abandoned(root))
    for slot in found:
        sweeping.sweep(slot)
    return found


def test_abandoned_slots_are_swept_and_held_ones_are_not(tmp_path: Path) -> None:
    publish(tiny_build(tmp_path))
    before = State.of(tmp_path)
    nested = tiny_build(tmp_path, NESTED, outer=OUTER)
    shared = tiny_build(tmp_path, "megatron/kd", partition="p7", shared=True)
    single = tiny_build(tmp_path, "wing/other")
    left = [_leave_parts(shared), _leave_parts(nested)]
    held = _leave_parts(single)
    with locks.held(Slot.of(single).lock, "it"):
        assert _sweep(tmp_path) == left
        assert held.exists()
        with pytest.raises(locks.Busy):
            sweeping.sweep(held)
    with locks.held(Slot.of(tiny_build(tmp_path)).lock, "the outer one"):
        nested_slot = _leave_empty_slot(nested)
        assert _sweep(tmp_path) == [held]
        assert nested_slot.exists()
    assert _sweep(tmp_path) == [nested_slot]
    assert garbage(tmp_path) == []
    assert State.of(tmp_path) == before
    assert provenance.verify(tmp_path) == []
    assert _sweep(tmp_path) == []


def _leave_empty_slot(nested: Build) -> Path:
    """Made by hand, since the lock of the outer artifact is held."""
    slot = Slot.of(nested).work
    (slot / "parts").mkdir(parents=True)
    return slot
