"""Human labels of attribution, common to all label formats."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from autoais.base.types import Attribution, CitedSentence, Support, Verdict

_NUMBER_BEFORE = re.compile(r"^\[\d+\]\s*")
_MARKERS_AT_END = re.compile(r"(?:\s*\[\d+(?:\s*[,;]\s*\d+)*\])+(?=[\s.!?,;:\"'”’)]*$)")


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim with its evidence, and whether people found it attributable.

    `verdict` is the label if the data has more than two (AttrScore's three), `support` if it has levels of support.
    `system` is the system that made the claim, empty if unknown.
    """

    dataset: str
    id: str
    attribution: Attribution
    attributable: bool
    system: str = ""
    verdict: Verdict | None = None
    support: Support | None = None


def clean_claim(text: str) -> str:
    """Return the claim without citation markers at its end, such as ExpertQA's "... for poor countries [5]."."""
    return _MARKERS_AT_END.sub("", text)


def clean_reference(text: str) -> str:
    """Return the reference without its leading number, which is not in the source (HAGRID's `[1] `, ExpertQA's `[5] `).

    The URL that follows the number in ExpertQA stays: it may identify the publisher.
    """
    return _NUMBER_BEFORE.sub("", text)


def answer_attributable(labels: Iterable[bool | None]) -> bool | None:
    """Aggregate human labels of sentences: all must be attributable; None if a label is missing or there are none."""
    label_list = list(labels)
    return None if not label_list or None in label_list else all(label_list)


def sentences_attributable(sentences: Iterable[CitedSentence]) -> bool | None:
    """Aggregate as `answer_attributable`, over the sentences that people find worth verifying (Liu et al. 2023).

    The support of the others is not asked, so that they have no label. None if there are no sentences but these.
    """
    return answer_attributable(sentence.attributable for sentence in sentences if sentence.worthy is not False)


def answer_informative(labels: Iterable[bool | None]) -> bool | None:
    """Aggregate human labels of sentences: one informative sentence is enough; else None without all labels."""
    label_list = list(labels)
    if any(label_list):
        return True
    return None if not label_list or None in label_list else False
