"""Answers about documents as users have them: the benchmark `eval/benchmarks/own-documents`.

    python -m scripts.own_documents fetch --to DATA                 # Debian's packages, about 60 MB
    python -m scripts.own_documents measure DATA --part dev --out eval/results/own-documents/dev.json

The questions were written from the tables of contents, before any output was looked at. Part `dev` (two thirds) is
there to choose by, part `kept` is measured at the end.

    python -m scripts.own_documents fetch --table eval/recipes/reader-validation.toml --to DATA
    python -m scripts.own_documents measure DATA --questions eval/recipes/reader-validation.jsonl --part all \\
        --system reader --system reader,recipe=shortlist --system reader,min_confidence=0

    python -m scripts.own_documents fetch --table eval/benchmarks/own-documents/fresh.toml --to DATA
    python -m scripts.own_documents fetch --table eval/benchmarks/own-documents/fresh-2.toml --to DATA
    python -m scripts.own_documents measure DATA --questions eval/benchmarks/own-documents/what-is.jsonl --part all

asks what something is ("What is Slurm?"), three questions about each of 16 collections. A language model wrote them
from the titles of sections, another the nuggets from the documents; neither saw the system.

    python -m scripts.own_documents identifiers DATA DATA2 --out eval/results/own-documents/identifiers.json

asks "What does max_depth do?" for names that only one passage has.

    python -m scripts.own_documents hits DATA DATA2 --out eval/results/own-documents/hits.json

counts the questions of `dev` and of the validation whose first hits hold the whole answer, together.

    python -m scripts.own_documents sample DATA --seed 402 --to passages.txt

writes passages of each collection, so that somebody can judge which are navigation, contents, indexes or page headers.
The last verdicts are in eval/results/own-documents/sampled.tsv: A content, B navigation and the like, C content with a
line of it.

Questions with quotes instead of nuggets (`rag.training.labelled`) are those of the reader's validation: the answer is
right if it holds all quotes.
"""

import gzip
import hashlib
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import rag
from autoais.base.io.jsonl import dumps, read_objects, round_floats, write_atomic
from autoais.base.io.provenance import provenance, sha256_file
from autoais.metrics.intervals import clopper_pearson
from autoais.metrics.nuggets import first_words, nuggets_found
from autoais.metrics.short_answers import exact_match, has_answer
from rag.answer.specs import SystemSpec
from rag.answer.systems import open_system
from rag.base.errors import QuestionError
from rag.base.types import Answer, Question
from rag.index.index import Index
from rag.training.labelled import Fingerprint, find_quote
from scripts.fragments import is_fragment
from scripts.results import tell

BENCHMARK = Path(__file__).parent.parent / "eval" / "benchmarks" / "own-documents"
COLLECTIONS = BENCHMARK / "collections.toml"
VALIDATION = BENCHMARK.parents[1] / "recipes" / "reader-validation.jsonl"
WORDS = (60, 120)
READ = 16  # hits that the reader reads
_FIRST = (1, 5, READ)  # hits of which `hits` tells how often they hold the answer

app = typer.Typer(add_completion=False)
WorkOption = Annotated[Path, typer.Option(help="Folder for indexes; those of `measure` are used.")]
OutOption = Annotated[Path | None, typer.Option(help="Report (json).")]
Answering = Callable[[Question], Answer]


def first_hits(index: Index, count: int, words: int = 10_000) -> Answering:
    """A baseline: the first hits of BM25, each cut at so many words."""
    retriever = rag.open_retriever("bm25", index)

    def answer(question: Question) -> Answer:
        (hits,) = retriever.search([question.text], count)
        text = "\n\n".join(first_words(hit.passage.text, words) for hit in hits)
        return Answer(question, text, (), tuple(hits), f"first-{count}")

    return answer


def systems(index: Index, names: Sequence[str]) -> Iterator[tuple[str, Answering]]:
    """The baselines, then the systems."""
    yield "first hit", first_hits(index, 1)
    yield "first three hits", first_hits(index, 3, WORDS[-1] // 3)
    for name in names:
        spec = SystemSpec.parse(name)
        yield name, open_system(spec.name, index, spec.options, k=spec.k, recipe=spec.recipe).ask


def row_of(question: dict[str, Any], answer: Answer, seconds: float) -> dict[str, Any]:
    """What the answer of a system contains, per question."""
    text = "" if answer.abstained else answer.text
    found: dict[str, Any] = {
        "id": question["id"], "name": answer.system, "kind": question["kind"], "collection": question["collection"],
        "answerable": _answerable(question), "abstained": answer.abstained or not text, "words": len(text.split()),
        "confidence": answer.confidence, "signals": answer.trace.get("signals"), "seconds": seconds,
        "sentences": len(answer.sentences),
        "fragments": [s.text for s in answer.sentences if is_fragment(answer, s)],
        "short": None if answer.abstained else answer.short_answer, "short_wanted": question.get("short"),
        "headline": None if answer.abstained else answer.headline,
    }  # fmt: skip
    found["hits_hold"] = any(all(_held(question, hit.passage.text)) for hit in answer.hits[:READ])
    for most in WORDS:
        held = _held(question, first_words(text, most))
        found[f"all@{most}"] = bool(held) and all(held)
        found[f"recall@{most}"] = sum(held) / len(held) if held else None
    return found


def _answerable(question: dict[str, Any]) -> bool:
    return question["answerable"] if "answerable" in question else bool(question["quotes"])


def _held(question: dict[str, Any], text: str) -> list[bool]:
    """Which nuggets, or quotes, a text holds."""
    if "nuggets" in question:
        return nuggets_found(text, question["nuggets"])
    return [find_quote(text, Fingerprint(**quote)) is not None for quote in question["quotes"]]


def share(held: Sequence[bool]) -> dict[str, Any]:
    """The share that holds, 0 to 1, with n and its 95 % interval (Clopper-Pearson)."""
    return {"value": sum(held) / len(held), "n": len(held), "interval95": clopper_pearson(sum(held), len(held))}


def short_answers(rows: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """How often `short` or `headline` (`name`) is there, and is the short answer that the annotator gave.

    `exact_match` is SQuAD's. `agrees` also counts "120 days" for "at least 120 days": one holds the words of the other.
    Both are shares of the short answers that are shown where the annotator gave one.
    """
    wanted = [row for row in rows if row["answerable"] and row["short_wanted"]]
    shown = [(row[name], row["short_wanted"]) for row in wanted if row[name]]
    made: dict[str, Any] = {"shown": share([bool(row[name]) for row in wanted])}
    if shown:
        made["exact_match"] = share([exact_match(short, [given]) == 1 for short, given in shown])
        made["agrees"] = share([has_answer(short, [given]) or has_answer(given, [short]) for short, given in shown])
    if others := [bool(row[name]) for row in rows if not row["answerable"]]:
        made["shown_unanswerable"] = share(others)
    return made


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The metrics over the rows of one system."""
    asked, others = [r for r in rows if r["answerable"]], [r for r in rows if not r["answerable"]]
    sentences = sum(row["sentences"] for row in rows)
    made: dict[str, Any] = {"system": rows[0]["name"], "answerable": len(asked), "unanswerable": len(others)}
    for most in WORDS:
        made[f"right@{most}"] = share([row[f"all@{most}"] for row in asked])
        made[f"nugget_recall@{most}"] = statistics.fmean(row[f"recall@{most}"] for row in asked)
    made["hits_hold"] = share([row["hits_hold"] for row in asked])  # one of 16 passages holds all that is needed
    made["answerable_refused"] = share([row["abstained"] for row in asked])
    if others:
        made["unanswerable_refused"] = share([row["abstained"] for row in others])
    if any(row["short"] and row["short_wanted"] for row in asked):
        made["short_answers"] = short_answers(rows, "short")
        made["headlines"] = short_answers(rows, "headline")
    made["fragments"] = sum(len(row["fragments"]) for row in rows) / sentences if sentences else None
    made["words"] = statistics.fmean(row["words"] for row in asked)
    kinds = sorted({row["kind"] for row in asked})
    made["right@120 by kind"] = {
        kind: f"{sum(r['all@120'] for r in asked if r['kind'] == kind)} of {sum(r['kind'] == kind for r in asked)}"
        for kind in kinds
    }
    return made


@app.command()
def fetch(
    to: Annotated[Path, typer.Option(help="Data folder; the documents go to documents/<collection> in it.")],
    table: Annotated[Path | None, typer.Option(help="Collections (toml) instead of the benchmark's.")] = None,
) -> None:
    """Download the packages from Debian and unpack the documents; needs Debian's apt-get and dpkg-deb."""
    text = (table or COLLECTIONS).read_text("utf-8")
    for name, collection in tomllib.loads(text)["collections"].items():
        folder = to / "documents" / name
        if folder.exists():
            continue
        with tempfile.TemporaryDirectory() as temporary:
            unpacked = Path(temporary) / "unpacked"
            for package in collection["packages"]:
                subprocess.run(["dpkg-deb", "-x", _downloaded(package, Path(temporary)), unpacked], check=True)
            for command in collection.get("prepare", ()):
                subprocess.run(command, shell=True, check=True, cwd=unpacked)
            root = unpacked / collection["root"]
            made = Path(temporary) / "documents"
            for path in sorted({path for glob in collection["include"] for path in root.glob(glob)}):
                if path.is_file() and not path.is_symlink():
                    _copied(path, made / path.relative_to(root))
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(made, folder)
        print(f"{name}: {sum(path.is_file() for path in folder.rglob('*'))} files", flush=True)


def _downloaded(package: dict[str, str], folder: Path) -> Path:
    wanted = f"{package['name']}={package['version']}"
    subprocess.run(["apt-get", "download", "-qq", wanted], cwd=folder, check=False)
    found = [path for path in folder.glob("*.deb") if sha256_file(path) == package["sha256"]]
    if not found:
        raise SystemExit(
            f"error: {wanted} is not on this mirror any more: get the file with SHA-256 {package['sha256']} from "
            f"https://snapshot.debian.org/binary/{package['name']}/"
        )
    return found[0]


def _copied(path: Path, to: Path) -> None:
    """Copy a file, unpacked if it is compressed."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        to.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    else:
        shutil.copyfile(path, to)


def _collections(questions: Path) -> Path:
    """The table of the collections that a file of questions asks about."""
    beside = questions.with_suffix(".toml")
    return beside if beside.exists() else COLLECTIONS


@app.command()
def measure(
    data: Annotated[Path, typer.Argument(help="Folder that `fetch` filled.")],
    part: Annotated[str, typer.Option(help="A part of the questions, such as dev or kept, or all.")] = "dev",
    system: Annotated[list[str] | None, typer.Option(help="Systems to measure, such as reader,recipe=best.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Ask only every so many questions.")] = 1,
    questions: Annotated[Path, typer.Option(help="The benchmark's questions.")] = BENCHMARK / "questions.jsonl",
    work: Annotated[Path, typer.Option(help="Folder for indexes and answers.")] = Path("work/own-documents"),
    reuse: Annotated[bool, typer.Option("--reuse", help="Use the indexes that are in the folder.")] = False,
    out: OutOption = None,
) -> None:
    """Build an index per collection, answer, and print what the answers contain."""
    asked = [row for _, row in read_objects(questions) if part in ("all", row.get("part"))][::every]
    rows: dict[str, list[dict[str, Any]]] = {}
    work.mkdir(parents=True, exist_ok=True)
    texts = []
    for collection in dict.fromkeys(row["collection"] for row in asked):
        folder = work / f"{collection}.index"
        if not (reuse and folder.exists()):
            rag.build_index([(data / "documents" / collection).resolve()], to=folder, skip_bad=True, replace=True)
        index = rag.open_index(folder)
        for name, ask in systems(index, system or ["reader", "reader,recipe=shortlist", "extractive"]):
            for row in asked:
                if row["collection"] != collection:
                    continue
                started = time.perf_counter()
                answer = ask(Question(row["id"], row["question"]))
                found = row_of(row, answer, time.perf_counter() - started)
                rows.setdefault(name, []).append(found)
                texts.append({"system": name, "question": row["question"], **found, "answer": answer.text,
                              "reason": answer.reason, "nuggets": row.get("nuggets"),
                              "hits": [h.passage.id for h in answer.hits]})  # fmt: skip
    result: dict[str, Any] = {
        "benchmark": f"{questions.parent.name}/{questions.name}",
        "part": part if every == 1 else f"every {every}th of {part}",
        "systems": {name: summary(found) for name, found in rows.items()},
        "provenance": provenance({"questions": questions, "collections": _collections(questions)}),
    }
    write_atomic(work / f"answers-{part}.jsonl", (dumps(round_floats(row)) for row in texts))
    for name, found in result["systems"].items():
        print(name, dumps(round_floats(found, 3)))
    if out is not None:
        write_atomic(out, [dumps(round_floats(result, 4), indent=2)])


def _folders(data: Sequence[Path]) -> list[Path]:
    """The documents of each collection in these data folders."""
    return sorted(path for one in data for path in (one / "documents").iterdir())


def _index(documents: Path, work: Path) -> Index:
    """The index of a collection, built if it is missing."""
    place = work / f"{documents.name}.index"
    if not place.exists():
        rag.build_index([documents.resolve()], to=place, skip_bad=True)
    return rag.open_index(place)


@app.command()
def identifiers(
    data: Annotated[list[Path], typer.Argument(help="Folders that `fetch` filled.")],
    most: Annotated[int, typer.Option(min=1, help="Names of a collection.")] = 12,
    work: WorkOption = Path("work/own-documents"),
    out: OutOption = None,
) -> None:
    """Ask for names of options and functions that one passage has, and count where it is found and cited."""
    found: dict[str, list[tuple[bool, ...]]] = {recipe: [] for recipe in ("bm25", "shortlist", "hybrid")}
    for folder in _folders(data):
        index = _index(folder, work)
        readers = {recipe: open_system("reader", index, recipe=recipe) for recipe in found}
        retrievers = {recipe: rag.open_retriever(recipe, index) for recipe in found}
        for name, passage in sorted(_named_once(index).items(), key=lambda one: _shuffled(one[0]))[:most]:
            question = Question(name, f"What does {name} do?")
            for recipe, rows in found.items():
                try:
                    answer = readers[recipe].ask(question)
                    hits = retrievers[recipe].search([question.text], READ)[0]
                except QuestionError:  # nothing but stop words
                    break
                ids = [hit.passage.id for hit in hits]
                cited = any(one.passage == passage for sentence in answer.sentences for one in sentence.citations)
                rows.append((passage in ids[:1], passage in ids, cited, answer.abstained))
    metrics = ("first", f"first {READ}", "cited by the reader", "refused by the reader")
    result = {
        "question": "What does NAME do?",
        "names": len(found["bm25"]),
        "recipes": {
            recipe: {
                metric: share(held)
                for metric, held in zip(metrics, zip(*rows, strict=True), strict=True)
            }
            for recipe, rows in found.items()
        },
        "provenance": provenance({one: COLLECTIONS.parents[2] / one for one in _TABLES}),
    }  # fmt: skip
    tell(result, out)


@app.command()
def hits(
    data: Annotated[list[Path], typer.Argument(help="Folders that `fetch` filled.")],
    work: WorkOption = Path("work/own-documents"),
    out: OutOption = None,
) -> None:
    """Count the questions whose first 1, 5 and 16 hits hold all that is needed, by recipe."""
    recipes, asked = ("bm25", "shortlist", "best", "hybrid", "hybrid-reranked"), dict[str, list[dict[str, Any]]]()
    for file in (BENCHMARK / "questions.jsonl", VALIDATION):
        for _, row in read_objects(file):
            if _answerable(row) and row.get("part", "validation") != "kept":
                asked.setdefault(row["collection"], []).append(row)
    found: dict[str, dict[str, list[list[bool]]]] = {}
    folders = _folders(data)
    if missing := asked.keys() - {folder.name for folder in folders}:
        raise SystemExit(f"error: the documents of {', '.join(sorted(missing))} are missing: fetch them first")
    for folder in folders:
        index = _index(folder, work)
        for recipe in recipes:
            retriever = rag.open_retriever(recipe, index)
            for row in asked.get(folder.name, ()):
                (listed,) = retriever.search([row["question"]], READ)
                texts = ["\n\n".join(hit.passage.text for hit in listed[:k]) for k in _FIRST]
                held = [all(_held(row, text)) for text in texts]
                found.setdefault(row.get("part", "validation"), {}).setdefault(recipe, []).append(held)
    result = {
        part: {
            recipe: {f"first {k}": share(held) for k, held in zip(_FIRST, zip(*rows, strict=True), strict=True)}
            for recipe, rows in recipes.items()
        }
        for part, recipes in found.items()
    } | {"provenance": provenance({"questions": BENCHMARK / "questions.jsonl", "validation": VALIDATION})}
    tell(result, out)


_TABLES = ("benchmarks/own-documents/collections.toml", "recipes/reader-validation.toml")
_NAME = re.compile(r"(?<![\w-])(?:--[a-z][\w-]{3,}|[A-Za-z]+(?:_[A-Za-z0-9]+)+|[a-z]+[A-Z]\w+)\b")


@app.command()
def sample(
    data: Annotated[Path, typer.Argument(help="Folder that `fetch` filled.")],
    to: Annotated[Path, typer.Option(help="The file to write.")],
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    each: Annotated[int, typer.Option(min=1, help="Passages of a collection.")] = 50,
) -> None:
    """Write random passages of each collection to a text, numbered, with ids and headings."""
    drawn = []
    rng = random.Random(seed)
    for folder in sorted((data / "documents").iterdir()):
        with tempfile.TemporaryDirectory() as place:
            index = rag.build_index([folder.resolve()], to=Path(place) / "index", skip_bad=True, recipes=())
            passages = [*index.store.scan()]
        drawn += [(folder.name, one) for one in rng.sample(passages, min(each, len(passages)))]
    write_atomic(to, (
        f"=== {number} | {name} | {one.id} | {one.headings}\n{one.text}\n" for number, (name, one) in enumerate(drawn)
    ))  # fmt: skip


def _named_once(index: Index) -> dict[str, str]:
    """The names that only one passage has, with its id."""
    places: dict[str, set[str]] = {}
    for passage in index.store.scan():
        for name in set(_NAME.findall(passage.contents)):
            places.setdefault(name, set()).add(passage.id)
    return {name: min(ids) for name, ids in places.items() if len(ids) == 1}


def _shuffled(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


if __name__ == "__main__":
    app()
