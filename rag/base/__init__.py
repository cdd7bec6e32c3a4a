"""What every room shares: types, errors, configuration, network, files that ship."""
