"""Chess: which modules and libraries decide the output of each asset.

See also `gristmill.code_digest`: how a digest is made of them, and what its entries
mean. `python -m tests.goldens` prints the digests of the code that stands.
"""

from __future__ import annotations

from gristmill.code_digest import Code

ELITE = Code(
    modules=("gristmill.chess.raw.archive",),
    compatible_with=("5ca4a2202be5c2b567bfaf3a3bc84c23cc9d443d3341fe8e4e1c6dafa6a366c5",),
    undigested="5ca4a2202be5c2b567bfaf3a3bc84c23cc9d443d3341fe8e4e1c6dafa6a366c5",
)
VALID = Code(
    modules=("gristmill.chess.build.validate",),
    libraries=("chess",),
)
GAMES = Code(
    modules=("gristmill.chess.build.game_dataset",),
    libraries=("chess",),
    compatible_with=("36d38218a8bfba2d87b9201f2e610255fe4e1262fa87bc86bfdcdbb566ce9e33",),
    undigested="36d38218a8bfba2d87b9201f2e610255fe4e1262fa87bc86bfdcdbb566ce9e33",
)
CACHE = Code(
    modules=("gristmill.chess.build.splice_cache",),
    libraries=("chess",),
    compatible_with=("5d46602360f8ab7dfc811b05b411fc7346306c8658b05de365990280589b4082",),
    undigested="5d46602360f8ab7dfc811b05b411fc7346306c8658b05de365990280589b4082",
)
SPLICES = Code(
    modules=("gristmill.chess.build.splice_dataset",),
    libraries=("chess",),
    compatible_with=("d35529ecfc80ca3a7eb943ed102fbd65eef00620fd7076b6e6d4363ae7f1d4cb",),
    undigested="d35529ecfc80ca3a7eb943ed102fbd65eef00620fd7076b6e6d4363ae7f1d4cb",
)
