"""The text and the sources that a rating is about."""

from collections.abc import Mapping

from autoais.base.answers import CitedAnswer
from autoais.base.errors import UserError
from autoais.base.types import CitedSentence
from autoais.formats.human_ratings.ratings import Rating


def answer_of(rating: Rating, answers: Mapping[str, CitedAnswer]) -> CitedAnswer:
    """Return the rated answer; raises `UserError` if it is not there."""
    if rating.answer_id not in answers:
        raise UserError(
            f"answer {rating.answer_id!r:.80} has ratings, but is not among the answers; do they belong together?"
        )
    return answers[rating.answer_id]


def sentences_of(rating: Rating, answers: Mapping[str, CitedAnswer]) -> tuple[CitedSentence, ...]:
    """Return the sentences that it is about; raises `UserError` if there is no such sentence."""
    answer = answer_of(rating, answers)
    if rating.sentence is None:
        return answer.sentences
    if rating.sentence >= len(answer.sentences):
        raise UserError(
            f"answer {answer.id!r:.80} has ratings of sentence {rating.sentence}, and no such sentence (0-based)"
        )
    return (answer.sentences[rating.sentence],)


def text_of(rating: Rating, answers: Mapping[str, CitedAnswer]) -> str:
    """Return the rated text."""
    sentences = sentences_of(rating, answers)
    return answers[rating.answer_id].plain if rating.sentence is None else sentences[0].text


def sources_of(rating: Rating, answers: Mapping[str, CitedAnswer]) -> list[str]:
    """Return the texts of the cited passages, or of the one citation that is rated."""
    keys = dict.fromkeys(key for sentence in sentences_of(rating, answers) for key in sentence.cites)
    if rating.citation is not None:
        if rating.citation not in keys:
            raise UserError(
                f"answer {rating.answer_id!r:.80}: sentence {rating.sentence} does not cite {rating.citation!r:.80}, "
                "which was rated"
            )
        keys = {rating.citation: None}
    return [answers[rating.answer_id].passages[key].evidence for key in keys]
