"""The command `rag`, also as `python -m rag`."""

from autoais.interrupts import start


def main() -> None:
    """Entry point of `rag`."""
    start("rag.cli")


if __name__ == "__main__":
    main()
