"""The identity of what a reader has open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.loading.source import (
    MOST_VERSIONS,
    Identity,
    Source,
    digest_of,
    identity_of,
    names_of,
)
from gristmill.reading.generation import Generation
from tests.loading.numbered import Numbered


def opened(*versions: str | None) -> list[Generation]:
    return [
        Generation(Path("/data/x/y/z", str(n)), each, each, {}) for n, each in enumerate(versions)
    ]


def test_a_copy_elsewhere_has_the_same_identity() -> None:
    here, there = (
        Identity("a/b", ("1",), "train", {"cap": 8}, place) for place in ("data/x", "/copy/x")
    )
    assert here.text == there.text
    assert here.text == (
        '{"asset": "a/b", "numbering": {"cap": 8}, "split": "train", "versions": ["1"]}'
    )


def test_versions_are_listed_up_to_a_number_and_then_hashed() -> None:
    few = identity_of("a/b", opened(*map(str, range(MOST_VERSIONS))))
    assert few.versions == tuple(map(str, range(MOST_VERSIONS)))
    many = [str(n) for n in range(MOST_VERSIONS + 1)]
    found = identity_of("a/b", opened(*many))
    assert found.versions[0].startswith("sha256 of 17: ")
    assert found.text != identity_of("a/b", opened(*many[:-1], "other")).text
    assert few.artifact.startswith("y/z/0, y/z/1, ")


def test_files_without_a_record_are_refused() -> None:
    with pytest.raises(GristmillError, match="y/z/1: has no provenance record"):
        identity_of("a/b", opened("1", None))


def test_a_selection_is_named_by_its_numbers() -> None:
    assert digest_of(np.array([1, 2], np.int32)) == digest_of(np.array([1, 2]))
    assert digest_of(np.array([1, 2])) != digest_of(np.array([2, 1]))


def test_a_source_is_known_by_what_it_has() -> None:
    assert isinstance(Numbered("a", [0, 1]), Source)
    assert not isinstance(object(), Source)


def test_sources_of_one_artifact_are_named_by_their_split_or_their_number() -> None:
    given = [("a", "train"), ("a", "val"), ("b", "train"), ("c", None), ("c", None)]
    identities = [
        Identity("x", (str(at),), split, {}, name) for at, (name, split) in enumerate(given)
    ]
    names = ["a train", "a val", "b", "c (source 4)", "c (source 5)"]
    assert names_of(identities) == names
