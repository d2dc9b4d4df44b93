"""The code version of each builder: raised when what it writes for the same input changes.

They stand by themselves so that the code location can name them without
importing what the builders need.
"""

ELITE_PGN = "1"
VALID_GAMES = "1"
GAME_DATASET = "1"
SPLICE_CACHE = "1"
SPLICE_DATASET = "1"
