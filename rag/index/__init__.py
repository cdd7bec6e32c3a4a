"""Indexes: folders with passages, postings, and the parts that recipes add."""
