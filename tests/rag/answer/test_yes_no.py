"""A quoted "No." is shown with what it answers; the answer itself stays as it is."""

from io import StringIO

import pytest
from rich.console import Console

from rag.answer.export.markdown import to_markdown
from rag.answer.yes_no import find_quoted_question
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question
from rag.commands.display import show_answer
from rag.serve.views import view_answer

REST = "No. The pool is for people."


def quoting(text: str, quote: str, section: str = "Tickets, May dogs swim?", origin: str = "copied") -> Answer:
    start = text.index(quote)
    passage = Passage("faq.md#1", "Pool", text, section)
    citation = Citation(passage.id, start, start + len(quote), quote, origin)
    sentence = CitedSentence(quote, (citation,), 0, len(quote))
    return Answer(Question("q", "dogs?"), quote, (sentence,), (Hit(passage, 1.0),), "s")


@pytest.mark.parametrize(
    ("text", "quote", "about"),
    [
        (REST, REST, "Tickets, May dogs swim?"),
        (f"Towels are free. May a dog swim? {REST}", REST, "May a dog swim?"),
        ("Q: May a dog swim?\n\nYes, on Mondays.", "Yes, on Mondays.", "Q: May a dog swim?"),
        ("Dogs are loud.\n\nNo!", "No!", ""),
        ("No dog may swim.", "No dog may swim.", ""),
        ("Nobody swims.", "Nobody swims.", ""),
        (f"May a dog swim?: {REST}", f"May a dog swim?: {REST}", ""),
    ],
)
def test_a_quoted_yes_or_no_has_the_question_or_heading_above_it(text: str, quote: str, about: str) -> None:
    assert find_quoted_question(quoting(text, quote)) == about


def test_what_a_model_says_is_no_answer_to_a_heading() -> None:
    assert find_quoted_question(quoting(REST, REST, origin="cited")) == ""
    assert find_quoted_question(Answer(Question("q", "dogs?"), "", (), (), "s", abstained=True)) == ""


def test_the_terminal_and_the_page_show_it_and_exports_do_not() -> None:
    answer = quoting(REST, REST)
    out = StringIO()
    show_answer(answer, Console(file=out, width=80))
    assert out.getvalue().splitlines()[:2] == ['About "Tickets, May dogs swim?":', "No. The pool is for people [1]."]
    view = view_answer(answer, id_prefix="a", link=lambda *_: "/p/1", look=lambda _: None)
    assert view.yes_no_question == "Tickets, May dogs swim?"
    assert "About" not in view.footnotes + to_markdown(answer) + str(answer)
