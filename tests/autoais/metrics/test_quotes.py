"""Quotations in answers: found, compared with the passages, and counted in a report."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import autoais
from autoais import Citation, CitedAnswer, CitedSentence, Passage, QuoteCheck, check_quotes

WEIR = (
    "Ann Orr said that the weir “was repaired by hand in the spring of 1987”, and that nobody paid her. "
    "It has held every flood since — even the great one.[4] The council's report calls the weir\nsound for now."
)
MILL = "The mill below the weir burnt down in March. Its owner wrote: the fire began in the hay loft at night."
OTTERS = "Otters sleep by day and hunt at night. They are not afraid of the old turbines at all."
PASSAGES = {
    "weir": Passage("weir", "The weir", WEIR),
    "mill": Passage("mill", "The mill", MILL),
    "otters": Passage("otters", "Otters", OTTERS),
}


def answer(*sentences: tuple[str, str], question: str = "What happened?", text: str | None = None) -> CitedAnswer:
    """An answer whose sentences cite the named passages."""
    cited = (CitedSentence(said, tuple(map(Citation, cites.split()))) for said, cites in sentences)
    return CitedAnswer("a", question, tuple(cited), PASSAGES, text=text)


def check(said: str, cites: str = "weir") -> QuoteCheck:
    (result,) = check_quotes(answer((said, cites)))
    return result


@pytest.mark.parametrize(
    "said",
    [
        'It "was repaired by hand in the spring of 1987".',
        "It ‘was repaired by hand in the spring of 1987,’ she says.",
        "It «was repaired by hand in the spring of 1987».",
        "It « was repaired by hand in the spring of 1987 ».",
        "It „was repaired by hand in the spring of 1987“.",
        "It „was repaired by hand in the spring of 1987”.",
        'Was it hers? "Was *repaired* by hand\nin the spring of 1987."',
        '"It has held every flood since - even the great one."',
        '"It has held every flood since -- even the great one. The council’s report," it says.',
        "It says 'the council's report calls the weir sound' and no more.",
        "Orr: \"the weir 'was repaired by hand in the spring of 1987'.\"",
        'Orr: "the weir was repaired ... in the spring of 1987 … nobody paid her [...] every flood".',
        'Orr: "[The dam] was repaired by hand in the spring".',
        'Orr: "[T]he weir was repaired by hand [not by machines] in the spring of 1987".',
        'Orr: "that nobody paid [Orr]. It has held [sic] every flood since".',
        "> It has held every flood since\n> — even the great one.\n> — The council",
    ],
)
def test_verbatim(said: str) -> None:
    result = check(said)
    assert result.status == "verbatim", result
    assert {source.passage for source in result.sources} == {"weir"}
    for source in result.sources:
        assert WEIR[slice(*source.span)] == source.quote
    assert result.diff == ""


def test_a_quotation_of_another_passage_names_it() -> None:
    said = 'The owner wrote that "the fire began in the hay loft".'
    assert check(said, "mill").status == check(said, "weir mill").status == "verbatim"
    for cites in ("weir", "otters weir", ""):
        result = check(said, cites)
        assert (result.status, [source.passage for source in result.sources]) == ("misattributed", ["mill"])


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        (  # two passages
            'It "was repaired by hand in the hay loft at night".',
            [("weir", "was repaired by hand in the"), ("mill", "hay loft at night")],
        ),
        (  # two places, nothing says that words are left out
            'Orr "was repaired by hand even the great one sound for now".',
            None,
        ),
        (  # in another order
            'It says "even the great one ... repaired by hand in the spring".',
            [("weir", "even the great one"), ("weir", "repaired by hand in the spring")],
        ),
        (  # an ellipsis joins two passages
            'It says "repaired by hand in the spring … burnt down in March".',
            [("weir", "repaired by hand in the spring"), ("mill", "burnt down in March")],
        ),
        (  # editors' brackets stand for a few words
            'Orr said: "was repaired by hand [and] The council\'s report calls".',
            [("weir", "was repaired by hand"), ("weir", "The council's report calls")],
        ),
    ],
)
def test_a_quotation_of_parts_that_stand_apart_is_stitched(said: str, parts: list[tuple[str, str]] | None) -> None:
    if parts is None:
        assert check(said).status == "misquoted"  # its last part has three words: they stand anywhere
        return
    result = check(said)
    assert result.status == "stitched"
    assert [(source.passage, source.quote) for source in result.sources] == parts


@pytest.mark.parametrize(
    ("said", "diff"),
    [
        (
            'It "was repaired by machines in the spring of 1987".',
            "was repaired by [-machines-] {+hand+} in the spring of 1987",
        ),
        ('It "was repaired in the spring of 1987".', "was repaired {+by hand+} in the spring of 1987"),
        ('It "was repaired by hand in the spring of 1978".', "was repaired by hand in the spring of [-1978-] {+1987+}"),
        ('She said: "nobody ever paid her."', "nobody [-ever-] paid her"),
        ('She wrote "nothing lasts as long as good oak does".', ""),  # nothing is near
    ],
)
def test_a_misquotation_has_the_nearest_text_and_the_words_that_differ(said: str, diff: str) -> None:
    result = check(said)
    assert (result.status, result.diff) == ("misquoted", diff)
    for source in result.sources:
        assert WEIR[slice(*source.span)] == source.quote


def test_the_nearest_text_is_of_a_cited_passage_if_one_has_it() -> None:
    (source,) = check('It says: "the mill by the weir burnt down in March".', "weir otters").sources
    assert (source.passage, source.quote) == ("mill", "The mill below the weir burnt down in March")


@pytest.mark.parametrize(
    "said",
    [
        'It is "not afraid" of them.',  # three words and fewer
        'The song "Gone with the Old Mill Wind" is about it.',
        'See the paper titled "A study of weirs and of otters" for more.',
        'One could ask things such as "how long will this last?" of it.',
        'They got a "better late than never" prize.',
        "The dogs' owners and the cats' other friends' homes are near.",
        "The '90s were good to it and the 'old mills' too.",
        'A 12" pipe and a 14" pipe run below the old weir for good.',
        'Run `echo "was repaired by nobody at all"` first.',
        '```\nprint("was repaired by nobody at all")\n```',
        "> **Note:** it was repaired by nobody at all.",
        ">>> print(was, repaired, by, nobody)",
        'It says "what happened then to the weir", as you asked.',
        "Nothing is quoted here.",
        '"',
        "",
    ],
)
def test_what_is_no_quotation_of_a_source_is_passed_over(said: str) -> None:
    assert check_quotes(answer((said, "weir"), question="What happened then to the weir?")) == []


def test_a_quotation_over_sentences_is_one_and_may_stand_in_all_that_they_cite() -> None:
    text = 'He wrote: "The mill below the weir burnt down in March. Its owner wrote." '
    text += 'So it was. "They are not afraid of it."'
    sentences = (
        ('He wrote: "The mill below the weir burnt down in March.', ""),
        ('Its owner wrote."', "mill"),
        ("So it was.", ""),
        ("They are not afraid of it.", "otters"),  # its marks stand outside
    )
    whole, last = check_quotes(answer(*sentences, text=text))
    assert whole.status == "verbatim"
    assert [sentences[n][0][start:end] for n, start, end in whole.spans] == [
        "The mill below the weir burnt down in March.",
        "Its owner wrote.",
    ]
    assert (last.sentence, last.status, last.spans) == (3, "misquoted", ((3, 0, 26),))


def test_what_cannot_be_compared_is_not_blamed() -> None:
    said = 'It says: "this is no text that we have here".'
    unknown = {"weir": PASSAGES["weir"], "x": Passage("x")}
    cited = (CitedSentence(said, (Citation("weir"), Citation("x"))),)
    assert check_quotes(CitedAnswer("a", "?", cited, unknown)) == []
    assert check_quotes(CitedAnswer("a", "?", (CitedSentence(said),))) == []
    known = (CitedSentence('It says: "only a quote is there".', (Citation("x", quote="and only a quote is there"),)),)
    (result,) = check_quotes(CitedAnswer("a", "?", known, unknown))
    assert (result.status, result.sources) == ("verbatim", (Citation("x", quote="only a quote is there"),))
    wrong = (CitedSentence('It says: "only a word is there".', known[0].citations),)
    assert check_quotes(CitedAnswer("a", "?", wrong, unknown)) == []  # it may stand elsewhere in the passage


def test_other_scripts() -> None:
    passages = {"p": Passage("p", "", "王说：水坝在一九八七年的春天修好了。没有人付钱给她。")}
    for said, status in (
        ("她说「水坝在一九八七年的春天修好了」。", "verbatim"),
        ("她说「水坝在一九八八年的春天修好了」。", "misquoted"),
    ):
        (result,) = check_quotes(CitedAnswer("a", "?", (CitedSentence(said, (Citation("p"),)),), passages))
        assert result.status == status
        assert result.sources[0].quote == "水坝在一九八七年的春天修好了"


# --- properties -----------------------------------------------------------------------------------------------

WORD = st.sampled_from("weir mill otter of the was not in 1987 3.5 don't well-kept über 水坝 (so) e.g. a".split())
TEXT = st.lists(WORD, min_size=12, max_size=60).map(" ".join)


@given(TEXT, st.data())
def test_words_of_a_passage_are_verbatim_wherever_they_are_cut(text: str, data: st.DataObject) -> None:
    tokens = text.split()
    first = data.draw(st.integers(0, len(tokens) - 8))
    quote = " ".join(tokens[first : first + 8])
    cited = (CitedSentence(f"It says “{quote}”.", (Citation("p"),)),)
    for result in check_quotes(CitedAnswer("a", "", cited, {"p": Passage("p", "", text)})):
        assert result.status == "verbatim"


@given(
    st.lists(st.text(st.sampled_from("ab \n\"'“”„«».…[]>-*`1s") | st.characters(), max_size=80), max_size=4),
    st.lists(st.text(max_size=80) | TEXT, min_size=1, max_size=3),
)
def test_any_text_is_checked_and_every_span_is_exact(sentences: list[str], texts: list[str]) -> None:
    passages = {str(n): Passage(str(n), "", text) for n, text in enumerate(texts)}
    cited = tuple(CitedSentence(said, (Citation("0"),)) for said in sentences)
    for result in check_quotes(CitedAnswer("a", "?", cited, passages)):
        assert result.quote
        for number, start, end in result.spans:
            assert 0 <= start < end <= len(sentences[number])
        for source in result.sources:
            assert passages[source.passage].text[slice(*source.span)] == source.quote
        assert json.dumps(result.record())


@pytest.mark.parametrize(
    "said",
    [
        "> " + "a" * 200_000, '"' * 100_000, "> " + "weir [x " * 20_000, "“" + "the weir … " * 300 + "”",
        "> a\n\n" * 20_000, '"the old mill is here", ' * 2_000, "> " + ". . " * 50_000 + "the mill is not here",
    ],
    ids="word marks brackets ellipses blocks quotations dots".split(),
)  # fmt: skip
def test_no_text_takes_long(said: str) -> None:
    passages = {"p": Passage("p", "", "the weir and the mill " * 2_000)}
    start = time.process_time()
    check_quotes(CitedAnswer("a", "?", (CitedSentence(said, (Citation("p"),)),), passages))
    assert time.process_time() - start < 10


# --- reports --------------------------------------------------------------------------------------------------


def write(path: Path, *answers: CitedAnswer) -> Path:
    from autoais.base.answers import write_answers

    path.write_text("".join(f"{line}\n" for line in write_answers(answers)))
    return path


def test_a_report_counts_quotations_and_rows_name_those_that_are_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from autoais.base.terminal import show_report

    path = write(
        tmp_path / "a.jsonl",
        answer(
            ('It "was repaired by hand in the spring".', "weir"),
            ('It "was repaired by machines in the spring".', "weir"),
            ('He wrote: "the fire began in the hay loft".', "weir"),
            ("Otters hunt at night.", "otters"),
        ),
    )
    report = autoais.score(path, judge="lexical")
    rate = report.metrics["verbatim_quotes"]
    assert rate.value == pytest.approx(1 / 3)
    assert rate.n == 3
    record = report.to_dict()
    assert record["quotations"] == {"verbatim": 1, "misattributed": 1, "stitched": 0, "misquoted": 1}
    show_report(record)
    shown = capsys.readouterr().out
    assert "verbatim_quotes" in shown
    assert "3 quotations in the answers: 1 verbatim, 1 misattributed, 1 misquoted" in shown
    report.save(tmp_path / "r.json", tmp_path / "j.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "j.jsonl").read_text().splitlines()]
    assert [[quote["status"] for quote in row.get("quotes", ())] for row in rows] == [
        [], ["misquoted"], ["misattributed"], [],
    ]  # fmt: skip
    assert rows[1]["quotes"][0]["diff"] == "was repaired by [-machines-] {+hand+} in the spring"
    comparison = autoais.compare(report, report)
    assert comparison


def test_without_quotations_a_report_says_nothing_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from autoais.base.terminal import show_report

    record = autoais.score(
        write(tmp_path / "a.jsonl", answer(("Otters hunt at night.", "otters"))), judge="lexical"
    ).to_dict()
    assert "quotations" not in record
    assert "verbatim_quotes" not in record["metrics"]
    show_report(record)
    assert "quot" not in capsys.readouterr().out
