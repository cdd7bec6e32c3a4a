"""Types, errors, files, text, citation markers, models and engines, shared by all rooms."""
