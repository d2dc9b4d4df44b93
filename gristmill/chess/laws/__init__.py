"""Laws of the chess artifacts: the rules that their contents must obey."""
