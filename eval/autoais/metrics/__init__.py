"""Metrics, all from the same judgements of a claim against some of what it cites."""
