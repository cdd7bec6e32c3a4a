"""Example questions of an index. They ask for what its passages define, and the index answers them."""

import re
from collections.abc import Callable, Iterator

from autoais.base.text.sentences import sentence_spans
from autoais.base.text.words import STOP_WORDS, words
from rag.base.errors import UserError
from rag.base.types import Answer, Passage
from rag.index.index import Index

_MAX_PASSAGES = 600  # passages looked at, spread evenly over the index
_MAX_QUESTIONS = 4  # questions
_MAX_TRIALS = 16  # questions asked, as each takes time
# "Citation recall is the share of ...", "The Rosetta Stone (196 BC) is a stele ...", "Ada (1815) was an ..."
_DEFINES = re.compile(
    r"(?P<article>(?:An?|The) )?(?P<name>[^\W\d_][\w’'-]*(?: [\w’'-]+){0,4}?)(?P<dates> \([^()]{4,60}\))?"
    r"(?:, in [\w ]{3,30},)? (?P<verb>is|are|was|were) (?:an?|the|one) (?!same\b)"
)
_LIFE_YEAR = re.compile(r"\b(?:born|1\d{3}|20\d\d)\b")


def example_questions(index: Index, ask: Callable[[str], Answer]) -> list[str]:
    """Return up to four questions about what the passages define; the answer to each cites the defining document.

    `ask` answers a question over the index. Always the same for the same index and system.
    """
    questions: list[str] = []
    for question, title in _spread(list(_find_definitions(index))):
        try:
            answer = ask(question)
        except UserError:
            continue
        titles = {hit.passage.id: hit.passage.title for hit in answer.hits}
        if not answer.abstained and title in {titles[citation.passage] for citation in answer.citations}:
            questions.append(question)
        if len(questions) == _MAX_QUESTIONS:
            break
    return questions


def _spread(candidates: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A sample of the questions from all parts of the list, each of another document if there are enough."""
    one_each = list({title: (question, title) for question, title in reversed(candidates)}.values())[::-1]
    pool = one_each if len(one_each) >= _MAX_TRIALS // 2 else candidates
    step = max(1, len(pool) // _MAX_TRIALS)
    sample = pool[step // 2 :: step][:_MAX_TRIALS]
    return [candidate for first in range(4) for candidate in sample[first::4]]


def _find_definitions(index: Index) -> Iterator[tuple[str, str]]:
    """Yield each question once, with the title of the passage that answers it by a definition."""
    total = int(index.manifest["passages"])
    keys = set()
    for passage in index.store.rows([n * total // min(total, _MAX_PASSAGES) for n in range(min(total, _MAX_PASSAGES))]):
        question = _question(passage)
        if question is not None and question.casefold() not in keys:
            keys.add(question.casefold())
            yield question, passage.title


def _question(passage: Passage) -> str | None:
    """A question for what the first sentence of a passage defines; None if it defines nothing."""
    text = passage.text[:600].replace("\n", " ")
    spans = sentence_spans(text)
    match = _DEFINES.match(text[slice(*spans[0])]) if spans else None
    if match is None or not any(len(word) > 3 and word not in STOP_WORDS for word in words(match["name"])):
        return None
    if words(match["name"])[0] in STOP_WORDS:
        return None  # "It is a", "This is the", "The same process is an" name nothing by themselves
    if match["article"] and match["name"][:1].islower() and " " not in match["name"]:
        return None  # nor do "The command is a" and "The rest is the"
    name, article = match["name"], (match["article"] or "").lower()
    person = match["dates"] is not None and _LIFE_YEAR.search(match["dates"]) and name.istitle() and " " in name
    if not article and name not in passage.title and not _is_name(name):
        name = name[:1].lower() + name[1:]
    return f"{'Who' if person else 'What'} {match['verb']} {article}{name}?"


def _is_name(name: str) -> bool:
    """Whether the first letter is a capital of the name rather than of the sentence."""
    first, *other_words = name.split()
    return any(letter.isupper() for letter in first[1:]) or any(word[0].isupper() for word in other_words)
