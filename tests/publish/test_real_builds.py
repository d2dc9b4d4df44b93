"""Builds of every asset, killed or with failing calls: the old artifact or the new one, whole."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import definitions
from gristmill.families import FAMILIES
from gristmill.publish import storage
from tests import budget
from tests.paths import CHECKOUT, memory
from tests.publish.killing import EXCHANGE, FORMS, LINK, REFUSED, in_two_threads
from tests.publish.real_builds import (
    COLLECTION,
    DROPS,
    OWN,
    STEPS,
    RealBuilder,
    Target,
    faults_at_every_place,
    states_of,
)

ALL = sorted(
    asset.to_user_string()
    for asset in definitions.build_defs().resolve_asset_graph().materializable_asset_keys
)
_STATES_BYTES = 2 << 30
# A sample takes at least so many faults of each asset, whatever time they take.
_LEAST = 2


@pytest.fixture(scope="module", params=FORMS if budget.is_whole() else [EXCHANGE])
def builder(
    request: pytest.FixtureRequest,
    shim: Path,
    vocabulary_root: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RealBuilder]:
    """The states of all assets in a form of publishing, in memory if there is room."""
    form = {storage.VARIABLE: request.param}
    folder = tmp_path_factory.mktemp("real").resolve()
    if place := memory(_STATES_BYTES):
        shutil.rmtree(folder)
        folder = place / f"gristmill-real-{os.getpid()}"
        folder.mkdir()
    try:
        # In a process of its own: its threads would not survive the forks of the servers.
        command = [sys.executable, "-m", "tests.publish.real_builds", folder, vocabulary_root]
        subprocess.run([*command, *ALL], cwd=CHECKOUT, env={**os.environ, **form}, check=True)
        made = RealBuilder(shim, folder, form, REFUSED if request.param == LINK else {})
        yield made
        made.close()
    finally:
        shutil.rmtree(folder)


def test_every_family_has_drops_in_two_versions():
    assert set(DROPS) == {*FAMILIES, "tokenizers"}


@pytest.mark.slow
@pytest.mark.parametrize("asset", ALL)
def test_a_disturbed_build_leaves_the_old_or_the_new_and_no_trace_in_the_next(builder, asset):
    states = states_of(asset)
    for state in states:
        targets = [one for one in builder.targets if (one.state, one.asset) == (state, asset)]
        own = {OWN, COLLECTION, STEPS} & {one.partition for one in targets}
        assert len(targets) == max(1, len(own) + (asset != "chess/subset"))
        for target in targets:
            found = _disturb(builder, target, 1 / len(ALL) / len(states) / len(targets))
            missed = found.count("missed")
            assert missed <= len(found) // 10 + 1, f"{missed} of {len(found)} places were not met"


def _disturb(builder: RealBuilder, target: Target, share: float) -> list[str]:
    calls, undisturbed = builder.trace(target)
    assert {call.place.split()[1] for call in calls} >= {"fsync", "mkdir", "write"}
    faults = list(faults_at_every_place(target, calls))
    assert len(faults) > 50
    sampled = budget.some(faults, each=0.5, share=share, least=_LEAST)
    return in_two_threads(lambda fault: builder.disturb(fault, undisturbed), sampled)
