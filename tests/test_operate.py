"""`python operate.py`, as a process, from a folder that is not the checkout."""

import subprocess
import sys

import pytest

from bench.servers import copy_checkout, plain_environment
from tests.commands.drops import PACKS, land
from tests.paths import ran


@pytest.mark.slow
def test_it_works_from_any_folder_and_in_one_instance_with_and_without_dagster_home(tmp_path):
    checkout, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere"
    copy_checkout(checkout)
    land(elsewhere / "data", "one")

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return ran(
            [sys.executable, str(checkout / "operate.py"), *words],
            cwd=elsewhere,
            env={**plain_environment(), "GRISTMILL_DATA": "data", **variables},
        )

    words = ("materialize", "macroxue/pack")
    first = run(*words, DAGSTER_HOME=str(checkout))
    assert first.returncode == 0, first.stdout + first.stderr
    assert f" data/{PACKS}/one\n" in first.stdout
    land(elsewhere / "data", "two")
    second = run(*words)
    assert second.returncode == 0, second.stdout + second.stderr
    assert f" data/{PACKS}/two\n" in second.stdout
    # What the first call built is known to the second.
    assert ", 1 unchanged; " in second.stdout
    assert (elsewhere / "data" / PACKS / "one/provenance.json").exists()
    # Both are in the store that dagster.yaml names, and nothing lies elsewhere.
    asked = "import dagster as dg; print(dg.DagsterInstance.from_config('.').get_runs_count())"
    counted = ran([sys.executable, "-c", asked], cwd=checkout, check=True)
    assert counted.stdout.split()[-1] == "2"
    assert [path.name for path in elsewhere.iterdir()] == ["data"]
