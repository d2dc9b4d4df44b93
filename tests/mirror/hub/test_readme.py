"""The README.md of a repository: configs of many artifacts, and what a person wrote."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gristmill.contract import BadInput
from gristmill.mirror.hub import readme


def rows(name: str, path: str, **said: object) -> dict[str, Any]:
    """What is said of one artifact with one file of rows."""
    files = [{"split": "train", "path": [f"{name}/{path}"]}]
    infos = {"dataset_info": [{"config_name": name, "features": [{"name": "a", "dtype": "int64"}]}]}
    configs = [{"config_name": name, "data_files": files}]
    return {"configs": configs, **(infos if path.endswith("jsonl") else {}), **said}


def head(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return found


def test_a_new_one_has_a_config_for_each_artifact_and_what_all_share() -> None:
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


def test_a_licence_that_not_all_rows_have_is_not_stated() -> None:
    found = {"a": rows("a", "x.jsonl", license="cc0-1.0"), "b": rows("b", "x.jsonl")}
    assert "license" not in head(readme("", found, (), "corpus")[0])
    text, _ = readme("", {"a": found["a"]}, (), "corpus")
    _, notes = readme(text, {"b": found["b"]}, (), "corpus")
    assert notes == {"b": "its licence is not known, and README.md says cc0-1.0"}


def test_partitions_of_one_artifact_are_files_of_one_config() -> None:
    text, _ = readme("", {"a@0": rows("a", "0.jsonl")}, (), "corpus")
    text, _ = readme(text, {"a@1": rows("a", "1.jsonl")}, (), "corpus")
    (config,) = head(text)["configs"]
    assert config["data_files"] == [{"split": "train", "path": ["a/0.jsonl", "a/1.jsonl"]}]
    text, _ = readme(text, {}, {"a/0.jsonl"}, "corpus")
    (config,) = head(text)["configs"]
    assert config["data_files"] == [{"split": "train", "path": ["a/1.jsonl"]}]
    assert "configs" not in (said := head(readme(text, {}, {"a/1.jsonl"}, "corpus")[0]))
    assert "dataset_info" not in said


def test_rows_of_another_format_are_left_out_and_said() -> None:
    found = {"a": rows("a", "x.jsonl"), "b": rows("b", "x.parquet")}
    text, notes = readme("", found, (), "corpus")
    assert [each["config_name"] for each in head(text)["configs"]] == ["a"]
    assert notes == {"b": "load_dataset does not open it: its rows are .parquet, others .jsonl"}


@pytest.mark.parametrize(
    "files", ["mine.jsonl", ["mine.jsonl"], [{"split": "train", "path": "mine.jsonl"}]]
)
def test_what_a_person_wrote_is_kept(files: object) -> None:
    own = yaml.safe_dump({"configs": [{"config_name": "mine", "data_files": files}]})
    before = f"---\nlicense: mit  # ours\n{own}pretty_name: Ours\n---\n# Ours\n\n---\ntext\n"
    text, notes = readme(before, {"a": rows("a", "x.jsonl", license="mit")}, {"other"}, "corpus")
    assert notes == {}
    assert text.startswith("---\nlicense: mit  # ours\npretty_name: Ours\n")
    assert text.endswith("---\n# Ours\n\n---\ntext\n")
    assert [each["config_name"] for each in head(text)["configs"]] == ["mine", "a"]
    assert head(text)["configs"][0]["data_files"] == files


@pytest.mark.parametrize("before", ["", "# Mine\n", "---\nlicense: mit\n---\n"])
def test_without_rows_it_stays(before: str) -> None:
    assert readme(before, {}, {"gone"}, "corpus") == (before, {})


def test_a_head_that_is_no_yaml_is_refused() -> None:
    with pytest.raises(BadInput, match="mend it"):
        readme("---\na: [\n---\n", {}, (), "corpus")
