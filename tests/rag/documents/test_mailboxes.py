"""Mailboxes and saved pages."""

import gzip
from pathlib import Path

import pytest

from rag.base.errors import FormatError
from rag.documents import Document, load_document

LONG = "This paragraph has more than twelve words, so that it stands as a passage by itself."


def load(tmp_path: Path, name: str, text: str) -> Document:
    (tmp_path / name).write_text(text)
    return load_document(tmp_path / name, name)


def blocks(document: Document) -> list[str]:
    return [block for passage in document.passages for block in passage.text.split("\n\n")]


# --- Org --------------------------------------------------------------------------------------------------------


# --- AsciiDoc -----------------------------------------------------------------------------------------------------


# --- Rich Text Format ---------------------------------------------------------------------------------------------


# --- Subtitles ----------------------------------------------------------------------------------------------------


# --- Mailboxes, saved pages and address books -----------------------------------------------------------------------


MAILBOX = f"""From ed@example.org Mon May  6 10:00:00 2024
From: Ed <ed@example.org>
Subject: Flour
Date: Mon, 06 May 2024 10:00:00 +0000

{LONG}

From here on we buy more.
>From him too.

From ann at example.org  Tue May  7 10:00:00 2024
From: ann at example.org (Ann)
Subject: Re: Flour

> {LONG}

We need two bags of it.

From nobody Tue May  7 10:00:00 2024
X-Broken: 1

"""


@pytest.mark.parametrize("name", ["a.mbox", "2024-May.txt", "2024-May.txt.gz"])
def test_a_mailbox(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(MAILBOX.encode()) if name.endswith(".gz") else MAILBOX.encode())
    found = load_document(path, name)
    first, second = found.passages
    assert found.dropped == {"message that is broken": 1}
    assert (first.title, first.section) == (name.partition(".")[0], "Flour")
    assert first.text.split("\n\n") == [
        "From: Ed <ed@example.org>",
        "Date: Mon, 06 May 2024 10:00:00 +0000",
        LONG,
        "From here on we buy more.",
        "From him too.",
    ]
    assert second.section == "Re: Flour"
    assert second.text.split("\n\n")[1:] == [f"> {LONG}", "We need two bags of it."]


def test_no_mailbox(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"a\.mbox: not a mailbox"):
        load(tmp_path, "a.mbox", LONG)
    assert load(tmp_path, "a.txt", f"From Monday on 2024\n{LONG}").passages[0].text.startswith("From Monday on")


def test_a_page_that_a_browser_saved(tmp_path: Path) -> None:
    page = f"<title>Mill</title><nav>Home</nav><p>{LONG}</p>"
    text = f"""From: <Saved by a browser>
Subject: Mill
MIME-Version: 1.0
Content-Type: multipart/related; boundary="b"; type="text/html"

--b
Content-Type: text/css

body {{}}
--b
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: quoted-printable

{page}=E2=82=AC 5
--b--
"""
    (passage,) = load(tmp_path, "a.mhtml", text).passages
    assert (passage.title, passage.text) == ("Mill", f"{LONG}\n\n€ 5")
    with pytest.raises(FormatError, match=r"b\.mht: not a saved page"):
        load(tmp_path, "b.mht", LONG)
