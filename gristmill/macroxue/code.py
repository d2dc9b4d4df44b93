"""2048: which functions and libraries decide the output of each asset."""

from __future__ import annotations

from gristmill.code.digest import Code

PACK = Code(
    entries=("gristmill.macroxue.builders.pack.pack", "gristmill.macroxue.raw.drops.raw_files"),
    libraries=("numba", "numpy"),
    compatible_with=(
        "e1b5cd74afb318479b8a2aa29cda13843b2420d235a345fe3d7531bc9dc28300",
        "c33a5dc9fe315fc8340efe463cfd2bf2c61c3066fca51307445ed9afa47a00da",
        "0d55d1b49e5a85a505e4db0c9f9ab20e536d50501b0e632fbc2d947458a9ec50",
    ),
    undigested="0d55d1b49e5a85a505e4db0c9f9ab20e536d50501b0e632fbc2d947458a9ec50",
)
VALUES = Code(
    entries=("gristmill.macroxue.builders.values.value_sidecar",),
    libraries=("numba", "numpy"),
    compatible_with=(
        "516a9685c661fefdcd8c8e63eaab558952ae0d40d96af9c571a0b83c6d47238b",
        "8c9638787f5bed317a0b0873617add3593b1c48cb3ff66b6e83478a403e389e3",
        "ac144373570171be5cc4c88a3cd23ce810f8cf2333d7bb3f64e670dec243f84f",
    ),
    undigested="ac144373570171be5cc4c88a3cd23ce810f8cf2333d7bb3f64e670dec243f84f",
)
POOL = Code(
    entries=("gristmill.macroxue.builders.pool.merge",),
    libraries=("numpy",),
    compatible_with=(
        "e2c8631a08483555ae82841f7c1215065d7f718d5b306c7255f289ed3cb0ab62",
        "bacab6cacbc8e716393184e3e6826b599859b947bef1f70bea364fc434860631",
        "bd636366709e1b39e513bd032e9178be3959d37c52c4f1ef9e9c26bd25e8d9d6",
    ),
    undigested="bd636366709e1b39e513bd032e9178be3959d37c52c4f1ef9e9c26bd25e8d9d6",
)
VIEW = Code(
    entries=(
        "gristmill.macroxue.builders.training_view.training_view",
        "gristmill.macroxue.raw.annotations.annotation_files",
    ),
    libraries=("numba", "numpy"),
    compatible_with=("825d9e219251e55d1e5230e758abc9b908d5ff6379b3b899be263c4254ad480d",),
)
