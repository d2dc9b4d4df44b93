"""Every edge of the graph of every family: a damaged file of an input is never built from."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

import definitions
from commands.graph import Graph
from gristmill import provenance
from gristmill.hashing import sha256_file
from gristmill.provenance import Input, Record
from tests import budget
from tests.sample_root import SampleRoot, build_again

_GRAPH = definitions.build_defs().resolve_asset_graph()
_EDGES = [
    (asset.to_user_string(), above.to_user_string())
    for asset in sorted(_GRAPH.materializable_asset_keys)
    for above in sorted(_GRAPH.get(asset).parent_keys)
]
_OTHER_SETTING = {
    ("chess/subset", "chess/splice_dataset"),
    *(("reasoning/tokens", f"tokenizers/{name}") for name in ("gpt2", "o200k_harmony")),
    *(("reasoning/spans", f"tokenizers/{name}") for name in ("placed", "o200k_harmony")),
    ("macroxue/training_view", "macroxue/pack"),
    *(
        ("audits/leaks", name)
        for name in ("chat/conversations", "reasoning/normalized", "synth/harmony")
    ),
}
"""Only with `of = "rows"` is a subset made of legacy rows; that of the samples is made of games. A
view is made of a pack or of a pool; that of the samples is made of a pool. Spans name the tokens of
one tokenizer. An audit looks at texts by the sums of their files, which its config has."""
PUBLISHED = [
    (asset, above)
    for asset, above in _EDGES
    if _GRAPH.get(dg.AssetKey.from_user_string(above)).is_materializable
    and (asset, above) not in _OTHER_SETTING
]
RAW = [edge for edge in _EDGES if edge not in (*PUBLISHED, *_OTHER_SETTING)]


def _flip(path: Path) -> None:
    """Change one bit, and nothing that a listing shows."""
    stat = path.stat()
    octets = bytearray(path.read_bytes())
    octets[len(octets) // 2] ^= 1
    path.write_bytes(octets)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def _add(path: Path) -> None:
    shutil.copy(path, path.with_name(f"more_{path.name}"))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flip": _flip,
    "truncate": _truncate,
    "remove": Path.unlink,
    "add": _add,
}


@pytest.fixture(scope="module")
def root(sample_root: SampleRoot, tmp_path_factory: pytest.TempPathFactory) -> SampleRoot:
    copied = sample_root.copy(tmp_path_factory.mktemp("damaged"))
    # A sample's file that changed would be a real one beside a sample.
    for mark in (copied.data / "drops").rglob("*.sample"):
        mark.unlink()
    return copied


@pytest.fixture(scope="module")
def graph(root: SampleRoot) -> Iterator[Graph]:
    with root.graph() as opened:
        yield opened


def _input(record: Record, folder: Path, above: str) -> Input:
    path = provenance.record_path(folder, None, shared=False)
    if not path.exists():
        path = provenance.record_path(folder, record.partition, shared=True)
    return next(
        item for item in provenance.read_inputs(record, path) if item.asset == above and item.path
    )


def _is_empty(path: Path) -> bool:
    return path.stat().st_size == 0


_CURE = re.compile(r"materialize (\S+)(?: --partition (\S+))?(?: --rebuild`| again|`)")


def _mended(graph: Graph, record: Record, *, rebuild: bool = True) -> str:
    """Build what messages name until a build succeeds; what the last message says otherwise."""
    for _ in range(8):
        outcome = build_again(graph, record, rebuild=rebuild)
        if outcome.status != "failed":
            return outcome.status
        _follow(graph, str(outcome.reason), 3)
    return str(outcome.reason)


def _follow(graph: Graph, reason: str, deep: int) -> None:
    """Build what a message names; if that fails, what its own message names first."""
    named = _CURE.search(reason)
    assert named is not None, reason
    asset = dg.AssetKey.from_user_string(named[1])
    keys = graph.keys(asset, [named[2]] if named[2] else [])
    (outcome,) = graph.materialize(asset, keys, rebuild=True)
    if outcome.status == "failed" and deep:
        _follow(graph, str(outcome.reason), deep - 1)
        (outcome,) = graph.materialize(asset, keys, rebuild=True)
    assert outcome.status == "built", outcome.reason


@pytest.mark.slow
@pytest.mark.parametrize(("asset", "above"), PUBLISHED)
def test_a_damaged_published_input_is_refused(root, graph, asset, above, tmp_path):
    # Another test may have built an input again.
    assert _mended(graph, root.record(asset)[1], rebuild=False) in ("built", "unchanged")
    folder, record = root.record(asset)
    item = _input(record, folder, above)
    source = root.data / str(item.path)
    source_record = next(
        each
        for place, each in root.records()
        if place == source and each.asset == above and each.partition == item.partition
    )
    names = [output.path for output in source_record.outputs]
    cases = [(name, damage) for name in names for damage in DAMAGES]
    for name, damage in budget.some(cases, each=6):
        path = source / name
        if _is_empty(path) and damage in ("flip", "truncate"):
            continue
        shutil.copy2(path, tmp_path / "kept")
        DAMAGES[damage](path)
        outcome = build_again(graph, record)
        assert outcome.status == "failed", (name, damage)
        assert str(source) in str(outcome.reason) or name in str(outcome.reason), (name, damage)
        assert "does not expect this error" not in str(outcome.reason), (name, damage)
        assert root.record(asset)[1] == record, (name, damage)
        path.with_name(f"more_{path.name}").unlink(missing_ok=True)
        shutil.copy2(tmp_path / "kept", path)
    name, damage = cases[-1]
    if not _is_empty(source / name):
        DAMAGES[damage](source / name)
    assert _mended(graph, record) == "built"
    assert root.record(asset)[1].data_version == record.data_version


@pytest.mark.slow
@pytest.mark.parametrize(("asset", "above"), RAW)
def test_a_raw_file_with_other_bytes_alone_is_read_again(root, graph, asset, above, tmp_path):
    folder, record = root.record(asset)
    try:
        item = _input(record, folder, above)
    except StopIteration:
        pytest.skip(f"the sample of {asset} is not made from {above}")
    path = root.data / str(item.path)
    shutil.copy2(path, tmp_path / "kept")
    _flip(path)
    outcome = build_again(graph, record, rebuild=False)
    if outcome.status == "failed":
        assert path.name in str(outcome.reason)
        assert root.record(asset)[1] == record
    else:
        assert outcome.status == "built"
        assert _input(root.record(asset)[1], folder, above).sha256 == sha256_file(path)
    shutil.copy2(tmp_path / "kept", path)
    build_again(graph, record, rebuild=False)
    assert root.record(asset)[1].data_version == record.data_version


def test_the_edges_cover_every_asset_of_the_definitions():
    built_from_others = {asset for asset, _ in _EDGES}
    assert built_from_others == {
        key.to_user_string()
        for key in _GRAPH.materializable_asset_keys
        if _GRAPH.get(key).parent_keys
    }
    assert PUBLISHED and RAW
