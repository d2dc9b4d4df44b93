"""What packs, pools and value sidecars are on disk: rows, files, tables, kinds of folders."""
