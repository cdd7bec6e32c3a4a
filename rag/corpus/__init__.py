"""Corpora: streams of passages from the field's formats and from documents."""
