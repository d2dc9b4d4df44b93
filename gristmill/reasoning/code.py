"""Reasoning: which modules and libraries decide the output of each asset.

See also `gristmill.code_digest`: how a digest is made of them, and what its entries mean.
"""

from __future__ import annotations

from gristmill.code_digest import Code

NORMALIZED = Code(
    modules=("gristmill.reasoning.build.normalize",),
    libraries=("pyarrow",),
    compatible_with=("4288818240fdd375f242d20787b4a1916659a6561d71ddf22de459cb87427b95",),
)
RAW_MANIFEST = Code(modules=("gristmill.reasoning.build.raw_manifest",))
SHARDS = Code(modules=("gristmill.reasoning.build.shards",), libraries=("tiktoken",))
MANIFEST = Code(modules=("gristmill.reasoning.build.manifest",))
ALIGNMENT = Code(
    modules=("gristmill.reasoning.build.align",),
    libraries=("tiktoken",),
    compatible_with=("3950fd2e5d12a1e2078371e72a3884c34223498496e8a5819b809b589813910f",),
)
REPORT = Code(modules=("gristmill.reasoning.build.report",), libraries=("tiktoken",))
