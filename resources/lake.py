"""The data root as Dagster sees it: where drops arrive and where artifacts lie.

Every path that an asset uses is made here, and every name in one is checked
against the grammar of keys, since the instance accepts anything as a partition.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg

from gristmill import keys, provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.provenance import Input
from gristmill.provenance import raw_inputs as rawfiles

CHECKOUT = Path(__file__).resolve().parent.parent
SETTINGS = "gristmill.toml"


class Lake(dg.ConfigurableResource[Any]):
    """The data root: `data_root`, else the variable GRISTMILL_DATA, else `data/` in the checkout.

    The variable is read when a path is asked for, so that a code server need
    not be restarted for it.
    """

    data_root: str = ""

    @property
    def root(self) -> Path:
        """The data root, absolute."""
        chosen = self.data_root or os.environ.get("GRISTMILL_DATA") or CHECKOUT / "data"
        return Path(chosen).absolute()

    def inbox(self, family: str) -> Path:
        """Where raw drops of a family arrive; it may not be there yet."""
        return self.root / "drops" / keys.checked(family)

    def drop(self, family: str, key: str) -> Path:
        """The folder of one raw drop. Raises GristmillError where it is gone."""
        folder = self.inbox(family) / keys.checked(key)
        if not folder.is_dir():
            raise GristmillError(
                f"{folder}: the raw drop is gone: bring it back, or retire its partition with "
                f"`gristmill retire {key}`"
            )
        return folder

    def artifact(self, *names: str) -> str:
        """The POSIX path of an artifact relative to the root."""
        return "/".join(keys.checked(name) for name in names)

    def raw_inputs(
        self, artifact: str, files: Iterable[Path], asset: str, partition: str
    ) -> list[Input]:
        """Raw files below the root as inputs of `artifact`, hashed unless its record knows them."""
        known = rawfiles.known_hashes(self.root / artifact / provenance.RECORD)
        return rawfiles.raw_inputs(self.root, files, asset, partition, known)

    def published(self, artifact: str, asset: str, partition: str | None = None) -> Input:
        """A published artifact as an input of another one.

        Raises GristmillError where it is not there, or is another asset's.
        """
        folder = self.root / artifact
        path = provenance.record_path(folder, None, shared=False)
        if partition is not None and not path.exists():
            path = provenance.record_path(folder, partition, shared=True)
        if not path.exists():
            raise GristmillError(f"{path}: not there: materialize {asset} first")
        record = provenance.read_record(path)
        if record.asset != asset:
            raise GristmillError(f"{folder}: made by {record.asset}, expected {asset}")
        return Input(
            asset=record.asset,
            partition=record.partition,
            data_version=record.data_version,
            path=artifact,
        )

    def settings(self, asset: str, drop: Path | None = None) -> dict[str, Any]:
        """What `gristmill.toml` says of an asset: the drop's file, else the data root's.

        The table is named by the asset, `[macroxue.pack]` for `macroxue/pack`.
        Raises BadInput where a file is not TOML.
        """
        for file in self._settings_files(drop):
            try:
                table: Any = tomllib.loads(file.read_text(encoding="utf-8"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise BadInput(file, f"not TOML: {error}") from error
            for name in asset.split("/"):
                table = table.get(name, {}) if isinstance(table, dict) else {}
            if not isinstance(table, dict):
                raise BadInput(file, f"[{asset.replace('/', '.')}] must be a table")
            if table:
                return table
        return {}

    def _settings_files(self, drop: Path | None) -> Iterator[Path]:
        for folder in (drop, self.root):
            if folder is not None and (folder / SETTINGS).is_file():
                yield folder / SETTINGS
