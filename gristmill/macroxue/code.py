"""2048: which functions and libraries decide the output of each asset.

See also `gristmill.code.digest`: how a digest is made of them, and what its entries
mean. `python -m tests.goldens` prints the digests of the code that stands.
"""

from __future__ import annotations

from gristmill.code.digest import Code

PACK = Code(
    entries=("gristmill.macroxue.builders.pack.pack", "gristmill.macroxue.raw.drops.raw_files"),
    libraries=("numba", "numpy"),
    compatible_with=(
        "60dcd2cc363aeb3f79d7d190db3e1f4dbbe78e7a4c8d76d3ba0705f46c4ac5e3",
        "cf112aae3b0c02243f2688704db1e4330b3d2f434a4b6e6e154da45b3d13419c",
        "0d55d1b49e5a85a505e4db0c9f9ab20e536d50501b0e632fbc2d947458a9ec50",
        "c33a5dc9fe315fc8340efe463cfd2bf2c61c3066fca51307445ed9afa47a00da",
        "1705809a6fbd4f2847bd4d5d52d644837de7590c1255cfea3858dcb037aa66bc",
        "251a14e567dddc14ac9c6cd19eb1d37ce42103fcd73da69bac132da88c6fae7c",
        "927b4ec387b0c3e4fca71217e4f716aed754519686b110e8aa01637f20e32e8c",
        "e8a2e1a25000a9174b46033bb8dbb079608a34a139e493b741e2cc6b942757c0",
    ),
    undigested="0d55d1b49e5a85a505e4db0c9f9ab20e536d50501b0e632fbc2d947458a9ec50",
)
VALUES = Code(
    entries=("gristmill.macroxue.builders.values.value_sidecar",),
    libraries=("numba", "numpy"),
    compatible_with=(
        "28b6e96af94a68ca0b12ca41ee6ae5e293e4c2821600df75ef998212a5a647c9",
        "faf3e76d07920663eb7c24099649d0bd2cb1f09e40f66d440de43cf3f83de06b",
        "ac144373570171be5cc4c88a3cd23ce810f8cf2333d7bb3f64e670dec243f84f",
        "8c9638787f5bed317a0b0873617add3593b1c48cb3ff66b6e83478a403e389e3",
        "84e8639fd5037d0e95c60b176364a89ac7052ad2734dadc32e708bc255eabbe2",
    ),
    undigested="ac144373570171be5cc4c88a3cd23ce810f8cf2333d7bb3f64e670dec243f84f",
)
POOL = Code(
    entries=("gristmill.macroxue.builders.pool.merge",),
    libraries=("numpy",),
    compatible_with=(
        "785e4ac9a2cd9e4b3c8991f2f95994d6a7e9c24de70a89af0b4e920a5263f348",
        "5a65f7f08226627c9af39817b7060d44d7543f546383f6c674bd57d0c2462f7d",
        "bd636366709e1b39e513bd032e9178be3959d37c52c4f1ef9e9c26bd25e8d9d6",
        "bacab6cacbc8e716393184e3e6826b599859b947bef1f70bea364fc434860631",
        "07ec5c5c167d0a14053626573cde381a8a458555f47f5f748a5a352961454b28",
        "b17d07b1b64a2b3e8fa017d60ad596ed67e54ee88763f9b3b7b1a94207ebe2ac",
    ),
    undigested="bd636366709e1b39e513bd032e9178be3959d37c52c4f1ef9e9c26bd25e8d9d6",
)
VIEW = Code(
    entries=(
        "gristmill.macroxue.builders.training_view.training_view",
        "gristmill.macroxue.raw.annotations.annotation_files",
    ),
    libraries=("numba", "numpy"),
)
