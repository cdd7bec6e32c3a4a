"""Human labels of attribution, out of every format that holds some."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from autoais.types import Attribution, Verdict

_NUMBER_BEFORE = re.compile(r"^\[\d+\]\s*")
_MARKERS_AT_END = re.compile(r"(?:\s*\[\d+(?:\s*[,;]\s*\d+)*\])+(?=[\s.!?,;:\"'”’)]*$)")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A claim with its evidence, and whether people found it attributable.

    `verdict` is their label where it has more than two values (AttrScore's three); `system` is who made the claim,
    empty where the data does not say.
    """

    dataset: str
    id: str
    attribution: Attribution
    attributable: bool
    system: str = ""
    verdict: Verdict | None = None


def read_labels(path: Path) -> Iterator[Labelled]:
    """Stream the labels of a file, `FormatError` at the first broken record.

    The format is told from the fields of each record: AttributionBench, AttrScore, HAGRID, the judgements and
    annotations of Liu et al., the ratings of Attributed QA, and ours: `dataset, id, claim, evidence[], label` with
    label 1 for fully supported, else 0, and `question` where there is one. What nobody labelled is passed over.
    """
    from autoais import formats  # which itself says what a `Labelled` is made from

    return formats.read_labels(path)


def clean_claim(text: str) -> str:
    """The claim without the citation markers at its end: "... for poor countries [5]." (ExpertQA) asks for no 5."""
    return _MARKERS_AT_END.sub("", text)


def clean_reference(text: str) -> str:
    """The reference without the number before it, which is no part of the source (HAGRID's `[1] `, ExpertQA's `[5] `).

    ExpertQA's address after the number stays: it may say whose page it is.
    """
    return _NUMBER_BEFORE.sub("", text)


def any_informative(labels: Iterable[bool | None]) -> bool | None:
    """HAGRID's roll-up: an answer is informative if any sentence is; None where none is and some have no label."""
    listed = list(labels)
    return True if True in listed else None if None in listed or not listed else False


def all_attributable(labels: Iterable[bool | None]) -> bool | None:
    """HAGRID's roll-up: an answer is attributable if all sentences are; None where any has no label."""
    listed = list(labels)
    return None if None in listed or not listed else all(listed)
