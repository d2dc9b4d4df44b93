"""SYNTH: which modules and libraries decide the output of each asset.

See also `gristmill.code_digest`: how a digest is made of them, and what its entries
mean. `python -m tests.goldens` prints the digests of the code that stands.
"""

from __future__ import annotations

from gristmill.code_digest import Code

HARMONY = Code(
    modules=(
        "gristmill.synth.build.harmony",
        "gristmill.synth.build.import_harmony",
    ),
    libraries=("pyarrow",),
    compatible_with=(
        "90753833b2ceaec2bc496791ebf64c40df6ef92070b5cf51a2dda5cf594af235",
        "1aaea29a64d8bdeffa02d3f77bdc4ec1cbcdf88954eca1479ea823412869e8ae",
    ),
    undigested="90753833b2ceaec2bc496791ebf64c40df6ef92070b5cf51a2dda5cf594af235",
)
HARMONY_MANIFEST = Code(
    modules=(
        "gristmill.synth.build.harmony_manifest",
        "gristmill.synth.build.import_harmony",
    ),
    compatible_with=("586eae8a847578dccbe0a3fdc2ae9888757ed5633f447670bdb8d4cceab17d93",),
)
KD_SHARDS = Code(
    modules=("gristmill.synth.build.kd_shard",),
    libraries=("openai-harmony", "pyarrow", "tiktoken"),
    compatible_with=(
        "cb0843949bc0421194e65ece6e2989ebbcfe0044c28e73259d5f940e46fb4775",
        "93dff0d603542600e5234c1f99845f2cb6ffc6a87535c0587f38b543951800aa",
    ),
    undigested="cb0843949bc0421194e65ece6e2989ebbcfe0044c28e73259d5f940e46fb4775",
)
KD_MANIFEST = Code(
    modules=("gristmill.synth.build.kd_manifest",),
    compatible_with=("5851aede93d00f5a6b5f1a64ecd2f2aa579192be607803e323e685a20add7fcc",),
)
