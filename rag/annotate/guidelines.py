"""The guidelines that annotators read: ours by scheme and kind of task, or a study's own file."""

import functools
from collections.abc import Sequence
from importlib.resources import files

from markdown_it import MarkdownIt
from markupsafe import Markup

from rag.annotate.schemes import KINDS, Kind, Scheme
from rag.annotate.study import Study
from rag.errors import StudyError
from rag.export.escaping import visible


def guidelines(scheme: Scheme, kinds: Sequence[Kind] = KINDS) -> str:
    """Return our guidelines for a scheme and these kinds of task, in Markdown."""
    clear = any(question.name == "interpretable" for question in scheme.questions)
    names = [scheme.name]
    for kind in kinds:
        names += [f"clear-{kind}"] * clear + [f"supported-{kind}"]
    return "\n".join(_read(name) for name in [*names, "general"])


def guidelines_html(study: Study, kinds: Sequence[Kind] = KINDS) -> Markup:
    """Return the guidelines of a study as HTML: its own file if the settings name one, else ours.

    HTML in a file is shown as text, and links of other schemes than http, https and mailto are dropped. Raises
    `StudyError` if the study's file cannot be read.
    """
    if not study.settings.guidelines:
        return _html(guidelines(study.scheme, kinds))
    path = study.folder / study.settings.guidelines
    try:
        return _html(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: the guidelines cannot be read: {error}") from error


@functools.lru_cache(maxsize=16)
def _html(text: str) -> Markup:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return Markup(reader.render(visible(text)))


@functools.cache
def _read(name: str) -> str:
    return files("rag.annotate").joinpath("guidelines", f"{name}.md").read_text("utf-8")
