"""Each family's sample chain on Ray and Postgres together gives what the embedded default gives."""

import json
import shutil

import pytest
import yaml

from gristmill.families import FAMILIES
from gristmill.provenance import Record, find_artifacts, read_record
from tests import budget
from tests.clusters.alone import alone, needs_ray, short_folder
from tests.postgres import postgres

pytestmark = [pytest.mark.slow, pytest.mark.engines]
SEED = "ray chain"


def launcher(variables: list[str]) -> dict[str, object]:
    """The block of docs/clusters.md, for a cluster on this machine."""
    ray = {"address": "http://127.0.0.1:8265", "num_cpus": 1, "env_vars": variables}
    return {
        "module": "commands.serving.ray_launcher",
        "class": "RayAssetLauncher",
        "config": {"ray": ray},
    }


def known(records: list[Record]) -> dict[tuple[str, str], object]:
    """Data version, files and hashes of the payload of each artifact.

    Other files name the time, the folder, the commit or the run of their build.
    """
    return {
        (record.asset, str(record.partition)): (
            record.data_version,
            sorted(output.path for output in record.outputs),
            sorted(
                (output.path, output.content_sha256 or output.sha256)
                for output in record.outputs
                if output.payload
            ),
        )
        for record in records
    }


@pytest.mark.parametrize("family", budget.some(sorted(FAMILIES), each=150))
def test_a_killed_chain_on_ray_and_postgres_has_equal_bytes(sample_root, tmp_path, family):
    """A SIGKILL in the middle of a run; run monitoring closes it, and the next one continues."""
    needs_ray()
    home, data = tmp_path / "home", tmp_path / "data"
    home.mkdir()
    shutil.copytree(sample_root.data / "drops", data / "drops", symlinks=True)
    shutil.copy(sample_root.data / "gristmill.toml", data)
    with short_folder() as folder, postgres() as server:
        blocks = {
            "storage": {"postgres": {"postgres_url": server.database("chain")}},
            "run_launcher": launcher(["DAGSTER_HOME", "GRISTMILL_DATA", "PYTHONPATH"]),
            "telemetry": {"enabled": False},
        }
        (home / "dagster.yaml").write_text(yaml.safe_dump(blocks))
        words = ["-m", "tests.clusters.chain", family, SEED, str(folder)]
        places = {"DAGSTER_HOME": home, "GRISTMILL_DATA": data, "HOME": home}
        output = alone(words, folder, {name: str(place) for name, place in places.items()})
    said = json.loads(output.splitlines()[-1])
    assert len(said["killed"]) == 1, said
    made = known([read_record(item.record_path) for item in find_artifacts.artifacts(data)])
    expected = known([record for _, record in sample_root.records()])
    own = {asset for asset, _ in expected if asset.split("/")[0] == family}
    assert own and own <= {asset for asset, _ in made}
    built = {asset for asset, _ in made}
    assert made == {key: value for key, value in expected.items() if key[0] in built}
