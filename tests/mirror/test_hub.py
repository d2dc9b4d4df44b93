"""Publishing in a dataset repository, against a hub on this machine."""

import getpass
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

from gristmill import provenance
from gristmill.cli import main
from gristmill.contract import BadInput
from gristmill.exports.table import Split, required
from gristmill.hashing import sha256_file
from gristmill.inbox.hub import HubError
from gristmill.mirror import MirrorError, pull, push
from gristmill.mirror.hub import neutral, readme
from gristmill.provenance.find_artifacts import artifacts
from gristmill.reading.folder import OpenFolder
from tests.hub_server import TOKEN, Hub, Repository, Stored, running
from tests.mirror.roots import built, in_repository
from tests.paths import CHECKOUT

# The library's own call of its HTTP client.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")
URL = "hf://datasets/me/corpus"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that the library asks."""
    with running() as server:
        template = server.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.address)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr("gristmill.mirror.hub._SMALL", 500)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


def repository(hub: Hub) -> Repository:
    return hub.repositories["me/corpus"]


def test_a_repository_becomes_a_copy_of_the_data_root(hub, tmp_path):
    root = tmp_path / "root"
    built(root, "family/a", seed=1)
    built(root, "family/b", seed=2)
    done = push(root, URL)
    assert [each.error for each in done] == [None, None] and all(each.created for each in done)
    assert repository(hub).private
    assert repository(hub).files == in_repository(root)
    assert repository(hub).titles == ["Publish family/a, family/b"]
    assert hub.uploads
    assert sum(each.sent_bytes for each in done) == sum(map(len, in_repository(root).values()))
    copy = tmp_path / "copy"
    for path, data in repository(hub).files.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(data)
    assert provenance.verify(copy, check_inputs=False, check_laws=False) == []


def test_what_the_repository_has_is_not_sent_again(hub, tmp_path):
    built(tmp_path)
    push(tmp_path, URL)
    sent = len(hub.uploads)
    (again,) = push(tmp_path, URL)
    assert (again.created, again.sent_bytes, again.error) == (False, 0, None)
    assert str(again).startswith("unchanged  family/tiny: commit ")
    assert len(repository(hub).titles) == 1 and len(hub.uploads) == sent


def test_a_rebuild_is_one_commit_that_removes_what_is_gone(hub, tmp_path):
    built(tmp_path, seed=1)
    push(tmp_path, URL)
    foreign = dict(repository(hub).commits[-1][2], **{"README.md": Stored(b"mine", False)})
    gone = foreign.pop("family/tiny/train/steps.npy")
    foreign["family/tiny/old.bin"] = gone
    # The record of the version before lists a file that the new one does not have.
    name = "family/tiny/provenance.json"
    record = provenance.Record.model_validate_json(foreign[name].data)
    outputs = [*record.outputs, record.outputs[0].model_copy(update={"path": "old.bin"})]
    changed = record.model_copy(update={"outputs": outputs})
    foreign[name] = Stored(changed.model_dump_json().encode(), False)
    repository(hub).add("by hand", foreign)
    built(tmp_path, seed=2)
    (done,) = push(tmp_path, URL)
    assert done.error is None and done.created
    assert repository(hub).files == {**in_repository(tmp_path), "README.md": b"mine"}
    assert repository(hub).titles == ["Publish family/tiny", "by hand", "Publish family/tiny"]


def test_what_was_nested_in_the_version_before_goes_with_it(hub, tmp_path):
    built(tmp_path, "family/outer", seed=1)
    built(tmp_path, "family/outer/in/inner", seed=2, outer="family/outer")
    built(tmp_path, "family/outer_too", seed=3)
    push(tmp_path, URL)
    name = "family/outer/in/inner/mine.txt"
    repository(hub).add("by hand", {**repository(hub).commits[-1][2], name: Stored(b"mine", False)})
    built(tmp_path, "family/outer", seed=4)
    push(tmp_path, URL, ["family/outer"])
    assert repository(hub).files == {**in_repository(tmp_path), name: b"mine"}
    # A nested artifact that is built again comes with the same push, or with the next one.
    built(tmp_path, "family/outer/in/inner", seed=5, outer="family/outer")
    push(tmp_path, URL)
    built(tmp_path, "family/outer", seed=6)
    built(tmp_path, "family/outer/in/inner", seed=7, outer="family/outer")
    assert not any(each.error for each in push(tmp_path, URL))
    assert repository(hub).files == {**in_repository(tmp_path), name: b"mine"}
    assert repository(hub).titles[-1] == "Publish family/outer, family/outer/in/inner"


def test_what_is_nested_and_was_not_pushed_again_goes(hub, tmp_path):
    built(tmp_path, "family/outer", seed=1)
    built(tmp_path, "family/outer/in/inner", seed=2, outer="family/outer")
    push(tmp_path, URL)
    built(tmp_path, "family/outer", seed=3)
    built(tmp_path, "family/outer/in/inner", seed=4, outer="family/outer")
    (tmp_path / "family/outer/in/inner/trace.jsonl").write_bytes(b"")
    outer, inner = push(tmp_path, URL)
    assert outer.created and inner.error is not None
    assert not any("/in/" in path for path in repository(hub).files)
    # An outer artifact that is made again with the same data keeps what is nested in it.
    built(tmp_path, "family/outer/in/inner", seed=4, outer="family/outer")
    push(tmp_path, URL)
    (tmp_path / "family/outer/trace.jsonl").unlink()
    built(tmp_path, "family/outer", seed=3)
    push(tmp_path, URL, artifacts=[next(artifacts(tmp_path / "family/outer"))])
    assert repository(hub).files == in_repository(tmp_path)


def test_commits_of_others_meanwhile_are_kept_and_too_many_end_the_push(hub, tmp_path):
    built(tmp_path)
    left = [9]

    def other(there: Repository) -> None:
        if left[0]:
            left[0] -= 1
            added = {"README.md": Stored(b"%d" % left[0], False)}
            there.add("of another", {**there.commits[-1][2], **added})

    hub.before_commit = other
    with pytest.raises(HubError, match="others commit all the time: push again"):
        push(tmp_path, URL)
    (done,) = push(tmp_path, URL)
    assert done.created and done.error is None
    assert repository(hub).files == {**in_repository(tmp_path), "README.md": b"0"}
    assert len(hub.uploads) == len(set(hub.objects))


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_a_push_that_is_cut_off_is_ended_by_the_next_one_alone(hub, tmp_path, moment):
    built(tmp_path)

    def cut(_: Repository) -> None:
        raise ConnectionError

    setattr(hub, moment, cut)
    with pytest.raises(HubError, match=URL):
        push(tmp_path, URL)
    is_committed, sent = moment == "after_commit", len(hub.uploads)
    assert repository(hub).files == (in_repository(tmp_path) if is_committed else {})
    setattr(hub, moment, lambda _: None)
    (done,) = push(tmp_path, URL)
    assert done.created is not is_committed and len(hub.uploads) == sent
    assert repository(hub).files == in_repository(tmp_path)


@pytest.mark.parametrize("name", ["metadata.db", "train/steps.npy", "trace.jsonl"])
def test_a_wrong_byte_is_never_published_and_stops_no_other(hub, tmp_path, name):
    built(tmp_path, "family/x", seed=1)
    built(tmp_path, "family/y", seed=2)
    file = tmp_path / "family/x" / name
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    bad, good = push(tmp_path, URL)
    assert bad.error is not None and str(file) in bad.error and not bad.created
    assert str(bad).startswith("failed     family/x: ")
    assert good.created
    assert {path.split("/")[1] for path in repository(hub).files} == {"y"}


def test_a_wrong_byte_that_the_repository_has_too_is_named(hub, tmp_path):
    built(tmp_path)
    push(tmp_path, URL)
    file = tmp_path / "family/tiny/trace.jsonl"
    wrong = file.read_bytes()[:-1] + b" "
    file.write_bytes(wrong)
    there = {**repository(hub).commits[-1][2], "family/tiny/trace.jsonl": Stored(wrong, False)}
    repository(hub).add("by hand", there)
    (done,) = push(tmp_path, URL)
    assert done.error is not None and str(file) in done.error


def test_a_file_that_the_repository_ignores_is_an_error(hub, tmp_path):
    built(tmp_path)
    hub.ignored = {"family/tiny/trace.jsonl"}
    (done,) = push(tmp_path, URL)
    assert done.error == "the repository ignores family/tiny/trace.jsonl"
    assert not repository(hub).titles


def test_files_that_the_hub_lost_are_sent_again(hub, tmp_path):
    built(tmp_path)
    push(tmp_path, URL)
    left = dict(repository(hub).commits[-1][2])
    del left["family/tiny/trace.jsonl"]
    repository(hub).add("by hand", left)
    (done,) = push(tmp_path, URL)
    assert done.created and repository(hub).files == in_repository(tmp_path)


def test_partitions_of_a_shared_folder_stand_side_by_side(hub, tmp_path):
    for key, seed in (("00", 1), ("01", 2)):
        built(tmp_path, "family/shared", seed=seed, partition=key, shared=True)
    done = push(tmp_path, URL, ["family/shared@00"])
    assert [each.title for each in done] == ["family/shared [00]"]
    push(tmp_path, URL)
    assert repository(hub).files == in_repository(tmp_path)
    built(tmp_path, "family/shared", seed=3, partition="00", shared=True)
    push(tmp_path, URL, ["family/shared@00"])
    assert repository(hub).files == in_repository(tmp_path)


def numbers(*batches: int) -> Callable[[str, Path], list[Split]]:
    """The rows of any artifact: so many in each batch."""
    schema = required({"a": pa.int64()})
    rows = [pa.RecordBatch.from_pydict({"a": range(each)}, schema) for each in batches]
    return lambda *_: [Split("train", lambda: schema, lambda: iter(rows))]


def test_rows_in_arrays_are_pushed_as_parquet_where_it_is_asked_for(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.exports.project._FILE_BYTES", 1)
    monkeypatch.setattr("gristmill.mirror.hub.splits_of", numbers(3, 2))
    built(tmp_path, seed=1)
    (done,) = push(tmp_path, URL)
    assert str(done).endswith("load_dataset does not open it: push it with --parquet")
    assert "README.md" not in repository(hub).files
    (done,) = push(tmp_path, URL, parquet=True)
    assert done.created
    files = [f"parquet/family/tiny/train-{number:05d}-of-00002.parquet" for number in range(2)]
    head = yaml.safe_load(repository(hub).files["README.md"].split(b"---\n")[1])
    (config,) = head["configs"]
    assert config["config_name"] == "family.tiny"
    assert config["data_files"] == [{"split": "train", "path": files}]
    tables = [pq.read_table(pa.BufferReader(repository(hub).files[path])) for path in files]
    assert [table["a"].to_pylist() for table in tables] == [[0, 1, 2], [0, 1]]
    # What was pushed so is not sent again, and after a rebuild comes again, without being asked.
    assert not push(tmp_path, URL)[0].created and not push(tmp_path, URL, parquet=True)[0].created
    monkeypatch.setattr("gristmill.mirror.hub.splits_of", numbers(4))
    built(tmp_path, seed=2)
    push(tmp_path, URL)
    name = "parquet/family/tiny/train-00000-of-00001.parquet"
    found = repository(hub).files
    assert found.keys() == in_repository(tmp_path).keys() | {"README.md", name}
    assert name in found["README.md"].decode() and "00002" not in found["README.md"].decode()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda root: push(root, str(root / "mirror"), parquet=True), "--parquet is for dataset"),
        (lambda root: push(root, "hf://me/corpus"), r"hf://datasets/OWNER/NAME\[@BRANCH\]"),
        (lambda root: push(root, "hf://datasets/corpus"), "OWNER"),
        (lambda root: push(root, "hf://datasets/me/corpus/x"), "OWNER"),
        (lambda root: push(root, "hf://models/a/b"), "OWNER"),
        (lambda root: push(root, URL), "HF_TOKEN"),
        (lambda root: pull(root, URL), "hf download --repo-type dataset me/corpus"),
    ],
)
def test_what_no_repository_takes_is_refused_in_words(hub, tmp_path, monkeypatch, act, words):
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(MirrorError, match=words):
        act(tmp_path)


def test_many_artifacts_are_several_commits(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.mirror.hub._FILES", 10)
    for number in range(3):
        built(tmp_path, f"family/{number}", seed=number)
    done = push(tmp_path, URL)
    assert [each.created for each in done] == [True] * 3
    assert repository(hub).titles == ["Publish family/0, family/1", "Publish family/2"]
    assert repository(hub).files == in_repository(tmp_path)


def test_the_command_says_what_it_did_or_that_the_hub_does_not_answer(hub, tmp_path, monkeypatch):
    built(tmp_path)
    words = ["push", URL, "--data-root", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    commit = repository(hub).commits[-1][0]
    assert f"pushed     family/tiny: commit {commit[:12]}, 5 files, " in done.output
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1 and "Traceback" not in done.output
    assert "Error: hf://datasets/me/corpus: " in done.output


def placed(root: Path, text: str, is_recorded: bool = True) -> dict[str, bytes]:
    """What is pushed of an artifact whose `place.json` has this text, which its record may say."""
    built(root)
    folder, name = root / "family/tiny", provenance.RECORD
    (folder / "place.json").write_text(text)
    record = provenance.read_record(folder / name)
    outputs = [
        each.model_copy(update={"sha256": sha256_file(folder / each.path)})
        for each in record.outputs
    ]
    if is_recorded:
        record = record.model_copy(update={"outputs": outputs})
    opened = OpenFolder(folder, "none", name)
    try:
        return neutral(opened, name, record)[1]
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/data/family/tiny", "/family/tiny"),
        ("/data/family/tiny/a b.jsonl", "/family/tiny/a b.jsonl"),
        ("/family/tiny/family/tiny/x", "/family/tiny/x"),
        (r"/d\"/family/tiny/\u00e9", r"/family/tiny/\u00e9"),
    ],
)
def test_a_place_in_a_data_root_is_written_from_the_root(before, after, tmp_path):
    said = placed(tmp_path, f'{{"a": ["x", "{before}"], "b": "/"}}')
    assert said["place.json"].decode() == f'{{"a": ["x", "{after}"], "b": "/"}}'
    record = provenance.Record.model_validate_json(said[provenance.RECORD])
    assert record.digest == record.computed_digest()
    (listed,) = (each for each in record.outputs if each.path == "place.json")
    assert listed.bytes == len(said["place.json"])
    with pytest.raises(BadInput, match="not the file that its provenance record lists"):
        placed(tmp_path, '{"place": "/elsewhere/family/tiny"}', is_recorded=False)
    for text in ('{"a": "/family/tiny/x", "b": "family/tiny"}', '["/d/family/tiny2", "x/family"]'):
        assert placed(tmp_path, text) == {}  # it has no such place


@pytest.mark.slow
def test_what_is_pushed_names_nothing_of_this_machine_and_verifies(hub, sample_root, tmp_path):
    assert not any(each.error for each in push(sample_root.data, URL))
    places = {str(sample_root.data), str(sample_root.home.parent), f"/{getpass.getuser()}/"}
    host = re.compile(rb"\b" + re.escape(socket.gethostname().encode()) + rb"\b")
    copy = tmp_path / "copy"
    for path, data in repository(hub).files.items():
        assert [place for place in places if place.encode() in data] == [], path
        assert not (path.endswith((".json", ".md")) and host.search(data)), path
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(data)
    assert list(provenance.verify(copy, check_inputs=False)) == []
    assert not any(each.created for each in push(sample_root.data, URL))


def rows(name: str, path: str, **said: object) -> dict[str, Any]:
    """What is said of one artifact with one file of rows."""
    files = [{"split": "train", "path": [f"{name}/{path}"]}]
    infos = {"dataset_info": [{"config_name": name, "features": [{"name": "a", "dtype": "int64"}]}]}
    configs = [{"config_name": name, "data_files": files}]
    return {"configs": configs, **(infos if path.endswith("jsonl") else {}), **said}


def head(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return found


def test_a_new_one_has_a_config_for_each_artifact_and_what_all_share():
    found = {
        "a": rows("a", "x.jsonl", license="cc0-1.0", size_categories=["1K<n<10K"], language=["en"]),
        "b": rows("b", "x.jsonl", license="cc0-1.0", size_categories=["n<1K"], language=["de"]),
    }
    text, notes = readme("", found, (), "corpus")
    assert notes == {} and "# corpus\n" in text
    said = head(text)
    assert [each["config_name"] for each in said["configs"]] == ["a", "b"]
    assert len(said["dataset_info"]) == 2
    assert (said["license"], said["language"]) == ("cc0-1.0", ["de", "en"])
    assert said["size_categories"] == ["1K<n<10K"]
    again, _ = readme(text, found, (), "corpus")
    assert again == text


@pytest.mark.parametrize(
    "files", ["mine.jsonl", ["mine.jsonl"], [{"split": "train", "path": "mine.jsonl"}]]
)
def test_what_a_person_wrote_is_kept(files):
    own = yaml.safe_dump({"configs": [{"config_name": "mine", "data_files": files}]})
    before = f"---\nlicense: mit  # ours\n{own}pretty_name: Ours\n---\n# Ours\n\n---\ntext\n"
    text, notes = readme(before, {"a": rows("a", "x.jsonl", license="mit")}, {"other"}, "corpus")
    assert notes == {}
    assert text.startswith("---\nlicense: mit  # ours\npretty_name: Ours\n")
    assert text.endswith("---\n# Ours\n\n---\ntext\n")
    assert [each["config_name"] for each in head(text)["configs"]] == ["mine", "a"]
    assert head(text)["configs"][0]["data_files"] == files


def test_heads_that_are_no_yaml_are_refused_and_rows_of_other_formats_said():
    for before in ("", "# Mine\n", "---\nlicense: mit\n---\n"):
        assert readme(before, {}, {"gone"}, "corpus") == (before, {})
    with pytest.raises(BadInput, match="mend it"):
        readme("---\na: [\n---\n", {}, (), "corpus")
    found = {"a": rows("a", "x.jsonl", license="cc0-1.0"), "b": rows("b", "x.jsonl")}
    assert "license" not in head(readme("", found, (), "corpus")[0])
    text, _ = readme("", {"a": found["a"]}, (), "corpus")
    _, notes = readme(text, {"b": found["b"]}, (), "corpus")
    assert notes == {"b": "its licence is not known, and README.md says cc0-1.0"}
    text, _ = readme("", {"a@0": rows("a", "0.jsonl")}, (), "corpus")
    text, _ = readme(text, {"a@1": rows("a", "1.jsonl")}, (), "corpus")
    (config,) = head(text)["configs"]
    assert config["data_files"] == [{"split": "train", "path": ["a/0.jsonl", "a/1.jsonl"]}]
    text, _ = readme(text, {}, {"a/0.jsonl"}, "corpus")
    (config,) = head(text)["configs"]
    assert config["data_files"] == [{"split": "train", "path": ["a/1.jsonl"]}]
    assert "configs" not in (said := head(readme(text, {}, {"a/1.jsonl"}, "corpus")[0]))
    assert "dataset_info" not in said
    found = {"a": rows("a", "x.jsonl"), "b": rows("b", "x.parquet")}
    text, notes = readme("", found, (), "corpus")
    assert [each["config_name"] for each in head(text)["configs"]] == ["a"]
    assert notes == {"b": "load_dataset does not open it: its rows are .parquet, others .jsonl"}


def _killed(hub: Hub, root: Path, moment: str, number: int) -> None:
    """Push in a process that is killed when the hub is at a moment for the n-th time."""
    seen = [0]

    def kill(*_: object) -> None:
        seen[0] += 1
        if seen[0] == number:
            child.kill()
            child.wait()
            raise ConnectionError  # the hub answers nobody

    idle = getattr(hub, moment)
    setattr(hub, moment, kill)
    environment = {"HF_ENDPOINT": hub.address, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.mirror.hub_once", str(root), URL],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    _, said = child.communicate(timeout=120)
    setattr(hub, moment, idle)
    assert child.returncode == -signal.SIGKILL, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("before_upload", 1),
        ("after_upload", 1),
        ("before_upload", 3),
        ("after_upload", 3),
        ("before_commit", 1),
        ("after_commit", 1),
    ],
)
def test_a_push_that_is_killed(hub, tmp_path, moment, number):
    built(tmp_path, "family/a", seed=1)
    push(tmp_path, URL)
    before, sent = repository(hub).files, len(hub.uploads)
    built(tmp_path, "family/a", seed=2)
    built(tmp_path, "family/b", seed=3)
    _killed(hub, tmp_path, moment, number)
    is_committed = moment == "after_commit"
    assert repository(hub).files == (in_repository(tmp_path) if is_committed else before)
    assert len(repository(hub).titles) == 1 + is_committed
    if moment.endswith("upload"):
        assert len(hub.uploads) == sent + number - moment.startswith("before")
    done = push(tmp_path, URL)
    assert [each.error for each in done] == [None, None]
    assert [each.created for each in done] == [not is_committed] * 2
    assert repository(hub).files == in_repository(tmp_path)
    assert len(repository(hub).titles) == 2
    # Nothing that the hub had received was sent again.
    assert len(hub.uploads) == len(hub.objects)
