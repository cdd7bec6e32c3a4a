"""Errors that a Python caller may see name the parameter; the command's option stands after it in parentheses."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
_OPTION = re.compile(r"(?<![\w-])--[a-z]")
_COMMAND = re.compile(r"(?:rag|autoais|pip|ray) [a-z]")
_IN_PARENTHESES = re.compile(r"\([^()]*\)")
_LEFT_OUT = re.compile(r"/commands/|terminal\.py$")  # what the commands themselves say


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of the errors that a module raises, with `{}` for values."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for argument in node.exc.args:
                parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
                texts = [str(one.value) if isinstance(one, ast.Constant) else "{}" for one in parts]
                yield node.lineno, "".join(texts)


def test_errors_of_the_library_name_the_parameter_and_not_only_the_option() -> None:
    faults = []
    for path in sorted([*ROOT.glob("rag/**/*.py"), *ROOT.glob("eval/autoais/**/*.py")]):
        name = path.relative_to(ROOT).as_posix()
        for line, text in [] if _LEFT_OUT.search(name) else messages(path):
            if _OPTION.search(_IN_PARENTHESES.sub("", text)) and not _COMMAND.search(text):
                faults.append(f"{name}:{line}: {text}")
    assert faults == []
