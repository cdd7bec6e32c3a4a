"""Which questions ask for a definition, and which sentences give it."""

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.index.definitions import definition
from tests.conftest import present


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is GLE?", "GLE (Graphics Layout Engine) is a scripting language."),
        ("what is gle", "Welcome. GLE is the language of this manual."),
        ("What is GLE used for?", "The Graphics Layout Engine (GLE) is a scripting language."),
        ("What does FLTK do?", 'The Fast Light Tool Kit ("FLTK", pronounced "fulltick") is a toolkit.'),
        ("What's Borg?", "BorgBackup (short: Borg) is a backup program."),
        ("What is a named pipe?", "Lines follow.\n\nA named pipe is a file that two programs share."),
        ("what are named pipes in Linux", "A named pipe is a file."),
        ("What is a kprobe?", "Kprobes are a way to look into the kernel."),
        ("what does depreciation mean", "In accounting, depreciation is the loss of worth."),
        ("What is tmux?", "Name: tmux - terminal multiplexer"),
        ("What is FLUID?", "The Fast Light User Interface Designer, or FLUID, is a graphical editor."),
        ('What is a "collection"?', "A collection refers to a set of folders."),
        ("What is Mailutils?", "GNU Mailutils is a set of libraries."),
        ("what is ovdb", "The ovdb library is a store."),
        ("What is a burst buffer?", "It implements burst buffers, which are a shared resource."),
        ("What is GLE?", "What is GLE? GLE is a language."),
        ("What is GLE", "NAME\n       GLE - graph language"),
        ("What is meant by slack?", "Slack is any time that is left."),
        ("What's the meaning of slack?", "Slack is any time that is left."),
        ("what does slack mean in a plan?", "Slack is any time that is left."),
        ("What are policies?", "A policy is a rule."),
        ("What is a policy?", "Policies are the rules."),
        ("What is a hotkey?", "Hotkeys are the keys that programs watch."),
        ("What are hotkeys?", "A hotkey is a key that programs watch."),
        ("What are mailboxes?", "A mailbox is a file."),
        ("What is Ruby on Rails?", "Ruby on Rails is a framework."),
        ("What is C++?", "A language (C++) is a tool."),
        ("What is .NET?", "They use .NET, which is a platform."),
        ("What is ls?", "ls(1) is a program."),
        ("What is Moore's law?", "Moore’s law is a rule of thumb."),
        ("What is a plug-and-play card?", "A plug-and-play card is a device."),
        ("what is a notebook?", "A **notebook** is a collection of pages."),
        ("meaning of slack", "Slack is any time that is left."),
        ("What is the relay plugin for?", "The relay plugin is used to pass on data."),
    ],
)
def test_a_definition_is_found(question: str, text: str) -> None:
    assert present(definition(question)).search(text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is GLE?", "GLE is not installed."),
        ("What is GLE?", "Run GLE. It is a program."),
        ("What is GLE?", "GLEx is a program."),
        ("What is GLE?", "A file for GLE is a text."),
        ("What is GLE?", "QGLE is a window for it."),
        ("What is GLE?", "Whether GLE is the reason is unknown."),
        ("What is GLE?", "Such a tool is called GLE."),
        ("What is os.path?", "An osxpath is a thing."),
        ("What is Windows?", "A window is a rectangle."),
        ("What is C++?", "C is a language."),
        ("What is tmux?", "See also:\ntmux\n- screen"),
    ],
)
def test_other_sentences_and_other_things_are_none(question: str, text: str) -> None:
    assert not present(definition(question)).search(text)


@pytest.mark.parametrize(
    "question",
    [
        "What is the default of max_depth?",
        "What is the difference between a fork and a clone?",
        "What is used to build the index?",
        "How is a named pipe made?",
        "What is ?",
        "What is wrong with this very long list of words?",
        "Who wrote GLE?",
        "named pipe",
        "What is " + "x" * 200,
        "What is it?",
        "What does this do?",
    ],
)
def test_other_questions_ask_for_no_definition(question: str) -> None:
    assert definition(question) is None


@given(st.text(max_size=40), st.text(max_size=60))
def test_any_question_and_text_can_be_searched(name: str, text: str) -> None:
    pattern = definition(f"What is {name}?")
    if pattern is not None:
        pattern.search(text)


def test_a_long_question_takes_no_time() -> None:
    with mock.patch("rag.index.definitions._ASKS") as asks:  # whose time grows with the square of the length
        assert definition("what is " + "." * 100_000 + "x") is None
    asks.fullmatch.assert_not_called()
