"""Compiled chess: the rules of the game on bitboards, for numba."""
