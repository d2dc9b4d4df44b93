"""What is in files that somebody has, before anything is built, and the recipe that reads them."""
