"""SYNTH: which functions and libraries decide the output of each asset.

See also `gristmill.code.digest`: how a digest is made of them, and what its entries
mean. `python -m tests.goldens` prints the digests of the code that stands.
"""

from __future__ import annotations

from gristmill.code.digest import Code

HARMONY = Code(
    entries=(
        "gristmill.synth.builders.harmony.to_harmony",
        "gristmill.synth.builders.import_harmony.import_shard",
    ),
    libraries=("pyarrow",),
    compatible_with=(
        "ae4fe15ca92c5696c4c5a6357a67d7cc448e7b3c666d811f4b87b1d4be3c4ca6",
        "c79c23839ab65db9ef8bb1962a78a3e4b3e732b225bdbd341cc1ec1c672b42e9",
        "90753833b2ceaec2bc496791ebf64c40df6ef92070b5cf51a2dda5cf594af235",
        "1aaea29a64d8bdeffa02d3f77bdc4ec1cbcdf88954eca1479ea823412869e8ae",
        "9e5cdda2b649e893941175f3d6529c7105354fbb58b2b0c82637f3ccc30eb0ed",
        "9fb9645fdd3b28e629e194845b1987a9858ae94d7b047b735291fabdd641efe0",
        "d7188af155925187b36da797f7e8252e820cd089333e3cdabc9d49f8367b28cb",
        "eb25e3ea9efd20b13f397d4f3916536c8343576e84f09c265c36e1adc44868c0",
    ),
    undigested="90753833b2ceaec2bc496791ebf64c40df6ef92070b5cf51a2dda5cf594af235",
)
HARMONY_MANIFEST = Code(
    entries=(
        "gristmill.synth.builders.harmony_manifest.write_harmony_manifest",
        "gristmill.synth.builders.import_harmony.import_manifest",
    ),
    compatible_with=(
        "e239221547b73856156c3be050efce7d5c96a866579f372ddac6e94b5d40a3b5",
        "98bb56dbd093a5e7e94ae6e6aad0b6f1b9d687adb4604054a60641cd8114a7de",
        "586eae8a847578dccbe0a3fdc2ae9888757ed5633f447670bdb8d4cceab17d93",
        "e435266e6c5fe72a60043003d830b31574c840b5ec2695ae440bebb43629b35c",
        "281e5f9a54cf1758d6cecc125b7fd76f321b2dbef7e522ab1ac97da7cce221b2",
        "8982724a8666b7ba0328ae5b2520b3c81a5cf853e09a79adc45a5e036b6d4f33",
        "61ad560d74422d720bc17c990186c34c27dc041158fe83f8c01be6538a5dd98b",
    ),
)
KD_SHARDS = Code(
    entries=("gristmill.synth.builders.kd_shard.build_kd_shard",),
    libraries=("openai-harmony", "pyarrow", "tiktoken"),
    compatible_with=(
        "7e973e6693907b04b2a3a19f65ad4076aa53e6af464092949077f17ce679b372",
        "b93bc0e107da4d16ebc50996718d1322d94241815c16130899f2e62ea1ea14d4",
        "cb0843949bc0421194e65ece6e2989ebbcfe0044c28e73259d5f940e46fb4775",
        "93dff0d603542600e5234c1f99845f2cb6ffc6a87535c0587f38b543951800aa",
        "60c09d748ba6746eb6ff08f1c1ea3dde42f391966564988e2c8d5d370cda7fe9",
        "f71e10b794fc55f994009f61e10086ef9b1251e3213901f3a1eb119472cfdee9",
        "a9f3c271d528c528d8790994c215f8c2949134b37050cad1bb0db452ec982ef2",
        "5173d753ae3da4893714bfa134f17746381de7a794436e4626f728cea5e28590",
        "e77e2c040e4d6d7f74be3853780f6740191987312aebf9f1b008f8869066960b",
    ),
    undigested="cb0843949bc0421194e65ece6e2989ebbcfe0044c28e73259d5f940e46fb4775",
)
CHAT_SHARDS = Code(
    entries=("gristmill.synth.builders.chat.part.build_chat_shard",),
    libraries=("jinja2", "openai-harmony", "pyarrow", "tiktoken"),
    compatible_with=("e43544ced1544c8ec2f4fd970b5622384de79b01362007b9f009a02b1fbafbfa",),
)
DISTILL = Code(
    entries=(
        "gristmill.synth.builders.distill.shard.build_distill",
        "gristmill.synth.builders.harmony_shard.shard_name",
    ),
    libraries=("jinja2", "openai-harmony", "pyarrow", "tiktoken"),
    compatible_with=(
        "e00ffc2b5a6d3bb244c9d130862e4631cc5b44c86fe648490c96fa41cd4c0240",
        "c82e202ea4f57a9875c5e5a93593d8144aa0ff4cdb25a087539416a58d5da8fc",
    ),
)
KD_MANIFEST = Code(
    entries=("gristmill.synth.builders.kd_manifest.write_kd_manifest",),
    compatible_with=(
        "772cfc94d5ca61721d2f847405bfb8ef2431861ae33bd963dc9db3b0a543f096",
        "c144694e036cd6dba1abef31c1b49a1baf2d38ddae9b0dcd4bd7ed5af2ef9af1",
        "5851aede93d00f5a6b5f1a64ecd2f2aa579192be607803e323e685a20add7fcc",
        "34c009fb3ebffc28b5a2ae40f8423c21396263c9f4900bbc3a7d2d94c4b7573b",
    ),
)
