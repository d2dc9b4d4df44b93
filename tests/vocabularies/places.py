"""Where the tests put vocabularies."""

from pathlib import Path

from gristmill.vocabularies.pinned import Vocabulary


def drop(root: Path, vocabulary: Vocabulary) -> Path:
    return root / "drops" / "tokenizers" / vocabulary.file
