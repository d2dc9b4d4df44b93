"""Puzzle datasets for people: pictures, the terminal, traces, reports."""
