"""Which files choose the config of packs, values and pools."""

from __future__ import annotations

from pathlib import Path

from assets.choices import Choices
from gristmill import keys
from gristmill.macroxue.raw.pool_file import PoolFile, read_pool_file
from gristmill.settings.tables import Settings
from resources import Lake

PACK, VALUES, POOL = "macroxue/pack", "macroxue/values", "macroxue/pool"


def pack_settings(lake: Lake, key: str) -> Settings:
    """Returns what files give for a pack; a drop that is gone has no file."""
    drop = lake.inbox("macroxue") / key
    return lake.settings(PACK, drop if drop.is_dir() else None)


def pool_settings(lake: Lake, described: PoolFile, key: str) -> Settings:
    """Returns what files give for a pool: the pool's file, key by key, before the data root's."""
    return Settings({**lake.settings(POOL), **described.settings}, file=pool_file(lake, key))


def pool_file(lake: Lake, key: str) -> Path:
    """Returns the file of a pool.

    Raises BadKey for a text that is no key: it could name a file outside of the inbox.
    """
    return lake.inbox("pools") / f"{keys.checked(key)}.toml"


def _pool_settings(lake: Lake, key: str) -> Settings:
    return pool_settings(lake, read_pool_file(pool_file(lake, key), lake.link_rule()), key)


CHOICES = {
    PACK: Choices(PACK, pack_settings),
    VALUES: Choices(VALUES, lambda lake, _: lake.settings(VALUES)),
    POOL: Choices(POOL, _pool_settings),
}
