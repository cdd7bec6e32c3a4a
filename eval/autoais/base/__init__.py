"""What every room shares: types, errors, files, text, citation markers, models, engines."""
