"""Metrics, all computed from the same judgements of claims against their citations."""
