"""Indexes: folders with passages, postings, and the parts that retrievers add."""
