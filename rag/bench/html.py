"""The page of a report: rendering by Jinja2, figures as images, intervals in per cent, hidden characters shown."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from rag.answer.export import escaping
from rag.base.errors import missing_extra
from rag.bench.plots import Figure

Image = tuple[Figure, str, str]
"""A figure and its SVG, for a light and for a dark page."""

_BREAKING = re.compile(r"[^\S ]|[\u0000-\u001f\u200e\u200f]")  # they would end a cell, or reorder a row


def render(template: str, view: Mapping[str, Any], **parts: str) -> str:
    """Return the HTML of a template; the texts of `view` are made visible. Raises `RagError` without Jinja2."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise missing_extra("a report", "report") from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    style = files("rag.bench").joinpath("page.css").read_text("utf-8")
    values = {name: _all_visible(value) for name, value in view.items()}
    return environment.from_string(template).render(**values, **parts, style=style, style_hash=csp_hash(style))


def csp_hash(text: str) -> str:
    """Return the hash of a style or script, for a Content-Security-Policy."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def figure_views(images: Sequence[Image]) -> list[dict[str, Any]]:
    """Return the figures as the templates take them, with their images in base64."""
    return [
        {
            "title": figure.title,
            "text": figure.text,
            "light": base64.b64encode(light.encode()).decode(),
            "dark": base64.b64encode(dark.encode()).decode(),
            "height": round(100 * figure.height),
        }
        for figure, light, dark in images
    ]


def percent_range(ends: Sequence[float] | None) -> str:
    """Return the ends of an interval of a share, in per cent; empty if there is none."""
    return f"[{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else ""


def visible(text: str) -> str:
    """Return the text with hidden characters, and those that would end a cell or reorder a row, as U+FFFD."""
    return _BREAKING.sub("\ufffd", escaping.visible(text))


def _all_visible(value: Any) -> Any:  # noqa: ANN401  (JSON in, JSON out)
    """Return the value with `visible` applied to every string in it."""
    if isinstance(value, dict):
        return {key: _all_visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_all_visible(item) for item in value]
    return visible(value) if isinstance(value, str) else value
