"""Items: what is read, what is missing, and what becomes of answers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.answers import CitedAnswer
from autoais.base.types import Citation, CitedSentence, Passage
from rag.annotate.expected import item_is_right
from rag.annotate.items import (
    Cell,
    Item,
    Source,
    Table,
    Turn,
    attention_checks,
    check_items,
    item_of,
    items_of,
    order_items,
    read_items,
    to_row,
    write_items,
)
from rag.annotate.schemes import COMMAND_KEYS, KINDS, SCHEMES, Scheme, Unit, flags_for, scheme_of
from rag.base.errors import FormatError, UsageError
from tests.rag.annotate.made import make_items

GOOD: dict[str, Any] = {"id": "a", "text": "Blue.", "query": "Colour?", "sources": [{"id": "p", "text": "It is blue."}]}


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8).filter(
    lambda value: bool(value.strip())
)
sources = st.lists(
    st.builds(Source, text, text, text, text, st.none() | st.integers(1, 9)), max_size=3, unique_by=lambda one: one.id
).map(tuple)
cells = st.lists(st.builds(Cell, text, st.booleans(), st.booleans()), min_size=1, max_size=2).map(tuple)
tables = st.builds(Table, st.lists(cells, min_size=1).map(tuple), text, text, text)
items = st.builds(
    Item,
    id=text,
    text=text,
    answer=text,
    sentence=st.none() | st.integers(0, 5),
    kind=st.sampled_from(KINDS),
    turns=st.lists(st.builds(Turn, text, text), max_size=2).map(tuple),
    query=text,
    before=text,
    after=text,
    sources=sources,
    table=tables,
    expected=st.dictionaries(text, text, max_size=2),
    explanation=text,
    system=text,
    flags=st.sampled_from([(), ("malformed",)]),
    group=text,
)


@given(items)
def test_items_come_back_as_they_were_written(item: Item) -> None:
    (line,) = write_items([item])
    assert item_of(json.loads(line), "here") == item


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"text": None}, "field 'text' should be a string"),
        ({"text": " "}, "field 'text' is empty"),
        ({"query": ""}, "field 'query' is missing or empty"),
        ({"sources": ...}, "field 'sources' is missing"),
        ({"sources": [{"id": "p", "text": ""}]}, "field 'sources[0].text' is empty"),
        ({"sources": [{"id": "p"}]}, "field 'sources[0].text' is missing"),
        ({"sources": GOOD["sources"] * 2}, "has an id twice"),
        ({"kind": "table"}, "field 'table' is missing, or has no cell"),
        ({"kind": "table", "table": {"rows": [[]]}}, "field 'table' is missing, or has no cell"),
        ({"kind": "poem"}, "field 'kind' should be one of"),
        ({"citation": "q", "sentence": 0}, "names 'q', which is not among the sources"),
        ({"id": ...}, "field 'id' is missing"),
        ({"id": "a\0"}, "field 'id' holds a NUL character"),
        ({"sources": [{"id": "p", "text": "a\0"}]}, "field 'sources[0].text' holds a NUL character"),
        ({"expected": {"a\0": "yes"}}, "field 'expected' holds a NUL character"),
        ({"query": "\ud800"}, "field 'query' holds half of a surrogate pair"),
        ({"id": "x" * 601}, "field 'id' has more than 600 characters"),
        ({"flags": ["boring"]}, "should be one of 'missing'"),
    ],
)
def test_an_item_that_does_not_fit_is_refused_with_line_and_field(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    row = {name: value for name, value in (GOOD | change).items() if value is not ...}
    path = write(tmp_path / "items.jsonl", GOOD | {"id": "first"}, row)
    with pytest.raises(FormatError) as caught:
        list(read_items(path))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_parts_are_flagged_if_that_is_wanted(tmp_path: Path) -> None:
    path = write(
        tmp_path / "items.jsonl", GOOD, {"id": "b", "text": "Blue."}, {"id": "c"} | {"text": "", "sources": []}
    )
    assert [item.flags for item in read_items(path, flag_incomplete=True)] == [(), ("missing",), ("missing",)]
    path = write(tmp_path / "broken.jsonl", {"id": "b", "text": 3})
    with pytest.raises(FormatError, match="should be a string"):
        list(read_items(path, flag_incomplete=True))


def test_an_id_occurs_once(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"jsonl:2: id 'a' occurs twice"):
        list(read_items(write(tmp_path / "items.jsonl", GOOD, GOOD)))


# --- items of answers ------------------------------------------------------------------------------------------------

ANSWER = CitedAnswer(
    "q1/1",
    "Colour?",
    (
        CitedSentence("It is blue.", (Citation("p1"), Citation("p2"), Citation("p1"))),
        CitedSentence("Or so.", ()),
        CitedSentence("It was red.", (Citation("p3"),)),
    ),
    {key: Passage(key, "Sky", f"Text {key}.") for key in ("p1", "p2", "p3", "p4")},
    extra={"query_id": "q1", "system": "reader", "turns": [{"speaker": "user", "text": "Hello"}]},
)


def test_whole_answers_have_all_that_they_cite_as_sources() -> None:
    (item,) = items_of([ANSWER], scheme_of("ais"))
    assert (item.id, item.answer, item.sentence, item.unit) == ("q1/1", "q1/1", None, "answer")
    assert item.text == "It is blue. Or so. It was red."
    assert [source.id for source in item.sources] == ["p1", "p2", "p3"]
    assert (item.system, item.group, item.turns) == ("reader", "q1", (Turn("user", "Hello"),))


def test_sentences_and_citations() -> None:
    found = {item.id: item for item in items_of([ANSWER], scheme_of("liu"))}
    assert list(found) == ["q1/1#0", "q1/1#0@p1", "q1/1#0@p2", "q1/1#1", "q1/1#2", "q1/1#2@p3"]
    assert [source.id for source in found["q1/1#0"].sources] == ["p1", "p2"]
    assert (found["q1/1#2"].before, found["q1/1#0"].after) == ("It is blue. Or so.", "Or so. It was red.")
    assert found["q1/1#1"].sources == ()
    assert found["q1/1#0@p2"].citation == "p2"
    assert [item.id for item in items_of([ANSWER], scheme_of("trec"))] == ["q1/1#0@p1", "q1/1#0@p2", "q1/1#2@p3"]


def test_an_abstention_has_no_items_and_a_passage_without_text_is_refused() -> None:
    scheme = scheme_of("ais")
    assert list(items_of([CitedAnswer("a", "?", abstained=True)], scheme)) == []
    bare = CitedAnswer("a", "?", (CitedSentence("Yes.", (Citation("p"),)),), {"p": Passage("p")})
    with pytest.raises(FormatError, match=r"item 'a': field 'sources\[0\].text' is empty"):
        list(items_of([bare], scheme))
    (flagged,) = items_of([bare], scheme, flag_incomplete=True)
    assert flagged.flags == ("missing",)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (
            Item("a", "b", sentence=0),
            "is about one sentence; scheme 'ais' asks about one answer: leave 'sentence' and 'citation' out",
        ),
        (Item("a", "b"), "field 'expected' is missing"),
        (Item("a", "b", expected={"worthy": "yes"}), "the questions are: interpretable, attributable, flag"),
        (Item("a", "b", expected={"attributable": "maybe"}), "should be one of yes, no, found 'maybe'"),
        (Item("a", "b", kind="table", expected={"flag": "underspecified-source"}), "should be one of missing"),
    ],
)
def test_what_is_expected_must_fit_the_scheme(item: Item, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        list(check_items([item], scheme_of("ais"), "gold", expected=True))


@given(st.lists(st.integers(0, 4), max_size=20), st.integers())
def test_the_order_is_a_permutation_that_keeps_answers_whole(groups: list[int], seed: int) -> None:
    made = [
        Item(f"{n}#{s}", "x", answer=str(n), sentence=s, group=str(group))
        for n, group in enumerate(groups)
        for s in (0, 1)
    ]
    ordered = order_items(made, seed)
    assert sorted(item.id for item in ordered) == sorted(item.id for item in made)
    assert order_items(made, seed) == ordered
    assert all(a.answer == b.answer for a, b in zip(ordered[::2], ordered[1::2], strict=True))


def test_attention_checks_exchange_sources() -> None:
    made = make_items(6)
    checks = attention_checks(made, 3, "attributable", "no", seed=1)
    by_id = {item.id: item for item in made}
    for base, check in checks.items():
        item, other = (by_id[key] for key in check.id.split("~"))
        assert base == item.id
        assert (check.text, check.sources, check.expected) == (item.text, other.sources, {"attributable": "no"})
        assert item.group != other.group
    with pytest.raises(UsageError, match="7 attention checks need more items than the 6"):
        attention_checks(made, 7, "attributable", "no")


def test_an_attention_check_of_items_with_long_ids_can_be_read_again() -> None:
    made = [replace(item, id=f"{item.id}{'x' * 590}") for item in make_items(6)]
    checks = attention_checks(made, 6, "attributable", "no")
    assert len({check.id for check in checks.values()}) == 6
    for check in checks.values():
        assert item_of(to_row(check), "here") == check


def test_attention_checks_are_not_told_by_numbers_tables_or_how_many_sources() -> None:
    made = [
        replace(
            item,
            group="",
            sources=tuple(Source(f"p{n}.{m}", f"Text {n}.{m}.", "", "", n + m) for m in range(1 + n % 2)),
        )
        for n, item in enumerate(make_items(6))
    ]
    by_id = {item.id: item for item in made}
    checks = attention_checks(made, 6, "attributable", "no")
    for check in checks.values():
        item, other = (by_id[key] for key in check.id.split("~"))
        assert [one.number for one in check.sources] == [one.number for one in item.sources]
        assert [one.text for one in check.sources] == [one.text for one in other.sources]
    with pytest.raises(UsageError, match="attention checks need"):
        attention_checks(made[:2], 1, "attributable", "no")  # one source, two sources
    table = Table(((Cell("1998"),),))
    captions = [Item(f"t{n}", "A caption.", kind="table", query=f"q{n}", table=table) for n in range(2)]
    with pytest.raises(UsageError, match="attention checks need"):
        attention_checks(captions, 1, "attributable", "no")


def test_an_honest_no_before_an_attention_check_is_no_mistake() -> None:
    item = replace(make_items(1)[0], expected={"attributable": "no"})
    ais = scheme_of("ais")
    assert item_is_right(item, {"interpretable": "no"}, ais)
    assert item_is_right(item, {"interpretable": "yes", "attributable": "no"}, ais)
    assert not item_is_right(item, {"interpretable": "yes", "attributable": "yes"}, ais)
    named = replace(item, expected={"interpretable": "yes", "attributable": "no"})
    assert not item_is_right(named, {"interpretable": "no"}, ais)


# --- schemes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=lambda scheme: scheme.name)
def test_a_key_means_one_thing_in_a_scheme(scheme: Scheme) -> None:
    meant: dict[str, str] = {}
    for question in scheme.questions:
        keys = [option.key for option in question.options]
        assert len(set(keys)) == len(keys) == len(set(question.values))
        assert not set(keys) & set(COMMAND_KEYS)
        for option in question.options:
            value = {"none": "no"}.get(option.value, option.value)  # both are a no
            assert meant.setdefault(option.key, value) == value
        assert set(question.evidence_for) <= set(question.values)
        assert set(question.asked_if) <= {one.name for one in scheme.questions}
        for kind in KINDS:
            assert "{" not in question.text_for(kind) + "".join(one.label_for(kind) for one in question.options)


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=lambda scheme: scheme.name)
def test_no_item_takes_more_than_two_presses(scheme: Scheme) -> None:
    def longest(unit: Unit, verdicts: dict[str, str]) -> int:
        question = scheme.next_question(unit, verdicts, has_source=True)
        if question is None:
            return len(verdicts)
        return max(longest(unit, verdicts | {question.name: value}) for value in question.values)

    assert all(1 <= longest(unit, {}) <= 2 for unit in scheme.units)


def test_flags_are_four_for_conversations_and_three_for_others() -> None:
    assert [len(flags_for(kind)) for kind in KINDS] == [4, 3, 3]


def test_an_unknown_scheme() -> None:
    with pytest.raises(UsageError, match="no scheme called 'x'; there are: ais, ais-direct"):
        scheme_of("x")


def test_people_judge_what_the_system_wrote_with_the_numbers_of_the_sources() -> None:
    passages = {key: Passage(key, text=f"Text of {key}.") for key in ("a", "b")}
    sentences = (
        CitedSentence("The tower is tall.", (Citation("b"),), output="The tower is tall [2]."),
        CitedSentence("The reference is.", (Citation("a"),), output="The reference is [1]."),
    )
    answer = CitedAnswer("q", "How tall?", sentences, passages, output="The tower is tall [2]. The reference is [1].")
    first, second = items_of([answer], scheme_of("hagrid"))
    assert (first.text, first.after, second.before) == (
        "The tower is tall [2].", "The reference is [1].", "The tower is tall [2].",
    )  # fmt: skip
    assert [(one.id, one.number) for one in (*first.sources, *second.sources)] == [("b", 2), ("a", 1)]
    (whole,) = items_of([answer], scheme_of("ais"))
    assert whole.text == answer.output
    assert [one.number for one in whole.sources] == [2, 1]
