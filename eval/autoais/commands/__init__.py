"""The command line of `autoais`: each command parses its options, calls the library and prints."""
