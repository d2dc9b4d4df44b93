"""`gristmill doctor`: what is said of a file system, of libraries and of the instance."""

import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.publish import doctor, storage
from gristmill.publish.doctor import Finding, Verdict
from gristmill.publish.storage import Abilities, Mount, State
from tests.paths import ran
from tests.read_only import read_only

ALL = Abilities(*[None] * len(fields(Abilities)))
ROOMY = State(free_bytes=1 << 40, free_inodes=1 << 20, longest_name=255, ahead_seconds=0.01)


@pytest.fixture(autouse=True)
def a_good_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "of_instance", lambda: Finding("instance", "good", ""))
    monkeypatch.setattr(storage, "abilities", lambda _: ALL)
    monkeypatch.setattr(storage, "state", lambda _: ROOMY)


def verdicts(root: Path) -> dict[str, Verdict]:
    return {finding.name: finding.verdict for finding in doctor.of_file_system(root)}


@pytest.mark.parametrize("field", [field.name for field in fields(Abilities)])
def test_the_status_is_1_where_publishing_lacks_what_it_needs(tmp_path, monkeypatch, field):
    assert CliRunner().invoke(main, ["doctor", str(tmp_path)]).exit_code == 0
    monkeypatch.setattr(storage, "abilities", lambda _: replace(ALL, **{field: "refused"}))
    done = CliRunner().invoke(main, ["doctor", str(tmp_path)])
    needed = field not in ("place", "exchange", "links", "case")
    assert done.exit_code == int(needed)
    wrong = [line for line in done.output.splitlines() if "no: refused" in line]
    assert len(wrong) == 1
    assert wrong[0].startswith("MISSING" if needed else "note")


@pytest.mark.parametrize(
    ("form", "lacking", "says", "verdict"),
    [
        ("auto", "", "exchange", Verdict.OK),
        ("auto", "exchange", "link", Verdict.OK),
        ("exchange", "exchange", "exchange", Verdict.MISSING),
        ("link", "", "link", Verdict.OK),
        ("link", "links", "link", Verdict.MISSING),
        ("other", "", "GRISTMILL_PUBLISH_FORM is 'other'", Verdict.MISSING),
    ],
)
def test_the_form_of_publishing_is_said(tmp_path, monkeypatch, form, lacking, says, verdict):
    monkeypatch.setenv(storage.VARIABLE, form)
    given = replace(ALL, **{lacking: "refused"}) if lacking else ALL
    monkeypatch.setattr(storage, "abilities", lambda _: given)
    found = [item for item in doctor.of_file_system(tmp_path) if item.name == "form of publishing"]
    assert [item.verdict for item in found] == [verdict]
    assert found[0].found.startswith(says)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("free room", replace(ROOMY, free_bytes=1 << 20)),
        ("free inodes", replace(ROOMY, free_inodes=12)),
        ("clock of the file system", replace(ROOMY, ahead_seconds=100.0)),
        ("clock of the file system", replace(ROOMY, ahead_seconds=-100.0)),
        ("longest name", replace(ROOMY, longest_name=143)),
        (None, replace(ROOMY, free_inodes=None)),
    ],
)
def test_what_is_short_or_wrong_is_noted(tmp_path, monkeypatch, name, state):
    assert set(verdicts(tmp_path).values()) == {Verdict.OK}
    monkeypatch.setattr(storage, "state", lambda _: state)
    noted = [name for name, verdict in verdicts(tmp_path).items() if verdict is not Verdict.OK]
    assert noted == ([name] if name else [])


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("nfs4", {"local_lock=none"}, Verdict.OK),
        ("nfs", {"nolock"}, Verdict.NOTE),
        ("nfs", {"local_lock=flock"}, Verdict.NOTE),
        ("nfs", {"local_lock=all"}, Verdict.NOTE),
        ("lustre", {"flock"}, Verdict.OK),
        ("lustre", {"localflock"}, Verdict.NOTE),
        ("lustre", set(), Verdict.NOTE),
        ("cifs", set(), Verdict.OK),
        ("smb3", {"nobrl"}, Verdict.NOTE),
        ("beegfs", set(), Verdict.NOTE),
        ("fuse.sshfs", set(), Verdict.NOTE),
        ("gpfs", set(), Verdict.NOTE),
        ("ext4", set(), None),
    ],
)
def test_locks_of_a_network_may_be_of_one_host(tmp_path, monkeypatch, kind, options, expected):
    mount = Mount(kind, "/", frozenset(options))
    monkeypatch.setattr(storage, "mount", lambda _: mount)
    assert verdicts(tmp_path).get("locks between hosts") is expected


def test_a_root_that_cannot_be_written_and_a_library_that_is_not_pinned_are_named(tmp_path):
    code = "import sys; from gristmill.publish import doctor; from pathlib import Path\n"
    code += "for one in doctor.of_file_system(Path(sys.argv[1])): print(one)"
    words = read_only([tmp_path], [sys.executable, "-c", code, tmp_path])
    done = ran(words, check=True)
    assert done.stdout.splitlines()[-1].startswith("MISSING writing: Read-only file system")
    pins = tmp_path / "constraints.txt"
    click = doctor.metadata.version("click")
    pins.write_text(f"# comment\nclick=={click}+local\nnumpy==0.0.1\nno-such-library==1\n")
    python, numpy, libraries = doctor.of_software(pins)
    assert python.name == "Python"
    assert (numpy.name, numpy.verdict) == ("numpy", Verdict.NOTE)
    assert numpy.found.endswith("pinned 0.0.1")
    assert libraries.found == "1 as pinned"
    assert list(doctor.of_software(tmp_path / "none"))[-1].verdict is Verdict.NOTE


def _installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let distributions and modules with these names be there, at version 1, and no others."""

    def version(name: str) -> str:
        if name in names:
            return "1"
        raise doctor.metadata.PackageNotFoundError

    monkeypatch.setattr(doctor.metadata, "version", version)
    monkeypatch.setattr(doctor.util, "find_spec", lambda name: True if name in names else None)


def test_engines_are_those_that_are_installed(tmp_path, monkeypatch):
    _installed(monkeypatch, "ray")
    found = doctor.of_engines(tmp_path)
    assert found.found == "processes of this machine, ray 1"
    assert found.use == "parts are made by processes of this machine"
    assert found.verdict is Verdict.OK


@pytest.mark.parametrize(
    ("text", "installed", "use", "verdict"),
    [
        (
            '[run]\nengine = "ray"\nray_address = "10.0.0.1:6379"\n',
            ["ray"],
            "parts are tasks of the Ray cluster, ray_address 10.0.0.1:6379",
            Verdict.OK,
        ),
        (
            '[run]\nengine = "ray"\n[mirror]\npush = "s3://bucket/x"\n',
            [],
            "parts are tasks of the Ray cluster, ray_address auto; what is published is pushed to "
            "s3://bucket/x; not installed: extra `ray` and `mirror`",
            Verdict.NOTE,
        ),
        (
            '[run]\nprove = "hash"\n[mirror]\npush = "hf://datasets/a/b"\n[other]\n',
            [],
            "parts are made by processes of this machine; every input is hashed before it is read; "
            "what is published is pushed to hf://datasets/a/b",
            Verdict.OK,
        ),
    ],
)
def test_the_settings_say_which_engine_runs(tmp_path, monkeypatch, text, installed, use, verdict):
    _installed(monkeypatch, *installed, "obstore" if installed else "")
    (tmp_path / "gristmill.toml").write_text(text)
    found = doctor.of_engines(tmp_path)
    assert (found.use, found.verdict) == (use, verdict)


@pytest.mark.parametrize("text", ["[run", '[run]\nengine = "slurm"\n', "run = 1\n"])
def test_settings_that_are_refused_are_noted(tmp_path, text):
    (tmp_path / "gristmill.toml").write_text(text)
    found = doctor.of_engines(tmp_path)
    assert found.verdict is Verdict.NOTE
    assert found.use.startswith(f"nothing is built: {tmp_path}/gristmill.toml")
