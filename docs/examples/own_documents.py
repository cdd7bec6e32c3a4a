# %% [markdown]
"""# Ask your own documents

Build an index over a folder, ask it, and show what each answer cites. Run it from the repository root:
`python docs/examples/own_documents.py`
"""

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

import rag
from rag.answer.export import abstention_notice

DOCUMENTS = Path("docs/handbook")  # any folder of .md, .txt, .html and .pdf files


# %% [markdown]
# An answer has sentences, and each sentence has citations. A citation names a passage and the span in its text.


# %%
def show(answer: rag.Answer) -> None:
    """Print an answer, and the words that each citation quotes."""
    print(abstention_notice(answer) if answer.abstained else answer)
    passages = {hit.passage.id: hit.passage for hit in answer.hits}
    for citation in answer.citations:
        start, end = citation.span
        quoted = passages[citation.passage].text[start:end]
        print(f"  {citation.passage}, characters {start} to {end}: {quoted!r}")


# %% [markdown]
# `build_index` reads the folder once; `open_index` opens it again later. A system is opened once for many questions.

# %%
with TemporaryDirectory() as folder:
    index = rag.build_index(DOCUMENTS, to=Path(folder) / "documents.index")
    print(f"{index.manifest['passages']} passages")

    system = rag.open_system("reader", index)
    for answer in system.answer(["What is citation precision?", "Who won the world cup in 1998?"]):
        show(answer)

    # %% [markdown]
    # A conversation remembers its turns, so that a question may follow up on the one before.

    # %%
    conversation = rag.Conversation(system)
    show(conversation.ask("When was HAGRID published?"))
    print("searched for:", conversation.make_standalone("And what about AttrScore?"))
    show(conversation.ask("And what about AttrScore?"))
