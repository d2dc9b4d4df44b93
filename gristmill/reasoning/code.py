"""Reasoning: which functions and libraries decide the output of each asset.

See also `gristmill.code.digest`: how a digest is made of them, and what its entries mean.
"""

from __future__ import annotations

from gristmill.code.digest import Code

NORMALIZED = Code(
    entries=("gristmill.reasoning.builders.normalize.normalize",),
    libraries=("pyarrow",),
    compatible_with=(
        "c4cb2995a1a40aa5ec4ad370babb40482c747afb2c9dffc76bbd3bb9a0d2783d",
        "e1ec4a914d50c9ecc7bfa5896cd935dbbe8573da5a4f7aa0d8a02957c83991bc",
        "573a799bb41dea16f6d6d3b03a8bc658c28b2aaa6bd180ca4c80dcf22c5aa360",
        "3290bd93ed9a93ca3f02327a89364536205e092c16b1b932813e84ca94663166",
        "9d8a83c5034cfefb2b12071893bbe5d16bba9e3077a83498df56bd6ff02187e5",
        "941d8dda83a6a36a2c75d00829de5ef326f3dbc9df9ee3d038d6de7eaf2bd018",
        "0bbfe18fb03989c4ba78789000ab3918fa04f324981fba48e22e866e040a0417",
    ),
)
CONVERSATIONS = Code(
    entries=("gristmill.reasoning.builders.chat.conversations.normalize_conversations",),
    libraries=("pyarrow",),
    compatible_with=("280010f7b4269b494809cc8c5b80b12bbc288558b34ec52198b7a080b87c2032",),
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
        "349446cd6466b19e0e859c93646644a33dde68703ca4552f556f0d40b8a45b5e",
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
        "dac91e5837eaa96b2a026daa3c5c4a6daab6a04a79d8765e18ad7c214ae5e044",
    ),
)
ALIGNMENT = Code(
    entries=("gristmill.reasoning.builders.align.align",),
    libraries=("tiktoken",),
    compatible_with=(
        "91f5e3430db925f8b05734833dff1d35886e7f22e0f81684cf4ad13b004079f2",
        "696c7ea0f0f0f935b762c05f2bb47245e652a0e30a45f5bdfd2d1d67a02e9f1c",
    ),
)
REPORT = Code(
    entries=("gristmill.reasoning.builders.report.coverage_report",),
    libraries=("tiktoken",),
    compatible_with=(
        "17a475d785be6c4d282a46b85768a90662ce04f21a6a44b1931e1d1c08754d99",
        "5974142b6238ef804fb5de2393b48328768c8f8248500f38d462dc34b374cf53",
        "84b0e4b15b68f3df6c6b497c750b2ca1a4ca7ca3afe39275b5e0e6a80ce8d575",
    ),
)
SPANS = Code(
    entries=("gristmill.reasoning.builders.exports.spans.write_spans",),
    libraries=("tiktoken", "tokenizers"),
    compatible_with=("b5d16dea172071d6aa5907510b7419a74804ca332f803e455aa9bb56e6e9a70d",),
)
EXPORTS = Code(
    entries=(
        "gristmill.reasoning.builders.exports.files.write_exports",
        "gristmill.reasoning.show.columns.columns",
    ),
    libraries=("pyarrow",),
    compatible_with=(
        "7d3e2b6b73d0b0c867b09f1b3d66b35bda60ece15f025ee6d1168bb8e4b84762",
        "09b39498ffa45aabcbcd3a45b408ab380d6e5d4857ecde45dab40e629a28de4f",
    ),
)
