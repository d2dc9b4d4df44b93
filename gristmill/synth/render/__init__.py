"""How conversations become tokens, masks and spans. Files belong to `format` and `build`."""
