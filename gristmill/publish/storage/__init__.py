"""What a file system gives, and how publishing works on one that exchanges no folders."""
