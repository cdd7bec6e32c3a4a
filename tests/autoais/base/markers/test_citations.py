import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.markers import alce
from autoais.base.markers.alce import StrictSentence, open_splitter, remove_citations, select_documents
from autoais.base.markers.grammar import Parsed, ParsedSentence, group, parse, render
from autoais.base.markers.tokens import MarkerReader
from autoais.base.text.sentences import sentence_spans

CASES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parents[3] / "data" / "citations.toml").read_text("utf-8"))[
    "cases"
]
OPTIONS = ("accept_parens", "strict_years", "passages")


def read(case: dict[str, Any]) -> Parsed[Any]:
    options = {name: case[name] for name in OPTIONS if name in case}
    return parse(case["text"], case.get("ids", case.get("n", 5)), **options)


def said(parsed: Parsed[Any]) -> list[list[Any]]:
    return [[parsed.text[s.start : s.end], *s.cites] for s in parsed.sentences]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['row']}: {case['text']}" for case in CASES])
def test_every_written_form_of_the_grammar(case: dict[str, Any]) -> None:
    parsed = read(case)
    assert said(parsed) == case["said"]
    assert parsed.text == case.get("clean", " ".join(sentence[0] for sentence in case["said"]))
    assert [[u.marker, u.reason] for u in parsed.unresolved] == case.get("unresolved", [])
    assert [[r.kind, r.text] for r in parsed.removals] == case.get("removed", [])
    assert [flag for sentence in parsed.sentences for flag in sentence.flags] == case.get("flags", [])
    assert parsed.duplicates == case.get("duplicates", 0)
    if "segments" in case:
        assert [[parsed.text[s.start : s.end], *s.cites] for s in parsed.segments] == case["segments"]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['row']}: {case['text']}" for case in CASES])
def test_every_written_form_survives_rendering(case: dict[str, Any]) -> None:
    parsed = read(case)
    again = read(case | {"text": render(parsed.text, parsed.sentences)})
    assert (again.text, said(again)) == (parsed.text, said(parsed))


def test_every_row_of_the_tables_has_a_case() -> None:
    rows = {case["row"] for case in CASES}
    # Row 39, streaming, has a test of its own.
    assert {f"H1-{row}" for row in range(1, 39)} <= rows
    assert len([row for row in rows if row.startswith("H2-")]) == 10


# ---- properties ----------------------------------------------------------------------------------------------------

WORDS = ["river", "flows", "through", "Warsaw", "Dr. Smith", "the U.S. army", "1,047 km²", "[sic]", "[1998]", "10³"]
WORDS += ["`a[1] = 2`", "(NATO)", '"so they say"', "the interval [0, 1]", "3.5", "東京", "naïve", "H₂O", "§ 5", "C#"]
LAST = ["water", "1903", "Poland", "(or so)", "“quoted”"]
sentences = st.builds(
    lambda words, last, stop: " ".join(["The", *words, last]) + stop,
    st.lists(st.sampled_from(WORDS), max_size=5),
    st.sampled_from(LAST),
    st.sampled_from([".", "!", "?", "..."]),
)
cite_lists = st.lists(st.integers(1, 5), max_size=3, unique=True).map(tuple)
PIECES = """
A b is and in to Dr. U.S. Source References
. , ? ! : = \\ " “ ” 人。 ( ) [ ] [[ ]] 【 】 1 2 7 0 - – † [1] [2][3] [9] [1-3]
[3-1] [1998] [] [x] [sic] ¹ ² ^ ^1 <sup> </sup> ` ``` | # ** * _ ]( http://x.y \ud800 \u202e \x00
[ID:0] ##1$$ ## $$ \ue200cite\ue202turn0search0\ue201 \ue202turn0search1 \ue203 \ue201 \\ue202turn0news0 \\ue200 \\ue201
`` ```` ~~~ ~~ <code> </code> <pre> </pre> </b> says
""".split()
BLANKS = [" ", "  ", "\n", "\n\n", "\n- ", "\n1. ", "\n|", "\n```\n", "\r\n", "\t", "\r", "\n\n    ", "\n> ", "\n[1] "]
SOUP = st.lists(st.sampled_from(PIECES + BLANKS), max_size=25).map("".join)
anything = SOUP | st.text(max_size=60) | st.text(st.characters(categories=["Cs", "Cc", "Nd", "Ps", "Pe"]), max_size=30)


@given(
    st.lists(st.tuples(sentences, cite_lists), min_size=1, max_size=5),
    st.sampled_from([(" ", ""), ("\n\n", ""), ("\n", "- "), ("\n", "2. "), ("\n", "> "), ("\n\n", "## ")]),
)
def test_parsing_undoes_rendering(answer: list[tuple[str, tuple[int, ...]]], layout: tuple[str, str]) -> None:
    between, before = layout
    text, statements = "", []
    for words, cites in answer:
        text += (between if text else "") + before
        statements.append(ParsedSentence(len(text), len(text) + len(words), cites))
        text += words
    parsed = parse(render(text, statements), 5)
    assert parsed.text == text
    assert list(parsed.sentences) == statements


@given(anything, st.booleans(), st.booleans())
def test_no_text_raises_and_nothing_is_resolved_out_of_range_or_lost(text: str, parens: bool, strict: bool) -> None:
    parsed = parse(text, 3, accept_parens=parens, strict_years=strict)
    end = 0
    for sentence in parsed.sentences:
        assert end <= sentence.start < sentence.end <= len(parsed.text)
        assert not any(map(str.isalnum, re.sub(r"\d{1,3}[.)]", "", parsed.text[end : sentence.start])))
        assert all(1 <= cite <= 3 for cite in sentence.cites)
        end = sentence.end
        inside = [s for s in parsed.segments if sentence.start <= s.start and s.end <= sentence.end]
        assert {cite for segment in inside for cite in segment.cites} == set(sentence.cites)
    found = list(MarkerReader(3, parens, strict).markers(text))
    cited = any(sentence.cites for sentence in parsed.sentences)
    assert not found or cited or parsed.unresolved or parsed.removals


@given(anything)
def test_clean_text_has_no_marker_but_those_left_on_purpose(text: str) -> None:
    once = parse(text, 3)
    again = parse(once.text, 3)
    assert again.text == once.text
    assert not any(sentence.cites for sentence in again.sentences)
    assert again.removals == ()


@given(anything)
def test_line_ends_of_all_kinds_are_read_alike(text: str) -> None:
    text = re.sub("[\r\u2028\u2029]", "\n", text)
    assert parse(text, 3) == parse(text.replace("\n", "\r\n"), 3) == parse(text.replace("\n", "\r"), 3)


CODE_FORMS = [
    "```\n{}\n```",
    "  ```py\n{}\n  `````",
    "````\n```\n{}\n```\n````",
    "~~~ a`b\n```\n{}\n~~~",
    "    {}",
    "\t{}",
    "`{}`",
    "``` `{}`` ```",
    "<pre><code>{}</code>\n\n</pre>",
    '<code class="x">{}</code>',
    "<samp>\n{}\n\n</samp>",
]


@given(
    st.sampled_from(CODE_FORMS), st.lists(st.sampled_from(["xs", "[1]", "[2, 3]", "=", "¹", "##0$$", "."]), min_size=1)
)
def test_nothing_in_code_of_any_form_is_a_marker(form: str, pieces: list[str]) -> None:
    code = form.format("".join(pieces))
    parsed = parse(f"A is B [2].\n\n{code}\n\nC is D [3].", 5)
    assert parsed.text == f"A is B.\n\n{code}\n\nC is D."
    assert [sentence[1:] for sentence in said(parsed) if sentence[0] in ("A is B.", "C is D.")] == [[2], [3]]
    assert sum(len(sentence.cites) for sentence in parsed.sentences) == 2


STYLES = [
    lambda cites: "".join(f" [{cite}]" for cite in cites),
    lambda cites: "".join(f"[{cite}]" for cite in cites),
    lambda cites: f" [{', '.join(map(str, cites))}]",
    lambda cites: f" [{'; '.join(map(str, cites))}]",
    lambda cites: f" [{' and '.join(map(str, cites))}]",
    lambda cites: " " + ", ".join(f"[{cite}]" for cite in cites),
    lambda cites: "".join(f"【{cite}†source】" for cite in cites),
    lambda cites: " ［" + "，".join(chr(0xFF10 + cite) for cite in cites) + "］",
    lambda cites: "".join("⁰¹²³⁴⁵"[cite] for cite in cites),
    lambda cites: "^" + ",".join(map(str, cites)),
    lambda cites: "<sup>" + ",".join(map(str, cites)) + "</sup>",
    lambda cites: f" ([{'], ['.join(map(str, cites))}])",
    lambda cites: "".join(f" [ID:{cite - 1}]" for cite in cites),
    lambda cites: " ".join(f" ##{cite - 1}$$" for cite in cites),
]


@given(
    st.lists(st.tuples(cite_lists.filter(bool), st.sampled_from(STYLES), st.booleans()), min_size=1, max_size=4),
    st.integers(5, 9),
)
def test_how_markers_are_written_changes_nothing(marked: list[tuple[tuple[int, ...], Any, bool]], n: int) -> None:
    text = " ".join(
        f"The river flows{style(cites)}." if inside else f"The river flows.{style(cites)}"
        for cites, style, inside in marked
    )
    parsed = parse(text, n)
    assert said(parsed) == [["The river flows.", *cites] for cites, _, _ in marked]
    assert parsed.unresolved == ()


HOSTILE = [
    "[",
    "[1",
    "^[",
    "(",
    "^",
    "[[1",
    '"',
    "<sup>",
    " ",
    "[ ",
    "[1, ",
    "**[",
    "1",
    "References\n",
    "<code>",
    "<code>\n",
    "</code>",
    "<pre",
    "\\",
    "\\`",
    "``` ",
    "a ````\n```\n```\n",
    "\n\n    a",
    "> ",
    "- ",
    "<code ",
    "\ue200",
    "\ue200cite\ue202",
    "\ue202turn",
    "\\ue200",
    "##0",
    "##0$",
    "\r",
    "~",
    "[1]: ",
    "[ID:",
    ".\n",
    "`a`` ",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_long_hostile_text_is_read(unit: str) -> None:
    text = unit * (100_000 // len(unit))  # so long that quadratic time would be noticed
    assert len(parse(text, 5, accept_parens=True, passages=["x"]).text) <= len(text)


REPEATED = [
    "“",
    "`",
    "```\n",
    "[1]",
    "[1](",
    "x [1](a.b",
    "¹",
    "x^1",
    "| ",
    "\n- ",
    "A. ",
    "[1]\n",
    "##0$$",
    "[ID:0] ",
    "\ue202turn0search0",
    "\ue200cite\ue202a\ue201 ",
    "*[1]* ",
    "A. [1] says b [2]. [1] ",
    "References\n[1] a\n",
    "[1] Title\n",
    "[1]: a\n",
    "Sources\n\n1. a\n\nb\n\n",
    "sources\n  a\n",
    "  Sources\n",
    "sources\n1. a\n\n",
    "> ```\n> [1]\n\n",
    "a ```\nb\n```\n",
]


@pytest.mark.parametrize("unit", REPEATED)
def test_a_text_of_nothing_but_markers_or_marks_is_read(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    assert len(parse(text, 5, passages=["x"]).text) <= len(text)


def test_deeply_nested_markers_come_to_an_end() -> None:
    text = "A is B " + "[Doc " * 50 + "[1]" + " 1]" * 50 + "."
    parsed = parse(text, 5)
    assert "[" not in parsed.text
    assert parsed.sentences[0].cites == (1,)
    assert {u.reason for u in parsed.unresolved} == {"malformed"}


# ---- rendering, grouping, ids --------------------------------------------------------------------------------------


def test_rendering_may_number_by_first_mention_and_keeps_the_keys() -> None:
    parsed = parse("A is B [12#4]. C is D [7#1][12#4]. E is F!", ["7#1", "12#4"])
    assert render(parsed.text, parsed.sentences) == "A is B [12#4]. C is D [7#1][12#4]. E is F!"
    assert render(parsed.text, parsed.sentences, renumber=True) == "A is B [1]. C is D [2][1]. E is F!"
    assert [sentence.cites for sentence in parsed.sentences] == [("12#4",), ("7#1", "12#4"), ()]


def test_uncited_sentences_join_the_next_cited_one_as_in_hagrid() -> None:
    parsed = parse("A is B. C is D [1]. E is F [2]. G is H.", 5)
    own = [(parsed.text[s.start : s.end], s.cites) for s in group(parsed.sentences)]
    assert own == [("A is B. C is D.", (1,)), ("E is F.", (2,)), ("G is H.", ())]
    attached = [(parsed.text[s.start : s.end], s.cites) for s in group(parsed.sentences, trailing="attach")]
    assert attached == [("A is B. C is D.", (1,)), ("E is F. G is H.", (2,))]
    assert group([]) == ()
    assert group(parsed.sentences[:1], trailing="attach") == parsed.sentences[:1]


@given(st.lists(cite_lists, max_size=6), st.sampled_from(["own", "attach"]))
def test_groups_cover_the_sentences_in_order(cites: list[tuple[int, ...]], trailing: Any) -> None:  # noqa: ANN401
    statements = [ParsedSentence(10 * at, 10 * at + 9, cited) for at, cited in enumerate(cites)]
    groups = group(statements, trailing=trailing)
    assert [s.start for s in groups[:1]] == [s.start for s in statements[:1]]
    assert [s.end for s in groups[-1:]] == [s.end for s in statements[-1:]]
    assert all(left.end + 1 == right.start for left, right in pairwise(groups))
    assert all(statement.cites for statement in groups[:-1])


def test_no_source_was_shown() -> None:
    assert [u.reason for u in parse("A is B [1].", 0).unresolved] == ["out-of-range"]
    assert [u.reason for u in parse("A is B [1].", []).unresolved] == ["unknown-id"]


@given(st.lists(st.text(min_size=1, max_size=8), max_size=3), anything)
def test_any_ids_will_do(ids: list[str], text: str) -> None:
    parsed = parse("".join(f"{text}[{name}]" for name in ids), ids)
    assert all(cite in ids for sentence in parsed.sentences for cite in sentence.cites)


# ---- strict ALCE ---------------------------------------------------------------------------------------------------


def strict_sentences(output: str) -> tuple[StrictSentence, ...]:
    """With our splitter, whatever is installed."""
    return alce.strict_sentences(output, open_splitter("sentencex"))


@pytest.mark.parametrize(
    ("sentence", "left"),
    [("A b [1,2].", "A b,2."), ("A b [1-3].", "A b-3."), ("A [sic] b [1].", "A [sic b."), ("A b [1] |", "A b")],
)
def test_alce_removes_citations_its_own_way(sentence: str, left: str) -> None:
    assert remove_citations(sentence) == left


def test_alce_gives_a_citation_behind_the_stop_to_the_next_sentence() -> None:
    expected = (StrictSentence("A is B.", ()), StrictSentence("C is D.", (0,)), StrictSentence("", (1,)))
    assert strict_sentences("A is B. [1] C is D. [2]") == expected
    assert strict_sentences("A is B.[1] C is D.[2]") == expected
    assert strict_sentences("It ran in the U.S. [1] and left [2].") == (
        StrictSentence("It ran in the U.S. and left.", (0, 1)),
    )


def test_alce_reads_the_first_line_and_keeps_zero_and_repeats() -> None:
    (first, second) = strict_sentences(" The cat sat [0][1-3]. It 【1】 ran [9][1][1].<|im_end|>\nThe rest [2].")
    assert first == StrictSentence("The cat sat-3.", (-1, 0))
    assert second == StrictSentence("It 【1】 ran.", (8, 0, 0))
    assert strict_sentences("  \n") == ()


def test_alce_checks_the_range_before_it_cuts_to_three() -> None:
    assert select_documents((0, 1, 2, 3), 5) == (0, 1, 2)
    assert select_documents((0, 1, 2, 5), 5) is None
    assert select_documents((-1, 0, 0), 5) == (-1, 0, 0)


@given(anything)
def test_alce_reads_any_text(text: str) -> None:
    for sentence in strict_sentences(text + "[99999999999999999999]"):
        assert all(document >= -1 for document in sentence.documents)


# ---- the splitter --------------------------------------------------------------------------------------------------


def test_long_texts_are_split_as_short_ones_are() -> None:
    sentence = "Dr. Smith won in the U.S. army (or so). "
    spans = sentence_spans(sentence * 1000)
    assert spans == [(at, at + len(sentence) - 1) for at in range(0, 1000 * len(sentence), len(sentence))]
    assert sentence_spans("\ud800 cat. 😀 The dog.") == [(0, 6), (7, 17)]
