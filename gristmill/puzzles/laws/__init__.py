"""What must hold of a puzzle dataset: the contract, and the rules of each puzzle."""
