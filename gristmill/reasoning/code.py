"""Reasoning: which functions and libraries decide the output of each asset."""

from __future__ import annotations

from gristmill.code.digest import Code

NORMALIZED = Code(
    entries=("gristmill.reasoning.builders.normalize.normalize",),
    libraries=("pyarrow",),
    compatible_with=("4e2968808bc9b06c0b77f603f61600f5ada19f0c53d448b1ba00d57135d6c0f2",),
)
CONVERSATIONS = Code(
    entries=("gristmill.reasoning.builders.conversations.normalize_conversations",),
    libraries=("pyarrow",),
    compatible_with=("abf55bec9a90337afbfdbf22540ad9ef9546da0ebdc3f2cb8e403051bfafb094",),
)
RAW_MANIFEST = Code(
    entries=("gristmill.reasoning.builders.manifest.write_raw_manifest",),
    compatible_with=(
        "36ea68f7e3aaa12a25a34e902e05331ab1f3c98e4fd2da3d38e319f4a35b5a70",
        "04d14155140f1603f4bf23a43cc0d4beb96acffb230ae32c6c30c165f15b7e58",
    ),
)
SHARDS = Code(
    entries=("gristmill.reasoning.builders.shards.tokenize",),
    libraries=("tiktoken",),
    compatible_with=(
        "efc9d5593035a49b653682674b6607984b38dcbc38ee282e2da11e7b9514638a",
        "c2c354a638344b6f0c270e0e806c2947275dec5054370799e7ac686d189659e8",
    ),
)
TOKENS = Code(
    entries=("gristmill.reasoning.builders.shards.tokenize_dataset",),
    libraries=("sentencepiece", "tiktoken", "tokenizers"),
    compatible_with=(
        "03557165627e56599c855d7022ffc3af28760ae55c122766b4641c42c62fe3f3",
        "4388ca8b85c584bbaf0764b5393ae430b82956fc417b85bbcd5a74bf12c93ff0",
    ),
)
MANIFEST = Code(
    entries=("gristmill.reasoning.builders.manifest.write_manifest",),
    compatible_with=(
        "e833d7aaeeea51c12500a0bb3c1bca5398731765a75b1cbef5cabcf676cf9f9f",
        "1ae547484c4720eeac372280a2d3768f769aa44ecf737e2d21a4b85a664b3158",
        "537a1da42ec3aff5fbd71503f25f90740094446a47538acb7921adbb9e120b17",
    ),
)
ALIGNMENT = Code(
    entries=("gristmill.reasoning.builders.align.align",),
    libraries=("tiktoken",),
    compatible_with=(
        "fde122d3019bfcaf8b383ac0770098dea43aba05a765a96a1452fdbaf4f17bc2",
        "2a03e276654d106b836d2e131e13c74a80004b8bcf76806b2ca67aa0285f7315",
    ),
)
REPORT = Code(
    entries=("gristmill.reasoning.builders.report.coverage_report",),
    libraries=("tiktoken",),
    compatible_with=(
        "8a564c911fb376c982ad201a8d56bc1ce7665d7ff309387d4a5d3f3cbecefab7",
        "4438b7b2c28b863850d3066ef3e34ebf26051a3ea14fc37d596e28056b950fae",
    ),
)
LEAKS = Code(entries=("gristmill.reasoning.builders.leaks.write_leaks",))
SPANS = Code(
    entries=("gristmill.reasoning.builders.spans.write_spans",),
    libraries=("sentencepiece", "tiktoken", "tokenizers"),
    compatible_with=("2a7f17e47b1063e8f4a984b75ee552ec75e7d54bd1a96b4976193a0ee47795d0",),
)
EXPORTS = Code(
    entries=(
        "gristmill.reasoning.builders.exports.write_exports",
        "gristmill.reasoning.show.columns",
    ),
    libraries=("pyarrow",),
    compatible_with=("908f4749442a79b47134b07b9b26119fcd62a587069800cd1c124d70dd987e1a",),
)
