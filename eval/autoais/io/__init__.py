"""Files: JSON lines, records of any format, JSON Schemas, locks and provenance."""
