"""Types, errors, files, text, citation markers, network, models and engines, shared by all rooms."""
