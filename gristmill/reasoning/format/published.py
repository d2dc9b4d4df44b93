"""Names of the reasoning assets, and the records of what they published."""

from pathlib import Path

from gristmill import provenance
from gristmill.contract import NothingToBuild
from gristmill.corpora.corpus import Corpus, corpus_and_split, is_key, ordered
from gristmill.data_root import DataRoot
from gristmill.provenance import Input, Record
from gristmill.provenance.find_artifacts import Artifact
from gristmill.reasoning.format import names

RAW = "reasoning/raw"
NORMALIZED, RAW_MANIFEST = "reasoning/normalized", "reasoning/raw_manifest"
SHARDS, MANIFEST = "reasoning/gpt2_shards", "reasoning/manifest"
RECIPE, TOKENS = "reasoning/recipe", "reasoning/tokens"
SPANS, EXPORTS = "reasoning/spans", "reasoning/exports"
ALIGNMENT, REPORT = "reasoning/alignment", "reasoning/qc_report"
REPORTED = (names.NORMALIZED, names.TOKENIZED, names.ALIGNMENT, names.TOKENS)
"""Folders whose artifacts a report describes."""
MANIFEST_VERSION = "1"
"""Code version of both manifests."""


def record_path(lake: DataRoot, folder: str, partition: str) -> Path:
    """Returns the path of a partition's record in the folder that the partitions share.

    lake: the data root.
    folder: path of the folder relative to the data root.
    partition: key of the partition, or `manifest`.
    """
    return provenance.record_path(lake.root / folder, partition, shared=True)


def is_published(lake: DataRoot, folder: str, partition: str) -> bool:
    """Whether a partition is published in the folder that the partitions share."""
    return record_path(lake, folder, partition).exists()


def published_partitions(lake: DataRoot, folder: str) -> list[str]:
    """Returns the partitions that are published in a folder, in the order of the corpora."""
    return recorded(lake.artifacts(folder))


def recorded(items: list[Artifact]) -> list[str]:
    """Returns the partitions of splits among the artifacts of a folder, in order."""
    return ordered({item.record_path.stem for item in items if is_key(item.record_path.stem)})


def splits_in(folder: Path, name: str) -> list[str]:
    """Returns the partitions that have a file in a folder, in the order of the corpora.

    name: of the file below the folder of its corpus, beginning with `{split}`.
    """
    after = name.removeprefix("{split}")
    found = set()
    for path in folder.glob(f"*/*{after}"):
        corpus, _, rest = path.relative_to(folder).as_posix().partition("/")
        found.add(f"{corpus}__{rest.removesuffix(after)}")
    return ordered({key for key in found if is_key(key)})


def shard_splits(folder: Path) -> list[tuple[str, str]]:
    """Corpus and split of all folders with shards, sorted; corpora need not be known."""
    found = {path.parent for path in folder.glob("*/*/shard_*") if path.is_file()}
    return sorted((path.parent.name, path.name) for path in found)


def corpus_of_record(record: Record) -> Corpus:
    """Returns the corpus of a record of `reasoning/normalized`, as its file was then."""
    return corpus_and_split(str(record.partition), str(record.config.get("corpus", "")))[0]


def corpus_of(root: Path, partition: str) -> Corpus:
    """Returns the corpus of a partition, by the record of its normalised file if there is one."""
    path = provenance.record_path(root / names.NORMALIZED, partition, shared=True)
    if path.is_file():
        return corpus_of_record(provenance.read_record(path))
    return corpus_and_split(partition)[0]


def published_inputs(lake: DataRoot, folder: str, asset: str) -> list[Input]:
    """Returns all published partitions of an asset as inputs, in the order of the corpora."""
    return [lake.published(folder, asset, key) for key in published_partitions(lake, folder)]


def published_datasets(root: Path) -> list[str]:
    """Returns the names of the token datasets that are published, sorted. root: the data root."""
    found = (root / names.TOKENS).glob(f"*/{provenance.RECORD}")
    return sorted(path.parent.name for path in found)


def report_inputs(lake: DataRoot) -> list[Input]:
    """Returns everything published that a report describes."""
    inputs = [
        *published_inputs(lake, names.NORMALIZED, NORMALIZED),
        *published_inputs(lake, names.TOKENIZED, SHARDS),
        *published_inputs(lake, names.ALIGNMENT, ALIGNMENT),
    ]
    for folder, asset in ((names.NORMALIZED, RAW_MANIFEST), (names.TOKENIZED, MANIFEST)):
        if is_published(lake, folder, names.MANIFEST_RECORD):
            inputs.append(lake.published(folder, asset, names.MANIFEST_RECORD))
    for name in published_datasets(lake.root):
        inputs.append(lake.published(f"{names.TOKENS}/{name}", TOKENS, name))
    return inputs


def published_records(lake: DataRoot, folder: str, none: str) -> list[Record]:
    """Returns the records of all published partitions, in the order of the corpora.

    Raises NothingToBuild with the words `none` if there are none.
    """
    if not (keys := published_partitions(lake, folder)):
        raise NothingToBuild("\n".join([none, *lake.without_record(folder)]))
    return [provenance.read_record(record_path(lake, folder, key)) for key in keys]
