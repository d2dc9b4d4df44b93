"""2048 through Dagster: drops to packs, values and pools, with the goldens of the real drops."""

import contextlib
import json
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pytest

import definitions
from assets.macroxue import FAMILY
from gristmill import provenance
from gristmill.keys import BadKey
from gristmill.macroxue.builders import pack as pack_module
from gristmill.macroxue.samples import write_drop
from resources import Lake
from tests.assets.helpers import built, evaluated, failure, materialized, sha256

pack, values, pool = (built(f"macroxue/{name}") for name in ("pack", "values", "pool"))
(pool_members_current,) = (
    check
    for check in FAMILY.checks
    if any(key.name == "pool_members_current" for key in check.check_keys)
)


@pytest.fixture
def build(lake: Lake, instance: dg.DagsterInstance) -> Any:
    def materialize(asset: dg.AssetsDefinition, key: str, **config: Any) -> Any:
        name = "macroxue_pools" if asset is pool else "macroxue_drops"
        instance.add_dynamic_partitions(name, [key])
        return materialized(asset, FAMILY.assets, lake, instance, key, **config)

    return materialize


@pytest.fixture
def check(lake: Lake, instance: dg.DagsterInstance) -> Any:
    return lambda: evaluated([pool_members_current], FAMILY.assets, lake, instance)[0]


def sample(lake: Lake, key: str, seed: int) -> Path:
    folder = lake.inbox("macroxue") / key
    write_drop(folder, seed=seed, games=2, max_moves=60, depth=6)
    return folder


def _lower_score(drop: Path) -> Path:
    """Break the rules of 2048 in the first game of a drop; returns its meta file."""
    meta = sorted(drop.glob("*.meta.json"))[0]
    facts = json.loads(meta.read_text())
    meta.write_text(json.dumps({**facts, "score": facts["score"] - 4}))
    return meta


def pool_file(lake: Lake, name: str, text: str) -> Path:
    path = lake.inbox("pools") / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_settings_in_the_drop_choose_the_layout(build, lake):
    folder = sample(lake, "d1", seed=1)
    (folder / "gristmill.toml").write_text('[macroxue.pack]\nlayout = "packed46"\n')
    assert build(pack, "d1").success
    assert np.load(lake.root / "macroxue/packs/d1/steps.npy").dtype.itemsize == 46


def test_a_game_that_comes_while_its_drop_is_read_is_not_packed_unseen(build, lake, monkeypatch):
    folder = sample(lake, "d1", seed=1)
    assert build(pack, "d1").success
    old = provenance.read_record(lake.root / "macroxue/packs/d1/provenance.json")
    real = pack_module.pack

    def late(drop: Path, *args: Any, **kwargs: Any) -> Any:
        write_drop(folder / "late", seed=2, games=1, max_moves=60, depth=6)
        return real(drop, *args, **kwargs)

    monkeypatch.setattr(pack_module, "pack", late)
    (folder / "gristmill.toml").write_text('[macroxue.pack]\nlayout = "packed46"\n')
    assert "games were added or removed while it was read" in failure(build(pack, "d1"))
    assert provenance.read_record(lake.root / "macroxue/packs/d1/provenance.json") == old
    monkeypatch.undo()
    assert build(pack, "d1").success
    record = provenance.read_record(lake.root / "macroxue/packs/d1/provenance.json")
    assert len(record.inputs) == len(old.inputs) + 2
    assert provenance.verify(lake.root) == []


def test_a_game_against_the_rules_is_not_published_unless_asked_for(build, lake):
    folder = sample(lake, "d1", seed=1)
    _lower_score(folder)
    text = failure(build(pack, "d1"))
    assert ": score: rewards" in text
    assert not (lake.root / "macroxue/packs/d1").exists()
    done = build(pack, "d1", game_laws="warn")
    assert done.success
    (event,) = done.get_asset_materialization_events()
    said = event.step_materialization_data.materialization.metadata["not checked"].value
    assert said == 'not checked: games: game_laws = "warn"'


def test_values_need_the_pack(build, lake):
    sample(lake, "d1", seed=1)
    assert "macroxue/packs/d1" in failure(build(values, "d1"))


@pytest.fixture
def two_packs(build, lake):
    for key, seed in (("d1", 1), ("d2", 2)):
        sample(lake, key, seed)
        assert build(pack, key).success
    return lake.root / "macroxue/packs"


def test_a_pool_waits_for_its_packs(lake, request):
    path = pool_file(lake, "both", 'members = ["d1", "d2"]\n')
    found = lake.judged("pools", path)
    assert found.line.startswith("ready: ")
    assert "macroxue/pack d1, d2, which is not built" in found.reason
    request.getfixturevalue("two_packs")
    assert lake.judged("pools", path).line == "ready"


def test_the_order_of_members_decides_the_pool(build, lake, two_packs):
    pool_file(lake, "p", 'members = ["d1", "d2"]\n')
    assert build(pool, "p").success
    first = sha256(lake.root / "macroxue/pools/p/steps.npy")
    pool_file(lake, "p", 'members = ["d2", "d1"]\n')
    assert build(pool, "p").success
    assert sha256(lake.root / "macroxue/pools/p/steps.npy") != first


def test_the_check_warns_when_a_member_was_rebuilt(build, check, lake, two_packs):
    pool_file(lake, "p", 'members = ["d1", "d2"]\n')
    assert build(pool, "p").success
    assert check().passed
    assert build(pack, "d1", shard_rows=50).success
    evaluation = check()
    assert not evaluation.passed
    assert evaluation.severity is dg.AssetCheckSeverity.WARN
    assert "p/d1: member: was rebuilt" in evaluation.description
    assert build(pool, "p").success
    assert check().passed


def test_members_are_deleted_after_the_pool_stands_and_never_before(build, lake, two_packs):
    pool_file(lake, "p", 'members = ["d1", "d2"]\ndelete_members = true\n')
    assert build(pool, "p").success
    assert not (two_packs / "d1").exists()
    assert not (two_packs / "d2").exists()
    record = provenance.read_record(lake.root / "macroxue/pools/p/provenance.json")
    assert record.deleted_inputs == ["macroxue/packs/d1", "macroxue/packs/d2"]
    assert provenance.verify(lake.root) == []
    # The pool can be asked for again though its members are gone.
    assert build(pool, "p").success


def test_a_pack_that_a_pool_deleted_is_built_again_when_asked_for(build, lake, two_packs):
    for key in ("d1", "d2"):
        assert build(values, key).success
    pool_file(lake, "p", 'members = ["d1", "d2"]\ndelete_members = true\n')
    assert build(pool, "p").success
    for asset in (pack, values):
        result = build(asset, "d1")
        assert result.success
        assert result.asset_materializations_for_node(asset.op.name) == []
    assert not (two_packs / "d1").exists()
    # Another form of the pool needs the packs back, and says how to get them.
    text = failure(build(pool, "p", shard_rows=10))
    assert "d1, d2: this pool deleted these packs after it was published" in text
    pool_file(lake, "p", 'members = ["d1", "d2"]\n')
    for key in ("d1", "d2"):
        assert build(pack, key).success
    assert build(pool, "p", shard_rows=10).success
    assert (two_packs / "d1").exists()
    assert provenance.verify(lake.root) == []


def test_a_pack_let_through_can_be_pooled_and_verified(build, lake, two_packs):
    meta = _lower_score(lake.inbox("macroxue") / "d1")
    found = f"run 0, of d1/{meta.name.replace('.meta.json', '.jsonl.gz')}: score: "
    assert build(pack, "d1", game_laws="warn").success
    pool_file(lake, "p", 'members = ["d1", "d2"]\n')
    assert found in failure(build(pool, "p"))
    assert build(pool, "p", game_laws="warn").success
    assert provenance.verify(lake.root) == []
    # A stricter word is asked for again, not passed over as unchanged.
    assert found in failure(build(pack, "d1"))


def test_a_deletion_cut_short_is_made_up_for(build, lake, two_packs, monkeypatch):
    from gristmill.publish import remove

    real = remove._delete_input

    def once(*arguments: Any) -> None:
        monkeypatch.setattr(remove, "_delete_input", stop)
        real(*arguments)

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    pool_file(lake, "p", 'members = ["d1", "d2"]\ndelete_members = true\n')
    monkeypatch.setattr(remove, "_delete_input", once)
    with contextlib.suppress(KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        build(pool, "p")
    assert sorted(path.name for path in two_packs.glob("d*")) == ["d2"]
    monkeypatch.setattr(remove, "_delete_input", real)
    assert build(pool, "p").success
    assert list(two_packs.glob("d*")) == []


def test_nothing_is_deleted_where_the_pool_does_not_verify(build, lake, two_packs, monkeypatch):
    from gristmill.contract import Violation
    from gristmill.publish import remove

    monkeypatch.setattr(
        remove.provenance, "verify", lambda *_, **__: [Violation("output", "steps.npy", "torn")]
    )
    pool_file(lake, "p", 'members = ["d1", "d2"]\ndelete_members = true\n')
    assert "its inputs were not deleted" in failure(build(pool, "p"))
    assert (two_packs / "d1/steps.npy").exists()


def test_a_pool_that_is_no_key_names_no_file(lake: Lake) -> None:
    for ask in (
        lambda: definitions.build_of("macroxue/pool", lake, "../../x"),
        lambda: definitions.declared()["macroxue/pool"].settings(lake, "../../x"),
    ):
        with pytest.raises(BadKey, match=r"^the name '\.\./\.\./x' may hold only ASCII letters"):
            ask()
