"""Formats with one claim per record: AttributionBench, AttrScore, and our own labels."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError
from autoais.base.io.files import record_key
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import IDENTIFIER, STRING, TEXT_OR_NULL, record
from autoais.base.labels import LabelledClaim, clean_claim, clean_reference
from autoais.base.types import Attribution, Citation, CitedSentence, Passage, Support, Verdict
from autoais.formats.base import Fault, Format, Notes, Row, dataset_name, unique_id

_VERDICTS = {
    "attributable": Verdict.ATTRIBUTABLE,
    "extrapolatory": Verdict.EXTRAPOLATORY,
    "contradictory": Verdict.CONTRADICTORY,
}
_KEEPS = frozenset(
    {"ids", "sentences", "boundaries of sentences", "labels of sentences", "labels of answers", "texts of passages"}
)


def claim_answer(label: LabelledClaim, extra: dict[str, Any]) -> CitedAnswer:
    """Return the claim as an answer of one sentence that cites all its evidence; passage ids are numbers from 1."""
    passages = {str(n): Passage(str(n), text=text) for n, text in enumerate(label.attribution.evidence, 1)}
    claim = CitedSentence(label.attribution.claim, tuple(map(Citation, passages)), attributable=label.attributable)
    return CitedAnswer(
        id=label.id,
        question=label.attribution.question,
        sentences=(claim,) if claim.text else (),
        passages=passages,
        ranking=tuple(passages),
        attributable=label.attributable,
        extra={"dataset": label.dataset} | extra,
    )


def read_labels(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[tuple[CitedAnswer, str, CitedSentence, bool]]:
    """Yield (answer, id, sentence, label) of the sentences with a human label; count the others."""
    for answer in answers:
        for number, sentence in enumerate(answer.sentences):
            if sentence.attributable is None:
                notes["sentences without a human label, left out"] += 1
                continue
            key = answer.id if len(answer.sentences) == 1 else f"{answer.id}/{number}"
            yield answer, key, sentence, sentence.attributable


def _evidence(answer: CitedAnswer, sentence: CitedSentence) -> list[str]:
    return [answer.passages[key].evidence for key in sentence.cites]


# --- AttributionBench ----------------------------------------------------------------------------------------------


def _bench_label(row: dict[str, Any], location: str) -> LabelledClaim:
    evidence = tuple(map(clean_reference, row["references"] or ()))
    attribution = Attribution(clean_claim(row["claim"]), evidence, row.get("question") or "")
    return LabelledClaim(row["src_dataset"], str(row["id"]), attribution, row["attribution_label"] == "attributable")


def _bench_read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for location, row in rows:
        fields = {k: v for k, v in row.items() if k not in ("id", "question", "claim", "references", "src_dataset")}
        yield claim_answer(_bench_label(row, location), fields)


def _bench_write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    for answer, key, sentence, label in read_labels(answers, notes):
        yield dumps(
            {
                "question": answer.question,
                "claim": sentence.text,
                "claim_raw_string": answer.extra.get("claim_raw_string", sentence.output or sentence.text),
                "response": answer.extra.get("response", answer.output or answer.plain),
                "references": _evidence(answer, sentence),
                "citation_links": answer.extra.get("citation_links", []),
                "webpage_references": answer.extra.get("webpage_references", []),
                "attribution_label": "attributable" if label else "not attributable",
                "src_dataset": answer.extra.get("dataset", "converted"),
                "id": key,
            }
        )


def _bench_check(rows: Iterable[Row]) -> Iterator[Fault]:
    for location, row in rows:
        if not any(text.strip() for text in row["references"] or ()):
            yield Fault(location, "field 'references' is empty: nothing to judge the claim against", warning=True)


ATTRIBUTIONBENCH = Format(
    name="attributionbench",
    description="AttributionBench's jsonl: one claim per line, with references and a label",
    schema=record(
        {
            "claim": STRING,
            "references": {"type": ["array", "null"], "items": STRING},
            "attribution_label": {"type": "string", "enum": ["attributable", "not attributable"]},
            "src_dataset": STRING,
            "id": IDENTIFIER,
        },
        {"question": TEXT_OR_NULL, "claim_raw_string": TEXT_OR_NULL, "response": TEXT_OR_NULL},
    ),
    required_fields=("claim", "attribution_label"),
    read=_bench_read,
    write=_bench_write,
    labels=lambda row, location: iter([_bench_label(row, location)]),
    check=_bench_check,
    ids=unique_id("id"),
    supports=_KEEPS | {"citations beyond the first"},
)

# --- AttrScore -----------------------------------------------------------------------------------------------------


def _text(row: dict[str, Any], name: str) -> str:
    """Return a text field; AttrScore's tables write missing texts as "nan"."""
    text = row.get(name) or ""
    return "" if text.strip().lower() == "nan" else text


def _attrscore_label(row: dict[str, Any], location: str) -> LabelledClaim:
    query, answer = _text(row, "query"), _text(row, "answer")
    # "A claim can be either a plain sentence or a question followed by its answer" (AttrScore's prompt): the sentence
    # may be in either field.
    claim, question = (answer, query) if answer.strip() else (query, "")
    verdict = _VERDICTS[row["label"].strip().lower()]
    attribution = Attribution(clean_claim(claim), (_text(row, "reference"),), question)
    key = str(row["id"]) if "id" in row else record_key(location)
    return LabelledClaim("AttrScore", key, attribution, verdict is Verdict.ATTRIBUTABLE, verdict=verdict)


def _attrscore_read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for location, row in rows:
        yield claim_answer(_attrscore_label(row, location), {"label": row["label"].strip().capitalize()})


def _attrscore_write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    for answer, key, sentence, label in read_labels(answers, notes):
        three_way = answer.extra.get("label")
        if not label and three_way not in ("Extrapolatory", "Contradictory"):
            notes["sentences neither attributable, extrapolatory nor contradictory, left out"] += 1
            continue
        evidence = _evidence(answer, sentence) or [""]
        for number, text in enumerate(evidence, 1):
            yield dumps(
                {
                    "id": key if len(evidence) == 1 else f"{key}/{number}",
                    "query": answer.question,
                    "answer": sentence.text,
                    "reference": text,
                    "label": "Attributable" if label else three_way,
                }
            )


ATTRSCORE = Format(
    name="attrscore",
    description="AttrScore's rows (jsonl, csv or a JSON list): query, answer, one reference, one of three labels",
    schema=record(
        {
            "reference": TEXT_OR_NULL,
            "label": {"type": "string", "pattern": r"^\s*([Aa]ttributable|[Ee]xtrapolatory|[Cc]ontradictory)\s*$"},
        },
        {"query": TEXT_OR_NULL, "answer": TEXT_OR_NULL, "id": IDENTIFIER},
    ),
    required_fields=("query", "answer", "reference", "label"),
    read=_attrscore_read,
    by_place=lambda row: "id" not in row,
    write=_attrscore_write,
    labels=lambda row, location: iter([_attrscore_label(row, location)]),
    ids=unique_id("id"),
    supports=_KEEPS,
    csv=True,
)

# --- ours ----------------------------------------------------------------------------------------------------------


_IN_CSV = ("0", "1", "true", "false", "TRUE", "FALSE", "True", "False")


def _own_label(row: dict[str, Any], location: str) -> LabelledClaim:
    evidence = row.get("evidence") or ()
    texts = (evidence,) if isinstance(evidence, str) else tuple(evidence)
    attribution = Attribution(row["claim"], texts, row.get("question") or "")
    support = Support(row["support"]) if row.get("support") else None
    label = str(row["label"]).casefold() in ("1", "true")
    if support is not None and (support is Support.FULL) != label:
        raise FormatError(f"{location}: field 'support' is {support.value!r}, but field 'label' is {row['label']}")
    return LabelledClaim(
        row.get("dataset") or dataset_name(location.rpartition(":")[0]),
        str(row["id"]) if "id" in row else record_key(location),
        attribution,
        label,
        row.get("system") or "",
        support=support,
    )


def _own_read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    """Yield the answers; a repeated id, as in files of several data sets, gets a number: `ID (2)`."""
    names = ("id", "question", "claim", "evidence", "dataset", "label")
    times: Counter[str] = Counter()
    for location, row in rows:
        answer = claim_answer(_own_label(row, location), {key: value for key, value in row.items() if key not in names})
        times[answer.id] += 1
        yield answer if times[answer.id] == 1 else replace(answer, id=f"{answer.id} ({times[answer.id]})")


def _own_write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    for answer, key, sentence, label in read_labels(answers, notes):
        yield dumps(
            {
                "dataset": answer.extra.get("dataset", "converted"),
                "id": key,
                "question": answer.question,
                "claim": sentence.text,
                "evidence": _evidence(answer, sentence),
                "label": int(label),
                **{name: answer.extra[name] for name in ("system", "support") if name in answer.extra},
            }
        )


LABELS = Format(
    name="labels",
    description="our own labels (jsonl or csv): question, claim, evidence, label (1 = fully supported), support",
    schema=record(
        {"claim": STRING, "label": {"type": ["integer", "boolean", "string"], "enum": [0, 1, False, True, *_IN_CSV]}},
        {
            "dataset": STRING,
            "id": IDENTIFIER,
            "evidence": {"type": ["array", "string", "null"], "items": STRING},
            "question": TEXT_OR_NULL,
            "system": TEXT_OR_NULL,
            "support": {"type": ["string", "null"], "enum": [*Support, "", None]},
        },
    ),
    required_fields=("claim", "label"),
    read=_own_read,
    by_place=lambda row: "id" not in row,
    write=_own_write,
    labels=lambda row, location: iter([_own_label(row, location)]),
    supports=_KEEPS | {"systems", "citations beyond the first"},
    csv=True,
)
