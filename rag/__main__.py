"""The command `rag`, also as `python -m rag`."""

import sys

from autoais.base.interrupts import start


def main() -> None:
    """Entry point of `rag`."""
    start("rag.commands.main")


if __name__ == "__main__":
    sys.argv[0] = "rag"  # as results record it
    main()
