"""The command `autoais`, also as `python -m autoais`."""

import sys

from autoais.base.interrupts import start


def main() -> None:
    """Entry point of `autoais`."""
    start("autoais.commands.main")


if __name__ == "__main__":
    sys.argv[0] = "autoais"  # as results record it
    main()
