"""Publishing: an artifact appears whole or not at all."""
