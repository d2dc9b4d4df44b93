"""The commands `push` and `pull`: what they print, and their exit status."""

import pytest
from click.testing import CliRunner, Result

from gristmill.cli import main
from gristmill.mirror import store
from tests.mirror.roots import built, files


def _run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_a_push_and_a_pull_say_what_they_did(tmp_path):
    a, b, mirror = tmp_path / "a", tmp_path / "b", tmp_path / "m"
    built(a)
    first = _run("push", mirror, "--data-root", a)
    assert first.exit_code == 0, first.output
    assert "pushed     family/tiny: data version " in first.output and ", 5 files, " in first.output
    assert "unchanged  family/tiny: data version " in _run("push", mirror, "--data-root", a).output
    listed = _run("pull", mirror, "--list", "--data-root", b).output
    version = listed.partition("data version ")[2][:12]
    assert "family/tiny: pushed 20" in listed and not b.exists()
    done = _run("pull", mirror, "family/tiny", "--version", 1, "--data-root", b)
    assert done.exit_code == 1 and f"data version, {version} for the newest one" in done.output
    second = _run("pull", mirror, "family/tiny", "--version", version, "--data-root", b)
    assert second.exit_code == 0, second.output
    assert "pulled     family/tiny: data version " in second.output
    assert files(a) == files(b)
    assert _run("verify", "--no-inputs", b).exit_code == 0


def test_a_pull_is_pinned_by_the_sha256_that_the_push_prints(tmp_path):
    a, b, mirror = tmp_path / "a", tmp_path / "b", tmp_path / "m"
    built(a)
    sha256 = _run("push", mirror, "--data-root", a).output.partition("sha256 ")[2][:64]
    words = ("pull", mirror, "family/tiny", "--data-root", b, "--sha256")
    assert sha256 in _run("pull", mirror, "--list").output
    done = _run(*words, "0" * 64)
    assert (
        done.exit_code == 1
        and f"no version of family/tiny has the sha256 {'0' * 64}" in done.output
    )
    done = _run(*words, sha256.upper())
    assert done.exit_code == 2 and "is no sha256, which has 64 digits of 0-9 and a-f" in done.output
    assert files(b) == {}
    assert _run(*words, sha256).exit_code == 0 and files(a) == files(b)


def test_what_fails_is_named_and_the_others_go_on(tmp_path):
    a, b, mirror = tmp_path / "a", tmp_path / "b", tmp_path / "m"
    built(a, "family/x", seed=1)
    built(a, "family/y", seed=2)
    (a / "family/x/train/steps.npy").write_bytes(b"")
    done = _run("push", mirror, "--data-root", a)
    assert done.exit_code == 1
    assert "failed     family/x: " in done.output and "pushed     family/y: " in done.output
    built(b, "family/y", seed=3)
    done = _run("pull", mirror, "--data-root", b)
    assert done.exit_code == 1 and "add --replace" in done.output
    assert _run("pull", mirror, "--data-root", b, "--replace").exit_code == 0


def test_wrong_urls_end_in_one_line_and_without_the_extra_it_is_named(tmp_path, monkeypatch):
    for url in ("nonsense://x/y", "s3://", f"file://{tmp_path}/file/below"):
        (tmp_path / "file").touch()
        done = _run("pull", url, "--data-root", tmp_path / "b")
        assert done.exit_code == 1 and "Error: " in done.output and "Traceback" not in done.output
    assert _run("push", tmp_path / "m", "--data-root", tmp_path / "none").exit_code in (0, 1)
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)
    with pytest.raises(store.MirrorError, match=r"pip install 'gristmill\[mirror\]'"):
        store.Store("/tmp/somewhere")
