"""What every room shares: types, errors, configuration, files that ship."""
