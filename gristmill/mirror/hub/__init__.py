"""Publishing in dataset repositories of the hub. Source: `docs/mirror.md`."""
