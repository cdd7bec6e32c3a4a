"""Simulated training pairs from passages and questions: one changed fact in the same words, or one fact reworded.

The pairs are AttrScore's four cases (Yue et al. 2023, Figure 2) on sentences of a corpus: A unchanged, B claim changed,
C evidence changed, D evidence without the claim. B and C use the same edits in both directions: an edited sentence is a
supported claim if the evidence has the edit, so the claim alone never reveals the label.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from autoais.base.text.excerpt import split_sentences
from autoais.base.text.words import content_stems
from autoais.base.types import Attribution
from autoais.judges.templates import attributed_qa, declarative
from autoais.metrics.short_answers import has_answer
from autoais.training.edits import BREAKING, DROPPING, PARAPHRASES, Edited, apply


@dataclass(frozen=True, slots=True)
class Example:
    """A training pair. `unsupported` holds (start, end) characters of the claim that lack support; None: unknown."""

    source: str
    question: str
    claim: str
    evidence: tuple[str, ...]
    label: int
    unsupported: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A passage with its title."""

    title: str
    text: str

    @property
    def evidence(self) -> str:
        """Title, full stop and text, like the premise of AutoAIS (Bohnet et al. 2022)."""
        return f"{self.title}. {self.text}" if self.title else self.text


_PRONOUN = re.compile(r"^(?:He|She|It|The (?:film|album|song|band|city|company|book|series|town|game|team))\b(?!')")


def _sentences(page: Page) -> list[str]:
    return [page.text[s:e] for s, e in split_sentences(page.text)]


def _usable(sentence: str) -> bool:
    return 40 <= len(sentence) <= 260 and sentence[0].isupper() and sentence[-1] == "." and "\n" not in sentence


def _replace_pronoun(sentence: str, index: int, page: Page, rng: random.Random) -> str:
    """The sentence with an initial pronoun sometimes replaced by the title, like a standalone claim.

    Only the first sentence of a passage is changed.
    """
    title = re.sub(r" \(.*\)$", "", page.title)
    match = _PRONOUN.match(sentence)
    if match and title and index == 0 and rng.random() < 0.6:
        return title + sentence[match.end() :]
    return sentence


def _reword(sentence: str, rng: random.Random, times: int, leave: Sequence[str] = ()) -> str:
    table = {name: row for name, row in PARAPHRASES.items() if name not in leave}
    for _ in range(times):
        edit = apply(table, sentence, rng)
        if edit is None:
            break
        sentence = edit[1].text
    return sentence


def _around(sentences: Sequence[str], index: int, new: str | None, page: Page, rng: random.Random) -> str:
    """The passage, or sometimes a part of it, with the sentence at `index` replaced, or removed if `new` is None."""
    remaining = [*sentences[:index], *([] if new is None else [new]), *sentences[index + 1 :]]
    if new is not None and rng.random() < 0.35:
        start = index
        remaining = remaining[max(0, start - rng.randint(0, 1)) : start + rng.randint(1, 2)]
    text = " ".join(remaining)
    return Page(page.title, text).evidence if rng.random() < 0.7 else text


def from_page(page: Page, other_pages: Sequence[Page], rng: random.Random) -> Iterator[Example]:
    """Training pairs from one sentence of a passage; `other_pages` supply names, numbers and distractors."""
    sentences = _sentences(page)
    indices = [i for i, sentence in enumerate(sentences) if _usable(sentence)]
    if not indices:
        return
    index = rng.choice(indices)
    source = sentences[index]
    context = [" ".join(s for i, s in enumerate(sentences) if i != index), other_pages[0].text]
    distraction = tuple(other.evidence for other in other_pages[1 : 1 + (rng.random() < 0.2) + (rng.random() < 0.1)])

    def pair(kind: str, claim: str, evidence: str, label: int, spans: Sequence[tuple[int, int]] | None) -> Example:
        texts = [evidence, *distraction]
        rng.shuffle(texts)
        return Example(f"page/{kind}", "", claim, tuple(texts), label, None if spans is None else tuple(spans))

    claim = _reword(_replace_pronoun(source, index, page, rng), rng, rng.choice([0, 1, 1, 2, 2, 3]))
    statement = _reword(source, rng, rng.choice([0, 0, 1, 2]), leave=DROPPING)
    evidence = _around(sentences, index, statement, page, rng)
    roll = rng.random()
    if roll < 0.62:
        short_form = apply(BREAKING, claim, rng, context)
        if short_form is None:
            return
        kind, edit = short_form
        if rng.random() < 0.6:
            yield pair("same", claim, evidence, 1, ())
            yield pair(kind, edit.text, evidence, 0, edit.new_spans)
        else:
            # The evidence has the edit, so the edited claim is supported, and the original claim no longer is (unless
            # the edit only added something).
            edited_passage = _around(sentences, index, edit.text, page, rng)
            paraphrase = _reword(edit.text, rng, rng.choice([0, 1, 1, 2]), leave=("lead",))
            yield pair("same", paraphrase, edited_passage, 1, ())
            if kind == "detail":
                yield pair("same", claim, edited_passage, 1, ())
            else:
                spans = None if kind == "swap" else _differing(claim, edit)
                yield pair(f"{kind}_back", claim, edited_passage, 0, spans)
    elif roll < 0.74:
        yield pair("left_out", claim, _around(sentences, index, None, page, rng), 0, None)
    elif roll < 0.82:
        yield pair("elsewhere", claim, other_pages[0].evidence, 0, None)
    elif roll < 0.92:
        short_form = apply({name: PARAPHRASES[name] for name in DROPPING}, source, rng)
        if short_form is not None:
            short = short_form[1].text
            yield (
                pair("part_lost", claim, _around(sentences, index, short, page, rng), 0, None)
                if _has_lost_words(claim, short)
                else pair("same", short, evidence, 1, ())
            )
    else:
        two = _two_sentences(claim, index, indices, sentences, page, rng)
        if two is not None:
            yield pair(*two)


def _two_sentences(
    claim: str, index: int, indices: Sequence[int], sentences: Sequence[str], page: Page, rng: random.Random
) -> tuple[str, str, str, int, Sequence[tuple[int, int]]] | None:
    """A claim of two sentences with the whole passage, or with one that lacks the second; None if impossible."""
    second = [i for i in indices if i != index]
    if not second:
        return None
    other = rng.choice(second)
    two = f"{claim} {_replace_pronoun(sentences[other], other, page, rng)}"
    if rng.random() < 0.5:
        return "two", two, Page(page.title, " ".join(sentences)).evidence, 1, ()
    rest_of_passage = _around(sentences, other, None, page, rng)
    return (
        ("two_half", two, rest_of_passage, 0, ((len(claim) + 1, len(two)),))
        if sentences[index] in rest_of_passage
        else None
    )


def _has_lost_words(claim: str, short: str) -> bool:
    return len(set(content_stems(claim)) - set(content_stems(short))) >= 2


def _differing(claim: str, edit: Edited) -> tuple[tuple[int, int], ...] | None:
    """The span of the claim that differs from its edited form, without common prefix and suffix; None if empty."""
    start = 0
    while start < min(len(claim), len(edit.text)) and claim[start] == edit.text[start]:
        start += 1
    end = 0
    while end < min(len(claim), len(edit.text)) - start and claim[-1 - end] == edit.text[-1 - end]:
        end += 1
    return ((start, len(claim) - end),) if start < len(claim) - end else None


def from_question(
    question: str,
    answers: Sequence[str],
    pages_with_answer: Sequence[Page],
    pages_without_answer: Sequence[Page],
    wrong: Sequence[str],
    rng: random.Random,
) -> Iterator[Example]:
    """Training pairs from a question with accepted answers, by distant supervision.

    `pages_with_answer` passages contain an accepted answer, `pages_without_answer` ones do not. `wrong` answers replace
    the right one, after a check against the accepted ones.
    """
    answer = min(answers, key=len)
    question = question.strip()

    def word_claim(text: str) -> tuple[str, str]:
        """Question and claim separately (the template joins them), as one sentence, or as Attributed QA's sentence."""
        roll = rng.random()
        if roll < 0.4:
            return question, text
        return "", (declarative if roll < 0.75 else attributed_qa)(Attribution(text, (), question))

    usable = [w for w in wrong if not has_answer(w, answers) and not has_answer(join_answers(answers), [w])]
    for page in pages_with_answer:
        answer_of_page = next((a for a in answers if has_answer(page.evidence, [a])), answer)
        yield Example("qa/holds", *word_claim(answer_of_page), (page.evidence,), 1, ())
        wrong_answers_of_page = [w for w in usable if has_answer(page.text, [w])]
        if wrong_answers_of_page or usable:
            yield Example(
                "qa/wrong", *word_claim(rng.choice(wrong_answers_of_page or usable)), (page.evidence,), 0, None
            )
    for page in pages_without_answer:
        yield Example("qa/lacks", *word_claim(answer), (page.evidence,), 0, None)


def join_answers(answers: Iterable[str]) -> str:
    """All accepted answers as one text, to check wrong answers against."""
    return " ; ".join(answers)
