"""The rules of 2048: moves, board evaluation, true ranks, discounted returns."""
