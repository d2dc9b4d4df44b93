"""Tokenizers that people bring: the asset, its inbox, and what is shown of one."""
