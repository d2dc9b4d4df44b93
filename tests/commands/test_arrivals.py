"""Arrivals that a command reports, without a sensor."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import dagster as dg
import pytest

from assets.inbox import Inbox
from commands.arrivals import register, strangers
from commands.graph import INBOXES, Graph
from gristmill.families import catalogs
from gristmill.inbox import READY, REFUSED, present_drops
from resources.lake import Lake
from tests.commands.drops import land
from tests.macroxue.annotated import write_annotations
from tests.macroxue.games import play, write_pack
from tests.sample_root import write_talks
from tests.tiny_tokenizer import put_recipe, put_tiny
from tests.toy_inbox import asked

(DROPS,) = (inbox for inbox in INBOXES if inbox.folder == "macroxue")


def reported(instance: dg.DagsterInstance) -> int:
    return len(instance.fetch_materializations(DROPS.raw_drop, limit=100).records)


def test_a_drop_becomes_a_partition_and_is_reported_once_until_it_is_replaced(
    instance: dg.DagsterInstance, data: Path
) -> None:
    land(data, "one")
    assert register(instance, Lake(), DROPS) == []
    assert instance.get_dynamic_partitions("macroxue_drops") == ["one"]
    assert reported(instance) == 1
    assert register(instance, Lake(), DROPS) == []
    assert reported(instance) == 1
    shutil.rmtree(data / "drops/macroxue/one")
    land(data, "one", seed=2)
    assert register(instance, Lake(), DROPS) == []
    assert reported(instance) == 2


def test_a_refused_drop_is_returned_and_no_partition(
    instance: dg.DagsterInstance, data: Path
) -> None:
    (data / "drops/macroxue/empty").mkdir()
    (found,) = register(instance, Lake(), DROPS)
    assert (found.key, found.state) == ("empty", REFUSED)
    assert instance.get_dynamic_partitions("macroxue_drops") == []
    assert reported(instance) == 0


def _good(inbox: Inbox, data: Path) -> set[str]:
    """Bring the family's sample drops into an inbox; returns their keys."""
    for each in catalogs():
        for name, write in each.samples.items():
            path = data / "drops" / name
            if name.split("/")[0] == inbox.folder:
                path.parent.mkdir(parents=True, exist_ok=True)
                write(path)
    if inbox.folder == "tokenizers":  # no sample of one is written
        put_tiny(data)
    if inbox.folder == "chat":
        write_talks(data)
    if inbox.folder == "reasoning/recipes":
        put_recipe(data)
    if inbox.folder == "annotations":  # of a model, so no sample is written
        pack = write_pack(data / "pack", [play(3, 9)])
        write_annotations(data / "drops/annotations/good", pack)
    if inbox.folder == "puzzles/recipes":  # all sample recipes are built in
        recipe = data / "drops/puzzles/recipes/good.toml"
        recipe.parent.mkdir(parents=True, exist_ok=True)
        recipe.write_text('kind = "domino"\n')
    found = present_drops(data / "drops" / inbox.folder, asked(), inbox.shape)
    return {arrival.key for arrival in found.arrivals}


def _hostile_drops(inbox: Inbox, data: Path) -> set[str]:
    """Bring drops into an inbox that would harm a careless reader; returns their names."""
    folder = data / "drops" / inbox.folder
    folder.mkdir(parents=True, exist_ok=True)
    if inbox.shape.endings:
        names = [f"lichess_elite_2021-0{number}{inbox.shape.endings[0]}" for number in range(1, 5)]
        (folder / names[0]).symlink_to("/dev/zero")
        os.mkfifo(folder / names[1])
        (folder / names[2]).symlink_to("/etc/passwd")
        (folder / names[3]).mkdir()
        return set(names)
    names = ["device", "pipe", "passwd", "deep", "toml_link", "toml_deep"]
    for name in names:
        (folder / name).mkdir()
        for file in ("a.meta.json", "a.jsonl.gz", "a.parquet", "synth_harmony_00.parquet"):
            (folder / name / file).write_bytes(b"\x00")
    (folder / "device" / "b.parquet").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe" / "manifest.json")
    (folder / "passwd" / "b.meta.json").symlink_to("/etc/passwd")
    (folder / "deep" / "/".join(["x"] * 70)).mkdir(parents=True)
    (folder / "toml_link" / "gristmill.toml").symlink_to("/dev/zero")
    (folder / "toml_deep" / "gristmill.toml").write_text("a = " + "[" * 100_000)
    (folder / "whole").symlink_to("/etc")
    return {*names, "whole"}


@pytest.mark.usefixtures("games_played_once")
@pytest.mark.parametrize("inbox", INBOXES, ids=lambda inbox: inbox.folder)
def test_hostile_drops_are_named_and_the_good_one_beside_them_arrives(
    instance: dg.DagsterInstance, data: Path, inbox: Inbox
) -> None:
    if inbox.folder == "synth_harmony":
        pytest.skip("there is no sample of a finished conversion")
    good, hostile = _good(inbox, data), _hostile_drops(inbox, data)
    assert good
    found = register(instance, Lake(), inbox)
    assert {drop.key for drop in found if drop.state == REFUSED} == hostile
    idle = {drop.key: drop.state for drop in found if drop.state != REFUSED}
    if inbox.folder in ("pools", "views", "reasoning/recipes"):
        assert idle == dict.fromkeys(good, READY)  # what the samples are made from is not built
        return
    assert idle == {}
    if inbox.dynamic:
        known = set(instance.get_dynamic_partitions(inbox.dynamic))
        assert known == good | set(inbox.built_in().get(inbox.dynamic, ()))


def test_hostile_drops_in_every_inbox_leave_the_graph_of_all_families_alone(
    instance: dg.DagsterInstance, data: Path
) -> None:
    for inbox in INBOXES:
        _hostile_drops(inbox, data)
        register(instance, Lake(), inbox)
    graph = Graph(instance, Lake())
    for asset in graph.select(()):
        graph.keys(asset, ())


def test_a_folder_that_is_no_inbox_is_named_with_the_inbox_that_was_meant(data: Path) -> None:
    for name in ("macroxeu", "qqq", "tokenizers", ".hidden", "pools"):
        (data / "drops" / name).mkdir()
    (data / "drops/notes.txt").write_text("a file")
    known = ", ".join(sorted({inbox.folder.split("/")[0] for inbox in INBOXES}))
    assert list(strangers(Lake())) == [
        "drops/macroxeu is no inbox: did you mean macroxue?",
        f"drops/qqq is no inbox: the inboxes are {known}",
    ]
    shutil.rmtree(data / "drops")
    assert list(strangers(Lake())) == []


def test_wrong_settings_of_an_inbox_are_returned_without_a_key(
    instance: dg.DagsterInstance, data: Path
) -> None:
    land(data, "one")
    (data / "gristmill.toml").write_text("[inbox]\nfollow_links = 3\n")
    (found,) = register(instance, Lake(), DROPS)
    assert (found.key, found.state) == ("", REFUSED)
    assert "links in drops are refused" in found.reason
    assert instance.get_dynamic_partitions("macroxue_drops") == ["one"]
