"""`gristmill ui` over an instance with 2,000 partitions: the pages open, and links lead to docs."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.servers import Server, copy_checkout, plain_environment
from tests.e2e.browser import opened

pytestmark = pytest.mark.slow
PARTITIONS = 2000
OVERVIEW = """{ assetNodes { assetKey { path } groupName description
  partitionStats { numMaterialized numPartitions numFailed }
  assetMaterializations(limit: 1) { runId } } }"""
ASSET = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  assetPartitionStatuses { ... on DefaultPartitionStatuses { materializedPartitions } }
  metadataEntries { label ... on UrlMetadataEntry { url } } } } }"""
RUNS = "{ runsOrError(limit: 25) { ... on Runs { results { runId status } } } }"


class Large(Server):
    """`gristmill ui` of a copy of the checkout, whose instance was filled before."""

    def __init__(self, folder: Path) -> None:
        self.checkout, self._data = folder / "checkout", folder / "data"
        copy_checkout(self.checkout)
        (self._data / "drops/macroxue").mkdir(parents=True)
        words = ["-m", "bench.large_instance", str(self.checkout), "--partitions", str(PARTITIONS)]
        subprocess.run(
            [sys.executable, *words],
            cwd=self.checkout,
            env=plain_environment(),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        super().__init__(self.checkout, "gristmill", {})
        self.wait()

    def words(self, port: str) -> list[str]:
        command = [sys.executable, "-m", "gristmill.cli", "ui", "--port", port]
        return [*command, "--data-root", str(self._data)]

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.place}{path}", timeout=120) as answer:
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    serving = Large(tmp_path_factory.mktemp("large").resolve())
    yield serving
    serving.stop()


def test_the_overview_knows_every_partition(large: Large) -> None:
    assert large.page("/overview").startswith("<!DOCTYPE html>")
    found = large.ask(OVERVIEW)["assetNodes"]
    nodes = {"/".join(node["assetKey"]["path"]): node for node in found}
    pack = nodes["macroxue/pack"]
    assert pack["groupName"] == "macroxue"
    assert pack["description"].startswith("2048 self-play: ")
    assert pack["partitionStats"] == {
        "numMaterialized": PARTITIONS,
        "numPartitions": PARTITIONS,
        "numFailed": 0,
    }
    assert {node["groupName"] for node in nodes.values()} >= {"synth/full", "synth/smoke"}
    assert len(large.ask(RUNS)["runsOrError"]["results"]) == PARTITIONS // 100


def test_the_pages_open_in_a_browser(large: Large) -> None:
    pages = {
        "/overview": "Timeline",
        "/assets/macroxue/pack?view=partitions": f"Materialized ({PARTITIONS})",
        "/assets/macroxue/pack?view=overview": "2048 self-play",
    }
    with opened() as context:
        page = context.new_page()
        for path, text in pages.items():
            page.goto(f"http://{large.place}{path}")
            page.get_by_text(text).first.wait_for()


def test_an_asset_links_to_its_page(large: Large) -> None:
    key = {"path": ["macroxue", "pack"]}
    node = large.ask(ASSET, key=key)["assetNodeOrError"]
    assert len(node["assetPartitionStatuses"]["materializedPartitions"]) == PARTITIONS
    urls = [entry["url"] for entry in node["metadataEntries"] if entry["label"] == "docs"]
    assert urls == ["/docs/macroxue.md"]
