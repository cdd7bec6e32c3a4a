"""Reliability and ROC curves of a judge as SVG, one panel per data set; equal figures give equal bytes."""

import re
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_COLUMNS = 4
_SIDE = 190  # of a square plot, in pixels
_STRIP = 34  # height of the bars of n
_CELL_WIDTH, _CELL_HEIGHT = 270, 590
_MARGIN_LEFT, _TOP = 52, 62
_ROC_TOP = _TOP + _SIDE + _STRIP + 66
_BLUE, _ORANGE, _GREY = "#1f5f99", "#c2571a", "#8a8a8a"
_STYLE = (
    "text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;font-size:11px;fill:#333}"
    ".title{font-size:14px;font-weight:bold;fill:#111}.head{font-size:16px;font-weight:bold;fill:#111}"
    ".small{font-size:8.5px}.frame{fill:none;stroke:#555}.grid{stroke:#e4e4e4}"
    f".even{{stroke:{_GREY};stroke-dasharray:4 3}}.ends{{stroke:{_BLUE};stroke-width:1.2}}"
    f".dot{{fill:{_BLUE}}}.line{{fill:none;stroke:{_BLUE};stroke-width:1.4}}.bar{{fill:#b9cfe3}}"
    f".roc{{fill:none;stroke:{_ORANGE};stroke-width:1.8}}"
)


def reliability_svg(result: dict[str, Any]) -> Iterator[str]:
    """The lines of an SVG of a `meta.evaluate` result: the reliability and the ROC curve of each data set.

    Each dot is one bin of probabilities: mean probability (x), share of claims labelled attributable (y) with its
    95 % interval, and n below. The ROC curve goes through its 21 stored points. A set without probabilities
    shows the reason instead.
    """
    sets = result["sets"]
    columns = max(1, min(_COLUMNS, len(sets)))
    rows = -(-len(sets) // columns)
    width, height = max(columns * _CELL_WIDTH + 20, 560), rows * _CELL_HEIGHT + 60
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    yield f"<title>Reliability of {_text(result['judge'])}</title>"
    yield f"<style>{_STYLE}</style>"
    yield f'<rect width="{width}" height="{height}" fill="white"/>'
    yield f'<text class="head" x="16" y="28">{_text(_cut(result["judge"], width // 9))}</text>'
    yield (
        '<text x="16" y="46">Share of claims that people found attributable, by the judge\'s probability '
        "(bars: 95 %), and ROC curve</text>"
    )
    for number, (name, record) in enumerate(sets.items()):
        x_offset, y_offset = number % columns * _CELL_WIDTH + 10, number // columns * _CELL_HEIGHT + 50
        yield f'<g transform="translate({x_offset} {y_offset})">'
        yield from _panel(name, record)
        yield "</g>"
    yield "</svg>"


def _panel(name: str, record: dict[str, Any]) -> Iterator[str]:
    yield f'<text class="title" x="{_MARGIN_LEFT}" y="34">{_text(_cut(name, 26))}<title>{_text(name)}</title></text>'
    facts = [f"n = {record['n']}"]
    if record["undecided"]:
        facts.append(f"{record['undecided']} undecided")
    if record["calibration_error"] is not None:
        facts.append(f"ECE {record['calibration_error']:.3f}")
    yield f'<text x="{_MARGIN_LEFT}" y="51">{", ".join(facts)}</text>'
    if not record["reliability"]:
        reason = record["reasons"].get("reliability", "no probabilities")
        yield f'<text x="{_MARGIN_LEFT}" y="{_TOP + 30}">{_text(reason)}</text>'
        return
    yield from _axes(_TOP, "probability", "attributable", gap=_STRIP)
    points = []
    for item in record["reliability"]:
        x, share = _x(item["probability"]), item["attributable"]
        low, high = item["interval95"]
        points.append(f"{x},{_y(_TOP, share)}")
        yield f'<line class="ends" x1="{x}" x2="{x}" y1="{_y(_TOP, low)}" y2="{_y(_TOP, high)}"/>'
    yield f'<polyline class="line" points="{" ".join(points)}"/>'
    for point in points:
        x, y = point.split(",")
        yield f'<circle class="dot" cx="{x}" cy="{y}" r="3.2"/>'
    yield from _counts(record["reliability"])
    if record["roc"] is None:
        reason = record["reasons"].get("roc", "")
        yield f'<text x="{_MARGIN_LEFT}" y="{_ROC_TOP + 30}">no ROC curve: {_text(reason)}</text>'
        return
    yield from _axes(_ROC_TOP, "false positive rate", "true positive rate")
    steps = len(record["roc"]) - 1
    curve = " ".join(f"{_x(i / steps)},{_y(_ROC_TOP, hit)}" for i, hit in enumerate(record["roc"]))
    yield f'<polyline class="roc" points="{_x(0)},{_y(_ROC_TOP, 0)} {curve}"/>'
    area = f"AUC {record['roc_auc']:.3f}"
    yield f'<text x="{_MARGIN_LEFT + _SIDE - 8}" y="{_ROC_TOP + _SIDE - 10}" text-anchor="end">{area}</text>'


def _axes(top: int, x_label: str, y_label: str, *, gap: int = 0) -> Iterator[str]:
    """The axes of a unit square with ticks and diagonal; `gap` is the gap in pixels before the x labels."""
    bottom = top + _SIDE
    for step in range(6):
        share = step / 5
        x, y = _x(share), _y(top, share)
        if 0 < step < 5:
            yield f'<line class="grid" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'
            yield f'<line class="grid" x1="{_MARGIN_LEFT}" x2="{_MARGIN_LEFT + _SIDE}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{x}" y="{bottom + gap + 15}" text-anchor="middle">{share:g}</text>'
        yield f'<text x="{_MARGIN_LEFT - 6}" y="{float(y) + 4:g}" text-anchor="end">{share:g}</text>'
    yield f'<line class="even" x1="{_MARGIN_LEFT}" y1="{bottom}" x2="{_MARGIN_LEFT + _SIDE}" y2="{top}"/>'
    yield f'<rect class="frame" x="{_MARGIN_LEFT}" y="{top}" width="{_SIDE}" height="{_SIDE}"/>'
    middle = _MARGIN_LEFT + _SIDE / 2
    yield f'<text x="{middle:g}" y="{bottom + gap + 32}" text-anchor="middle">{x_label}</text>'
    rotation = f"translate(14 {top + _SIDE / 2:g}) rotate(-90)"
    yield f'<text transform="{rotation}" text-anchor="middle">{y_label}</text>'


def _counts(bins: list[dict[str, Any]]) -> Iterator[str]:
    """One bar per bin with its n on top."""
    highest, bottom, step = max(item["n"] for item in bins), _TOP + _SIDE + _STRIP, _SIDE / 10
    for item in bins:
        height = max(1.0, item["n"] / highest * (_STRIP - 13))
        x = _MARGIN_LEFT + item["bin"] * step
        box = f'x="{x + 1:g}" y="{bottom - height:.2f}" width="{step - 2:g}" height="{height:.2f}"'
        yield f'<rect class="bar" {box}/>'
        anchor = f'x="{x + step / 2:g}" y="{bottom - height - 2:.2f}"'
        yield f'<text class="small" {anchor} text-anchor="middle">{_short(item["n"])}</text>'


def _short(n: int) -> str:
    """A count in at most four characters, such as 9999, 12k or 3M."""
    return str(n) if n < 10_000 else f"{n // 1000}k" if n < 1_000_000 else f"{n // 1_000_000}M"


def _x(share: float) -> str:
    return f"{_MARGIN_LEFT + share * _SIDE:.2f}"


def _y(top: int, share: float) -> str:
    return f"{top + (1 - share) * _SIDE:.2f}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))
