from collections import Counter
from textwrap import dedent

import pytest

from rag.documents import navigation as nav
from rag.documents.blocks import Kind
from rag.documents.plain_text.code import is_prose
from rag.documents.plain_text.text import text_blocks


def blocks(text: str) -> list[str]:
    """The blocks of a text, headings with `#`."""
    found = text_blocks(dedent(text), Counter())
    return [f"{'#' * block.level} {block.text}" if block.kind is Kind.HEADING else block.text for block in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One line of text\nand another.\n\nNext.", ["One line of text and another.", "Next."]),
        ("Rivers\n======\n\nThey flow.\n\nPoland\n------\n\nFlat.", ["# Rivers", "They flow.", "## Poland", "Flat."]),
        ("======\nRivers\n======\n\nThey flow.", ["# Rivers", "They flow."]),
        ("HOW TO VISIT\n\nTake the bus to it.", ["## HOW TO VISIT", "Take the bus to it."]),
        ("HOW TO VISIT\nTake the bus to it.", ["## HOW TO VISIT", "Take the bus to it."]),
        ("§ 3 Rent\n(1) It is 90.\n(2) Heat.", ["## § 3 Rent", "1. It is 90.", "2. Heat."]),
        ("Article 3\nIt is red.", ["## Article 3", "It is red."]),
        ("Article 3 of it\nis red.", ["Article 3 of it is red."]),
        ("POLICE 110\nFIRE 112\nDOCTOR 030 12", ["POLICE 110", "FIRE 112", "DOCTOR 030 12"]),
        ("OPEN\nMONDAY 9-17\nTUESDAY 9-18", ["## OPEN", "MONDAY 9-17", "TUESDAY 9-18"]),
        ("Name.....: Ada\nRoom.....: 101", ["Name: Ada", "Room: 101"]),
        ("→ one\n→ two\n✓ three", ["- one", "- two", "- ✓ three"]),
        ("WATER WILL BE OFF ON\n14 MAY FROM 9 AM", ["WATER WILL BE OFF ON 14 MAY FROM 9 AM"]),
        ("WE MUST CLOSE THE BRIDGE\nUNTIL MAY.", ["WE MUST CLOSE THE BRIDGE UNTIL MAY."]),
        ("2.1 The bus\n\nIt is red.", ["### The bus", "It is red."]),
        ("3 The bus\n\nIt is red.", ["## The bus", "It is red."]),
        ("1. Wait (or “Sit!”)\n\nIt is red.", ["1. Wait (or “Sit!”)", "It is red."]),
        ("2. It waits. “Get in”\n\nIt is red.", ["2. It waits. “Get in”", "It is red."]),
        ("1. The bus\n\n2. It is red all over.", ["1. The bus", "2. It is red all over."]),
        ("┌────┬───┐\n│ Tea│ 2 │\n├────┼───┤\n│ Ale│ 3 │\n└────┴───┘", ["Tea | 2", "Ale | 3"]),
        ("1.2. Why is the bus red?\n\nIt is old.", ["### Why is the bus red?", "It is old."]),
        (
            "1.10. Why is the bus that goes down to the harbour in summer still painted\nred?\n\nIt is old.",
            ["### Why is the bus that goes down to the harbour in summer still painted red?", "It is old."],
        ),
        ("1. Is it red?\n2. Is it old?", ["1. Is it red?", "2. Is it old?"]),
        ("24 hours notice\n\nIt is asked for.", ["24 hours notice", "It is asked for."]),
        ("6 October 2025\n\nDear all,", ["6 October 2025", "Dear all,"]),
        ("2 Rise of 1999\n\nIt rose.", ["2 Rise of 1999", "It rose."]),
        ("A.1. The bus\n\nIt is red.", ["## The bus", "It is red."]),
        ("1.2 litres of water a day are enough for it.", ["1.2 litres of water a day are enough for it."]),
        ("- one\n- two\n  goes on\n  - three\n* four", ["- one", "- two goes on", "  - three", "- four"]),
        ("1. one\n2) two", ["1. one", "2. two"]),
        ("They may:\n - sing\n - dance\n   slowly", ["They may:", "- sing", "- dance slowly"]),
        ("Which?\na) one\nb) two", ["Which?", "- a) one", "- b) two"]),
        ("They may\n1. sing\n2. dance", ["They may", "1. sing", "2. dance"]),
        ("It is five -\n- no, six of them.", ["It is five - - no, six of them."]),
        ("Up to\n1. May", ["Up to 1. May"]),
        (
            "In short:\n* one\n* two\n\nThe fields where it is grown are flooded in winter.",
            ["In short:", "- one", "- two", "The fields where it is grown are flooded in winter."],
        ),
        (
            "* one\n* two\nThe fields where it is grown are flooded in winter.",
            ["- one", "- two", "The fields where it is grown are flooded in winter."],
        ),
        (
            "====== Rivers ======\nThey flow.\n===== Poland =====\nFlat.",
            ["# Rivers", "They flow.", "## Poland", "Flat."],
        ),
        (
            "# Camp\n\n## Fires\nNone.\n\n## Dogs ##\n\nOn a lead.",
            ["# Camp", "## Fires", "None.", "## Dogs", "On a lead."],
        ),
        ("## Port of it\n# It is red\nport = 2", ["    ## Port of it\n    # It is red\n    port = 2"]),
        ("A line.\n==== ==== ====\nof text.", ["A line. ==== ==== ==== of text."]),
        ("== Rivers ==\nThey flow.\n=== Poland ===\nFlat.", ["## Rivers", "They flow.", "### Poland", "Flat."]),
        (
            "Run this:\n\n    $ make\n\n    $ make install\n\nDone.",
            ["Run this:", "    $ make\n    \n    $ make install", "Done."],
        ),
        ("--force\n    Does it although\n    it hurts.", ["--force: Does it although it hurts."]),
        ("A well-\nknown fact.", ["A well-known fact."]),
        (
            "red\n\n    Paints the bus red.\n\n    It is quick.\n\nBLUE\n\n    Paints it blue.\n\nThat is all.",
            ["red: Paints the bus red.", "It is quick.", "BLUE: Paints it blue.", "That is all."],
        ),
        ("They are:\n\nBUS_OLD\n\n    It is old.", ["They are:", "BUS_OLD: It is old."]),
        ("BUS_NEW\n\nIt is new.", ["BUS_NEW", "It is new."]),
        ("Say it\n\n    $ make bus", ["Say it", "    $ make bus"]),
        (
            "Chapter 2. The bus\n\nIt is red.\n\n2.1.3. SEATS\n\nThey are blue.\n\n-:ALL:ALL",
            ["## Chapter 2. The bus", "It is red.", "#### SEATS", "They are blue.", "-:ALL:ALL"],
        ),
        ("Contents\nRivers ........... 12\nLakes ............ 14", []),
        ("Contents\n\nRivers ........... 1-2\nLakes ............ xii\n\nSeas ......... 16", []),
        ("Rivers .... 2\nLakes ..... 3\n\nRivers\n======\nThey flow.", ["# Rivers", "They flow."]),
        ("Up to 1 hour ..... 1\nUp to 2 hours .... 2", ["Up to 1 hour: 1", "Up to 2 hours: 2"]),
        ("Parking\n-------\nTo 1 h ..... 1\nTo 2 h .... 2", ["# Parking", "To 1 h: 1", "To 2 h: 2"]),
        ("Rivers\n......\n\nThey flow.", ["# Rivers", "They flow."]),
        ("Tea, pot ......... 4.20\nEspresso .. . . . . 2.60", ["Tea, pot: 4.20", "Espresso: 2.60"]),
        ("Blue room ........ 120\nHall ............. 12", ["Blue room: 120", "Hall: 12"]),
        (
            "Ann: Shall we meet on Monday, or is that too early for you?\nBob: Tuesday would suit me better, as I am"
            " away on\nMonday.\nAnn: Fine.",
            [
                "Ann: Shall we meet on Monday, or is that too early for you?",
                "Bob: Tuesday would suit me better, as I am away on Monday.",
                "Ann: Fine.",
            ],
        ),
        ("Rent ............. EUR 12\nHeat ............. 3 %", ["Rent: EUR 12", "Heat: 3 %"]),
        ("", []),
        (" \n\n\t", []),
    ],
)
def test_lines_become_blocks(text: str, expected: list[str]) -> None:
    assert blocks(text) == expected


SHORE = "The old keeper walked along the shore every evening and counted the lamps in the harbour before\nhe ate."


def numbered(*lines: str, indent: int = 0) -> str:
    """Lines that stand alone, each above a paragraph."""
    return "\n\n".join(f"{' ' * indent}{line}\n\n{SHORE}" for line in lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            numbered("CHAPTER 1. The Storm.", "CHAPTER 2. The Wreck."),
            ["## CHAPTER 1. The Storm.", "## CHAPTER 2. The Wreck."],
        ),
        (numbered("Chapter IX", "Chapter X"), ["## Chapter IX", "## Chapter X"]),
        (numbered("Part 2 is about mills."), []),
        (numbered("1. Open the box.", "2. Take it out.", "3. Close the box."), []),  # steps
        (numbered("1. Grants.", "2. Lapse of Rights."), []),  # too few
        ("1. Lamps.\n\n2. Oil.\n\n3. Wicks.\n\nThat is all.", []),  # a list
    ],
)
def test_chapters_that_stand_alone_are_headings(text: str, expected: list[str]) -> None:
    assert [block for block in blocks(text) if block.startswith("#")] == expected


def test_words_that_line_ends_part_are_joined_if_the_text_has_them() -> None:
    text = "The mon-\nsters like a well-\nknown sig-\nnal. A monster is well-known to know monsters."
    assert blocks(f"{text}\n\n    mon-\n    $ sters") == [
        "The monsters like a well-known sig-nal. A monster is well-known to know monsters.",
        "    mon-\n    $ sters",
    ]


def test_underscores_around_words_go_where_a_text_has_many() -> None:
    line = 'In _Opticks_ the _rays of\nlight_ and a_b or _DATE_ or _x/y are "_bent_."'
    assert blocks(f"{line}\n\n    $ run _now_ x") == [line.replace("\n", " "), "    $ run _now_ x"]
    many = "\n\n".join([line] * 5)
    expected = 'In Opticks the rays of light and a_b or _DATE_ or _x/y are "bent."'
    assert blocks(f"{many}\n\n    $ run _now_ x") == [*[expected] * 5, "    $ run _now_ x"]


def test_pages_between_form_feeds_go_on_too() -> None:
    page = "Lamps\n\nThe keeper of the lamps walked along the shore and\n\nPage {}\f"
    dropped: Counter[str] = Counter()
    found = text_blocks("".join(map(page.format, range(5))) + "he went home.", dropped)
    assert [block.text for block in found][-1].endswith("along the shore and he went home.")
    assert +dropped == {nav.MARGIN: 10}


def test_columns_keep_their_lines() -> None:
    text = "Name      Size    Kind\nfirst      12     file\nsecond     13     file\n"
    assert blocks(text) == ["    " + text.rstrip().replace("\n", "\n    ")]


RULE = "+------+-------+"


@pytest.mark.parametrize(
    "table",
    [
        "| Plan  | Price |\n|-------|------:|\n| Basic | 5     |\n| Pro   |       |",
        f"{RULE}\n| Plan | Price |\n+======+=======+\n| Basic | 5 |\n| Pro |  |\n{RULE}",
        f"{RULE}\n| Plan | Price |\n+======+=======+\n| Ba- | 5 |\n| sic | |\n{RULE}\n| Pro | |\n{RULE}",
    ],
)
def test_tables_that_are_drawn(table: str) -> None:
    basic = "Plan: Ba- sic | Price: 5" if "sic " in table and "Basic" not in table else "Plan: Basic | Price: 5"
    assert blocks(f"They are:\n\n{table}") == ["They are:", basic, "Plan: Pro"]


def test_a_total_below_a_rule_is_a_row() -> None:
    table = "+---+---+\n| A | B |\n+---+---+\n| c | 1 |\n| d | 2 |\n+---+---+\n| e | 3 |\n+---+---+"
    assert blocks(table) == ["A: c | B: 1", "A: d | B: 2", "A: e | B: 3"]


def test_a_drawn_table_without_names() -> None:
    rule = "+---+---+"
    table = f"{rule}\n| a | 1 |\n{rule}\n| b | 2 |\n{rule}\n| c | 3 |\n{rule}\n| d | 4 |\n{rule}"
    assert blocks(table) == ["a | 1", "b | 2", "c | 3", "d | 4"]
    assert "---" in " ".join(blocks(table.replace(rule, "+   +---+", 2)))  # a cell that spans rows


def test_boxes_are_no_tables() -> None:
    box = "+------+\n| mill |\n+------+"
    assert "mill" in " ".join(blocks(box))
    assert not any("mill:" in block for block in blocks(f"{box}\n| well |\n+------+"))


CHAPTERS = """
1. Buses

1.1. Why is the bus that goes to the harbour red?

It is old.

2. Trams

There are no trams.

3. Trains

They go at night.
"""


@pytest.mark.parametrize(
    ("contents", "lines"),
    [
        ("Table of Contents\n\n1. Buses\n 1.1. Why is the bus that goes\n  to the harbour red?\n2. Trams\n", 4),
        ("Contents\n========\n\n  o Buses\n      ? Why is the bus that goes to the harbour red?\n\n  o Trams\n", 3),
        ("1. Buses\n1.1. Why is the bus that goes to the harbour red?\n2. Trams\n3. Trains\n", 4),
    ],
)
def test_contents_are_left_out_and_counted(contents: str, lines: int) -> None:
    dropped: Counter[str] = Counter()
    assert [*text_blocks(contents + CHAPTERS, dropped)] == [*text_blocks(CHAPTERS, Counter())]
    assert dropped[nav.CONTENTS] == lines


def test_headers_and_footers_of_pages_are_left_out_and_counted() -> None:
    pages = [f"Guide to buses        October\n\nBus {n} is red.\n\nMoss      Page {n}\n" for n in range(1, 6)]
    dropped: Counter[str] = Counter()
    found = [block.text for block in text_blocks("\f".join(pages), dropped)]
    assert found == [f"Bus {n} is red." for n in range(1, 6)]
    assert dropped[nav.MARGIN] == 10
    assert "Moss Page 1" in [block.text for block in text_blocks("\f".join(pages[:2]), Counter())]  # too few to tell


def test_a_list_that_does_not_stand_again_is_no_contents() -> None:
    text = "Contents\n\n- Buses\n- Trams\n\nBuses are red.\n"
    assert blocks(text) == ["Contents", "- Buses", "- Trams", "Buses are red."]


def test_prose_in_pre_is_told_from_code() -> None:
    prose = "This program reads the mail that came in\nand writes it to a file for each of the users.\n" * 4
    assert is_prose(prose)
    assert is_prose(
        "12. [bug] The gate of the mill was open at night.\n    It is closed by the keeper now. [GL #12]\n" * 4
    )
    assert not is_prose("for line in lines:\n    print(line)\n" * 6)
    assert not is_prose("# This comment explains what the setting does\nport = 25\n" * 6)
    assert not is_prose("One sentence that stands alone in here.")
    script = 'export default function (boat) {\n  boat.tell("all", {\n    about: "what this boat is good for",\n' * 3
    assert not is_prose(script + "  });\n}\n" * 3)
    checks = "from sea import Boat\n\n@boat.check()\ndef sail(ports):\n    if any(port is closed for port in ports):\n"
    assert not is_prose(checks + "        tell('One of the ports is not open.')\n    return the first of all ports\n")


LONG = "The mill at the end of the village has ground the corn of all the farms around it since then."


def test_short_lines_stay_apart() -> None:
    address = "The Mill\nWater Lane 7\nAller"
    assert blocks(f"{address}\n\n{LONG}") == ["The Mill", "Water Lane 7", "Aller", LONG]
    programs = "P1 Corn, which is ground by two stones at once\nP2 Rye, by one stone\nP3 Oats, by one stone\nP4 Stop"
    assert blocks(f"{programs}\n\n{LONG}") == [*programs.splitlines(), LONG]
    names = "Peter Berger, Arcum Dagsson, Edwin Cogburn, Ben Harrison,\nSteven Fuerst,\nWerner Baer,\nTom Morton"
    assert blocks(f"{names}\n\n{LONG}") == [" ".join(names.splitlines()), LONG]


@pytest.mark.parametrize(
    "text",
    [
        "Espresso 2,20\nCappuccino 3,40\nTea (pot) 4,10",
        "Anna Meier 030 1234 567\nBernd Schulz 030 1234 568\nEmergency 112",
        "09:00 Registration and coffee\n09:30 Welcome (Prof. Lind)",
        "The Mill\nphone: 01223 555 010\nemail: p.brown@example.org",
        "milk 2 l\nbread\neggs (12)\ncandles",
        f"2019-2023   {LONG}\n2015-2019   {LONG}",
    ],
)
def test_lines_too_short_to_be_wrapped_or_with_columns_stay_apart(text: str) -> None:
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert blocks(text) == lines
    assert blocks(f"{LONG}\n\n{text}") == [LONG, *lines]


def test_a_short_line_goes_on_in_one_that_begins_small() -> None:
    text = "Reporter: How deep?\nLind: It is 42 metres deep at its\ndeepest point.\nReporter: How cold?\nLind: Very."
    assert blocks(text)[1] == "Lind: It is 42 metres deep at its deepest point."


@pytest.mark.parametrize("text", ["It is not of\nSpain.", "Grey on the weir he\nstands alone", "It is Anti-\nBlue"])
def test_short_lines_that_go_on_are_joined(text: str) -> None:
    assert len(blocks(text)) == 1


def test_wrapped_lines_are_joined_in_any_script() -> None:
    for word in ("הספר", "마을에서", "Schlittschuhen"):
        lines = [" ".join([word] * count) for count in (12, 11, 12, 11, 3)]
        text = "\n".join(lines)
        assert blocks(f"{text}\n\n{LONG}") == [" ".join(lines), LONG]


def test_a_header_of_mime_is_left_out_and_other_labels_stay() -> None:
    dropped = Counter[str]()
    head = "Content-Type: text/x-wiki\nWiki-Format: 0.4\n\n"
    assert [block.text for block in text_blocks(f"{head}The mill grinds.", dropped)] == ["The mill grinds."]
    assert +dropped == {nav.BOILERPLATE: 1}
    assert blocks("Content-Type: a header\n\nIt says what follows.")[0] == "Content-Type: a header"


def test_contents_in_columns_are_left_out() -> None:
    asked = [
        f"{kind}: Does it {verb} at night?" for kind, verb in zip("ABCD", ("run", "sing", "fly", "glow"), strict=True)
    ]
    listed = "\n".join(question.replace(": ", ":      ") for question in asked)
    dropped = Counter[str]()
    body = "\n\n".join(f"{question}\n    It does." for question in asked)
    found = list(text_blocks(f"{listed}\n\n{body}", dropped))
    assert dropped[nav.CONTENTS] == 4
    assert len(found) == 4


@pytest.mark.parametrize("apart", ["\n", "\n\n"])
def test_questions_of_an_faq_are_headings(apart: str) -> None:
    asked = ("Q: How is the mill\n   opened?", "Q2. Is it red?")
    told = ("A: With the key\n   of the miller.", f"A2. No. {LONG}\n    It is blue.")
    text = apart.join([*map(apart.join, zip(asked, told, strict=True))])
    expected = ["## How is the mill opened?", "With the key of the miller.", "## Is it red?", f"No. {LONG} It is blue."]
    assert blocks(text) == expected
    assert blocks(f"Mills\n=====\n\n{text}") == ["# Mills", *expected]


def test_one_question_makes_no_faq() -> None:
    assert blocks("Q: Is it red?\nA: No.") == ["Q: Is it red?", "A: No."]
    assert blocks("Plan A. It is\nred.\n\nPlan B. It is old.") == ["Plan A. It is red.", "Plan B. It is old."]
    long = "Is the mill at the end of the village, which ground the corn of all the farms around it until then, and"
    again = f"{long} {long}?"
    text = f"Q: {again}\nA: It is.\n\nQ: {again}\nA: It is."
    assert blocks(text) == [f"Q: {again}", "It is."] * 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"1.1 Scope. {LONG}\n    It is old.\n1.2 Exceptions. There are none.",
            [f"1.1 Scope. {LONG} It is old.", "1.2 Exceptions. There are none."],
        ),
        (
            f"2. Rent\n2.1 The rent is 850.\n2.2 {LONG}\n(a) By bank.\n(b) Late.\n2.3 The deposit\nis 90.",
            [
                "## Rent",
                "2.1 The rent is 850.",
                f"2.2 {LONG}",
                "- (a) By bank.",
                "- (b) Late.",
                "2.3 The deposit is 90.",
            ],
        ),
        ("1.1 Rent\n- cold\n1.2 Heat\n- warm", ["1.1 Rent", "- cold", "1.2 Heat", "- warm"]),
        (f"Version 5.1 (2025-01-10)\n- New mill\n\n{LONG}", ["Version 5.1 (2025-01-10)", "- New mill", LONG]),
        (f"Room 101: 12 seats\nRoom 102: {LONG}", ["Room 101: 12 seats", f"Room 102: {LONG}"]),
        (f"Step 2: {LONG}\nStep 9: It ends.", [f"Step 2: {LONG}", "Step 9: It ends."]),
        (
            f"APR: yearly rate\nLTV: loan to value, {LONG}\n  It is old.\nEscrow: money",
            ["APR: yearly rate", f"LTV: loan to value, {LONG} It is old.", "Escrow: money"],
        ),
        (
            f"12.03.25, 18:02 - Ann: {LONG}\n12.03.25, 18:05 - Ben: so it has",
            [f"12.03.25, 18:02 - Ann: {LONG}", "12.03.25, 18:05 - Ben: so it has"],
        ),
        (f"Monday\n9:00 {LONG}\nof Ann\n10:15 tea", ["Monday", f"9:00 {LONG} of Ann", "10:15 tea"]),
        (f"[ ] {LONG}\n[x] tent", [f"[ ] {LONG}", "[x] tent"]),
        (f"{LONG}\nNOTE: It is old.", [f"{LONG} NOTE: It is old."]),
        (f"He said {LONG}\nStep 1: It ends.", [f"He said {LONG} Step 1: It ends."]),
    ],
)
def test_lines_that_begin_with_labels_stay_apart(text: str, expected: list[str]) -> None:
    assert blocks(text) == expected


def test_options_are_entries() -> None:
    listed = """
        options:
          -f FORM, --form=FORM
                         print it in this form
          -c, --count    count the parts that are missing in each of the boxes, or
                         all of them
          -h, --help     show this help
        """
    assert blocks(listed) == [
        "options:",
        "-f FORM, --form=FORM: print it in this form",
        "-c, --count: count the parts that are missing in each of the boxes, or all of them",
        "-h, --help: show this help",
    ]
    assert blocks("-a  one\n-b  two\nThree of them.") == ["-a one", "-b two", "Three of them."]


def test_a_few_questions_in_a_long_text_are_no_headings_of_what_stands_below() -> None:
    joke = "Q: Is the bus red?\n\nA: It is.\n\n"
    text = joke + "The bus comes at nine every day of the week.\n\n" * 400 + joke
    assert blocks(text)[0] == "Q: Is the bus red?"
    assert blocks(joke * 2)[0] == "## Is the bus red?"


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("2.1.10", "2.1.10"),
        ("v1.4 (2024-05-06)", "v1.4 (2024-05-06)"),
        ("Version 2.0b1 - unreleased", "Version 2.0b1 - unreleased"),
        ("1.9.2, 5 May 2024:", "1.9.2, 5 May 2024:"),
        ("Version of 2.0", None),
    ],
)
def test_versions_above_the_lists_of_a_change_log_are_headings(line: str, heading: str | None) -> None:
    found = blocks(f"{line}\n * #12: The gate opens.\n * A wheel.\n\n{line}\n\n  The sluice is red.\n")
    assert [block for block in found if block.startswith("#")] == ([f"## {heading}"] * 2 if heading else [])
    assert not heading or [block.strip("- ") for block in found if not block.startswith("#")] == [
        "#12: The gate opens.",
        "A wheel.",
        "The sluice is red.",
    ]
