"""Thoughts in replies: whatever a template writes around them, they are no part of the answer."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autoais.base.models.thoughts import is_thinking, only_ends_thoughts, without_thoughts

FORMS = [  # what begins and what ends thoughts
    ("<think>", "</think>"),
    ("<Thinking>", "</THINKING>"),
    ("<thought>\n", "\n</thought>\n"),
    ("<reasoning>", "</reasoning>"),
    ('<think depth="2" lang=en>', "</think >"),
    ("<seed:think>", "</seed:think>"),
    ("<|think|>", "<|end|><|begin|>assistant<|content|>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>\n"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<unused94>thought\n", "<unused95>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|channel|>final <|constrain|>json<|message|>"),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>", "final<|message|>"),
    ("analysisWe look. ", "assistantfinal"),
    ("Here is my thought process: ", "Here's my response:\n"),
    ("<think>Hm <think>in it</think> so ", "</think>"),
    ("<think>\n<think>\n", "</think>"),
]
ANSWER = "Warsaw is the capital [1]."


@pytest.mark.parametrize(("begin", "end"), FORMS)
@pytest.mark.parametrize("answer", [ANSWER, f'{{"answer": "{ANSWER}"}}'])
def test_thoughts_in_any_form_are_left_out(begin: str, end: str, answer: str) -> None:
    assert without_thoughts(f"{begin}Passage [2] is about Lyon.{end}{answer}").strip() == answer
    assert without_thoughts(f"\n{begin}Passage [2].\n\n{end}\n\n{answer}").strip() == answer


@pytest.mark.parametrize(("begin", "end"), FORMS[:6] + FORMS[7:15])
def test_the_beginning_or_the_end_alone_is_enough(begin: str, end: str) -> None:
    ended = f"Passage [2] is about Lyon.{end}{ANSWER}"
    assert without_thoughts(ended).strip() == ANSWER
    assert only_ends_thoughts(ended)
    assert not only_ends_thoughts(f"{begin}Hm.{end}{ANSWER}")
    assert not without_thoughts(f"{begin}Passage [2] is about Lyon.")


def test_a_second_end_takes_no_answer_back() -> None:
    assert without_thoughts(f"Hm.</think>{ANSWER}</think>") == ANSWER
    assert without_thoughts(f"<think>Hm.</think>{ANSWER}</think>") == ANSWER
    assert without_thoughts(f"So <think>Hm.</think> it is. </think>{ANSWER}") == ANSWER
    assert is_thinking("So <think>Hm.</think> it is. ", thinks=True)


def test_a_text_before_thoughts_is_kept_and_one_around_the_answer_is_not() -> None:
    assert without_thoughts("Yes. \n <think>Hm. </think> So.") == "Yes. So."
    assert without_thoughts("<think></think>") == ""
    assert without_thoughts(f"<think/>{ANSWER}") == ANSWER
    assert without_thoughts(f"<think>x</think>\n<answer>{ANSWER}</answer>\n") == ANSWER
    assert without_thoughts(f"<|begin_of_solution|>{ANSWER}<|end_of_solution|>") == ANSWER
    assert without_thoughts(f"{ANSWER}<|end|>") == ANSWER


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        "The tag `</think>` ends thoughts; “<think>” begins them.",
        '{"answerable": true, "sentences": [{"sources": [1], "sentence": "A </think> ends it, [/THINK] too."}]}',
        '{"sentences": [{"sentence": "It is cut off after </think> in',
        "Analysis of the final<br>report; the final result. <thin air> a<b and c>d [1]",
        "analysis shows that it is old.",
        "\t" * 1000,
    ],
)
def test_an_answer_about_thoughts_stays_as_it_is(text: str) -> None:
    assert without_thoughts(text) == text
    assert not only_ends_thoughts(text)


@pytest.mark.parametrize(("begin", "end"), FORMS[:-1])
def test_a_stream_of_thoughts_has_no_answer_before_they_end(begin: str, end: str) -> None:
    thoughts = f"{begin}Passage [2] is about Lyon. So it is."
    assert all(is_thinking(thoughts[:length]) for length in range(len(begin), len(thoughts)))
    assert not is_thinking(f"{thoughts}{end}{ANSWER}")
    assert is_thinking("")
    assert is_thinking("Passage [2] is about Lyon. So", thinks=True)
    assert not is_thinking(f"So.</think>{ANSWER}", thinks=True)
    assert not is_thinking(ANSWER)


PIECES = [mark for form in FORMS for mark in form] + [ANSWER, "Hm. ", "{", '{"a": "', '"}', "`", "<answer>", "\n", "<"]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join))
@example("<|channel|>final")
def test_any_reply_is_read_and_nothing_is_made_up(text: str) -> None:
    rest = without_thoughts(text)
    letters = iter(text)
    assert all(letter in letters for letter in rest)  # a subsequence
    assert is_thinking(text) in (True, False)
    begin = f"<think>{text.replace('<', '').replace('[', '').replace('◁', '')}"
    assert "Hm." not in without_thoughts(begin) or "my response" in begin.lower() or "assistantfinal" in begin


@pytest.mark.parametrize("part", ["\t", "<think ", "<", "</think>", "<|channel|>", '</think>{"a', "here is ", "final "])
def test_a_long_reply_is_read_in_time(part: str) -> None:
    started = time.perf_counter()
    without_thoughts(part * (300_000 // len(part)))
    assert time.perf_counter() - started < 10
