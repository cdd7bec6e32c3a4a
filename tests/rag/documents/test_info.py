import gzip
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import perf_counter

import pytest

from rag.base.errors import FormatError
from rag.documents import kind_of, load_document
from rag.documents import navigation as nav
from rag.documents.corpus import Corpus
from rag.documents.info import info_blocks

START = """This is ferry.info, produced by makeinfo version 7.1 from ferry.texi.

INFO-DIR-SECTION Boats
START-INFO-DIR-ENTRY
* go: (ferry)Going.             Cross the water.
* Ferry: (ferry).               Boats on the Arlen.
END-INFO-DIR-ENTRY

"""
TOP = """\x1f
File: ferry.info,  Node: Top,  Next: Going,  Up: (dir)

The ‘ferry’ Manual
******************

This manual says how the ferry of Arlen is steered.

* Menu:

* Going::                 How to cross
                            the water.
* Index::

"""
GOING = """\x1f
File: ferry.info,  Node: Going,  Next: Piers,  Prev: Top,  Up: Top

2 Going ‘there’
***************

The boat goes each hour(1).  See *note Piers::, for where (*note
Timetable: (bus)Hours.).  *Note Harbour: (town)Top, too.

     ferry --go
     # It goes now, and comes back in the evening.

     ferry --back

‘-f FILE’
‘--file=FILE’
     Reads the timetable from FILE:

          ferry -f times

     Times have colons.
‘-q’

     Says nothing at all while it goes.

   It takes:

   • cars that are no longer
     than the boat

   • bikes
       9. red ones
       10. blue ones, of
          which there are few

 -- Command: moor PIER
          [ROPE]
 -- Command: tie PIER
     Ties the boat to a pier.

\x00\x08[image src="boat.png" alt="A boat"\x00\x08]

   ---------- Footnotes ----------

   (1) On Sundays, it goes each second hour.

"""
PIERS = """\x1f
File: ferry.info,  Node: Piers,  Prev: Going,  Up: Going

There are two piers:
     the old one on this side of the water

2.1.1 Fees
..........

Sign    Meaning
--------------------
a       one ride
b       ten rides

"""
INDEX = """\x1f
File: ferry.info,  Node: Index,  Prev: Piers,  Up: Top

Index
*****

\x00\x08[index\x00\x08]
* Menu:

* boats:          Going.        (line 6)
* piers, on both sides:
                  Piers.        (line 3)

"""
END = """\x1f
Tag Table:
Node: Top\x7f380
Node: Going\x7f700
\x1f
End Tag Table

\x1f
Local Variables:
coding: utf-8
End:
"""
MANUAL = START + TOP + GOING + PIERS + INDEX + END


def write(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def test_a_manual(tmp_path: Path) -> None:
    document = load_document(write(tmp_path, "ferry.info.gz", MANUAL), "ferry.info.gz")
    assert document.title == "The ferry Manual"
    assert document.dropped == {nav.CONTENTS: 2, nav.FIGURE: 1}
    assert {passage.id.partition("#")[0] for passage in document.passages} == {"ferry.info.gz"}
    title, blocks = info_blocks(MANUAL.encode(), "ferry.info", Counter())
    assert title == document.title
    assert [f"{'#' * block.level} {block.text}".lstrip() if block.level else block.text for block in blocks] == [
        "This manual says how the ferry of Arlen is steered.",
        "## Going there",
        "The boat goes each hour. See Piers, for where (see Timetable). See Harbour, too.",
        "    ferry --go\n    # It goes now, and comes back in the evening.\n    \n    ferry --back",
        "-f FILE, --file=FILE: Reads the timetable from FILE:",
        "    ferry -f times",
        "Times have colons.",
        "-q: Says nothing at all while it goes.",
        "It takes:",
        "- cars that are no longer than the boat",
        "- bikes",
        "  9. red ones",
        "  10. blue ones, of which there are few",
        "Command: moor PIER [ROPE], Command: tie PIER: Ties the boat to a pier.",
        "On Sundays, it goes each second hour.",
        "### Piers",
        "There are two piers:",
        "    the old one on this side of the water",
        "##### Fees",
        "    Sign    Meaning\n    --------------------\n    a       one ride\n    b       ten rides",
    ]


def test_a_split_manual(tmp_path: Path) -> None:
    indirect = "\x1f\nIndirect:\nferry.info-1: 380\nferry.info-2: 900\n" + END
    write(tmp_path, "ferry.info", START + indirect)
    write(tmp_path, "ferry.info-1", START + TOP + GOING)
    write(tmp_path, "ferry.info-2.gz", START + PIERS)
    corpus = Corpus([tmp_path])
    titles = {passage.id.partition("#")[0]: passage.title for _, passage in corpus.read()}
    assert titles == {"ferry.info-1": "The ferry Manual", "ferry.info-2.gz": "Ferry"}
    assert corpus.report.bad == 0


def test_info_files_are_known_by_their_beginning(tmp_path: Path) -> None:
    assert [kind_of(name) for name in ("a.info", "a.INFO-12.gz", "a.info-x", "info")] == [".info", ".info", None, None]
    write(tmp_path, "ferry.info", MANUAL)
    write(tmp_path, "keys.info", "These are the keys of another program.\n")
    corpus = Corpus([tmp_path])
    assert {passage.id.partition("#")[0] for _, passage in corpus.read()} == {"ferry.info"}
    with pytest.raises(FormatError, match=r"keys\.info: not an Info file"):
        load_document(tmp_path / "keys.info", "keys.info")


def test_a_manual_without_headings_takes_the_names_of_its_nodes(tmp_path: Path) -> None:
    text = "\x1f\nFile: f.info, Node: {}, Up: {}\n\nThere is more to say about it, in as many words as fit here: {}.\n"
    nodes = [("Top", "(dir)", "one"), ("Boats", "Top", "two"), ("Ropes", "Boats", "three")]
    document = load_document(write(tmp_path, "f.info", "".join(text.format(*node) for node in nodes)), "f.info")
    assert document.title == ""
    assert document.passages[0].title == "f"
    assert "Boats" in document.passages[-1].section + document.passages[-1].text


def texts(*nodes: tuple[str, str]) -> tuple[list[str], int]:
    """The texts of nodes, and how many menus were left out."""
    dropped: Counter[str] = Counter()
    text = "".join(f"\x1f\nFile: f.info,  Node: {name},  Up: Top\n\n{text}" for name, text in nodes)
    _, blocks = info_blocks(text.encode(), "f.info", dropped)
    return [block.text for block in blocks], dropped[nav.CONTENTS]


def test_a_node_about_indexes_is_none() -> None:
    menu = "* Menu:\n\n* Words::    which stand there\n"
    text = "Creating an Index\n*****************\n\n"
    kept = ["Creating an Index", "Take the words that matter."]
    assert texts(("Creating an Index", f"{text}Take the words that matter.\n\n{menu}")) == (kept, 1)
    assert texts(("Creating an Index", f"{text}{menu}\nTake the words that matter.\n")) == (kept, 1)
    assert texts(("Word Index", f"Word Index\n**********\n\n{menu}")) == ([], 1)
    assert texts(("Word Index", menu)) == ([], 1)


def test_text_after_a_menu() -> None:
    menu = "Boats float.\n\n* Menu:\n\n* Words::\n"
    after = (
        "This paragraph stands after the menu of the node.\n\n* one thing\n* another thing: a boat\n\nEnd of it all.\n"
    )
    kept = "This paragraph stands after the menu of the node.", "* one thing * another thing: a boat", "End of it all."
    assert texts(("Boats", f"{menu}\n{after}")) == (["Boats", "Boats float.", *kept], 1)
    assert texts(("Boats", f"{menu}\n   Many boats float.\n")) == (["Boats", "Boats float.", "Many boats float."], 1)


def test_the_listing_of_all_nodes_is_of_the_menu() -> None:
    menu = """Boats float.

* Menu:

* Words::        which stand
                   there

                   or here
* Ropes: Lines.  which hold

 -- The Detailed Node Listing --

Words and Ropes

* Nouns::
goes on
Verbs
* Verbs: Acts.   which move

Here are nodes of nodes,
to get to them at once:

Indexes
* Word Index::

"""
    assert texts(("Boats", menu)) == (["Boats", "Boats float."], 1)
    assert texts(("Boats", f"{menu}They sink, too.\n")) == (["Boats", "Boats float.", "They sink, too."], 1)


@pytest.mark.parametrize("sign", [",  ", "\t", "  ", " ", ", "])
def test_what_is_between_the_names_of_nodes(sign: str) -> None:
    top = f"\x1f\nFile: f.info{sign}Node: Big Boats{sign}Up: Top\n\nBoats float.\n"
    below = f"\x1f\nFile: f.info{sign}Node: Ropes{sign}Prev: Piers{sign}Up: Big Boats\n\nRopes hold.\n"
    _, blocks = info_blocks((top + below).encode(), "f.info", Counter())
    assert [(block.level, block.text) for block in blocks] == [
        (2, "Big Boats"),
        (0, "Boats float."),
        (3, "Ropes"),
        (0, "Ropes hold."),
    ]


def test_marks_of_footnotes_that_may_be_names_stay() -> None:
    notes = "\n   ---------- Footnotes ----------\n\n   (1) Very old.\n\n   (2) Or new.\n"
    text = "Call exit(1) to end it.  The boat is old(1).\n\n   It floats(2).\n\n     call(2)\n     wait(2)\n"
    assert texts(("Boats", text + notes))[0] == [
        "Boats",
        "Call exit(1) to end it. The boat is old(1).",
        "It floats.",
        "    call(2)\n    wait(2)",
        "Very old.",
        "Or new.",
    ]
    linked = "Call exit(1) to end it.  The boat is old(1) (*note Boats-Footnote-1::).\n"
    assert texts(("Boats", linked))[0][1:] == ["Call exit(1) to end it. The boat is old."]


@pytest.mark.parametrize("seed", range(4))
def test_broken_manuals_are_read_or_named(seed: int) -> None:
    rng, data = random.Random(seed), MANUAL.encode()
    for _ in range(100):
        start, end = sorted(rng.sample(range(len(data)), 2))
        broken = rng.choice(
            [data[:end], data[:start] + data[end:], data[start:end], b"\x1f\nFile: f, Node: N\n" + data[start:end]]
        )
        try:
            info_blocks(broken, "f.info", Counter())
        except FormatError as error:
            assert str(error).startswith("f.info: ")  # noqa: PT017


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(" " * (5 * n) + "'x'" for n in range(300)),
        "*note " * 20_000,
        "*note a: " * 20_000,
        "a(1)" * 20_000,
        " 'a" * 20_000,
        "\0\b[image" * 20_000,
        "* Menu:\n* a::\n" * 20_000,
        "   * a\n" * 20_000,
        " -- Command: x\n" * 20_000,
        "\x1f\nFile: x, Node: y\na\n" * 5_000,
        "Sentence:\n     " + "." * 40_000 + "a",
        "Boats:\n     The boats that lie on the water\n     " + "." * 80_000 + "a",
        "* Menu:\n* " + "a: " * 20_000 + "b\n" * 20_000,
        "\x1f\nFile: x" + " Node: y" * 20_000 + " " * 20_000 + "z",
    ],
    ids=range(14),
)
def test_reading_takes_time_in_proportion(text: str) -> None:
    start = perf_counter()
    with suppress(FormatError):
        info_blocks(f"\x1f\nFile: f.info, Node: N\n\nA text to begin with.\n{text}".encode(), "f.info", Counter())
    assert perf_counter() - start < 5
