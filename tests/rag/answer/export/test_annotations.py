"""Citations as the SDKs of Anthropic and OpenAI read them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answer.export.anthropic import to_anthropic
from rag.answer.export.escaping import visible
from rag.answer.export.open_webui import source_cards
from rag.answer.export.openai import chat_annotations, response_annotations
from rag.answer.export.rendering import short_answer_line, with_markers
from rag.answer.export.sources import merge_spans
from rag.base.types import Answer, Passage
from rag.base.utf16 import utf16_span
from tests.rag.answer.export.answers import ABSTAINED, BRIDGE, answers, build, cite, link

RIVER = "http://127.0.0.1:8000/p/shelf/river%231?mark=0-18"
TOWN = "http://127.0.0.1:8000/p/shelf/town%231"


def test_blocks_cite_spans_of_the_documents() -> None:
    assert to_anthropic(BRIDGE)["content"] == [
        {
            "type": "text",
            "text": "Nora Finch built it in 1911.",
            "citations": [
                {
                    "type": "char_location", "cited_text": "Nora Finch built it in 1911.", "document_index": 0,
                    "document_title": "Arlen, History", "start_char_index": 20, "end_char_index": 48, "file_id": None,
                }
            ],
        },
        {"type": "text", "text": " ", "citations": None},
        {
            "type": "text",
            "text": "The river is long.",
            "citations": [
                {
                    "type": "char_location", "cited_text": "The river is long.", "document_index": 1,
                    "document_title": "The river [Lune]", "start_char_index": 0, "end_char_index": 18, "file_id": None,
                },
                {
                    "type": "char_location", "cited_text": "Arlen has a bridge.", "document_index": 0,
                    "document_title": "Arlen, History", "start_char_index": 0, "end_char_index": 19, "file_id": None,
                },
            ],
        },
        {"type": "text", "text": " It may rain.", "citations": None},
    ]  # fmt: skip
    assert [one["context"] for one in to_anthropic(BRIDGE)["documents"]] == [
        "Passage town#1", "Passage river#1", "Passage town#2"
    ]  # fmt: skip
    assert to_anthropic(ABSTAINED)["content"] == []


def test_the_types_of_anthropic_read_the_blocks() -> None:
    types = pytest.importorskip("anthropic.types", reason="needs the package anthropic")
    pydantic = pytest.importorskip("pydantic", reason="needs the package pydantic")
    exported = json.loads(json.dumps(to_anthropic(BRIDGE)))
    blocks = [types.TextBlock.model_validate(block, strict=True) for block in exported["content"]]
    assert [type(one).__name__ for block in blocks for one in block.citations or ()] == ["CitationCharLocation"] * 3
    assert blocks[2].citations[1].cited_text == "Arlen has a bridge."
    for document in exported["documents"]:
        pydantic.TypeAdapter(types.DocumentBlockParam).validate_python(document, strict=True)
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "reader", "content": exported["content"],
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0},
    }  # fmt: skip
    assert types.Message.model_validate(message).to_dict()["content"] == exported["content"]


@given(answers())
def test_every_span_of_a_block_holds_the_cited_text(answer: Answer) -> None:
    exported = to_anthropic(answer)
    assert "".join(block["text"] for block in exported["content"]) == answer.text
    assert all(block["text"] for block in exported["content"])
    told = []
    for block in exported["content"]:
        for one in block["citations"] or ():
            document = exported["documents"][one["document_index"]]
            there = document["source"]["data"][one["start_char_index"] : one["end_char_index"]]
            assert (one["cited_text"], one["document_title"]) == (there, document["title"])
            told.append((document["context"], one["start_char_index"], one["end_char_index"]))
    assert told == [(f"Passage {one.passage}", *one.span) for one in answer.citations]


def test_annotations_point_at_the_markers() -> None:
    rendered = with_markers(BRIDGE, link)
    lune = {
        "start_index": 51, "end_index": 54, "start_utf16": 51, "end_utf16": 54,
        "title": "The river [Lune]", "url": RIVER, "quotes": ["The river is long."],
    }  # fmt: skip
    assert rendered.text == str(BRIDGE) == "Nora Finch built it in 1911 [1]. The river is long [2][1]. It may rain."
    assert response_annotations(rendered) == [
        {
            "type": "url_citation",
            "start_index": 28,
            "end_index": 31,
            "start_utf16": 28,
            "end_utf16": 31,
            "title": "Arlen, History",
            "url": f"{TOWN}?mark=20-48",
            "quotes": ["Nora Finch built it in 1911."],
        },
        {"type": "url_citation", **lune},
        {
            "type": "url_citation",
            "start_index": 54,
            "end_index": 57,
            "start_utf16": 54,
            "end_utf16": 57,
            "title": "Arlen, History",
            "url": f"{TOWN}?mark=0-19",
            "quotes": ["Arlen has a bridge."],
        },
    ]
    assert chat_annotations(rendered)[1] == {
        "type": "url_citation",
        "url_citation": lune,
    }


def test_an_abstention_and_sources_without_address_have_no_annotation() -> None:
    assert response_annotations(with_markers(ABSTAINED, link)) == []
    assert response_annotations(with_markers(BRIDGE)) == []
    assert response_annotations(with_markers(BRIDGE, lambda *_: "javascript:alert(1)")) == []


def test_the_types_of_openai_read_the_annotations() -> None:
    chat = pytest.importorskip("openai.types.chat", reason="needs the package openai")
    responses = pytest.importorskip("openai.types.responses", reason="needs the package openai")
    rendered = with_markers(BRIDGE, link)
    message = {
        "role": "assistant",
        "content": rendered.text,
        "refusal": None,
        "annotations": chat_annotations(rendered),
    }
    read = chat.ChatCompletionMessage.model_validate(message, strict=True)
    part = {"type": "output_text", "text": rendered.text, "annotations": response_annotations(rendered)}
    other = responses.ResponseOutputText.model_validate(part, strict=True)
    assert [one.url_citation.url for one in read.annotations] == [one.url for one in other.annotations]
    assert read.to_dict()["annotations"] == message["annotations"]


def joined(text: str) -> str:
    """The characters without white space."""
    return "".join(text.split())


@given(answers())
def test_annotations_are_in_order_and_each_marks_what_its_sentence_cites(answer: Answer) -> None:
    rendered, line = with_markers(answer, link), short_answer_line(answer)
    assert joined(rendered.text) == joined(f"{line or ''}{visible(str(answer))}")  # `inert` adds spaces
    annotations = response_annotations(rendered)
    assert annotations == sorted(annotations, key=lambda one: one["start_index"])
    linked = [(sentence, passage) for sentence in answer.sentences for passage in sentence.cites]
    passages = {hit.passage.id: hit.passage for hit in answer.hits}
    numbers: dict[str, int] = {}
    for one, (sentence, passage) in zip(annotations, linked, strict=True):
        number = numbers.setdefault(passage, len(numbers) + 1)
        assert rendered.text[one["start_index"] : one["end_index"]] == f"[{number}]"
        marks = merge_spans([citation.span for citation in sentence.citations if citation.passage == passage])
        assert one["url"] == link(passages[passage], marks)


@given(st.text(max_size=30), st.data())
def test_offsets_of_utf16_cut_what_characters_cut(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    span = utf16_span(text, start, end)
    units = text.encode("utf-16-le", "surrogatepass")
    cut = units[2 * span["start_utf16"] : 2 * span["end_utf16"]]
    assert cut.decode("utf-16-le", "surrogatepass") == text[start:end]


def test_annotations_have_offsets_for_javascript_and_verbatim_quotes() -> None:
    passage = Passage("x", "Bells", "🔔🔔 ![ring](http://a.example/b)!")
    rendered = with_markers(build(passage.text, [(passage.text, [cite(passage, passage.text)])], [passage]), link)
    (annotation,) = response_annotations(rendered)
    assert rendered.text == "🔔🔔 ! [ring] (http:// a.example/b) [1]!"
    assert annotation["start_utf16"] == annotation["start_index"] + 2
    assert annotation["quotes"] == [passage.text]


def test_open_webui_has_a_card_for_each_marker() -> None:
    twins = [Passage(f"x#{n}", "Bells", f"Bell {n} says <b>ding</b>.") for n in (1, 2)]
    answer = build(
        "One. Two.", [("One.", [cite(twins[1], twins[1].text)]), ("Two.", [cite(twins[0], "Bell 1")])], twins
    )
    first, second = source_cards(answer, link)
    assert first == {
        "source": {"name": "Bells (1)", "url": "http://127.0.0.1:8000/p/shelf/x%232?mark=0-24"},
        "document": ["Bell 2 says < b>ding< /b>."],
        "metadata": [{"source": "passage x#2", "name": "Bells (1)"}],
    }
    assert (second["source"]["name"], second["document"]) == ("Bells (2)", ["Bell 1"])
    assert source_cards(ABSTAINED, link) == []
    assert "url" not in source_cards(BRIDGE)[0]["source"]


def test_a_lone_surrogate_can_be_sent() -> None:
    passage = Passage("x", "\ud800", "a\ud800b")
    rendered = with_markers(build("a\ud800b", [("a\ud800b", [cite(passage, "a\ud800b")])], [passage]), link)
    assert (rendered.text, rendered.places[0].source.title) == ("a\ufffdb [1]", "\ufffd")
