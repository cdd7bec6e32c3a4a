"""ExpertQA (Malaviya et al. 2024): a question per line, with answers of several systems, labelled claim by claim."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.io.files import record_key
from autoais.base.io.schema import STRING, STRINGS_OR_NULL, TEXT_OR_NULL, record
from autoais.base.labels import LabelledClaim, clean_claim, clean_reference
from autoais.base.types import Attribution, Citation, CitedSentence, Passage
from autoais.formats.base import Format, Notes, Row

_URL = re.compile(r"https?://\S+\Z")


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for number, (_, row) in enumerate(rows, 1):
        for system, answer in row["answers"].items():
            yield _answer(f"{number}/{system}", row["question"], system, answer)


def _answer(key: str, question: str, system: str, answer: dict[str, Any]) -> CitedAnswer:
    passages: dict[str, Passage] = {}
    sentences = []
    for number, claim in enumerate(answer.get("claims") or (), 1):
        cites = []
        for index, evidence in enumerate(claim.get("evidence") or (), 1):
            cites.append(f"{number}.{index}")
            text = clean_reference(evidence)
            # A URL alone is a pointer: its page is not in the file.
            passages[cites[-1]] = Passage(cites[-1], text="" if _URL.fullmatch(text.strip()) else text)
        sentences.append(
            CitedSentence(
                clean_claim(claim["claim_string"]),
                tuple(map(Citation, cites)),
                output=claim["claim_string"],
                attributable=_complete(claim.get("support")),
                worthy={"Yes": True, "No": False}.get(claim.get("worthiness") or ""),
            )
        )
    return CitedAnswer(
        id=key,
        question=question,
        sentences=tuple(sentences),
        passages=passages,
        ranking=tuple(passages),
        output=answer["answer_string"],
        extra={"system": system, "dataset": "ExpertQA"},
    )


def _complete(support: str | None) -> bool | None:
    """Return the label: only complete support is attributable, as in ExpertQA's own evaluation."""
    return support == "Complete" if support else None


def _labels(row: dict[str, Any], location: str) -> Iterator[LabelledClaim]:
    """Yield one label per claim that an expert judged worth a citation, as in ExpertQA's own evaluation."""
    for system, raw in row["answers"].items():
        answer = _answer(f"{record_key(location)}/{system}", row["question"], system, raw)
        for number, sentence in enumerate(answer.sentences):
            if sentence.attributable is not None and sentence.worthy is not False:
                evidence = tuple(answer.passages[key].evidence for key in sentence.cites)
                attribution = Attribution(sentence.text, evidence, answer.question)
                yield LabelledClaim("ExpertQA", f"{answer.id}/{number}", attribution, sentence.attributable, system)


EXPERTQA = Format(
    name="expertqa",
    description="ExpertQA's jsonl: questions, answers of several systems, claims with evidence and experts' labels",
    schema=record(
        {
            "question": STRING,
            "answers": {
                "type": "object",
                "additionalProperties": record(
                    {"answer_string": TEXT_OR_NULL},
                    {
                        "claims": {
                            "type": ["array", "null"],
                            "items": record(
                                {"claim_string": STRING},
                                {"evidence": STRINGS_OR_NULL, "support": TEXT_OR_NULL, "worthiness": TEXT_OR_NULL},
                            ),
                        }
                    },
                ),
            },
            "annotator_id": TEXT_OR_NULL,
            "metadata": {"type": ["object", "null"]},
        }
    ),
    required_fields=("question", "annotator_id", "answers", "metadata"),
    read=_read,
    labels=_labels,
)
