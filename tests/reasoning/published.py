"""Reasoning artifacts in a data root, published by the real publisher from files made by hand."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from gristmill.reasoning.format import names
from tests.reading.readers import Part, publish_part
from tests.reasoning.supervised_folder import Supervised


def parts(made: Sequence[Supervised], work: Path) -> list[Part]:
    """The parts of a reader for versions of one split: shards, manifest, alignment."""
    partition = f"{made[0].corpus}__{made[0].split}"
    shards, manifests = [], []
    for version, each in enumerate(made):
        shards.append(work / f"shards{version}")
        shutil.copytree(each.root, shards[-1])
        manifests.append(work / f"manifest{version}")
        manifests[-1].mkdir(parents=True)
        (shards[-1] / names.MANIFEST).rename(manifests[-1] / names.MANIFEST)
    return [
        Part(names.TOKENIZED, "reasoning/gpt2_shards", partition, shards, shared=True),
        Part(names.TOKENIZED, "reasoning/manifest", "manifest", manifests, source=0, shared=True),
        Part(
            *(names.ALIGNMENT, "reasoning/alignment", partition, [each.steps for each in made]),
            source=0,
            shared=True,
        ),
    ]


def publish(root: Path, made: Supervised, work: Path) -> Path:
    """Publish one split below a data root; return the folder of all shards."""
    listed = parts([made], work)
    for number in range(len(listed)):
        publish_part(root, listed, number, 0)
    return root / names.TOKENIZED
