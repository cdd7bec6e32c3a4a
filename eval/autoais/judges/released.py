"""`released:<file>`: the verdicts of the AutoAIS that Attributed QA's ratings come with (Bohnet et al. 2022)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from autoais import formats
from autoais.base.errors import UserError
from autoais.base.io.provenance import sha256_file
from autoais.base.types import CONTRADICT, Attribution, Judge, Judgement, Verdict
from autoais.formats.aqa import RATINGS
from autoais.metrics.judged import claims_to_judge

_THRESHOLD = 0.5  # of the entailment score, in the release
_UNKNOWN = Judgement(Verdict.UNDECIDED, None, "the file has no verdict on this pair")


class ReleasedJudge(Judge):
    """Says what the columns `auto_ais` and `nli_score` of a file of ratings say, so that no model is needed.

    `model` is the file. Where `auto_ais` is empty, an `nli_score` above 0.5 is a yes, as in the release. Pairs that are
    not in the file are undecided, and so is a pair with two verdicts.
    """

    def __init__(self, model: str) -> None:
        file = Path(model)
        if not file.is_file():
            raise UserError(f"judge 'released:{model}': there is no file {model}; name Attributed QA's ratings (csv)")
        if (format_name := formats.detect(file)) != RATINGS.name:
            raise UserError(f"{file}: is {format_name}; released: reads {RATINGS.name}, with auto_ais and nli_score")
        self._name = f"released@{sha256_file(file)[:12]}"
        self._known: dict[Attribution, Judgement] = {}
        for answer in formats.read(file, RATINGS.name):
            if (judgement := _judgement(answer.extra, answer.id)) is None:
                continue
            for claim in filter(None, claims_to_judge(answer)):
                pair = claim.pair(range(len(claim.evidence)))[0]
                if self._known.setdefault(pair, judgement).verdict is not judgement.verdict:
                    self._known[pair] = Judgement(Verdict.UNDECIDED, None, CONTRADICT)
        if not self._known:
            raise UserError(f"{file}: no row has a verdict of AutoAIS (auto_ais or nli_score)")

    @property
    def name(self) -> str:
        """`released@<checksum of the file>`, 12 hex digits."""
        return self._name

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Look the attributions up in the file."""
        return [self._known.get(attribution, _UNKNOWN) for attribution in attributions]


def _judgement(row: Mapping[str, object], answer: str) -> Judgement | None:
    label, score = (str(row.get(name) or "") for name in ("auto_ais", "nli_score"))
    try:
        probability = float(score) if score else None
    except ValueError:
        probability = -1.0
    if probability is not None and not 0 <= probability <= 1:
        raise UserError(f"answer {answer!r:.80}: nli_score should be a number from 0 to 1, found {score[:20]!r}")
    if not label and probability is None:
        return None
    yes = label == "Y" if label else probability is not None and probability > _THRESHOLD
    return Judgement(Verdict.ATTRIBUTABLE if yes else Verdict.NOT_ATTRIBUTABLE, probability)
