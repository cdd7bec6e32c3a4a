"""E-mails: all that they show, and nothing that they quote."""

from pathlib import Path

import pytest

from rag.documents import Document, load_document

HEAD = "From: Ann <ann@mill.example>\nSubject: {subject}\nMIME-Version: 1.0\nContent-Type: {type}\n\n"
QUESTION = "Is it true that the fee is ninety euros?"


def load(tmp_path: Path, text: str | bytes) -> Document:
    path = tmp_path / "a.eml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_document(path, path.name)


def lines(document: Document) -> list[str]:
    """The blocks below the header."""
    return [block for passage in document.passages for block in passage.text.split("\n\n")][1:]


def part(text: str, kind: str = "text/plain", disposition: str = "") -> str:
    shown = f"Content-Disposition: {disposition}\n" if disposition else ""
    return f"--b\nContent-Type: {kind}\n{shown}\n{text}\n"


def multipart(*parts: str, kind: str = "mixed") -> str:
    return HEAD.format(subject="Fees", type=f"multipart/{kind}; boundary=b") + "".join(parts) + "--b--\n"


def page(body: str, subject: str = "Re: fees") -> str:
    return HEAD.format(subject=subject, type="text/html; charset=utf-8") + body


def test_all_parts_that_are_shown_are_read(tmp_path: Path) -> None:
    attachment = part("Not this.", disposition="attachment; filename=a.txt")
    document = load(tmp_path, multipart(part("First."), attachment, part("<p>Second.", "text/html"), part("Third.")))
    assert lines(document) == ["First.", "Second.", "Third."]
    assert document.dropped == {"attachment": 1}


def test_one_of_two_alternatives_is_read(tmp_path: Path) -> None:
    document = load(tmp_path, multipart(part("Plain."), part("<p>Rich.", "text/html"), kind="alternative"))
    assert lines(document) == ["Plain."]
    choices = part(" ") + part("<p>Rich.", "text/html")
    inner = f"--b\nContent-Type: multipart/alternative; boundary=c\n\n{choices.replace('--b', '--c')}--c--\n"
    assert lines(load(tmp_path, multipart(inner, part("Last.")))) == ["Rich.", "Last."]


def test_a_mark_of_byte_order_before_the_header(tmp_path: Path) -> None:
    text = HEAD.format(subject="Fees", type="text/plain") + "They are 30 euros."
    document = load(tmp_path, b"\xef\xbb\xbf" + text.encode())
    assert (document.passages[0].title, lines(document)) == ("Fees", ["They are 30 euros."])


@pytest.mark.parametrize(
    "quote",
    [
        f"<div class='gmail_quote'><div class='gmail_attr'>On Monday Bob wrote:<br></div><blockquote>{QUESTION}</div>",
        f"<blockquote type='cite'><div>On 2 Mar, Bob wrote:</div><div>{QUESTION}</div></blockquote>",
        f"<div class=moz-cite-prefix>On 2 Mar, Bob wrote:<br></div>\n<blockquote type=cite>{QUESTION}</blockquote>",
        f"<hr><div id='divRplyFwdMsg'><b>From:</b> Bob<br><b>Sent:</b> Monday</div>\n<div>{QUESTION}</div>",
        "<div><div style='border:none;border-top:solid #E1E1E1 1.0pt'><p><b>From:</b> Bob</p></div> </div>"
        f"<p>{QUESTION}</p><blockquote type=cite>More</blockquote>",
    ],
)
def test_quotes_in_html(tmp_path: Path, quote: str) -> None:
    assert lines(load(tmp_path, page(f"<p>It is 30 euros.</p>{quote}"))) == ["It is 30 euros."]
    forward = lines(load(tmp_path, page(f"<p>Please look.</p>{quote}", "Fwd: fees")))
    assert QUESTION in " ".join(forward)
    alone = lines(load(tmp_path, page(quote)))
    assert QUESTION in " ".join(alone)


def test_questions_in_html_that_are_answered(tmp_path: Path) -> None:
    quote = "<blockquote type=cite>{}<blockquote type=cite>Older.</blockquote></blockquote>"
    body = f"<p>Hello,</p>{quote.format('How much?')}<p>30 euros.</p>{quote.format('When?')}<p>On Monday.</p>"
    assert lines(load(tmp_path, page(body))) == [
        "Hello,",
        "> How much? Older.",
        "30 euros.",
        "> When? Older.",
        "On Monday.",
    ]


@pytest.mark.parametrize("line", ["Begin forwarded message:", "See below."])
def test_a_message_in_html_that_is_forwarded(tmp_path: Path, line: str) -> None:
    mark = "" if line.startswith("Begin") else "---------- Forwarded message ---------<br>"
    body = f"<p>Please look.</p><p>{line}</p><div class=gmail_quote>{mark}From: Bob<br>{QUESTION}</div>"
    assert QUESTION in lines(load(tmp_path, page(body)))[-1]


def test_a_message_below_a_line_of_outlook(tmp_path: Path) -> None:
    text = f"It is 30 euros.\n\n-----Original Message-----\nFrom: Bob\nSent: Monday\n\n{QUESTION}\n"
    assert lines(load(tmp_path, HEAD.format(subject="RE: fees", type="text/plain") + text)) == ["It is 30 euros."]
    forward = lines(load(tmp_path, HEAD.format(subject="FW: fees", type="text/plain") + text))
    assert QUESTION in forward
