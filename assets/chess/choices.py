"""Which files choose the config of a chess month: one table for all of its assets."""

from __future__ import annotations

from functools import partial

from assets.chess.month import CACHE, GAMES, SETTINGS, SHARED, SPLICES, VALID, settings
from assets.choices import Choices

_choices = partial(Choices, SETTINGS, lambda lake, _: settings(lake), resource="chess_month")
# Another name of `games`, which says the same.
_OLDER = ("allow_draws",)

CHOICES = {
    VALID: _choices(),
    GAMES: _choices(left_out=_OLDER),
    # The dataset gives its cache the fields that both must have alike.
    CACHE: _choices(fields={"cache_cap": "max_samples_per_game"}, left_out=SHARED),
    SPLICES: _choices(
        fields={"legacy_cap": "max_samples_per_game", "legacy_k": "k"}, left_out=_OLDER
    ),
}
