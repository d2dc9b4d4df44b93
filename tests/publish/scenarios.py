"""The commits that are killed: what stands before, and the build that is interrupted."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gristmill import provenance
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from tests.publish.tiny import TinyConfig, made_from, tiny_build

OUTER = "family/tiny"
NESTED = "family/tiny/runtime/cache"


@dataclass(frozen=True)
class Scenario:
    """before: publishes what stands already. build: the build under the kill."""

    before: Callable[[Path], None]
    build: Callable[[Path, int], Build]


def _nested(root: Path, config: TinyConfig) -> Build:
    outer = made_from(provenance.read_record(root / OUTER / provenance.RECORD))
    return tiny_build(root, NESTED, outer=OUTER, config=config, inputs=[outer])


def _nothing(root: Path) -> None:
    pass


def _single_before(root: Path) -> None:
    publish(tiny_build(root))


def _shared_before(root: Path) -> None:
    for partition in ("p0", "p1"):
        publish(tiny_build(root, partition=partition, shared=True))


def _nested_before(root: Path) -> None:
    _single_before(root)
    publish(_nested(root, TinyConfig()))


SCENARIOS = {
    "fresh": Scenario(_nothing, lambda root, w: tiny_build(root, config=TinyConfig(workers=w))),
    "replace": Scenario(
        _single_before, lambda root, w: tiny_build(root, config=TinyConfig(seed=2, workers=w))
    ),
    "shared first": Scenario(
        _nothing, lambda root, w: tiny_build(root, shared=True, config=TinyConfig(workers=w))
    ),
    "shared replace": Scenario(
        _shared_before,
        lambda root, w: tiny_build(root, shared=True, config=TinyConfig(seed=2, workers=w)),
    ),
    "nested fresh": Scenario(_single_before, lambda root, w: _nested(root, TinyConfig(workers=w))),
    "nested replace": Scenario(
        _nested_before, lambda root, w: _nested(root, TinyConfig(seed=2, workers=w))
    ),
    "outer carries": Scenario(
        _nested_before, lambda root, w: tiny_build(root, config=TinyConfig(label="x", workers=w))
    ),
    "outer drops": Scenario(
        _nested_before, lambda root, w: tiny_build(root, config=TinyConfig(seed=2, workers=w))
    ),
}
