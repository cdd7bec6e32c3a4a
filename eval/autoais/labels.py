"""Human labels of attribution: AttributionBench's format and one of our own, told apart by their fields."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoais.errors import FormatError
from autoais.jsonl import field, identifier, read_objects, strings
from autoais.types import Attribution

_MARKER = re.compile(r"^\[\d+\]\s*")  # HAGRID's references begin with their number


@dataclass(frozen=True, slots=True)
class Labelled:
    """A claim with its evidence, and whether people found it attributable."""

    dataset: str
    id: str
    attribution: Attribution
    attributable: bool


def read_labels(path: Path) -> Iterator[Labelled]:
    """Stream labels, `FormatError` at the first broken line.

    AttributionBench: `claim, references[], attribution_label, src_dataset, id`; its label is `attributable` or `not
    attributable`. Ours: `dataset, id, claim, evidence[], label` with label 1 for fully supported, else 0.
    """
    for where, row in read_objects(path):
        yield _attributionbench(row, where) if "attribution_label" in row else _own(row, where)


def _attributionbench(row: dict[str, Any], where: str) -> Labelled:
    label = row["attribution_label"]
    if label not in ("attributable", "not attributable"):
        raise FormatError(f"{where}: field 'attribution_label' should be (not) attributable, found {label!r}")
    evidence = tuple(_MARKER.sub("", reference) for reference in strings(row, "references", where))
    claim = field(row, "claim", str, where)
    dataset = field(row, "src_dataset", str, where)
    return Labelled(dataset, identifier(row, "id", where), Attribution(claim, evidence), label == "attributable")


def _own(row: dict[str, Any], where: str) -> Labelled:
    label = field(row, "label", int, where)
    if label not in (0, 1):
        raise FormatError(f"{where}: field 'label' should be 0 or 1, found {label}")
    attribution = Attribution(field(row, "claim", str, where), strings(row, "evidence", where))
    return Labelled(field(row, "dataset", str, where), identifier(row, "id", where), attribution, label == 1)
