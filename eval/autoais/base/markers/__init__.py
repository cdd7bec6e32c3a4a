"""Detection, resolution and removal of citation markers in generated text."""
