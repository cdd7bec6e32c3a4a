"""Odd lines of plain formats: none may end a build, and none may take text with it."""

from pathlib import Path

import pytest

from rag.documents import load_document


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.md", "First\n\u00a0\nThird\n", "First Third"),
        ("a.txt", "Tea .......\u00ad\n", "Tea ......."),
        ("a.txt", "Q: \u200b\n\nA: x\n\nQ: y\n\nA: z\n", "Q: A: x Q: y A: z"),
        ("a.eml", "From: a\nSubject: s\n\nHELLO ALL\n", "From: a HELLO ALL"),
        ("a.md", "+++\n\nA plus.\n\n+++\n\nMore.\n", "A plus. More."),
        ("a.md", '+++\ntitle = "Dogs"\n+++\n\nMore.\n', "More."),
        ("a.md", "He waited .... and left.\n", "He waited .... and left."),
        ("a.txt", "He waited .... and left.\n", "He waited .... and left."),
        ("a.txt", "Tea .... 2.60\n", "Tea: 2.60"),
        ("a.txt", "CLOSED ON MONDAY\n", "CLOSED ON MONDAY"),
        ("a.txt", "Closed on Monday\n\n", "Closed on Monday"),
        (
            "a.csv",
            "Item,Price\nTea,2\n\nSoup of the day,at the bar\nPie,4\n",
            "Item: Soup of the day | Price: at the bar",
        ),
        ("a.csv", 'sep="\nTea,2\nCake,4\n', "Tea | 2 Cake | 4"),
        ("a.csv", "sep= \nTea,2\nCake,4\n", "Tea | 2 Cake | 4"),
        ("a.html", "<p>Tea ..... 2</p><p>Cake ..... 4</p>", "Tea ..... 2 Cake ..... 4"),
        ("a.html", "<h1>Inn</h1><h2>Closed on 1 May</h2><h2>Rooms</h2><p>Two.", "Closed on 1 May Rooms: Two."),
        (
            "a.rst",
            "Inn\n===\n\nClosed on 1 May\n---------------\n\nRooms\n-----\n\nTwo.\n",
            "Closed on 1 May Rooms: Two.",
        ),
        ("a.md", "Hosted by Ann Brown\n", "Hosted by Ann Brown"),
        ("a.md", "Powered by Solar panels\n", "Powered by Solar panels"),
        ("a.txt", "+---+---+\n| Who | Ann |\n+---+---+\n| Town | York |\n+---+---+\n", "Who | Ann Town | York"),
        ("a.txt", "Tea ..... 2.60  Cake ..... 3\nSoup 2 go .... 4\n", "Tea: 2.60 Cake: 3 Soup 2 go: 4"),
    ],
)
def test_an_odd_line_is_read(tmp_path: Path, name: str, content: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    found = " ".join(" ".join(passage.text for passage in load_document(path, name).passages).split())
    assert said in found
