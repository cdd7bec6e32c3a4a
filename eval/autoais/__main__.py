"""The command `autoais`, also as `python -m autoais`."""

from autoais.interrupts import start


def main() -> None:
    """Entry point of `autoais`."""
    start("autoais.cli")


if __name__ == "__main__":
    main()
