"""Parts of a build as tasks of Ray: the same parts, whatever is killed, and the same artifacts."""

import json
import re
import shutil

import pytest

from gristmill.provenance import find_artifacts, read_record
from tests import budget
from tests.clusters import parts
from tests.clusters.alone import alone, needs_ray, short_folder
from tests.clusters.test_chain import known

pytestmark = [pytest.mark.slow, pytest.mark.engines]
SEED = "ray parts"


@pytest.mark.parametrize("killed", budget.some(list(parts.KILLED), each=40))
def test_a_kill_loses_the_parts_that_were_being_made_and_nothing_else(tmp_path, killed):
    needs_ray()
    with short_folder() as folder:
        words = ["-c", parts.PROGRAM, killed, SEED, str(folder)]
        said = json.loads(alone(words, folder, {"HOME": str(folder)}).splitlines()[-1])
    (tmp_path / "here").mkdir()
    assert said["parts"] == parts.built(tmp_path / "here")["parts"]
    assert said["stayed"]
    attempts = said["begun"]
    assert set(attempts) == {str(index) for index in range(parts.PARTS)}
    again = sum(attempts.values()) - parts.PARTS
    if killed == "nothing":
        assert again == 0 and said["log"] == []
    elif killed == "driver":
        # Ray ends a task of a dead driver; each of the two nodes had one.
        assert again <= 2 and said["taken_over"] == said["finished"] > 0
    else:
        # A raylet's worker may finish the part before the next attempt looks.
        assert again + said["taken_over"] >= 1 and again <= 2
        assert len(said["log"]) in (1, 2)
        assert all(
            re.match("a part is made again, since its worker on Ray died: [^.]+$", line)
            for line in said["log"]
        ), said["log"]


def test_every_family_makes_its_parts_on_ray(sample_root, tmp_path):
    """All samples, by the engine that gristmill.toml names, have the bytes of the default."""
    needs_ray()
    data = tmp_path / "data"
    shutil.copytree(sample_root.data / "drops", data / "drops", symlinks=True)
    shutil.copy(sample_root.data / "gristmill.toml", data)
    with short_folder() as folder:
        words = ["-c", parts.PROGRAM, "families", str(data), str(folder)]
        places = {"GRISTMILL_DATA": data, "DAGSTER_HOME": folder, "HOME": folder}
        output = alone(words, folder, {name: str(place) for name, place in places.items()})
    said = json.loads(output.splitlines()[-1])
    assert said["tasks"] > 20, said
    made = known([read_record(item.record_path) for item in find_artifacts.artifacts(data)])
    assert made == known([record for _, record in sample_root.records()])
