"""Plain text to blocks: headings, lists, code, tables and paragraphs, by how their lines look."""
