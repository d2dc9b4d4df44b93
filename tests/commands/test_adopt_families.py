"""`gristmill adopt --all` on a data root of all families, into an instance that knows nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest

import definitions
from tests.sample_root import SampleRoot

pytestmark = pytest.mark.slow

_INPUTS = ("dagster/input_data_version/", "dagster/input_event_pointer/")
"""Tags of inputs. Dagster names several partitions of an input by one number of its own, and
events have other numbers in another instance; what they decide is compared, `stale`."""


@contextmanager
def _opened(home: Path) -> Iterator[dg.DagsterInstance]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(home))
        with dg.DagsterInstance.get() as instance:
            yield instance


def _known(home: Path) -> dict[tuple[str, str | None], tuple[Any, Any]]:
    """What a page says of each partition: tags and metadata of the latest event, and staleness."""
    graph = definitions.build_defs().resolve_asset_graph()
    found: dict[tuple[str, str | None], tuple[Any, Any]] = {}
    with _opened(home) as instance:
        state = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        for asset in sorted(instance.all_asset_keys()):
            for record in instance.fetch_materializations(asset, limit=5000).records:
                made = record.asset_materialization
                assert made is not None
                tags = {
                    tag: value
                    for tag, value in (made.tags or {}).items()
                    if not tag.startswith(_INPUTS)
                }
                facts = {name: made.metadata.get(name) for name in ("provenance", "bytes")}
                facts["stale"] = [
                    (str(cause.category), str(cause.dependency))
                    for cause in state.get_stale_causes(asset, made.partition)
                ]
                found.setdefault((asset.to_user_string(), made.partition), (tags, facts))
    return found


def _dynamic(home: Path) -> dict[str, set[str]]:
    """The dynamic partitions of all published assets, by the name of their definition."""
    graph = definitions.build_defs().resolve_asset_graph()
    names = {
        node.partitions_def.name
        for key in graph.materializable_asset_keys
        if isinstance((node := graph.get(key)).partitions_def, dg.DynamicPartitionsDefinition)
    }
    assert len(names) > 5
    with _opened(home) as instance:
        return {str(name): set(instance.get_dynamic_partitions(str(name))) for name in names}


def test_every_family_is_adopted(sample_root: SampleRoot, tmp_path: Path) -> None:
    root = sample_root.copy(tmp_path / "root")
    before, partitions = _known(root.home), _dynamic(root.home)
    shutil.rmtree(root.home)
    root.home.mkdir()
    (root.home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    said = root.command("adopt", "--all")
    assert "left" not in said, said
    after = _known(root.home)
    assert len(before) > 90 and before.keys() == after.keys()
    for key, (tags, facts) in before.items():
        assert tags.items() <= after[key][0].items(), key
        assert facts == after[key][1], key
    assert _dynamic(root.home) == partitions
    assert "nothing needed doing" in root.command("materialize", "--all")
    assert "0 artifacts adopted" in root.command("adopt", "--all")
