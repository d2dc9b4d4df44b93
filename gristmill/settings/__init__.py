"""Settings: what the fields of a config may hold, and the tables of `gristmill.toml`."""
