"""The code location loads, is complete, and pays for nothing heavy when it does."""

from __future__ import annotations

import json
import subprocess
import sys

import dagster as dg
import pytest

from definitions import build_defs

HEAVY = [
    *("numpy", "torch", "megatron", "polars", "numba", "pyarrow", "pandas", "openai_harmony"),
    "tiktoken",
]


@pytest.fixture(scope="module")
def specs() -> list[dg.AssetSpec]:
    return list(build_defs().resolve_all_asset_specs())


def test_definitions_load():
    dg.Definitions.validate_loadable(build_defs())


def test_every_asset_is_presentable(specs):
    for spec in specs:
        name = spec.key.to_user_string()
        assert spec.description, name
        assert spec.group_name != "default", name
        assert spec.kinds, name
        assert spec.owners, name


def test_every_asset_that_is_built_has_a_code_version():
    graph = build_defs().resolve_asset_graph()
    for key in graph.materializable_asset_keys:
        assert graph.get(key).code_version, key


def test_loading_imports_nothing_heavy_and_no_job_brings_a_warning():
    script = (
        "import sys, json, definitions; made = definitions.build_defs().get_repository_def();"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]));"
        "made.get_all_jobs()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []
    assert done.stderr == ""
