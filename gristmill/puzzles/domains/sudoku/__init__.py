"""Sudoku: boards, findings, solutions, symmetries and twins."""
