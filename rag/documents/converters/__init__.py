"""Converters: each turns the files of one format into blocks, most of them by way of HTML."""
