"""How artifacts are read: by training, by the builders, and traced."""
