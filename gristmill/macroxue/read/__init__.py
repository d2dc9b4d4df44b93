"""How packs, pools and value sidecars are read: by training, by builders, by people."""
