"""A data root in which every asset is built from the sample drops, for tests of all families."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gristmill.provenance import Record, find_artifacts, read_record
from tests import report_day
from tests.paths import CHECKOUT, ran
from tests.tiny_tokenizer import put_recipe, put_tiny

if TYPE_CHECKING:  # Dagster comes with the first graph: many tests that pytest starts need none
    from commands.graph import Graph
    from commands.outcomes import Outcome


@dataclass(frozen=True)
class SampleRoot:
    """A data root and the Dagster instance that built it."""

    data: Path
    home: Path

    @staticmethod
    def of(folder: Path) -> SampleRoot:
        """The data root and the instance below `folder`."""
        return SampleRoot(folder / "data", folder / "home")

    @staticmethod
    def build(
        folder: Path, vocabularies: Path, samples: Path | None = None, day: str | None = None
    ) -> SampleRoot:
        """Write the sample drops of all families below `folder` and build every asset.

        vocabularies: a data root with the vocabularies in its drops.
        samples: a data root with the sample drops alone, which are copied; default None, written.
        day: of the report; default the current one.
        """
        root = SampleRoot.of(folder)
        root.home.mkdir(parents=True)
        (root.home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        shutil.copytree(vocabularies / "drops", root.data / "drops")
        put_tiny(root.data)
        put_recipe(root.data)
        if samples is None:
            root.command("samples", str(root.data))
        else:
            shutil.copytree(samples, root.data, symlinks=True, dirs_exist_ok=True)
        # What is built only where somebody asks for it.
        with (root.data / "gristmill.toml").open("a") as settings:
            settings.write("[chess.subset]\ntrain = 50\nval = 5\ntest = 5\n")
            settings.write('[reasoning.exports]\nformats = ["llm.c", "litdata", "nanochat"]\n')
            settings.write('[reasoning.spans]\ntokenizer = "gpt2"\n')
            settings.write("[synth.distill]\nvalid_fraction = 0.1\n")
            settings.write("[chat.distill]\nmax_length = 4096\n")
        write_talks(root.data)
        root.command("materialize", "--all", day=day)
        for file in root.home.rglob("*.db"):
            # The command ends with its connections open. The last one to close a database brings
            # what was written beside it into it.
            with closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return root

    def copy(self, folder: Path) -> SampleRoot:
        """A copy of both folders below `folder`, with the times of the files."""
        # Files of SQLite beside a database hold nothing more; they come and go while another test
        # reads the instance.
        passing = shutil.ignore_patterns("*-shm", "*-wal")
        for source, name in ((self.data, "data"), (self.home, "home")):
            shutil.copytree(source, folder / name, symlinks=True, ignore=passing)
        return SampleRoot.of(folder)

    def command(self, *words: str, day: str | None = None) -> str:
        """Run `gristmill WORDS` on this root and return what it prints."""
        done = ran(
            [sys.executable, "-m", "tests.dagster_caches", *words],
            env=os.environ
            | {"GRISTMILL_DATA": str(self.data), "DAGSTER_HOME": str(self.home)}
            | {report_day.VARIABLE: day or report_day.day_of(self.data)},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def records(self) -> list[tuple[Path, Record]]:
        """The folder and the record of every artifact partition."""
        return [
            (item.folder, read_record(item.record_path))
            for item in find_artifacts.artifacts(self.data)
        ]

    def record(self, asset: str) -> tuple[Path, Record]:
        """The first artifact partition of an asset."""
        return next((folder, item) for folder, item in self.records() if item.asset == asset)

    @contextmanager
    def graph(self) -> Iterator[Graph]:
        """The graph of assets on this root, to build single partitions in this process."""
        import dagster as dg

        from commands.graph import Graph
        from resources import Lake

        day = report_day.day_of(self.data)
        with pytest.MonkeyPatch.context() as patch, report_day.working_on(day):
            patch.setenv("GRISTMILL_DATA", str(self.data))
            patch.setenv("DAGSTER_HOME", str(self.home))
            patch.chdir(CHECKOUT)
            with dg.DagsterInstance.get() as instance:
                yield Graph(instance, Lake())


def write_talks(data: Path, count: int = 40) -> None:
    """A drop `talks` of conversations with a template of its own, below a data root."""
    drop = data / "drops/chat/talks"
    drop.mkdir(parents=True)
    drop.joinpath("corpus.toml").write_text(
        'schema = 1\nkind = "chat"\nname = "talks"\nmessages = "messages"\nid = "id"\n'
        "split = { validation = 0.3 }\n"
        '[render]\ntemplate = "drop:chat_template.jinja"\n'
    )
    drop.joinpath("chat_template.jinja").write_text(
        "{% for message in messages %}<|start|>{{ message.role }}<|message|>"
        "{{ message.content | trim }}<|end|>{% endfor %}"
    )
    talks = [
        {
            "id": f"talk{number}",
            "messages": [
                {"role": "user", "content": f"What is {number} + 1?", "toxic": "no"},
                {"role": "assistant", "content": f"<think>One more.</think>{number + 1}"},
            ],
        }
        for number in range(count)
    ]
    drop.joinpath("talks.jsonl").write_text("".join(json.dumps(talk) + "\n" for talk in talks))
    drop.joinpath(".done").touch()


def build_again(graph: Graph, record: Record, *, rebuild: bool = True) -> Outcome:
    """Build the artifact partition of a record once more and return the outcome."""
    import dagster as dg

    asset = dg.AssetKey.from_user_string(record.asset)
    has_partitions = graph.keys(asset, ()) != [None]
    key = record.partition if has_partitions else None
    (outcome,) = graph.materialize(asset, [key], rebuild=rebuild)
    return outcome
