"""Generators: write an answer from a question and its hits."""
