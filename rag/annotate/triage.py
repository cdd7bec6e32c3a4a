"""Model-assisted triage: people judge the items that a judge is not sure of, and a sample of the others.

The judge's labels stay in `triage.jsonl`, and never reach a page. The estimate over all items corrects the judge by the
people's labels (prediction-powered inference, Angelopoulos et al. 2023) instead of mixing the two.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import dumps, field, read_objects
from autoais.base.types import Attribution, Judge, Passage, Verdict
from autoais.judges import open_judge
from autoais.metrics.intervals import number_of
from autoais.metrics.ppi import Stratum, correct_rate, correct_strata
from rag.annotate.items import Item
from rag.base.errors import UsageError


@dataclass(frozen=True, slots=True)
class TriageDecision:
    """The judge's verdict on an item, and whether people judge it too: `chosen`, with probability `sampling`.

    `attributable` is the judge's verdict, undecided as no.
    """

    item: str
    judge: str
    attributable: bool
    probability: float | None
    confident: bool
    sampling: float
    chosen: bool


def triage(
    items: Sequence[Item], judge: "str | Judge", *, confident: float = 0.9, sample_share: float = 0.2, seed: int = 0
) -> list[TriageDecision]:
    """Judge the items; choose all that the judge is not sure of, and each other with probability `sample_share`.

    It is sure if its probability of attributable, or one minus that, is at least `confident`; a judge without
    probabilities is never sure. Raises `UsageError` for numbers out of range.
    """
    if not 0.5 < confident <= 1 or not 0 < sample_share <= 1:
        raise UsageError(
            f"confident should be above 0.5 and at most 1, and the share of the sample above 0 and at most 1,"
            f" found {confident} and {sample_share}"
        )
    complete_items = [item for item in items if not item.flags]
    chosen_judge = open_judge(judge) if isinstance(judge, str) else judge
    judgements = chosen_judge.judge([Attribution(item.text, _evidence(item), item.query) for item in complete_items])
    rows = []
    for item, judgement in zip(complete_items, judgements, strict=True):
        chance = random.Random(f"{seed} triage {item.id}").random()
        p = judgement.probability
        sure = judgement.verdict is not Verdict.UNDECIDED and p is not None and max(p, 1 - p) >= confident
        sampling = sample_share if sure else 1.0
        rows.append(
            TriageDecision(
                item.id, chosen_judge.name, bool(judgement.verdict.ais), p, sure, float(sampling), chance < sampling
            )
        )
    return rows


def _evidence(item: Item) -> tuple[str, ...]:
    if item.table is not None:
        cells = (" | ".join(cell.text for cell in row) for row in item.table.rows)
        return ("\n".join((item.table.title, item.table.section, *cells, item.table.text)),)
    return tuple(Passage(source.id, source.title, source.text, source.section).evidence for source in item.sources)


def write_triage(rows: Iterable[TriageDecision]) -> Iterator[str]:
    """Yield the lines of `triage.jsonl`."""
    return (dumps(asdict(row)) for row in rows)


def read_triage(path: Path) -> Iterator[TriageDecision]:
    """Stream `triage.jsonl`; raises `FormatError`."""
    for location, row in read_objects(path):
        has_probability = row.get("probability") is not None
        yield TriageDecision(
            field(row, "item", str, location),
            field(row, "judge", str, location),
            field(row, "attributable", bool, location),
            field(row, "probability", float, location) if has_probability else None,
            field(row, "confident", bool, location),
            field(row, "sampling", float, location),
            field(row, "chosen", bool, location),
        )


def estimate(rows: Iterable[TriageDecision], labels: Mapping[str, bool], topics: Mapping[str, str]) -> dict[str, Any]:
    """Return the share of attributable items among all, with a 95 % interval: the judge's, corrected by the labels.

    `labels` holds the people's consensus by item, `topics` the question that each item belongs to (`items.topic_of`).
    The items that the judge is sure of and the others are corrected each by itself, as they were sampled each by
    itself; the interval is over questions. JSON: value, interval95, n, questions, labelled, judge (the name and its
    uncorrected share), and `strata` with the records of `autoais.metrics.ppi.correct_rate`. `value` is None, with a
    reason, while a stratum has fewer than two labels.
    """
    rows = list(rows)
    if not rows:
        return {"value": None, "reason": "the judge judged no item", "n": 0, "labelled": len(labels)}
    parts: dict[str, list[TriageDecision]] = {"unsure": [], "confident": []}
    for row in rows:
        parts["confident" if row.confident else "unsure"].append(row)
    strata, records = [], {}
    for name, part in parts.items():
        human = {index: labels[row.item] for index, row in enumerate(part) if row.chosen and row.item in labels}
        if part and len(human) < 2:
            reason = f"{len(human)} labels of the {len(part)} {name} items: at least 2 are needed"
            return {"value": None, "reason": reason, "n": len(rows), "labelled": len(labels)}
        if part:
            verdicts = [row.attributable for row in part]
            questions = [number_of(topics[row.item]) for row in part]
            strata.append(Stratum(verdicts, human, questions))
            records[name] = correct_rate(verdicts, human, questions=questions) | {"sampling": part[0].sampling}
    value, interval = correct_strata(strata)
    return {
        "value": value,
        "interval95": list(interval),
        "n": len(rows),
        "questions": len({number for stratum in strata for number in stratum.questions}),
        "labelled": sum(len(stratum.human) for stratum in strata),
        "judge": {"name": rows[0].judge, "share": sum(row.attributable for row in rows) / len(rows)},
        "strata": records,
    }
