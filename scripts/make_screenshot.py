"""Draws docs/ask.svg: what `rag ask` shows in a terminal.

python scripts/make_screenshot.py
"""

from io import StringIO
from pathlib import Path

from rich.console import Console

from rag.index.open import open_index
from rag.systems import open_system
from rag.terminal import show_answer
from rag.types import Question

QUESTION = "What is citation precision?"


def main() -> None:
    """Answer from the handbook and save the terminal as SVG."""
    console = Console(record=True, force_terminal=True, width=100, file=StringIO(), highlight=False, markup=False)
    console.print(f'$ rag ask "{QUESTION}"')
    answer = next(iter(open_system("reader", open_index(None), k=6).answer([Question("q1", QUESTION)])))
    show_answer(answer, console)
    target = Path(__file__).parents[1] / "docs/ask.svg"
    target.write_text(console.export_svg(title="rag ask", unique_id="ask"), "utf-8")
    print(target)


if __name__ == "__main__":
    main()
