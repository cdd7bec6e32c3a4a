"""Citation markers in generated text: found, read, and taken out."""
