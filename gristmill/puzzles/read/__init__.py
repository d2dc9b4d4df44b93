"""Reading puzzle datasets: for training, for laws, for people."""
