"""Which files choose the config of the reasoning assets."""

from __future__ import annotations

from pathlib import Path

from assets.choices import Choices
from assets.reasoning import drops
from assets.reasoning.records import ALIGNMENT, NORMALIZED, REPORT, SHARDS
from gristmill.reasoning.format.corpora import Corpus, corpus_and_split
from gristmill.settings.tables import Settings
from resources import Lake


def drop_of_corpus(lake: Lake, corpus: Corpus) -> Path | None:
    """Returns the drop of a corpus, None if it is gone."""
    folder = lake.inbox(drops.INBOX) / corpus.name
    return folder if folder.is_dir() else None


def _of_drop(lake: Lake, table: str, key: str) -> Settings:
    corpus, _ = corpus_and_split(key)
    return lake.settings(table, drop_of_corpus(lake, corpus))


def _shards(lake: Lake, key: str) -> Settings:
    corpus, _ = corpus_and_split(key)
    given = _of_drop(lake, SHARDS, key)
    if "allow" not in given:
        return given
    # A split's config names its own corpus alone.
    own = tuple(name for name in given["allow"] if name == corpus.name)
    return Settings({**given, "allow": own}, given.file)


CHOICES = {
    NORMALIZED: Choices(NORMALIZED, lambda lake, key: _of_drop(lake, NORMALIZED, key)),
    SHARDS: Choices(SHARDS, _shards),
    ALIGNMENT: Choices(ALIGNMENT, lambda lake, key: _of_drop(lake, ALIGNMENT, key)),
    REPORT: Choices(REPORT, lambda lake, _: lake.settings(REPORT)),
}
