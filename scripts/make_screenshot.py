"""Draws what `rag ask` prints: docs/ask.svg, and with a language model a picture of each way to answer.

    python -m scripts.make_screenshot
    python -m scripts.make_screenshot --model gguf:FILE

The pictures of a model are docs/images/answer-{free,point,quote}.svg, over the handbook like the first.
"""

import re
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import rag
from rag.base.types import Answer
from rag.commands.display import show_answer

ROOT = Path(__file__).parents[1]
QUESTION = "What is citation precision?"


def draw(command: str, answer: Answer, target: Path, *, sources: bool = False) -> None:
    """Save the terminal output of a command as SVG."""
    console = Console(record=True, force_terminal=True, width=100, file=StringIO(), highlight=False, markup=False)
    console.print(f"$ {command}")
    show_answer(answer, console, sources=sources)
    drawing = console.export_svg(title="rag ask", unique_id=target.stem)
    drawing = re.sub(r"@font-face \{.*?\}\s*", "", drawing, flags=re.DOTALL)  # fonts would be loaded from another host
    target.write_text(drawing, "utf-8")
    print(target)


def main(model: Annotated[str | None, typer.Option(help="Language model, such as gguf:FILE.")] = None) -> None:
    """Draw the pictures."""
    if model is None:
        draw(f'rag ask "{QUESTION}"', rag.ask(QUESTION, k=6), ROOT / "docs/ask.svg")
        return
    for way in ("free", "point", "quote"):
        answer = rag.open_system(model, answer=way).ask(QUESTION)
        command = f'rag ask "{QUESTION}" --system {model.partition(":")[0]}:MODEL --answer {way} --sources'
        draw(command, answer, ROOT / f"docs/images/answer-{way}.svg", sources=True)


if __name__ == "__main__":
    typer.run(main)
