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
from autoais.training.edits import BREAKING, DROPPING, KEEPING, Edited, apply


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


def _named(sentence: str, place: int, page: Page, rng: random.Random) -> str:
    """The sentence with an initial pronoun sometimes replaced by the title, like a standalone claim.

    Only the first sentence of a passage is changed.
    """
    title = re.sub(r" \(.*\)$", "", page.title)
    match = _PRONOUN.match(sentence)
    if match and title and place == 0 and rng.random() < 0.6:
        return title + sentence[match.end() :]
    return sentence


def _reworded(sentence: str, rng: random.Random, times: int, leave: Sequence[str] = ()) -> str:
    table = {name: row for name, row in KEEPING.items() if name not in leave}
    for _ in range(times):
        done = apply(table, sentence, rng)
        if done is None:
            break
        sentence = done[1].text
    return sentence


def _around(sentences: Sequence[str], place: int, new: str | None, page: Page, rng: random.Random) -> str:
    """The passage, or sometimes a part of it, with the sentence at `place` replaced, or removed if `new` is None."""
    kept = [*sentences[:place], *([] if new is None else [new]), *sentences[place + 1 :]]
    if new is not None and rng.random() < 0.35:
        at = place
        kept = kept[max(0, at - rng.randint(0, 1)) : at + rng.randint(1, 2)]
    text = " ".join(kept)
    return Page(page.title, text).evidence if rng.random() < 0.7 else text


def from_page(page: Page, others: Sequence[Page], rng: random.Random) -> Iterator[Example]:
    """Training pairs from one sentence of a passage; `others` supply names, numbers and distractors."""
    sentences = _sentences(page)
    places = [i for i, sentence in enumerate(sentences) if _usable(sentence)]
    if not places:
        return
    place = rng.choice(places)
    source = sentences[place]
    context = [" ".join(s for i, s in enumerate(sentences) if i != place), others[0].text]
    distraction = tuple(other.evidence for other in others[1 : 1 + (rng.random() < 0.2) + (rng.random() < 0.1)])

    def pair(kind: str, claim: str, evidence: str, label: int, spans: Sequence[tuple[int, int]] | None) -> Example:
        texts = [evidence, *distraction]
        rng.shuffle(texts)
        return Example(f"page/{kind}", "", claim, tuple(texts), label, None if spans is None else tuple(spans))

    claim = _reworded(_named(source, place, page, rng), rng, rng.choice([0, 1, 1, 2, 2, 3]))
    stated = _reworded(source, rng, rng.choice([0, 0, 1, 2]), leave=DROPPING)
    evidence = _around(sentences, place, stated, page, rng)
    roll = rng.random()
    if roll < 0.62:
        done = apply(BREAKING, claim, rng, context)
        if done is None:
            return
        kind, edited = done
        if rng.random() < 0.6:
            yield pair("same", claim, evidence, 1, ())
            yield pair(kind, edited.text, evidence, 0, edited.changed)
        else:
            # The evidence has the edit, so the edited claim is supported, and the original claim no longer is (unless
            # the edit only added something).
            turned = _around(sentences, place, edited.text, page, rng)
            same = _reworded(edited.text, rng, rng.choice([0, 1, 1, 2]), leave=("lead",))
            yield pair("same", same, turned, 1, ())
            if kind == "detail":
                yield pair("same", claim, turned, 1, ())
            else:
                spans = None if kind == "swap" else _differing(claim, edited)
                yield pair(f"{kind}_back", claim, turned, 0, spans)
    elif roll < 0.74:
        yield pair("left_out", claim, _around(sentences, place, None, page, rng), 0, None)
    elif roll < 0.82:
        yield pair("elsewhere", claim, others[0].evidence, 0, None)
    elif roll < 0.92:
        done = apply({name: KEEPING[name] for name in DROPPING}, source, rng)
        if done is not None:
            short = done[1].text
            yield (
                pair("part_lost", claim, _around(sentences, place, short, page, rng), 0, None)
                if _lost(claim, short)
                else pair("same", short, evidence, 1, ())
            )
    else:
        two = _two_sentences(claim, place, places, sentences, page, rng)
        if two is not None:
            yield pair(*two)


def _two_sentences(
    claim: str, place: int, places: Sequence[int], sentences: Sequence[str], page: Page, rng: random.Random
) -> tuple[str, str, str, int, Sequence[tuple[int, int]]] | None:
    """A claim of two sentences with the whole passage, or with one that lacks the second; None if impossible."""
    second = [i for i in places if i != place]
    if not second:
        return None
    other = rng.choice(second)
    two = f"{claim} {_named(sentences[other], other, page, rng)}"
    if rng.random() < 0.5:
        return "two", two, Page(page.title, " ".join(sentences)).evidence, 1, ()
    left = _around(sentences, other, None, page, rng)
    return ("two_half", two, left, 0, ((len(claim) + 1, len(two)),)) if sentences[place] in left else None


def _lost(claim: str, short: str) -> bool:
    return len(set(content_stems(claim)) - set(content_stems(short))) >= 2


def _differing(claim: str, edited: Edited) -> tuple[tuple[int, int], ...] | None:
    """The span of the claim that differs from its edited form, without common prefix and suffix; None if empty."""
    start = 0
    while start < min(len(claim), len(edited.text)) and claim[start] == edited.text[start]:
        start += 1
    end = 0
    while end < min(len(claim), len(edited.text)) - start and claim[-1 - end] == edited.text[-1 - end]:
        end += 1
    return ((start, len(claim) - end),) if start < len(claim) - end else None


def from_question(
    question: str, answers: Sequence[str], holding: Sequence[Page], lacking: Sequence[Page], wrong: Sequence[str],
    rng: random.Random,
) -> Iterator[Example]:  # fmt: skip
    """Training pairs from a question with accepted answers, by distant supervision.

    `holding` passages contain an accepted answer, `lacking` ones do not. `wrong` answers replace the right one, after a
    check against the accepted ones.
    """
    answer = min(answers, key=len)
    question = question.strip()

    def worded(text: str) -> tuple[str, str]:
        """Question and claim separately (the template joins them), as one sentence, or as Attributed QA's sentence."""
        roll = rng.random()
        if roll < 0.4:
            return question, text
        return "", (declarative if roll < 0.75 else attributed_qa)(Attribution(text, (), question))

    usable = [w for w in wrong if not has_answer(w, answers) and not has_answer(found_in(answers), [w])]
    for page in holding:
        found = next((a for a in answers if has_answer(page.evidence, [a])), answer)
        yield Example("qa/holds", *worded(found), (page.evidence,), 1, ())
        inside = [w for w in usable if has_answer(page.text, [w])]
        if inside or usable:
            yield Example("qa/wrong", *worded(rng.choice(inside or usable)), (page.evidence,), 0, None)
    for page in lacking:
        yield Example("qa/lacks", *worded(answer), (page.evidence,), 0, None)


def found_in(answers: Iterable[str]) -> str:
    """All accepted answers as one text, to check wrong answers against."""
    return " ; ".join(answers)
