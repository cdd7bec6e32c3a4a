"""The systems of a collection with their seeds, opened so that they read the quotes of each question."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag.answer.attribution.check import CheckedGenerator
from rag.answer.llms.prompts import Prompt
from rag.answer.specs import SystemSpec, number_duplicates
from rag.answer.system import RetrieveThenRead, System
from rag.answer.systems import DEFAULT_PROMPT, open_system
from rag.base.errors import RagError
from rag.base.types import Hit, Passage
from rag.bench.collections.folder import RAW
from rag.index.open import open_index
from rag.retrieval import Retriever


@dataclass(frozen=True, slots=True)
class Variant:
    """A system with a seed, or without one, that answers every question once; `system` is the label without it."""

    label: str
    system: str
    spec: SystemSpec
    seed: int | None

    @property
    def file(self) -> str:
        """The journal of its answers, below the folder of the collection."""
        return f"{RAW}/{self.label}.jsonl"

    def prompt(self) -> dict[str, str] | None:
        """Return name and checksum of its prompt; None if it has none."""
        if "prompt" not in self.spec.kind.options:
            return None
        prompt = Prompt.read(self.spec.options.prompt or DEFAULT_PROMPT)
        return {"name": prompt.name, "sha256": prompt.sha256}

    def open_system(self, k: int, retriever: Retriever, *, repair: bool) -> System:
        """Open the system; its citations are as the model wrote them, unless `repair` checks and repairs them."""
        can_repair = repair and "repair" in self.spec.kind.options and self.spec.options.answer != "quote"
        options = replace(self.spec.options, repair=True) if can_repair else self.spec.options
        system = open_system(self.spec.name, open_index(None), options, k=k, retriever=retriever)
        if isinstance(system, RetrieveThenRead) and isinstance(system.generator, CheckedGenerator):
            return replace(system, generator=system.generator.generator)
        return system


def read_variants(systems: Sequence[str], answers: int) -> list[Variant]:
    """Return the systems with their seeds; raises `RagError` for one that reads no given passages, or repeats."""
    specs: list[tuple[SystemSpec, SystemSpec, int | None]] = []  # without and with the seed
    for text in systems:
        spec = SystemSpec.parse(text)
        kind = spec.kind
        if not kind.searches_question or not kind.k:
            raise RagError(f"system {text!r} searches by itself; a collection needs one that reads given passages")
        if spec.retriever is not None or spec.k is not None:
            raise RagError(
                f"system {text!r}: the quotes are the same for all systems; name retriever and k of the build"
            )
        if spec.options.rounds is not None:
            raise RagError(f"system {text!r}: the quotes are the same for all systems; leave rounds out")
        if "seed" not in kind.options:
            specs.append((spec, spec, None))
            continue
        if answers > 1 and not spec.options.temperature:
            raise RagError(f"system {text!r} gives the same answer for every seed; add ,temperature=0.7")
        first = spec.options.seed or 0
        plain = replace(spec, options=replace(spec.options, seed=None))
        for number in range(first, first + answers):
            spec_with_seed = replace(spec, options=replace(spec.options, seed=number))
            specs.append((plain, spec_with_seed, number))
    if not specs:
        raise RagError("name at least one system, such as reader")
    if len({str(spec) for _, spec, _ in specs}) < len(specs):
        raise RagError("a system is named twice, with the same options; its answers would be the same")
    labels = number_duplicates(
        [(spec if seed else plain).label for plain, spec, seed in specs], ["questions", "left-out"]
    )
    return [Variant(label, plain.label, spec, seed) for label, (plain, spec, seed) in zip(labels, specs, strict=True)]


class GivenQuotes:
    """A retriever that finds the quotes of the question that a thread asks, in their order."""

    name = "quotes"

    def __init__(self) -> None:
        self._here = threading.local()

    def set_quotes(self, quotes: Sequence[Passage]) -> None:
        """Set the quotes of the next search in this thread."""
        self._here.quotes = quotes

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the quotes, all with the same score."""
        return [[Hit(quote, 1.0) for quote in self._here.quotes[:k]] for _ in queries]
