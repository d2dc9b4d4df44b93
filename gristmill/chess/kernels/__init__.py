"""Compiled chess: the rules of the game on bitboards, for numba.

The modules import numba, so the functions that need them import them when they run. A game that
the compiled reader does not take goes to python-chess in `gristmill.chess.raw.python_chess`.
"""
