"""Draws docs/ask.svg, the terminal output of `rag ask`.

python scripts/make_screenshot.py
"""

import re
from io import StringIO
from pathlib import Path

from rich.console import Console

import rag
from rag.commands.display import show_answer

QUESTION = "What is citation precision?"


def main() -> None:
    """Answer a question from the handbook and save the terminal output as SVG."""
    console = Console(record=True, force_terminal=True, width=100, file=StringIO(), highlight=False, markup=False)
    console.print(f'$ rag ask "{QUESTION}"')
    show_answer(rag.ask(QUESTION, k=6), console)
    target = Path(__file__).parents[1] / "docs/ask.svg"
    drawing = console.export_svg(title="rag ask", unique_id="ask")
    drawing = re.sub(r"@font-face \{.*?\}\s*", "", drawing, flags=re.DOTALL)  # fonts would be loaded from another host
    target.write_text(drawing, "utf-8")
    print(target)


if __name__ == "__main__":
    main()
