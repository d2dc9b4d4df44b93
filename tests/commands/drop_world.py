"""A data root with an instance, and every entrance that asks what state a drop is in."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result

import definitions
from assets.checking.arrivals import arrivals_check
from assets.inbox import Inbox
from commands import checkout
from commands.graph import INBOXES
from gristmill.cli import main
from gristmill.inbox import Judgement
from gristmill.provenance import find_artifacts
from gristmill.run.interrupts import watched
from resources import CHECKOUT, Lake
from sensors.raw_drops import raw_drop_sensor
from tests.commands.inbox_cases import Case


@dataclass
class World:
    """A data root and the instance that knows it, in a folder of their own."""

    folder: Path
    _cursors: dict[str, str | None] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def lake(self) -> Lake:
        return Lake(data_root=str(self.data))

    @contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        """The instance that all entrances work on."""
        with checkout.open_instance() as opened:
            yield opened

    def run(self, *words: str) -> Result:
        """`gristmill WORDS` in this process."""
        return CliRunner().invoke(main, words)

    def judged(self, case: Case) -> Judgement:
        """The judgement of the drop, which every entrance is to show."""
        return self.lake.judged(case.inbox, case.drop(self.data))

    def tick(self, case: Case) -> dg.SensorResult:
        with self.instance() as instance:
            context = dg.build_sensor_context(
                instance=instance,
                cursor=self._cursors.get(case.inbox),
                resources={"lake": self.lake},
                definitions=_definitions(),
            )
            result = _sensor(case.inbox)(context)
            assert isinstance(result, dg.SensorResult)
            self._cursors[case.inbox] = result.cursor
            for request in result.dynamic_partitions_requests or ():
                instance.add_dynamic_partitions(
                    str(request.partitions_def_name), request.partition_keys
                )
            for event in result.asset_events:
                instance.report_runless_asset_event(event)
            return result

    def settled_tick(self, case: Case) -> dg.SensorResult:
        """The second of two looks, which takes what did not change between them."""
        self.tick(case)
        return self.tick(case)

    def arrivals(self, case: Case) -> tuple[bool, dict[str, tuple[str, str]]]:
        """What the check `arrivals` finds: whether it passes, and state and reason by drop."""
        job = _arrivals_job(case.inbox)
        with self.instance() as instance:
            result = job.execute_in_process(instance=instance, resources={"lake": self.lake})
        (found,) = result.get_asset_check_evaluations()
        table = found.metadata.get("drops")
        rows = table.records if isinstance(table, dg.TableMetadataValue) else []
        return found.passed, {
            str(row.data["drop"]): (str(row.data["state"]), _unbroken(str(row.data["reason"])))
            for row in rows
        }

    def button(self, case: Case) -> dg.ExecuteInProcessResult:
        """A run of one partition as the button `Materialize` of its page starts it."""
        asset = dg.AssetKey.from_user_string(case.asset)
        with self.instance() as instance, watched():
            return _job().execute_in_process(
                instance=instance,
                asset_selection=[asset],
                partition_key=case.partition,
                raise_on_error=False,
            )

    def count_as_built(self, case: Case) -> None:
        """Report all assets of a drop but `case.asset` as built, which would take long here."""
        inbox = _inbox(case.inbox)
        with self.instance() as instance:
            known = instance.get_materialized_partitions(dg.AssetKey.from_user_string(case.asset))
            for asset in inbox.targets:
                if asset.key.to_user_string() == case.asset:
                    continue
                for key in sorted(known):
                    instance.report_runless_asset_event(
                        dg.AssetMaterialization(asset.key, partition=key)
                    )

    def built_check(self, case: Case) -> bool | None:
        """Whether the check `built` of the asset passes; None where nobody evaluated it."""
        key = dg.AssetCheckKey(dg.AssetKey.from_user_string(case.asset), "built")
        with self.instance() as instance:
            storage = instance.event_log_storage
            found = storage.get_latest_asset_check_execution_by_key([key]).get(key)
        return None if found is None or found.evaluation is None else found.evaluation.passed

    def evaluated(self, case: Case) -> dict[str, bool]:
        """What the checks of the asset find when they are executed without a build."""
        asset = dg.AssetKey.from_user_string(case.asset)
        chosen = dg.AssetSelection.checks_for_assets(asset)
        with self.instance() as instance, watched():
            graph = _definitions().resolve_asset_graph()
            job = dg.define_asset_job("checks", chosen).resolve(asset_graph=graph)
            result = job.execute_in_process(instance=instance, resources={"lake": self.lake})
        return {each.check_name: each.passed for each in result.get_asset_check_evaluations()}

    def bytes_of(self) -> dict[str, bytes]:
        """Every published file of the artifacts with its bytes, records among them."""
        return {
            str(path.relative_to(self.data)): path.read_bytes()
            for item in find_artifacts.artifacts(self.data)
            for path in sorted(item.folder.rglob("*"))
            if path.is_file()
        }

    def listing(self) -> dict[tuple[str, str], tuple[str, str]]:
        """State and reason of each artifact in `ls --json`, by asset and partition."""
        rows = json.loads(self.run("ls", str(self.data), "--json").stdout)
        return {(row["asset"], row["partition"]): (row["state"], row["why"]) for row in rows}

    def listed(self, case: Case) -> tuple[str, str]:
        """State and reason of the artifact in `ls --json`."""
        return self.listing()[case.asset, case.partition]


@contextmanager
def opened(folder: Path) -> Iterator[World]:
    """The world in a folder, which the commands find by variable and checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRISTMILL_DATA", str(folder / "data"))
        patch.delenv("DAGSTER_HOME", raising=False)
        patch.chdir(folder)
        patch.setattr(checkout, "CHECKOUT", folder)
        yield World(folder)


def new_world(folder: Path) -> None:
    (folder / "data/drops").mkdir(parents=True)
    (folder / "data/gristmill.toml").write_text("[inbox]\nsettle_seconds = 0\n")
    shutil.copy(CHECKOUT / "dagster.yaml", folder)


def one_line(text: str) -> str:
    """A text without line breaks, as terminals and pages break lines where they like."""
    return " ".join(text.split())


def _unbroken(text: str) -> str:
    """A text of a page, without the places where it may break."""
    return text.replace("\u200b", "")


def _inbox(name: str) -> Inbox:
    return next(inbox for inbox in INBOXES if inbox.folder == name)


@cache
def _sensor(inbox: str) -> dg.SensorDefinition:
    return raw_drop_sensor(_inbox(inbox))


@cache
def _arrivals_job(inbox: str) -> Any:
    check = arrivals_check(_inbox(inbox))
    asset = dg.AssetSpec(_inbox(inbox).raw_drop)
    defs = dg.Definitions(assets=[asset], asset_checks=[check], resources={"lake": Lake()})
    return defs.resolve_implicit_global_asset_job_def()


@cache
def _definitions() -> dg.Definitions:
    return definitions.build_defs()


@cache
def _job() -> Any:
    return _definitions().resolve_implicit_global_asset_job_def()
