"""A build killed at any call leaves the old artifact or the new one, whole."""

import errno
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests import budget
from tests.publish.killing import Kill, Killer, in_two_threads, kills_at_every_place
from tests.publish.scenarios import SCENARIOS

# Workers take most of the time and do the same whatever is committed, so the
# short matrix has them in one scenario.
WITH_WORKERS = {"replace"}
# `make test` kills the simplest commit at some places, the slow tests all others.
QUICK = {"fresh"}
QUICK_KILLS = 16


def _kill_all(killer: Killer, kills: Iterable[Kill], workers: int) -> list[str]:
    return in_two_threads(lambda kill: killer.kill(kill, workers), kills)


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in SCENARIOS],
)
def test_a_kill_at_every_place(killer, scenario):
    workers = 2 if scenario in WITH_WORKERS else 1
    calls = killer.trace(scenario, workers)
    kills = list(kills_at_every_place(scenario, calls, every=False))
    assert len(kills) > 50
    assert {call.role for call in calls} == ({"main", "worker"} if workers == 2 else {"main"})
    if scenario in QUICK:
        some = budget.dice("kill fresh").sample(kills, QUICK_KILLS)
        assert set(_kill_all(killer, some, workers)) <= {"old", "new"}
        return
    sampled = budget.some(kills, each=0.3, share=1 / len(SCENARIOS), least=4)
    found = set(_kill_all(killer, sampled, workers))
    assert found == {"old", "new"} or (found and not budget.is_whole())


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_kill_at_every_occurrence(killer_of_a_form, scenario):
    calls = killer_of_a_form.trace(scenario, 2)
    kills = list(kills_at_every_place(scenario, calls, every=True))
    assert len(kills) >= len(calls)
    sampled = budget.some(kills, each=0.3, share=1 / len(SCENARIOS), least=4)
    found = set(_kill_all(killer_of_a_form, sampled, 2))
    assert found == {"old", "new"} or (found and not budget.is_whole())


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("fault", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.__getitem__)
def test_a_call_that_fails_at_every_place(killer, scenario, fault):
    places = sorted({call.place for call in killer.trace(scenario, 1)})
    kills = [Kill(scenario, place, how=str(fault)) for place in places]
    sampled = budget.some(kills, each=0.3, share=0.5 / len(SCENARIOS), least=4)
    assert set(_kill_all(killer, sampled, 1)) <= {"old", "new"}


@pytest.mark.slow
def test_a_killed_worker_fails_the_build(killer_of_a_form):
    places = {call.place for call in killer_of_a_form.trace("replace", 2) if call.role == "worker"}
    kills = [Kill("replace", place, how="alone") for place in sorted(places)]
    assert len(kills) >= 5
    assert set(_kill_all(killer_of_a_form, kills, 2)) == {"old"}


def test_a_build_killed_between_parts_goes_on_with_them(killer_of_a_form):
    """The kill comes when the main process writes the database: all parts are finished."""
    kill = Kill("fresh", "main create family/.gristmill/slots/tiny/staging/metadata.db")
    assert killer_of_a_form.recomputed(kill, workers=2) == 0
    kill = replace(kill, place="worker rename family/.gristmill/slots/tiny/parts/#/rows-2.part")
    assert killer_of_a_form.recomputed(kill, workers=2) in (1, 2)
