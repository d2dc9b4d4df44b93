"""SYNTH: which functions and libraries decide the output of each asset."""

from __future__ import annotations

from gristmill.code.digest import Code

HARMONY = Code(
    entries=(
        "gristmill.synth.builders.harmony.to_harmony",
        "gristmill.synth.builders.manifests.import_shard",
    ),
    libraries=("pyarrow",),
    compatible_with=(
        "416fa571cea49c687bfe06ab1460937f1c683b116790282258efa52d5eada498",
        "d7188af155925187b36da797f7e8252e820cd089333e3cdabc9d49f8367b28cb",
        "90753833b2ceaec2bc496791ebf64c40df6ef92070b5cf51a2dda5cf594af235",
    ),
    undigested="90753833b2ceaec2bc496791ebf64c40df6ef92070b5cf51a2dda5cf594af235",
)
HARMONY_MANIFEST = Code(
    entries=(
        "gristmill.synth.builders.manifests.write_harmony_manifest",
        "gristmill.synth.builders.manifests.import_manifest",
    ),
    compatible_with=(
        "f70b5c42205723b35519c73ef1042e4fd1c93704747d16e18a5b1a97b53b42f2",
        "8982724a8666b7ba0328ae5b2520b3c81a5cf853e09a79adc45a5e036b6d4f33",
    ),
)
KD_SHARDS = Code(
    entries=("gristmill.synth.builders.kd_shard.build_kd_shard",),
    libraries=("openai-harmony", "pyarrow", "tiktoken"),
    compatible_with=(
        "d62a417a003140671eec8aa0db44e1bd61d8b049e799c62a712a8746fcc5afc4",
        "60c09d748ba6746eb6ff08f1c1ea3dde42f391966564988e2c8d5d370cda7fe9",
        "a9f3c271d528c528d8790994c215f8c2949134b37050cad1bb0db452ec982ef2",
        "cb0843949bc0421194e65ece6e2989ebbcfe0044c28e73259d5f940e46fb4775",
    ),
    undigested="cb0843949bc0421194e65ece6e2989ebbcfe0044c28e73259d5f940e46fb4775",
)
CHAT_SHARDS = Code(
    entries=("gristmill.synth.builders.chat.build_chat_shard",),
    libraries=("jinja2", "openai-harmony", "pyarrow", "tiktoken"),
    compatible_with=("1706f68aa285f4a169e0b6004225226df5beabad33e6f58dfc331724379e9174",),
)
DISTILL = Code(
    entries=(
        "gristmill.synth.builders.distill_shard.build_distill",
        "gristmill.synth.builders.harmony_shard.shard_name",
    ),
    libraries=("jinja2", "openai-harmony", "pyarrow", "tiktoken"),
    compatible_with=("bb0bea4cd85f944bd44dd889d7dd3c582e79615c92709f40ac94718aec1e9e1b",),
)
KD_MANIFEST = Code(
    entries=("gristmill.synth.builders.manifests.write_kd_manifest",),
    compatible_with=(
        "a96fed97df1cb20fc92d87be2efefe8d9acbf316147293da4064179c9e3a0459",
        "34c009fb3ebffc28b5a2ae40f8423c21396263c9f4900bbc3a7d2d94c4b7573b",
    ),
)
