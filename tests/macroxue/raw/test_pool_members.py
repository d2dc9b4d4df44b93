"""A member of a pool is what is published, or what the pool deleted once it was merged."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from gristmill.data_root import DataRoot, NotBuilt
from gristmill.macroxue.raw.pool_members import PACK, member
from gristmill.publish.publish import publish
from tests.publish.tiny import tiny_build

POOL = "macroxue/pools/both"


def test_a_member_that_its_pool_deleted_is_as_the_record_has_it_and_another_is_not_built(
    tmp_path: Path,
) -> None:
    lake = DataRoot(tmp_path)
    for name in ("gone", "kept"):
        publish(tiny_build(tmp_path, f"macroxue/packs/{name}", partition=name, asset=PACK))
    members = [member(lake, POOL, name) for name in ("gone", "kept")]
    pool = tiny_build(tmp_path, POOL, partition="both", inputs=members)
    publish(dataclasses.replace(pool, deletes=["macroxue/packs/gone"]))
    assert not (tmp_path / "macroxue/packs/gone").exists()
    found = [member(lake, POOL, name) for name in ("gone", "kept")]
    assert [item.data_version for item in found] == [item.data_version for item in members]
    assert [item.path for item in found] == ["macroxue/packs/gone", "macroxue/packs/kept"]
    shutil.rmtree(tmp_path / "macroxue/packs/kept")
    with pytest.raises(NotBuilt, match="macroxue/pack kept is not built"):
        member(lake, POOL, "kept")
    assert member(lake, POOL, "gone") == found[0]
    with pytest.raises(NotBuilt, match="macroxue/pack gone is not built"):
        member(lake, "macroxue/pools/other", "gone")
