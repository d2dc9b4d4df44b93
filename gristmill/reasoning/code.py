"""Reasoning: which functions and libraries decide the output of each asset.

See also `gristmill.code.digest`: how a digest is made of them, and what its entries mean.
"""

from __future__ import annotations

from gristmill.code.digest import Code

NORMALIZED = Code(
    entries=("gristmill.reasoning.builders.normalize.normalize",),
    libraries=("pyarrow",),
    compatible_with=("e1ec4a914d50c9ecc7bfa5896cd935dbbe8573da5a4f7aa0d8a02957c83991bc",),
)
CONVERSATIONS = Code(
    entries=("gristmill.reasoning.builders.chat.conversations.normalize_conversations",),
    libraries=("pyarrow",),
)
RAW_MANIFEST = Code(
    entries=("gristmill.reasoning.builders.raw_manifest.write_raw_manifest",),
    compatible_with=("04d14155140f1603f4bf23a43cc0d4beb96acffb230ae32c6c30c165f15b7e58",),
)
SHARDS = Code(
    entries=("gristmill.reasoning.builders.shards.tokenize",),
    libraries=("tiktoken",),
    compatible_with=(
        "813924e0b91aba50d352e35fda43c66186c8de66e51e781fff10bfeec4388257",
        "7c4e83700281ca04414d588eec88ba47fe081b73a617a82626c74404975c7014",
        "c2c354a638344b6f0c270e0e806c2947275dec5054370799e7ac686d189659e8",
    ),
)
TOKENS = Code(
    entries=("gristmill.reasoning.builders.tokens.tokenize_dataset",),
    libraries=("tiktoken", "tokenizers"),
)
MANIFEST = Code(
    entries=("gristmill.reasoning.builders.manifest.write_manifest",),
    compatible_with=(
        "1ae547484c4720eeac372280a2d3768f769aa44ecf737e2d21a4b85a664b3158",
        "537a1da42ec3aff5fbd71503f25f90740094446a47538acb7921adbb9e120b17",
    ),
)
ALIGNMENT = Code(
    entries=("gristmill.reasoning.builders.align.align",),
    libraries=("tiktoken",),
    compatible_with=("91f5e3430db925f8b05734833dff1d35886e7f22e0f81684cf4ad13b004079f2",),
)
REPORT = Code(
    entries=("gristmill.reasoning.builders.report.coverage_report",),
    libraries=("tiktoken",),
    compatible_with=("17a475d785be6c4d282a46b85768a90662ce04f21a6a44b1931e1d1c08754d99",),
)
