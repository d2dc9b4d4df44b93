"""Raw input of the chess family: months, archives, downloads, and PGN as a stream of games."""
