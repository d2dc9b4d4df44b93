"""Reasoning: which functions and libraries decide the output of each asset.

See also `gristmill.code.digest`: how a digest is made of them, and what its entries mean.
"""

from __future__ import annotations

from gristmill.code.digest import Code

NORMALIZED = Code(
    entries=("gristmill.reasoning.builders.normalize.normalize",),
    libraries=("pyarrow",),
)
RAW_MANIFEST = Code(
    entries=("gristmill.reasoning.builders.raw_manifest.write_raw_manifest",),
)
SHARDS = Code(
    entries=("gristmill.reasoning.builders.shards.tokenize",),
    libraries=("tiktoken",),
    compatible_with=(
        "7c4e83700281ca04414d588eec88ba47fe081b73a617a82626c74404975c7014",
        "c2c354a638344b6f0c270e0e806c2947275dec5054370799e7ac686d189659e8",
    ),
)
MANIFEST = Code(
    entries=("gristmill.reasoning.builders.manifest.write_manifest",),
    compatible_with=("537a1da42ec3aff5fbd71503f25f90740094446a47538acb7921adbb9e120b17",),
)
ALIGNMENT = Code(
    entries=("gristmill.reasoning.builders.align.align",),
    libraries=("tiktoken",),
)
REPORT = Code(
    entries=("gristmill.reasoning.builders.report.coverage_report",),
    libraries=("tiktoken",),
)
