"""Five versions of one artifact of each family: what is kept, what differs, and old runs."""

import dataclasses
import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from assets.events import event_metadata
from gristmill.browse.web.app import application
from gristmill.browse.web.asked import Asked
from gristmill.cli import main
from gristmill.contract import GristmillError
from gristmill.history import diff, rows, versions
from gristmill.loading import past as past_module
from gristmill.loading.mix_file import read_mix, read_plan
from gristmill.mirror import transfers
from gristmill.publish.build import Published
from tests.history.rooted import CASES, VERSIONS, Case, build, raw_of, state_of


def run(root: Path, *words: str) -> Any:
    done = CliRunner().invoke(main, [*words, "--data-root", str(root)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


SLOW = ("records", "talks", "synth", "tasks")
PARAMS = [
    pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.name in SLOW else [])
    for case in CASES
]


@pytest.fixture(scope="session", params=PARAMS)
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path
) -> Any:
    """A root with five versions, and a loader's state from before each but the first."""
    case: Case = request.param
    folder = tmp_path_factory.mktemp(case.name)
    root = folder / "root"
    shutil.copytree(vocabulary_root / "drops", root / "drops")
    states = []
    for version in range(1, VERSIONS + 1):
        build(root, case, version)
        if case.mix:
            states.append(state_of(root, case, folder))
        if version == 1:
            transfers.push(root, str(folder / "mirror"))
    return case, root, states


def test_each_version_is_kept_without_text(built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    case, root, _ = built
    monkeypatch.setattr(diff, "_AT_ONCE", 3)  # several files, of several batches
    for version in versions.kept(root, case.entry)[0]:
        held = {path.name for path in version.folder.iterdir()}
        assert held <= {"provenance.json", "inputs.jsonl", rows.ROWS, "metadata.db"}
        data = (version.folder / rows.ROWS).read_bytes()
        assert b"Again" not in data and b"Hello" not in data and b"It is" not in data
    listed, wrong = versions.lines_of(root, case.entry)
    assert (len(listed), wrong) == (VERSIONS, [])
    assert [each["published"] for each in listed] == [True, *[False] * (VERSIONS - 1)]
    assert sorted(listed, key=lambda each: each["created"]) == listed[::-1]
    assert all("input changed" in each["why"][0] for each in listed[:-1]) and not listed[-1]["why"]
    expected = {"removed": 1, "added": 1, "changed": int(case.changes), "moved": 0}
    for new, old in pairwise(listed):
        pair = [old["data_version"][:16], new["data_version"][:16]]
        done = run(root, "diff", case.entry.name, *pair, "--json")
        found = json.loads(done.stdout)
        counts = {kind: found[kind] for kind in diff.KINDS}
        assert counts == expected, (case.name, found)
        assert all(len(found["examples"][kind]) == expected[kind] for kind in diff.KINDS)


def test_a_folder_is_enough_to_name_an_artifact(built: Any, tmp_path: Path) -> None:
    case, root, _ = built
    (tmp_path / "me@here").symlink_to(root)
    named = [] if case.entry.partition is None else ["--partition", case.entry.partition]
    for words in ([root / case.entry.artifact, *named], [tmp_path / "me@here" / case.entry.name]):
        done = CliRunner().invoke(main, ["log", *map(str, words)])
        assert (done.exit_code, done.stdout) == (0, run(root, "log", case.entry.name).stdout)


def test_a_page_and_an_event_say_it_too(built: Any) -> None:
    case, root, _ = built
    now, (*_, before) = versions.published(root, case.entry), versions.kept(root, case.entry)[0]
    assert now is not None
    address = Asked(case.entry.artifact, now.record.asset, now.record.partition or "")
    client = TestClient(application(root), base_url="http://127.0.0.1:3100")
    page = client.get(address.address("history")).text
    assert page.count("input changed") == VERSIONS - 1 and page.count("(published)") == 1
    assert (
        address.address("history").replace("&", "&amp;") in client.get(address.address("rows")).text
    )
    done = Published(now.folder, now.record, rebuilt=True, before=before.record)
    text = event_metadata(done)["difference"]
    assert "1 removed\n" in text and "1 added\n" in text and f"{int(case.changes)} changed" in text
    assert "difference" not in event_metadata(dataclasses.replace(done, rebuilt=False))


def test_a_run_from_before_each_version_says_which_raw_rows_it_saw(built: Any) -> None:
    case, root, states = built
    if not states:
        return  # no loader reads records
    for number, (state, mix, expected, _) in enumerate(states):
        file = mix.with_name(f"state{number}.json")
        file.write_text(json.dumps(state))
        plan, past = read_plan(state, mix, root)
        assert len(past) == (number < VERSIONS - 1)
        for sample, was in expected:
            now = raw_of(plan.sources[0].origin(sample))
            if case.name in ("logs", "tasks", "synth"):
                assert {name for name, _ in now} == {name for name, _ in was} or not now
            else:
                assert now == was, (sample, was, now)
            assert now or case.name == "synth"
        done = run(root, "batch", str(file), "--mix", str(mix), "--step", "1")
        assert done.exit_code == 0, done.output
        assert ("was replaced; its samples are gone" in done.stderr) == bool(past)
        first = expected[0][0]
        name = plan.sources[0].identity.artifact
        seen = run(root, "seen", str(file), name, str(first), "--mix", str(mix))
        assert "step 0, position 0" in seen.stdout, seen.output
        out = mix.with_name(f"{number}.npz")
        step = ["--mix", str(mix), "--step", "0", "--out", str(out)]
        replayed = run(root, "replay", str(file), *step)
        assert (replayed.exit_code == 0) == out.exists() == (not past)
        assert not past or "--version" in replayed.output
    mirror = ["--mirror", str(root.parent / "mirror"), "--step", "0", "--mix", str(mix)]
    out, state = root.parent / "pulled.npz", root.parent / "state0.json"
    done = run(root, "replay", str(state), *mirror, "--out", str(out))
    assert done.exit_code == 0, done.output
    for name, column in np.load(out).items():
        np.testing.assert_array_equal(column, states[0][3][name])


def test_an_order_of_windows_needs_its_shards(built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    case, root, states = built
    if case.name not in ("sequences", "grids", "tasks"):
        return
    state, mix, *_ = states[0]
    plan, (rows,) = read_plan(state, mix, root)
    now = read_mix(mix, root).sources[0]
    if case.name == "grids":  # a view is one shard
        assert plan.sources[0] is not rows and rows.shards == 1
        return
    assert rows.shards == len(now.cuts) - 1
    rows.shards += 1
    monkeypatch.setattr(past_module, "source_of", lambda *_: (rows, rows))
    with pytest.raises(GristmillError, match=f"where its {rows.shards} shards begin"):
        read_plan(state, mix, root)


def test_a_damaged_or_removed_history_is_said_in_words(built: Any, tmp_path: Path) -> None:
    case, whole, states = built
    root = tmp_path / "root"
    shutil.copytree(whole, root, symlinks=True)
    older, _ = versions.kept(root, case.entry)
    (older[0].folder / "provenance.json").write_text("{")
    (older[1].folder / rows.ROWS).write_bytes(b"PAR1")
    data = (flipped := older[2].folder / rows.ROWS).read_bytes()
    flipped.write_bytes(data[:4] + bytes(len(data) // 4) + data[4 + len(data) // 4 :])
    done = run(root, "log", case.entry.name)
    assert done.exit_code == 0 and "damaged" in done.stderr and len(older) == 4
    assert done.stdout.count("published") == 1
    for name in (each.record.data_version for each in older[:3]):
        done = run(root, "diff", case.entry.name, name)
        assert done.exit_code == 1 and "damaged" in done.output, done.output
    shutil.rmtree(root / ".gristmill/history")
    done = run(root, "diff", case.entry.name)
    assert done.exit_code == 1 and "no older version is kept" in done.output
    if states:
        state, mix, *_ = states[0]
        (file := tmp_path / "state.json").write_text(json.dumps(state))
        done = run(root, "batch", str(file), "--mix", str(mix), "--step", "0")
        assert done.exit_code == 1 and "kept" in done.output, done.output


def test_hashes_of_two_roots_differ_and_a_key_is_asked_for(built: Any, tmp_path: Path) -> None:
    case, root, _ = built
    (version, *_), _ = versions.kept(root, case.entry)
    keys = [rows.key_of(root), rows.key_of(tmp_path)]
    with pytest.raises(GristmillError, match="another key"):
        rows.scan(version.folder / rows.ROWS, keys[1])
    found = []
    for number, key in enumerate(keys):
        rows.write(path := tmp_path / str(number), [rows.Kept("", "", b"text", "", -1, -1, 0)], key)
        found.append(rows.scan(path, key).collect()["hash"][0])
    assert len({*keys}) == len({*found}) == 2 and rows.key_of(root) == keys[0]
    # A root whose history is older than the key of all hashes keeps its own.
    (older := tmp_path / ".gristmill/history/key").parent.mkdir()
    older.write_bytes(keys[0])
    assert rows.key_of(tmp_path) == keys[0] != (tmp_path / ".gristmill/key").read_bytes()
