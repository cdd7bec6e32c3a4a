"""Which questions ask for a definition, and which sentences give it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.index.definitions import definition


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
        ("what is a notebook?", "A **notebook** is a collection of pages."),
        ("meaning of slack", "Slack is any time that is left."),
        ("What is the relay plugin for?", "The relay plugin is used to pass on data."),
    ],
)
def test_a_definition_is_found(question: str, text: str) -> None:
    pattern = definition(question)
    assert pattern is not None
    assert pattern.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "GLE is not installed.",
        "Run GLE. It is a program.",
        "GLEx is a program.",
        "A file for GLE is a text.",
        "QGLE is a window for it.",
        "Whether GLE is the reason is unknown.",
        "Such a tool is called GLE.",
    ],
)
def test_other_sentences_about_the_thing_are_none(text: str) -> None:
    pattern = definition("What is GLE?")
    assert pattern is not None
    assert not pattern.search(text)


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
        "What is " + "x " * 100,
    ],
)
def test_other_questions_ask_for_no_definition(question: str) -> None:
    assert definition(question) is None


@given(st.text(max_size=40), st.text(max_size=60))
def test_any_name_is_taken_literally(name: str, text: str) -> None:
    pattern = definition(f"What is {name}?")
    if pattern is not None:
        pattern.search(text)
        assert pattern.search(f"{' '.join(name.split())} is a thing") or not name.strip().isalpha()
