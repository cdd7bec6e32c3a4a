"""Prompts: text files with placeholders in `prompts/`, named with their checksum (format: prompts/README.md)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autoais.base.io.paths import user_path
from rag.base import resources
from rag.base.errors import RagError
from rag.base.types import Passage

# A model that continues after its answer makes up the next question.
STOP = ("\nQUESTION:", "\nCONTEXTS:")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
# Text that a chat template may take for special tokens: <|im_end|>, </s>, <start_of_turn>, [INST].
_MARK = re.compile(r"<(?=[^\s<>]{1,40}>)|\[(?=/?[A-Z_]{3,30}\])")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message with placeholders, and the SHA-256 of its file."""

    name: str
    text: str
    sha256: str

    @classmethod
    def read(cls, name: str) -> "Prompt":
        """Read a prompt that ships with rag, by name, or your own .txt file; raises `RagError` for an unknown name."""
        names = resources.names("prompts", ".txt")
        try:
            if name in names:
                data = resources.folder("prompts").joinpath(f"{name}.txt").read_bytes()
            elif name.endswith(".txt"):
                data = user_path(name).read_bytes()
            else:
                raise RagError(f"no prompt called {name!r}; there are: {', '.join(names)}, or name a .txt file")
            text = data.decode("utf-8")
        except OSError as error:
            raise RagError(f"{name}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise RagError(f"{name}: not UTF-8 at byte {error.start}; save the file as UTF-8") from error
        if "{question}" not in text:
            raise RagError(f"{name}: a prompt needs the placeholder {{question}}")
        return cls(Path(name).stem if name.endswith(".txt") else name, text, hashlib.sha256(data).hexdigest())

    @property
    def id(self) -> str:
        """Name and first 8 digits of the checksum, as in names of systems."""
        return f"{self.name}@{self.sha256[:8]}"

    @property
    def shows_passages(self) -> bool:
        """Whether the prompt has a placeholder for passages; a closed-book prompt has none."""
        return "{contexts}" in self.text or "{titled_contexts}" in self.text

    @property
    def shows_units(self) -> bool:
        """Whether the prompt has a placeholder for numbered units of passages (`rag.answer.generators.pointing`)."""
        return "{sources}" in self.text

    def fill(self, question: str, passages: Sequence[Passage] = ()) -> str:
        """The message, with each passage on one line, numbered from 1, so that a passage cannot fake another one.

        Braces in question and passages are kept. Text that a chat template may take for special tokens is broken up by
        a space, so that a passage cannot start a turn of the conversation.
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

    @property
    def prefix(self) -> int:
        """The number of characters before the first placeholder."""
        match = _PLACEHOLDER.search(self.text)
        return match.start() if match else len(self.text)

    def put(self, values: Mapping[str, str]) -> str:
        """Replace the placeholders by their values; braces in a value are kept."""
        return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), self.text)


def plain(text: str) -> str:
    """The text on one line, without control characters, lone surrogates and a chat template's special tokens."""
    text = _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))
    return " ".join(_MARK.sub(lambda mark: f"{mark[0]} ", text).split())
