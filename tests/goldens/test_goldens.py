"""Entries of `Code.compatible_with` stand only while every golden is unchanged."""

import pytest

from gristmill import families
from tests.goldens import measured, recorded

KINDS = [kind for catalog in families.catalogs() for kind in catalog.kinds]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.asset)
def test_every_compatible_digest_has_goldens(kind):
    assert set(kind.code.compatible_with) <= set(recorded().get(kind.asset, {}))
    assert kind.code.undigested in (None, *kind.code.compatible_with, kind.code.digest)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.asset)
def test_compatible_code_made_the_same_of_the_samples(sample_root, kind):
    versions = measured(sample_root)[kind.asset]
    assert versions
    for digest in kind.code.equal_digests:
        assert recorded().get(kind.asset, {}).get(digest, versions) == versions
