"""Prompts: text files in `prompts/`, read, filled and named with their checksum (form: prompts/README.md)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag import resources
from rag.errors import RagError
from rag.types import Passage

# A model that goes on after its answer writes the next question; that is no part of the answer.
STOP = ("\nQUESTION:", "\nCONTEXTS:")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
# What a chat template may take for a mark of its own: <|im_end|>, </s>, <start_of_turn>, [INST].
_MARK = re.compile(r"<(?=[^\s<>]{1,40}>)|\[(?=/?[A-Z_]{3,30}\])")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message with placeholders, and the SHA-256 of the file."""

    name: str
    text: str
    sha256: str

    @classmethod
    def read(cls, name: str) -> "Prompt":
        """The shipped prompt of that name, or a .txt file of one's own; `RagError` lists the names there are."""
        there = resources.names("prompts", ".txt")
        try:
            if name in there:
                data = resources.folder("prompts").joinpath(f"{name}.txt").read_bytes()
            elif name.endswith(".txt"):
                data = Path(name).expanduser().read_bytes()
            else:
                raise RagError(f"no prompt called {name!r}; there are: {', '.join(there)}, or name a .txt file")
            text = data.decode("utf-8")
        except OSError as error:
            raise RagError(f"{name}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise RagError(f"{name}: not UTF-8 at byte {error.start}") from error
        if "{question}" not in text:
            raise RagError(f"{name}: a prompt needs the placeholder {{question}}")
        return cls(Path(name).stem if name.endswith(".txt") else name, text, hashlib.sha256(data).hexdigest())

    @property
    def id(self) -> str:
        """Name and the first 8 digits of the checksum: what a system's name holds."""
        return f"{self.name}@{self.sha256[:8]}"

    @property
    def shows_passages(self) -> bool:
        """Whether there is a place for passages; a closed-book prompt has none."""
        return "{contexts}" in self.text or "{titled_contexts}" in self.text

    def fill(self, question: str, passages: Sequence[Passage] = ()) -> str:
        """The message; each passage on a line of its own, numbered from 1, so that none can open another.

        Braces in question and passages stay what they are. What a chat template may take for a mark of its own is
        broken up by a space: a passage is text that the model reads, never a turn of the conversation.
        """
        texts = [plain(passage.text) for passage in passages]
        titles = [f"({headings}) " if (headings := plain(passage.headings)) else "" for passage in passages]
        values = {
            "question": plain(question),
            "contexts": "\n".join(f"[{n}] {text}" for n, text in enumerate(texts, 1)),
            "titled_contexts": "\n".join(
                f"[{n}] {title}{text}" for n, (title, text) in enumerate(zip(titles, texts, strict=True), 1)
            ),
        }
        return self.put(values)

    def put(self, values: Mapping[str, str]) -> str:
        """The text with these values as they are in the places of their names; braces in a value stay braces."""
        return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), self.text)


def plain(text: str) -> str:
    """A text on one line, without control characters, lone surrogates and a chat template's marks."""
    text = _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))
    return " ".join(_MARK.sub(lambda mark: f"{mark[0]} ", text).split())
