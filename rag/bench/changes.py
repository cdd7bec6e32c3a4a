"""What differs between two runs of a benchmark, such as the same command a week later. Times are never compared."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
        [(one.text, [(cited.passage, cited.start, cited.end) for cited in one.citations]) for one in item.sentences],
    ),
    "verdicts": lambda item: [
        (one.verdict, one.human, [cited.verdict for cited in one.citations]) for one in item.sentences
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
    theirs = {one.label: one for one in after.systems}
    systems = {one.label: _system(one, theirs[one.label]) for one in before.systems if one.label in theirs}
    inputs = _differing(_inputs(before, systems), _inputs(after, systems))
    return {
        "same": bool(systems) and not any(any(found.values()) for found in systems.values()),
        "inputs": [_change(*one) for one in inputs],
        "only_old": [one.label for one in before.systems if one.label not in theirs],
        "only_new": [label for label in theirs if label not in systems],
        "systems": systems,
    }


def _system(old: SystemRun, new: SystemRun) -> dict[str, Any]:
    before, after = ({item.id: item for item in one.items} for one in (old, new))
    # With another text, an id is another question.
    common = [key for key in before if key in after and before[key].question == after[key].question]
    found: dict[str, Any] = {name: [] for name in _PARTS}
    for key in common:
        for name, part in _PARTS.items():
            if part(before[key]) != part(after[key]) and not (name == "verdicts" and key in found["answer"]):
                found[name].append(key)
    ways = ((key, before[key].way, after[key].way) for key in common)
    return {
        **found,
        "ways": [{"id": key, "old": a, "new": b} for key, a, b in ways if a != b],
        "metrics": [_change(*one) for one in _differing(_values(old.metrics), _values(new.metrics))],
        "questions": sorted(set(before) ^ set(after) | (set(before) & set(after) - set(common))),
    }


def _values(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one["value"] for name, one in metrics["metrics"].items()}


def _inputs(run: Run, labels: Collection[str]) -> dict[str, Any]:
    common = [one for one in run.systems if one.label in labels]
    names = {"systems": {one.label: one.system for one in common}}
    judges = {"judge": {one.label: one.metrics["judge"] for one in common}}
    return dict(_leaves({name: run.manifest.get(name) for name in _INPUTS} | names | judges))


def _leaves(value: object, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{place}.{key}" if place else str(key))
    else:
        yield place, value


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[tuple[str, Any, Any]]:
    for place in dict.fromkeys((*old, *new)):
        a, b = old.get(place), new.get(place)
        if isinstance(a, int | float) and isinstance(b, int | float) and abs(a - b) <= TOLERANCE:
            continue
        if a != b:
            yield place, a, b


def _change(place: str, old: object, new: object) -> dict[str, Any]:
    return {"place": place, "old": old, "new": new}
