"""Compiled chess: the rules of the game over bitboards, for numba.

Nothing here knows of files, JSON rows or configuration. The modules import
numba at their top, so they are imported lazily, by the functions that need
them. What the kernels do not take (variants, null moves, odd PGN syntax) they
hand back; `gristmill.chess.raw.python_chess` decides it with python-chess.
"""
