"""Tests of runs on a Ray cluster."""
