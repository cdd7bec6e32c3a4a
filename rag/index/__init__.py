"""An index: a folder with passages, postings, and the parts that recipes add."""
