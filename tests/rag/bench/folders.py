"""Run folders for tests: invented towns, and texts that try to break out of whatever shows them."""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import dumps, round_floats, write_atomic
from autoais.metrics.rates import Mean, Rate
from rag.bench.items import OUTCOMES, Item, ItemCitation, ItemPassage, ItemSentence, write_items

TOWNS = ("Arlen", "Bexley", "Corvo", "Dunmore", "Elstow", "Farrow", "Gilden", "Hartley", "Ilford", "Jarrow")
HOSTILE = (
    "<script>window.broken = 1</script>",
    "</script><script>window.broken = 2</script>",
    '<img src=x onerror="window.broken = 3">',
    "<!-- <script> --!> ]]> {{ broken }} {% raw %}",
    "\x1b[31mred\x1b[0m \x07 \x00 \x9b2J",
    "right to left \u202eevil\u202c, isolate \u2067x\u2069, joined \u200d\u200f",
    "javascript:window.broken=4",
    "line\u2028separator\u2029paragraph\r\n| pipe & \\textbf{x} %$#_^~",
    "\ud800 alone, \U0001f600 astral \ufeff",
    "word " * 5000,
    "x" * 20_000,
)
"""HTML, script, ANSI, right-to-left overrides, markup of Markdown and LaTeX, and very long texts."""


def make_run(
    folder: Path,
    *,
    n: int = 24,
    systems: Sequence[str] = ("reader", "extractive"),
    seed: int = 0,
    hostile: bool = True,
    words: int = 40,
    benchmark: str = "towns",
    judge: str = "lexical@1/full.v1",
    human: bool = False,
) -> Path:
    """Write a run folder of `n` questions about towns; the n-th system is a little worse than the one before."""
    rng = random.Random(seed)
    asked = [_question(number, rng, words, hostile=hostile) for number in range(n)]
    write_atomic(folder / "questions.jsonl", (dumps({"id": q["id"], "question": q["question"]}) for q in asked))
    for place, label in enumerate(systems):
        items = [
            _item(question, random.Random(f"{seed} {label} {question['number']}"), place, human) for question in asked
        ]
        write_items(folder / label / "items.jsonl", items)
        write_atomic(folder / label / "judgements.jsonl", (dumps(row) for row in _judgements(items, judge)))
        measured = _metrics(items, f"{label} (a system of tests)", label, judge, benchmark)
        write_atomic(folder / label / "metrics.json", [dumps(round_floats(measured), indent=1)])
    manifest = {
        "benchmark": {"name": benchmark, "version": "1", "sha256": "0" * 64, "licence": "CC BY-SA 4.0"},
        "data": {}, "settings": {"limit": None, "seed": seed, "judge": judge, "metrics": ["alce"]},
        "questions": {"n": n, "sha256": "0" * 64},
        "systems": {label: f"{label} (a system of tests)" for label in systems},
        "answers": {label: {"spec": label} for label in systems}, "retrieval": {}, "indexes": {}, "stages": {},
        "command": f"rag bench run {benchmark}", "versions": {"python": "3.11"},
    }  # fmt: skip
    write_atomic(folder / "run.json", [dumps(manifest, indent=1)])
    return folder


def _question(number: int, rng: random.Random, words: int, *, hostile: bool) -> dict[str, Any]:
    town, year = TOWNS[number % len(TOWNS)], 1800 + rng.randrange(200)
    bad = HOSTILE[number % len(HOSTILE)] if hostile else ""
    filler = "The market is held on Mondays and the river is low in summer .".split()
    passages = {
        f"{town}#{number}.{place}{bad[:200]}": ItemPassage(
            title=f"{town} {bad}".strip(),
            section=f"History {bad[:300]}".strip(),
            text=f"{town} has a bridge. It was built in {year}. "
            + " ".join(rng.choice(filler) for _ in range(words))
            + f" {bad}".rstrip(),
            url=bad if bad and place == 0 else f"https://example.org/{town}/{number}",
        )
        for place in range(5)
    }
    return {
        "number": number,
        "id": f"q{number}{bad[:60] if bad.strip() else ''}",
        "question": f"When was the bridge of {town} ({number}) built? {bad}".strip(),
        "kind": f"date {bad[:100]}".strip(),
        "answerable": number % 8 != 7,
        "answer": str(year),
        "passages": passages,
        "bad": bad,
    }


def _item(question: dict[str, Any], rng: random.Random, place: int, human: bool) -> Item:
    bad, passages = question["bad"], question["passages"]
    ids = list(passages)
    rng.shuffle(ids)
    answerable, skill = question["answerable"], 0.72 - 0.12 * place
    abstained = rng.random() < (0.08 + 0.15 * place if answerable else 0.6)
    missing = not abstained and rng.random() < 0.02
    right = answerable and not abstained and not missing and rng.random() < skill
    attributed: bool | None = not abstained and not missing and rng.random() < 0.85 - 0.05 * place
    if not abstained and not missing and rng.random() < 0.03:
        attributed = None
    if abstained:
        way = "refused_wrong" if answerable else "refused_right"
    elif attributed is None:
        way = "undecided"
    else:
        way = f"{'right' if right else 'wrong'}_{'attributed' if attributed else 'unattributed'}"
    sentences = () if abstained or missing else tuple(_sentences(question, ids, rng, right, attributed, human))
    first = ids.index(ids[0]) + 1 + rng.randrange(6)
    gold = (next(iter(passages)),)
    return Item(
        id=question["id"], question=question["question"], kind=question["kind"], collection=None,
        answerable=answerable, references=(question["answer"], *([bad] if bad else [])) if answerable else (),
        gold=gold if answerable else (), nuggets=((question["answer"],),) if answerable else (),
        answer=" ".join(one.text for one in sentences), short_answer=question["answer"] if right else bad[:500],
        abstained=abstained, failed=False, missing=missing, reason=f"not sure {bad}" if abstained else None,
        confidence=None if missing else round(min(1, max(0, rng.gauss(0.7 if right else 0.45, 0.15))), 3),
        sentences=sentences, passages={key: passages[key] for key in ids[:3 + (place == 0)]}, ranking=tuple(ids),
        right=right, attributed=False if missing else attributed, way=way, em=float(right) if answerable else None,
        f1=float(right) or (0.5 if rng.random() < 0.2 else 0.0) if answerable else None,
        answer_recall=right or rng.random() < 0.1 if answerable else None,
        nugget_recall=float(right) if answerable else None, first_gold=first if first < 6 and answerable else None,
        answer_hit=first if first < 6 and answerable else None, seconds=round(rng.lognormvariate(-2 + place, 0.4), 4),
        tokens_read=400 + 50 * place, tokens_written=20 + 5 * place, words=sum(len(s.text.split()) for s in sentences),
    )  # fmt: skip


def _sentences(
    question: dict[str, Any], ids: list[str], rng: random.Random, right: bool, attributed: bool | None, human: bool
) -> Iterator[ItemSentence]:
    bad, passages = question["bad"], question["passages"]
    year = question["answer"] if right else "1066"
    texts = [f"The bridge was built in {year}.", f"The market is held on Mondays. {bad}".strip()][
        : 1 + rng.randrange(2)
    ]
    at = 0
    for number, text in enumerate(texts):
        last = number == len(texts) - 1
        verdict = "attributable"
        if last and attributed is not True:
            verdict = "undecided" if attributed is None else rng.choice(["not_attributable", "contradictory"])
        cited = ids[: 1 + rng.randrange(2)] if verdict != "contradictory" or number else ids[:1]
        yes = verdict == "attributable"
        citations = tuple(
            ItemCitation(one, *_span(passages[one].text, question["answer"]), "attributable" if yes else verdict)
            for one in cited
        )
        probability = round(min(1.0, max(0.0, rng.gauss(0.85 if yes else 0.25, 0.12))), 3)
        unsupported = () if yes else ((max(0, len(text) - 12), len(text)),)
        told = rng.random() < probability if human else None
        yield ItemSentence(text, at, at + len(text), verdict, probability, citations, unsupported, told)
        at += len(text) + 1


def _span(text: str, year: str) -> tuple[int, int]:
    start = text.index("It was")
    return start, text.index(year, start) + len(year) + 1


def _judgements(items: Sequence[Item], judge: str) -> Iterator[dict[str, Any]]:
    for item in items:
        verdicts = [one.verdict for one in item.sentences] or ["not_attributable"]
        for number, verdict in enumerate(verdicts):
            row: dict[str, Any] = {
                "id": item.id, "sentence": number if item.sentences else None, "verdict": verdict, "judge": judge,
            }  # fmt: skip
            if not number:
                good = sum(one == "attributable" for one in verdicts)
                row["scores"] = {
                    "passages": len(item.ranking),
                    "short_answer": item.short_answer is not None,
                    "autoais": [float(item.attributed is True), 1],
                    "citation_recall": [good / len(verdicts), 1],
                    "citation_precision": [good / len(verdicts), 1],
                }
            yield row


def _metrics(items: Sequence[Item], system: str, label: str, judge: str, benchmark: str) -> dict[str, Any]:
    ways = {}
    for way in OUTCOMES:
        rate = Rate.of(item.way == way for item in items)
        ways[way] = {"count": rate.yes, "share": rate.value, "interval95": list(rate.interval or ())}
    known = [item for item in items if item.em is not None]
    seconds = sorted(item.seconds or 0.0 for item in items)
    share = [sum(s.verdict == "attributable" for s in i.sentences) / max(1, len(i.sentences)) for i in items]
    return {
        "system": system, "label": label, "judge": judge, "benchmark": {"name": benchmark, "version": "1"},
        "n": len(items), "ways": ways,
        "metrics": {
            "em": Rate.of(bool(item.em) for item in known).record(),
            "f1": Mean.of([item.f1 or 0.0 for item in known]).record(),
            "answer_recall": Rate.of(item.answer_recall for item in known).record(),
            "nugget_recall": Mean.of([item.nugget_recall or 0.0 for item in known]).record(),
            "autoais": Rate.of(item.attributed for item in items).record(),
            "citation_recall": Mean.of(share).record(),
            "citation_precision": Mean.of(share).record(),
            "Success@1": Rate.of(item.first_gold == 1 for item in known).record(),
            "Success@100": {"value": None, "reason": "no answer lists 100 passages"},
        },
        "latency": {"p50": seconds[len(seconds) // 2], "p95": seconds[int(len(seconds) * 0.95)],
                    "mean": sum(seconds) / len(seconds)},
        "tokens": {"read": sum(item.tokens_read or 0 for item in items),
                   "written": sum(item.tokens_written or 0 for item in items)},
        "money": None, "provenance": {"versions": {"python": "3.11"}},
    }  # fmt: skip


def edit(path: Path, **fields: object) -> None:
    """Change fields of a JSON file, or of the first row of a JSON lines file."""
    first, *others = path.read_text("utf-8").split("\n") if path.suffix == ".jsonl" else [path.read_text("utf-8")]
    path.write_text("\n".join([json.dumps(json.loads(first) | fields), *others]), "utf-8")
