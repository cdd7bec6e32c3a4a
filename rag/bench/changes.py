"""What differs between two runs of a benchmark, such as the same command a week later. Times are never compared."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from rag.bench.items import Item
from rag.bench.reproductions import TOLERANCE
from rag.bench.results import Run, SystemRun, read_run

_INPUTS = ("benchmark", "data", "indexes", "settings", "versions")  # of run.json

# What is compared of each question; what follows from something that differs is not told again.
_PARTS: Mapping[str, Callable[[Item], object]] = {
    "ranking": lambda item: item.ranking,
    "answer": lambda item: (
        *(item.answer, item.short_answer, item.abstained, item.failed, item.missing),
        [
            (sentence.text, [(citation.passage, citation.start, citation.end) for citation in sentence.citations])
            for sentence in item.sentences
        ],
    ),
    "verdicts": lambda item: [
        (sentence.verdict, sentence.human, [citation.verdict for citation in sentence.citations])
        for sentence in item.sentences
    ],
}


def run_changes(old: str | Path, new: str | Path) -> dict[str, Any]:
    """Compare the systems that two run folders have in common, question by question; returns JSON.

    `same` is true if the questions, the hits, answers and verdicts of these systems and their metrics are the same.
    `inputs` lists what else differs (checksums, settings, versions, judges: `place`, `old`, `new`), and `only_old` and
    `only_new` the systems of one run. For each system, `ranking`, `answer` and `verdicts` are the ids of questions with
    other hits, another answer, or other verdicts on the same answer, `ways` the questions that went another way,
    `metrics` the values that differ, and `questions` the ids that only one run has. Raises `UserError` as do
    comparisons.
    """
    before, after = read_run(old), read_run(new)
    new_systems = {system.label: system for system in after.systems}
    systems = {
        system.label: _system(system, new_systems[system.label])
        for system in before.systems
        if system.label in new_systems
    }
    return {
        "same": bool(systems) and not any(any(changes.values()) for changes in systems.values()),
        "inputs": list(_changes(_inputs(before, systems), _inputs(after, systems))),
        "only_old": [system.label for system in before.systems if system.label not in new_systems],
        "only_new": [label for label in new_systems if label not in systems],
        "systems": systems,
    }


def _system(old: SystemRun, new: SystemRun) -> dict[str, Any]:
    before, after = ({item.id: item for item in system.items} for system in (old, new))
    # With another text, an id is another question.
    common = [key for key in before if key in after and before[key].question == after[key].question]
    changes: dict[str, Any] = {name: [] for name in _PARTS}
    for key in common:
        for name, part in _PARTS.items():
            if part(before[key]) != part(after[key]) and not (name == "verdicts" and key in changes["answer"]):
                changes[name].append(key)
    way_pairs = ((key, before[key].way, after[key].way) for key in common)
    return {
        **changes,
        "ways": [{"id": key, "old": a, "new": b} for key, a, b in way_pairs if a != b],
        "metrics": list(_changes(_values(old.metrics), _values(new.metrics))),
        "questions": sorted(set(before) ^ set(after) | (set(before) & set(after) - set(common))),
    }


def _values(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: metric["value"] for name, metric in metrics["metrics"].items()}


def _inputs(run: Run, labels: Collection[str]) -> dict[str, Any]:
    common = [system for system in run.systems if system.label in labels]
    names = {"systems": {system.label: system.system for system in common}}
    judges = {"judge": {system.label: system.metrics["judge"] for system in common}}
    return dict(_leaves({name: run.manifest.get(name) for name in _INPUTS} | names | judges))


def _leaves(value: object, key_path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{key_path}.{key}" if key_path else str(key))
    else:
        yield key_path, value


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key_path in dict.fromkeys((*old, *new)):
        a, b = old.get(key_path), new.get(key_path)
        if isinstance(a, int | float) and isinstance(b, int | float) and abs(a - b) <= TOLERANCE:
            continue
        if a != b:
            yield {"place": key_path, "old": a, "new": b}
