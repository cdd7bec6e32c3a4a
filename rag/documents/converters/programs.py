"""The programs that convert some formats, and how to install them."""

import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from autoais.base.errors import install_command

INSTALL = {"pandoc": install_command("formats"), "asciidoctor": "apt install asciidoctor"}


@cache
def find_program(name: str) -> str | None:
    """The path of `pandoc` or `asciidoctor`; None if it is not installed.

    The pandoc of the extra `formats` (the package pypandoc_binary) comes before one on the PATH.
    """
    spec = find_spec("pypandoc") if name == "pandoc" else None
    if spec is not None and spec.origin is not None:
        program = Path(spec.origin).parent / "files" / name
        if program.is_file():
            return str(program)
    return shutil.which(name)
