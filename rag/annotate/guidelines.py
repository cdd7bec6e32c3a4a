"""The guidelines that annotators read: ours by scheme and kind of task, or a study's own file."""

import functools
import hashlib
import json
import math
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import sqlalchemy as sa
from markdown_it import MarkdownIt
from markupsafe import Markup

from rag.annotate.record import StudyRecord
from rag.annotate.schemes import KINDS, Kind, Scheme
from rag.annotate.store import GUIDELINES, fact, presses, study_facts
from rag.answer.export.escaping import visible
from rag.base.errors import StudyError


def guidelines(scheme: Scheme, kinds: Sequence[Kind] = KINDS) -> str:
    """Return the guidelines of a scheme, or ours for it and these kinds of task, in Markdown."""
    if scheme.guidelines is not None:
        return scheme.guidelines or _outline(scheme)
    if scheme.units == ("passage",):
        return _read(scheme.name)
    clear = any(question.name == "interpretable" for question in scheme.questions)
    names = [scheme.name]
    for kind in kinds:
        names += [f"clear-{kind}"] * clear + [f"supported-{kind}"]
    return "\n".join(_read(name) for name in [*names, "general"])


def _outline(scheme: Scheme) -> str:
    """The questions of a scheme without guidelines, with their choices."""
    lines = ["# Guidelines", ""]
    for question in scheme.questions:
        lines += [f"## {_escape(question.text_for('qa'))}", "", _escape(question.help), ""]
        lines += [f"- `{option.key}`: {_escape(option.label_for('qa'))}" for option in question.options]
        lines.append("")
    return "\n".join(lines)


def _escape(text: str) -> str:
    """Return a text as Markdown that shows it as it is, on one line."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(text.split()))


def guidelines_html(study: StudyRecord, kinds: Sequence[Kind] = KINDS) -> Markup:
    """Return the guidelines of a study as HTML: its own file if the settings name one, else ours.

    HTML in a file is shown as text, and links of other schemes than http, https and mailto are dropped. Raises
    `StudyError` if the study's file cannot be read.
    """
    return markdown_html(_text(study, kinds))


def _text(study: StudyRecord, kinds: Sequence[Kind]) -> str:
    if not study.settings.guidelines:
        return guidelines(study.scheme, kinds)
    path = study.folder / study.settings.guidelines
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: the guidelines cannot be read: {error}") from error


def record_guidelines(study: StudyRecord) -> None:
    """Record the checksum of the current guidelines, and the last press before them, if they have changed.

    Raises `StudyError` if the study's file cannot be read.
    """
    digest = hashlib.sha256(_text(study, KINDS).encode()).hexdigest()
    with study.database.read() as connection:
        versions = _read_versions(connection)
    if versions and versions[-1]["sha256"] == digest:
        return
    with study.database.write() as connection:
        versions = _read_versions(connection)
        if versions and versions[-1]["sha256"] == digest:  # another process was faster
            return
        last = connection.execute(sa.select(sa.func.coalesce(sa.func.max(presses.c.id), 0))).scalar_one()
        versions.append({"sha256": digest, "after": int(last) if versions else 0})
        connection.execute(sa.delete(study_facts).where(study_facts.c.name == GUIDELINES))
        connection.execute(sa.insert(study_facts).values(name=GUIDELINES, value=json.dumps(versions)))


def guideline_versions(connection: sa.Connection) -> list[dict[str, Any]]:
    """Return the checksums of the guidelines in their order, each with the number of presses made under it."""
    ids = connection.execute(sa.select(presses.c.id)).scalars().all()
    versions = _read_versions(connection)
    ends = [version["after"] for version in versions[1:]] + [math.inf]
    return [
        {"sha256": version["sha256"], "presses": sum(version["after"] < press <= end for press in ids)}
        for version, end in zip(versions, ends, strict=True)
    ]


def _read_versions(connection: sa.Connection) -> list[dict[str, Any]]:
    versions: list[dict[str, Any]] = json.loads(fact(connection, GUIDELINES) or "[]")
    return versions


@functools.lru_cache(maxsize=16)
def markdown_html(text: str) -> Markup:
    """Return Markdown as HTML: its own HTML is text, and it has no images."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return Markup(reader.render(visible(text)))


@functools.cache
def _read(name: str) -> str:
    return files("rag.annotate").joinpath("guidelines", f"{name}.md").read_text("utf-8")
