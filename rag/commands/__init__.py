"""The command line of `rag`: each command parses its options, calls the library and prints."""
