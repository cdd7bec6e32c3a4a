"""ALCE's measures of the answer itself (Gao et al. 2023, sec. 3, eval.py): STR-EM, QAMPARI, claims, ROUGE and MAUVE.

All score the first line of the output without citations, and are fractions; the script prints them times 100. The
references are those of ALCE's files, which `CitedAnswer.extra` keeps: `qa_pairs` (ASQA), `answers` (QAMPARI), `claims`
(ELI5), and `annotations` or `answer` for ROUGE and MAUVE.
"""

import string
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.base.errors import UserError, missing_extra
from autoais.base.markers.alce import Splitter, first_line, list_items, open_splitter, remove_citations
from autoais.base.text.folding import normalize_answer
from autoais.metrics.rates import Tally, f1

if TYPE_CHECKING:
    from autoais.base.answers import CitedAnswer

Rouge = Callable[[str, str], float]
_MAUVE_WORDS = 100


def text_to_score(answer: "CitedAnswer") -> str:
    """Return the text that ALCE scores: the output's first line, without citations."""
    return remove_citations(first_line(answer.plain if answer.output is None else answer.output))


def string_match(text: str, questions: Sequence[Sequence[str]]) -> float:
    """Return the share of ASQA's sub-questions with a short answer in the text, after SQuAD's normalisation (STR-EM).

    A short answer may be inside a word, as in ALCE. `questions` has the short answers of each; it must not be empty.
    """
    context = normalize_answer(text)
    return sum(any(normalize_answer(alias) in context for alias in short) for short in questions) / len(questions)


def qampari(text: str, answers: Sequence[Sequence[str]], *, cot: bool = False) -> dict[str, float]:
    """Return precision, recall, recall-5 and both F1 of a list of items; `answers` has the aliases of each answer.

    With `cot`, a text is a chain of thought, a colon and the list, as with the script's `--cot`: only what follows the
    first colon counts, and nothing of a text without one. Recall-5 is full with five answers found. Without answers the
    recalls are 0; the script fails.
    """
    if cot:
        text = text.partition(":")[2]
    items = [item for item in map(normalize_answer, list_items(text)) if item]
    aliases = [{normalize_answer(alias) for alias in aliases_of_answer} for aliases_of_answer in answers]
    all_aliases = set().union(*aliases)
    matches = sum(not aliases_of_answer.isdisjoint(items) for aliases_of_answer in aliases)
    precision = sum(item in all_aliases for item in items) / len(items) if items else 0.0
    recall = matches / len(answers) if answers else 0.0
    top = min(5, matches) / min(5, len(answers)) if answers else 0.0
    return {
        "qampari_prec": precision,
        "qampari_rec": recall,
        "qampari_rec_top5": top,
        "qampari_f1": f1(precision, recall),
        "qampari_f1_top5": f1(precision, top),
    }


@cache
def _rouge() -> Rouge:
    """Return ROUGE-Lsum's F of two texts with a sentence per line; raises `UserError` without the package."""
    try:
        from rouge_score import rouge_scorer
    except ImportError:
        raise missing_extra("ROUGE", "alce") from None
    scorer = rouge_scorer.RougeScorer(["rougeLsum"], use_stemmer=True)
    return lambda reference, text: float(scorer.score(reference, text)["rougeLsum"].fmeasure)


def rouge_lsum(text: str, references: Sequence[str], splitter: Splitter | None = None) -> float:
    """Return the best ROUGE-Lsum of the text against a reference, on lower-cased sentences, as ALCE computes it.

    ALCE prints the median of bootstrap means over answers, which changes from run to run; here it is their mean.
    """
    split = (splitter or open_splitter()).split
    lines = ["\n".join(split(document.lower())) for document in (text, *references)]
    return max(_rouge()(reference, lines[0]) for reference in lines[1:])


def mauve(pairs: Sequence[tuple[str, str]], model: Path) -> float:
    """Return MAUVE of (reference, output) pairs with ALCE's settings; each text begins with its question.

    `model` is a folder with GPT-2 large. Raises `UserError` if it or the package is missing.
    """
    check_mauve(model)
    import mauve as package

    human, machine = ([_first_words(text) for text in texts] for texts in zip(*pairs, strict=True))
    result = package.compute_mauve(
        p_text=human,
        q_text=machine,
        device_id=0,
        max_text_length=512,
        verbose=False,
        batch_size=8,
        featurize_model_name=str(model),
    )
    return float(result.mauve)


def check_mauve(model: Path) -> None:
    """Raise `UserError` unless MAUVE can be computed with the model in this folder."""
    from importlib.util import find_spec

    if find_spec("mauve") is None:
        raise missing_extra("MAUVE", "mauve")
    if "gpt2" not in str(model) or not (model / "config.json").is_file():
        raise UserError(f"{model} is not a folder with GPT-2 large (ALCE's model); its name must contain 'gpt2'")


def _first_words(text: str) -> str:
    return " ".join(text.split()[:_MAUVE_WORDS]).rstrip(string.punctuation)


class AlceAnswers:
    """Collects ALCE's measures over the answers whose references are known, each a mean over answers.

    A question of the benchmark without an answer scores 0. `splitter` names the sentence splitter for ROUGE, `mauve`
    the folder of GPT-2 large; without it MAUVE is left out. `cot` is that of `qampari`.
    """

    def __init__(self, splitter: str | None = None, mauve: Path | None = None, *, cot: bool = False) -> None:
        self._splitter, self._mauve, self._cot = splitter, mauve, cot
        self._tallies: dict[str, Tally] = {}
        self._claims_undecided = 0
        self._absent: dict[str, str] = {}
        self._texts: list[tuple[str, str]] = []

    def add(
        self, answer: "CitedAnswer | None", claims_held: Sequence[bool | None] = (), question: int | None = None
    ) -> dict[str, tuple[float, float]]:
        """Count one question, and return its score and 1 by measure, for `compare`.

        `claims_held` has a verdict per claim of the reference. `question` is as in `Tally.add`. Questions without an
        answer come last: they have the measures of the others.
        """
        values = dict.fromkeys(self._tallies, 0.0) if answer is None else self._values(answer, claims_held)
        for name, value in values.items():
            self._tallies.setdefault(name, Tally("answers")).add([value], question)
        return {name: (value, 1.0) for name, value in values.items()}

    def _values(self, answer: "CitedAnswer", claims_held: Sequence[bool | None]) -> dict[str, float]:
        values: dict[str, float] = {}
        text = text_to_score(answer)
        if short := short_answers(answer):
            match = string_match(text, short)
            values |= {"str_em": match, "str_hit": float(match == 1)}
        if answer.is_list:
            values |= qampari(text, answer.extra["answers"], cot=self._cot)
        if claims_held:
            self._claims_undecided += sum(outcome is None for outcome in claims_held)
            values["claims_nli"] = sum(outcome is True for outcome in claims_held) / len(claims_held)
        if answer.is_list:  # ALCE computes neither for lists
            return values
        if references := long_answers(answer):
            try:
                values["rougeLsum"] = rouge_lsum(text, references, open_splitter(self._splitter))
            except UserError as error:
                self._absent["rougeLsum"] = str(error)
        reference = answer.extra.get("answer")
        if self._mauve is not None and isinstance(reference, str):
            human, machine = (f"{answer.question} {body.strip()}" for body in (reference, text))
            self._texts.append((human, machine))
        return values

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the measures by ALCE's names, as JSON; those whose package is missing are null with the reason."""
        records: dict[str, dict[str, Any]] = {name: tally.mean().record() for name, tally in self._tallies.items()}
        if "claims_nli" in records:
            records["claims_nli"]["undecided_as_no"] = self._claims_undecided
        if "rougeLsum" in records:
            records["rougeLsum"]["splitter"] = open_splitter(self._splitter).name
        records |= {name: {"value": None, "reason": reason} for name, reason in self._absent.items()}
        if self._mauve is not None and self._texts:
            records["mauve"] = {
                "value": mauve(self._texts, self._mauve),
                "n": len(self._texts),
                "interval95": None,
                "model": self._mauve.name,
            }
        return records


def short_answers(answer: "CitedAnswer") -> list[list[str]] | None:
    """Return the short answers of each sub-question of ASQA; None if there are none."""
    pairs = answer.extra.get("qa_pairs")
    if not isinstance(pairs, list) or not pairs:
        return None
    answers: list[list[str]] = []
    for pair in pairs:
        short = pair.get("short_answers") if isinstance(pair, dict) else None
        if not isinstance(short, list) or not all(isinstance(alias, str) for alias in short):
            return None
        answers.append(short)
    return answers


def long_answers(answer: "CitedAnswer") -> list[str]:
    """Return the reference answers for ROUGE: the first two annotations of ASQA, else the answer."""
    notes = answer.extra.get("annotations")
    if isinstance(notes, list) and notes:
        references = [note.get("long_answer") if isinstance(note, dict) else None for note in notes[:2]]
    else:
        references = [answer.extra.get("answer")]
    return [reference for reference in references if isinstance(reference, str)]


def claims(answer: "CitedAnswer") -> list[str]:
    """Return the claims of ELI5 that an answer should support."""
    texts = answer.extra.get("claims")
    return texts if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else []
