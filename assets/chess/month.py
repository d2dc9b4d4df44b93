"""One month: the names of its assets, the places of its artifacts, and its config.

See also `builds.py` for the builds that use them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from assets import configs
from gristmill import provenance
from gristmill.chess.config import MonthConfig
from gristmill.settings.tables import Settings
from resources import Lake, NotRebuilt

ELITE, VALID = "chess/elite_pgn", "chess/valid_games"

GAMES, CACHE, SPLICES = "chess/game_dataset", "chess/splice_cache", "chess/splice_dataset"

SETTINGS = "chess/month"

# Fields that must be equal in the configs of a dataset and its cache.
SHARED = ("min_context", "min_target", "seed")


def settings(lake: Lake) -> Settings:
    """Returns `[chess.month]` of gristmill.toml, with `games` in the place of `allow_draws`.

    lake: the data root.

    Raises BadInput if the settings name an unknown field or have a value of another type.
    """
    given = lake.settings(SETTINGS)
    if given.get("allow_draws") is None or "games" in given:
        return given
    values = {name: value for name, value in given.items() if name != "allow_draws"}
    return Settings(
        {**values, "games": MonthConfig(allow_draws=given["allow_draws"]).games}, given.file
    )


def choices(lake: Lake, run: BaseModel) -> MonthConfig:
    """Returns the config of a month: from the run, else `[chess.month]` in gristmill.toml.

    lake: the data root.
    run: the config of the run, from the resource `chess_month`.

    Raises BadInput if the settings name an unknown field, or if the config refuses a value.
    """
    return configs.resolve(MonthConfig, settings(lake), run)


def choices_of_dataset(lake: Lake, run: BaseModel, dataset: Path) -> MonthConfig:
    """Returns the config of a dataset's cache, with the fields of `SHARED` as the dataset has them.

    Raises NotRebuilt if the run sets another value for a field of `SHARED`.
    """
    built = provenance.read_record(dataset / provenance.RECORD).config
    for name, value in configs.chosen_values(run).items():
        if name in SHARED and value != built[name]:
            raise NotRebuilt(
                f"{dataset}: was built with {name} = {built[name]}, so its cache cannot have "
                f"{name} = {value}: materialize {GAMES} with {name} = {value} first"
            )
    return replace(choices(lake, run), **{name: built[name] for name in SHARED})


def elite_folder(lake: Lake, month: str) -> str:
    """Returns the path of a month's PGN, relative to the data root."""
    return lake.artifact("chess", "raw", "elite", month)


def valid_folder(lake: Lake, month: str) -> str:
    """Returns the path of a month's valid games, relative to the data root."""
    return lake.artifact("chess", "validated", f"elite_{month}")


def games_folder(lake: Lake, month: str) -> str:
    """Returns the path of a month's game dataset, relative to the data root."""
    return lake.artifact("chess", "dataset", f"elite_{month}_game")
