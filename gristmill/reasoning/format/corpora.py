"""The seven corpora: names, splits, columns, sources and licences.

What is special about the public form of a corpus belongs in `raw/`.
Source: `docs/formats/reasoning.md#corpora`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Licence:
    """The terms of a corpus.

    id: SPDX identifier, or "unknown".
    url: page that states the terms; empty where there is none.
    redistributable, training_allowed: what the terms allow; None where they are unknown.
    confirmed: whether someone has read the terms of this release.
    """

    id: str
    url: str
    redistributable: bool | None
    training_allowed: bool | None
    confirmed: bool


@dataclass(frozen=True)
class Corpus:
    """One corpus: its nine keys of the raw manifest, and what the manifest adds.

    name: first part of partition keys, and name of its folders.
    hf_path, subset: where the seed takes it from.
    splits: in the order of the manifest.
    question_column, answer_column, cot_column: columns of the seed's form.
    extra_columns: kept under the same key.
    notes: one sentence.
    public_path, public_subset: the public release, None where there is none.
    licence: the terms.
    """

    name: str
    hf_path: str
    subset: str | None
    splits: tuple[str, ...]
    question_column: str
    answer_column: str
    cot_column: str | None
    extra_columns: tuple[str, ...]
    notes: str
    public_path: str | None
    public_subset: str | None
    licence: Licence


_ALL_SPLITS: Final = ("train", "validation", "test")
_UNKNOWN: Final = Licence("unknown", "", None, None, confirmed=False)

_CORPORA: Final = (
    Corpus(
        name="gsm8k",
        hf_path="openai/gsm8k",
        subset="main",
        splits=("train", "test"),
        question_column="question",
        answer_column="answer",
        cot_column=None,
        extra_columns=(),
        notes="Grade-school math; the answer holds the reasoning and ends in a line `#### n`.",
        public_path="openai/gsm8k",
        public_subset="main",
        licence=Licence("MIT", "https://github.com/openai/grade-school-math", True, True, True),
    ),
    Corpus(
        name="cot_collection",
        hf_path="cot_collection/CoT",
        subset="full",
        splits=("train",),
        question_column="question",
        answer_column="answer",
        cot_column="rationale",
        extra_columns=("dataset", "source"),
        notes="Chains of thought for many tasks; `dataset` and `source` say which.",
        public_path="kaist-ai/CoT-Collection",
        public_subset=None,
        licence=Licence(
            "CC-BY-4.0", "https://huggingface.co/datasets/kaist-ai/CoT-Collection", True, True, True
        ),
    ),
    Corpus(
        name="openr1_math_220k",
        hf_path="openai/open-r1-math-220k",
        subset=None,
        splits=("train",),
        question_column="prompt",
        answer_column="response",
        cot_column="chain_of_thought",
        extra_columns=("difficulty",),
        notes="Math problems with distilled reasoning; `difficulty` where a record has it.",
        public_path="open-r1/OpenR1-Math-220k",
        public_subset="default",
        licence=Licence(
            "Apache-2.0",
            "https://huggingface.co/datasets/open-r1/OpenR1-Math-220k",
            True,
            True,
            True,
        ),
    ),
    Corpus(
        name="reasoning_traces",
        hf_path="meta-math/Reasoning-Traces",
        subset=None,
        splits=("train", "validation"),
        question_column="problem",
        answer_column="answer",
        cot_column="chain_of_thought",
        extra_columns=("subject",),
        notes="Proofs in the manner of MetaMath, with a subject field.",
        public_path="meta-math/MetaMathQA",
        public_subset=None,
        licence=_UNKNOWN,
    ),
    Corpus(
        name="reveal",
        hf_path="allenai/reveal",
        subset=None,
        splits=_ALL_SPLITS,
        question_column="question",
        answer_column="answer",
        cot_column="rationale",
        extra_columns=("context", "citation"),
        notes="Rationales with evidence for each step; for evaluation, not for training.",
        public_path="google/reveal",
        public_subset=None,
        licence=Licence(
            "CC-BY-ND-4.0", "https://huggingface.co/datasets/google/reveal", False, False, True
        ),
    ),
    Corpus(
        name="trip",
        hf_path="allenai/trip",
        subset=None,
        splits=_ALL_SPLITS,
        question_column="question",
        answer_column="answer",
        cot_column="program",
        extra_columns=("context",),
        notes="Pairs of stories; the rationale is a program over physical states.",
        public_path="sled-umich/TRIP",
        public_subset=None,
        licence=_UNKNOWN,
    ),
    Corpus(
        name="wiqa",
        hf_path="allenai/wiqa",
        subset=None,
        splits=_ALL_SPLITS,
        question_column="question_stem",
        answer_column="answer_label",
        cot_column="para_steps",
        extra_columns=("perturbation", "effect1", "effect2"),
        notes="Effects of perturbations on a process; answers are more, less or no_effect.",
        public_path="allenai/wiqa",
        public_subset=None,
        licence=Licence("CC-BY-4.0", "https://allenai.org/data/wiqa", True, True, confirmed=False),
    ),
)

CORPORA: Final[Mapping[str, Corpus]] = {corpus.name: corpus for corpus in _CORPORA}
"""By name, in the order of the seed."""

PARTITIONS: Final = tuple(f"{each.name}__{split}" for each in _CORPORA for split in each.splits)
"""Keys of the partitions: `<corpus>__<split>`."""


def corpus_and_split(partition: str) -> tuple[Corpus, str]:
    """Return the corpus and the split of a partition.

    partition: one of `PARTITIONS`.

    Raises ValueError for another key.
    """
    if partition not in PARTITIONS:
        raise ValueError(f"{partition!r} is none of {', '.join(PARTITIONS)}")
    name, split = partition.rsplit("__", 1)
    return CORPORA[name], split
