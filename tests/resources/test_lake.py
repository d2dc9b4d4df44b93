"""Paths, keys, settings and published inputs, as assets ask the Lake for them."""

from pathlib import Path

import pytest

from assets.choices import chosen_values
from gristmill.chess.config import archive_config
from gristmill.contract import BadInput, GristmillError
from gristmill.inbox.readiness import REFUSED
from gristmill.keys import BadKey
from gristmill.publish.publish import publish
from gristmill.run.ray_parts import RayParts
from gristmill.run.workers import other_machines
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from resources import CHECKOUT, EliteArchive, Lake
from tests.macroxue.lines import step, write_run
from tests.publish.tiny import tiny_build


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(data_root=str(tmp_path))


def test_the_root_is_the_argument_then_the_variable_then_the_checkout(monkeypatch, tmp_path):
    monkeypatch.delenv("GRISTMILL_DATA", raising=False)
    assert Lake().root == CHECKOUT / "data"
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "variable"))
    assert Lake().root == tmp_path / "variable"
    assert Lake(data_root=str(tmp_path)).root == tmp_path


def test_paths_are_of_names_in_the_grammar_and_an_input_that_is_not_published_is_named(lake):
    assert lake.artifact("macroxue", "packs", "d6-10g.v1") == "macroxue/packs/d6-10g.v1"
    with pytest.raises(BadKey):
        lake.artifact("macroxue", "packs", "../x")
    with pytest.raises(GristmillError, match="macroxue/packs/d6"):
        lake.published("macroxue/packs/d6", "macroxue/pack", "d6")


def test_settings_of_the_drop_come_before_those_of_the_root(lake, tmp_path):
    drop = tmp_path / "drops/macroxue/d6"
    drop.mkdir(parents=True)
    (tmp_path / "gristmill.toml").write_text("[macroxue.pack]\nshard_rows = 5\n")
    found = lake.settings("macroxue/pack", drop)
    assert (found, found.file) == ({"shard_rows": 5}, tmp_path / "gristmill.toml")
    (drop / "gristmill.toml").write_text('[macroxue.pack]\nlayout = "packed46"\n')
    found = lake.settings("macroxue/pack", drop)
    assert (found, found.file) == ({"layout": "packed46"}, drop / "gristmill.toml")
    assert lake.settings("macroxue/values", drop) == {}


def test_a_wrong_file_of_a_drop_is_not_passed_over(lake, tmp_path):
    drop = tmp_path / "drops/macroxue/d6"
    drop.mkdir(parents=True)
    (drop / "gristmill.toml").write_text("[macroxue.values]\ngamma = 1\n")
    with pytest.raises(BadInput, match=r"\[macroxue.values\] is not read from a drop"):
        lake.settings("macroxue/pack", drop)
    (drop / "gristmill.toml").write_text("[macroxue.pack]\nworkers = true\n")
    with pytest.raises(BadInput, match=r"d6/gristmill.toml: \[macroxue.pack\] workers = true"):
        lake.settings("macroxue/pack", drop)


@pytest.mark.parametrize(
    ("text", "rule"), [("[macroxue", "not TOML"), ("macroxue.pack = 3", "must be a table")]
)
def test_broken_settings_name_the_file(lake, tmp_path, text, rule):
    (tmp_path / "gristmill.toml").write_text(text)
    with pytest.raises(BadInput, match=rf"gristmill\.toml: .*{rule}"):
        lake.settings("macroxue/pack")


def test_the_record_of_another_partition_or_folder_is_not_taken_for_the_right_one(lake, tmp_path):
    for name in ("p1", "p2"):
        publish(tiny_build(tmp_path, "macroxue/shared", partition=name, shared=True))
    records = tmp_path / "macroxue/shared/provenance"
    (records / "p1.json").write_bytes((records / "p2.json").read_bytes())
    with pytest.raises(GristmillError, match="is the record of macroxue/shared, partition p2"):
        lake.published("macroxue/shared", "test/tiny", "p1")
    publish(tiny_build(tmp_path, "macroxue/elsewhere", partition="d6"))
    (tmp_path / "macroxue/elsewhere").rename(tmp_path / "macroxue/d6")
    with pytest.raises(GristmillError, match="is the record of macroxue/elsewhere, partition d6"):
        lake.published("macroxue/d6", "test/tiny", "d6")


def test_links_in_drops_are_refused_unless_the_root_allows_them(lake, tmp_path):
    write_run(tmp_path / "store/d6", "g", [step()])
    (tmp_path / "drops/macroxue").mkdir(parents=True)
    (tmp_path / "drops/macroxue/d6").symlink_to(tmp_path / "store/d6")
    assert lake.link_rule() == REFUSE_LINKS
    found = lake.judged("macroxue", tmp_path / "drops/macroxue/d6")
    assert found.state == REFUSED and "is a link" in found.reason
    (tmp_path / "gristmill.toml").write_text('[inbox]\nfollow_links = true\nroots = ["store"]\n')
    assert lake.link_rule() == LinkRule(True, (str(tmp_path / "store"),))
    assert lake.ready_drop("macroxue", "d6")[0] == tmp_path / "drops/macroxue/d6"


@pytest.mark.parametrize("linked", ["", "drops", "drops/macroxue"])
def test_the_data_root_the_drops_and_an_inbox_may_be_links(tmp_path, linked):
    real = tmp_path / "real"
    write_run(real / "drops/macroxue/d6", "g", [step()])
    if linked:
        moved = (real / linked).rename(tmp_path / "moved")
        (real / linked).symlink_to(moved)
    (tmp_path / "root").symlink_to(real)
    lake = Lake(data_root=str(tmp_path / "root"))
    assert lake.ready_drop("macroxue", "d6")[0] == tmp_path / "root/drops/macroxue/d6"


def test_the_settings_of_the_root_may_be_a_link_and_those_of_a_drop_may_not(lake, tmp_path):
    (tmp_path / "mine.toml").write_text("[macroxue.pack]\nshard_rows = 5\n")
    (tmp_path / "gristmill.toml").symlink_to("mine.toml")
    drop = tmp_path / "drops/macroxue/d6"
    drop.mkdir(parents=True)
    assert lake.settings("macroxue/pack", drop) == {"shard_rows": 5}
    (drop / "gristmill.toml").symlink_to(tmp_path / "mine.toml")
    with pytest.raises(BadInput, match=r"gristmill\.toml: is a link"):
        lake.settings("macroxue/pack", drop)


FIVE = "[inbox]\nsettle_seconds = 5"


@pytest.mark.parametrize(
    ("text", "inbox", "expected"),
    [
        ("", "macroxue", (60.0, False)),
        (FIVE, "macroxue", (5.0, False)),
        (f"{FIVE}\n[inbox.macroxue]\nsettle_seconds = 0", "macroxue", (0, False)),
        (f"{FIVE}\n[inbox.macroxue]\nrequire_done = true", "macroxue", (5, True)),
        ("[inbox]\nrequire_done = true\n[inbox.pools]\nrequire_done = false", "pools", (60, False)),
        ("[inbox.macroxue]\nrequire_done = true", "pools", (60.0, False)),
        ("[inbox.puzzles]\nsettle_seconds = 7", "puzzles/recipes", (60.0, False)),
        ("[inbox.puzzles.recipes]\nsettle_seconds = 7", "puzzles/recipes", (7.0, False)),
        ("[inbox.puzzles.recipes]\nsettle_seconds = 7", "puzzles", (60.0, False)),
        (FIVE, "toy", (5.0, False)),
    ],
)
def test_an_inbox_has_settings_of_its_own_before_those_of_all(tmp_path, text, inbox, expected):
    (tmp_path / "gristmill.toml").write_text(text)
    lake = Lake(data_root=str(tmp_path))
    settling = lake.settling(inbox)
    assert (settling.seconds, settling.require_done) == expected
    assert lake.link_rule().follow is False


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[inbox.macroxu]\nrequire_done = true", "did you mean [inbox.macroxue]?"),
        ("[inbox.puzzles.recipe]\nrequire_done = true", "did you mean [inbox.puzzles.recipes]?"),
        ("[inbox.macroxue]\nfollow_links = true", "[inbox.macroxue] follow_links: unknown key"),
        ("[inbox]\nsettle_seconds = -1", "must be a finite number from 0 to 604800"),
        ("[inbox.macroxue]\nsettle_seconds = 604801", "must be a finite number from 0 to 604800"),
        ("[inbox]\nmacroxue = 1", "[inbox.macroxue] must be a table"),
        ("[inbox]\nrequire_done = 1", "must be true or false"),
    ],
)
def test_wrong_settings_of_an_inbox_are_refused_with_the_key(tmp_path, text, rule):
    (tmp_path / "gristmill.toml").write_text(text)
    with pytest.raises(BadInput) as caught:
        Lake(data_root=str(tmp_path)).settling("macroxue")
    assert rule in str(caught.value)


def test_the_table_run_says_what_makes_the_parts(lake, tmp_path):
    with lake.engine():
        assert other_machines() is None
    file = tmp_path / "gristmill.toml"
    file.write_text('[run]\nengine = "local"\nray_cpus = 2')
    with lake.engine():
        assert other_machines() is None
    file.write_text('[run]\nengine = "ray"')
    with lake.engine():
        assert other_machines() == RayParts("auto", 1.0, 0, 3)
    file.write_text(
        '[run]\nengine = "ray"\nray_address = "a:1"\nray_cpus = 0.5\n'
        "ray_memory = 7\nray_retries = 0"
    )
    with lake.engine():
        assert other_machines() == RayParts("a:1", 0.5, 7, 0)
    assert other_machines() is None


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ('engine = "slurm"', "engine"),
        ("ray_cpus = 0", "above 0"),
        ("ray_retries = -1", "from 0 to 1000"),
        ("ray_memory = -1", "0 or more"),
        ("ray_adress = 1", "ray_address"),
    ],
)
def test_a_wrong_table_run_is_refused_before_a_build(lake, tmp_path, line, rule):
    (tmp_path / "gristmill.toml").write_text(f"[run]\n{line}")
    with pytest.raises(BadInput, match=rule) as refused, lake.engine():
        pass
    assert "gristmill.toml" in str(refused.value) and "[run]" in str(refused.value)


def test_the_numbers_reach_the_download() -> None:
    archive = EliteArchive(
        base_address="http://127.0.0.1:1/", timeout_seconds=86_400, attempts=1000, backoff_seconds=0
    )
    config = archive_config(**chosen_values(archive))
    fetch = config.fetch
    assert config.url_template == "http://127.0.0.1:1/lichess_elite_{month}.zip"
    assert (fetch.timeout, fetch.attempts, fetch.backoff) == (86_400, 1000, 0)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("timeout_seconds", 0),
        ("timeout_seconds", 86_401),
        ("attempts", 0),
        ("attempts", 1001),
        ("backoff_seconds", -1),
        ("backoff_seconds", 3601),
    ],
)
def test_a_number_out_of_its_range_is_refused(field: str, wrong: float) -> None:
    with pytest.raises(ValueError, match=field):
        EliteArchive(**{field: wrong})  # type: ignore[arg-type]
