"""File input and output: JSON lines, records of any format, JSON Schemas, locks and provenance."""
