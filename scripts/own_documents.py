"""Answers about documents as users have them: the benchmark `eval/benchmarks/own-documents`.

    python -m scripts.own_documents fetch --to DATA                 # Debian's packages, about 60 MB
    python -m scripts.own_documents measure DATA --part dev --out eval/results/own-documents/dev.json

The questions were written from the tables of contents, before any output was looked at. Part `dev` (two thirds) is
there to choose by, part `kept` is measured at the end.

    python -m scripts.own_documents fetch --table eval/recipes/reader-validation.toml --to DATA
    python -m scripts.own_documents measure DATA --questions eval/recipes/reader-validation.jsonl --part all \\
        --system reader --system reader,retriever=shortlist --system reader,min_confidence=0

    python -m scripts.own_documents fetch --table eval/benchmarks/own-documents/fresh.toml --to DATA
    python -m scripts.own_documents fetch --table eval/benchmarks/own-documents/fresh-2.toml --to DATA
    python -m scripts.own_documents measure DATA --questions eval/benchmarks/own-documents/what-is.jsonl --part all

asks what something is ("What is Slurm?"), three questions about each of 16 collections. A language model wrote them
from the titles of sections, another the nuggets from the documents; neither saw the system.

    python -m scripts.own_documents fetch --table eval/benchmarks/own-documents/real.toml --to DATA
    python -m scripts.own_documents measure DATA --questions eval/benchmarks/own-documents/real.jsonl --part dev

asks about folders of organisations: PDFs, spreadsheets, slides, minutes, from repositories on GitHub at pinned commits.
Where GitHub can't be reached, `--snapshots FOLDER` takes them from git repositories FOLDER/OWNER+NAME/repo.

    python -m scripts.own_documents identifiers DATA DATA2 --out eval/results/own-documents/identifiers.json

asks "What does max_depth do?" for names that only one passage has.

    python -m scripts.own_documents hits DATA DATA2 --out eval/results/own-documents/hits.json

counts the questions of `dev` and of the validation whose first hits hold the whole answer, together.

    python -m scripts.own_documents sample DATA --seed 402 --to passages.txt

writes passages of each collection, so that somebody can judge which are navigation, contents, indexes or page headers.
The last verdicts are in eval/results/own-documents/sampled.tsv: A content, B navigation and the like, C content with a
line of it.

Questions with quotes instead of nuggets (`rag.training.labelled_questions`) are those of the reader's validation: the
answer is right if it holds all quotes.
"""

import gzip
import hashlib
import random
import re
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import rag
from autoais.base.io.jsonl import dumps, read_objects, round_floats, write_atomic
from autoais.base.io.provenance import provenance, sha256_file
from autoais.metrics.intervals import clopper_pearson
from autoais.metrics.nuggets import find_nuggets, first_words
from autoais.metrics.short_answers import exact_match, has_answer
from rag.answer.specs import SystemSpec
from rag.answer.systems import open_system
from rag.base.errors import QuestionError
from rag.base.types import Answer, Question
from rag.index.index import Index
from rag.training.labelled_questions import Fingerprint, find_quote
from scripts.fragments import is_fragment
from scripts.results import tell

BENCHMARK = Path(__file__).parent.parent / "eval" / "benchmarks" / "own-documents"
COLLECTIONS = BENCHMARK / "collections.toml"
VALIDATION = BENCHMARK.parents[1] / "recipes" / "reader-validation.jsonl"
WORDS = (60, 120)
READER_DEPTH = 16  # hits that the reader reads
_FIRST = (1, 5, READER_DEPTH)  # hits of which `hits` tells how often they hold the answer

app = typer.Typer(add_completion=False)
WorkOption = Annotated[Path, typer.Option(help="Folder for indexes; those of `measure` are used.")]
OutOption = Annotated[Path | None, typer.Option("--out", help="Report (json).")]
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
        yield name, open_system(spec.name, index, spec.options, k=spec.k, retriever=spec.retriever).ask


def row_of(question: dict[str, Any], answer: Answer, seconds: float) -> dict[str, Any]:
    """What the answer of a system contains, per question."""
    text = "" if answer.abstained else answer.text
    row: dict[str, Any] = {
        "id": question["id"], "name": answer.system, "kind": question["kind"], "collection": question["collection"],
        "answerable": _answerable(question), "abstained": answer.abstained or not text, "words": len(text.split()),
        "confidence": answer.confidence, "signals": answer.trace.get("signals"), "seconds": seconds,
        "sentences": len(answer.sentences),
        "fragments": [s.text for s in answer.sentences if is_fragment(answer, s)],
        "short": None if answer.abstained else answer.short_answer, "short_wanted": question.get("short"),
        "headline": None if answer.abstained else answer.headline,
    }  # fmt: skip
    row["hits_hold"] = any(all(_match_nuggets(question, hit.passage.text)) for hit in answer.hits[:READER_DEPTH])
    for max_words in WORDS:
        matches = _match_nuggets(question, first_words(text, max_words))
        row[f"all@{max_words}"] = bool(matches) and all(matches)
        row[f"recall@{max_words}"] = sum(matches) / len(matches) if matches else None
    return row


def _answerable(question: dict[str, Any]) -> bool:
    return question["answerable"] if "answerable" in question else bool(question["quotes"])


def _match_nuggets(question: dict[str, Any], text: str) -> list[bool]:
    """Which nuggets, or quotes, a text holds."""
    if "nuggets" in question:
        return find_nuggets(text, question["nuggets"])
    return [find_quote(text, Fingerprint(**quote)) is not None for quote in question["quotes"]]


def share(outcomes: Sequence[bool]) -> dict[str, Any]:
    """The share that holds, 0 to 1, with n and its 95 % interval (Clopper-Pearson)."""
    return {
        "value": sum(outcomes) / len(outcomes),
        "n": len(outcomes),
        "interval95": clopper_pearson(sum(outcomes), len(outcomes)),
    }


def short_answers(rows: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """How often `short` or `headline` (`name`) is there, and is the short answer that the annotator gave.

    `exact_match` is SQuAD's. `agrees` also counts "120 days" for "at least 120 days": one holds the words of the other.
    Both are shares of the short answers that are shown where the annotator gave one.
    """
    references = [row for row in rows if row["answerable"] and row["short_wanted"]]
    pairs = [(row[name], row["short_wanted"]) for row in references if row[name]]
    metrics: dict[str, Any] = {"shown": share([bool(row[name]) for row in references])}
    if pairs:
        metrics["exact_match"] = share([exact_match(short, [reference]) == 1 for short, reference in pairs])
        metrics["agrees"] = share(
            [has_answer(short, [reference]) or has_answer(reference, [short]) for short, reference in pairs]
        )
    if unanswerable := [bool(row[name]) for row in rows if not row["answerable"]]:
        metrics["shown_unanswerable"] = share(unanswerable)
    return metrics


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The metrics over the rows of one system."""
    answerable, unanswerable = [r for r in rows if r["answerable"]], [r for r in rows if not r["answerable"]]
    sentences = sum(row["sentences"] for row in rows)
    metrics: dict[str, Any] = {
        "system": rows[0]["name"],
        "answerable": len(answerable),
        "unanswerable": len(unanswerable),
    }
    for max_words in WORDS:
        metrics[f"right@{max_words}"] = share([row[f"all@{max_words}"] for row in answerable])
        metrics[f"nugget_recall@{max_words}"] = statistics.fmean(row[f"recall@{max_words}"] for row in answerable)
    metrics["hits_hold"] = share(
        [row["hits_hold"] for row in answerable]
    )  # one of 16 passages holds all that is needed
    metrics["answerable_refused"] = share([row["abstained"] for row in answerable])
    if unanswerable:
        metrics["unanswerable_refused"] = share([row["abstained"] for row in unanswerable])
    if any(row["short"] and row["short_wanted"] for row in answerable):
        metrics["short_answers"] = short_answers(rows, "short")
        metrics["headlines"] = short_answers(rows, "headline")
    metrics["fragments"] = sum(len(row["fragments"]) for row in rows) / sentences if sentences else None
    metrics["words"] = statistics.fmean(row["words"] for row in answerable)
    kinds: dict[str, list[bool]] = {}
    for row in answerable:
        kinds.setdefault(row["kind"], []).append(row["all@120"])
    metrics["right@120 by kind"] = {kind: f"{sum(right)} of {len(right)}" for kind, right in sorted(kinds.items())}
    return metrics


@app.command()
def fetch(
    to: Annotated[Path, typer.Option(help="Data folder; the documents go to documents/<collection> in it.")],
    table: Annotated[Path | None, typer.Option(help="Collections (toml) instead of the benchmark's.")] = None,
    snapshots: Annotated[
        Path | None, typer.Option(help="Folder of git repositories, OWNER+NAME/repo, to read instead of GitHub.")
    ] = None,
) -> None:
    """Download Debian's packages (by apt-get and dpkg-deb) or GitHub's archives, and unpack the documents."""
    text = (table or COLLECTIONS).read_text("utf-8")
    for name, collection in tomllib.loads(text)["collections"].items():
        folder = to / "documents" / name
        if folder.exists():
            continue
        with tempfile.TemporaryDirectory() as temporary:
            tree = Path(temporary) / "unpacked"
            if "repository" in collection:
                _unpack_repository(collection, tree, snapshots)
            for package in collection.get("packages", ()):
                subprocess.run(["dpkg-deb", "-x", _download(package, Path(temporary)), tree], check=True)
            for command in collection.get("prepare", ()):
                subprocess.run(command, shell=True, check=True, cwd=tree)
            root = tree / collection["root"]
            documents = Path(temporary) / "documents"
            for path in sorted({path for glob in collection["include"] for path in root.glob(glob)}):
                if path.is_file() and not path.is_symlink():
                    _copy(path, documents / path.relative_to(root))
            if "sha256" in collection and (checksum := _checksum(documents)) != collection["sha256"]:
                raise SystemExit(
                    f"error: the documents of {name} have SHA-256 {checksum}, the table has {collection['sha256']}: "
                    "the repository or the included files have changed"
                )
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(documents, folder)
        print(f"{name}: {sum(path.is_file() for path in folder.rglob('*'))} files", flush=True)


def _download(package: dict[str, str], folder: Path) -> Path:
    version = f"{package['name']}={package['version']}"
    subprocess.run(["apt-get", "download", "-qq", version], cwd=folder, check=False)
    paths = [path for path in folder.glob("*.deb") if sha256_file(path) == package["sha256"]]
    if not paths:
        raise SystemExit(
            f"error: {version} is not on this mirror any more: get the file with SHA-256 {package['sha256']} from "
            f"https://snapshot.debian.org/binary/{package['name']}/"
        )
    return paths[0]


def _unpack_repository(collection: dict[str, Any], tree: Path, snapshots: Path | None) -> None:
    """Unpack the files of a repository at its commit, from GitHub or from a repository in the folder `snapshots`."""
    repository, commit = collection["repository"], collection["commit"]
    archive = tree.with_suffix(".tar")
    if snapshots is None:
        urllib.request.urlretrieve(f"https://github.com/{repository}/archive/{commit}.tar.gz", archive)
    else:  # only the included files: a snapshot may lack large ones
        git = snapshots / repository.replace("/", "+") / "repo"
        globs = [f":(glob){Path(collection['root'], glob).as_posix()}" for glob in collection["include"]]
        command = ["git", "-C", git, "archive", "--prefix=repository/", "-o", archive.resolve(), commit, "--", *globs]
        subprocess.run(command, check=True)
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile():
                member.name = member.name.partition("/")[2]
                tar.extract(member, tree, filter="data")


def _checksum(folder: Path) -> str:
    """SHA-256 of the paths and checksums of all files of a folder, hexadecimal."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{path.relative_to(folder).as_posix()} {sha256_file(path)}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _copy(path: Path, to: Path) -> None:
    """Copy a file, unpacked if it is compressed."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        to.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    else:
        shutil.copyfile(path, to)


def _collections(questions: Path) -> Path:
    """The table of the collections that a file of questions asks about."""
    table = questions.with_suffix(".toml")
    return table if table.exists() else COLLECTIONS


@app.command()
def measure(
    data: Annotated[Path, typer.Argument(help="Folder that `fetch` filled.")],
    part: Annotated[str, typer.Option(help="A part of the questions, such as dev or kept, or all.")] = "dev",
    system: Annotated[
        list[str] | None, typer.Option(help="Systems to measure, such as reader,retriever=bm25-rerank.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Ask only every so many questions.")] = 1,
    questions: Annotated[Path, typer.Option(help="The benchmark's questions.")] = BENCHMARK / "questions.jsonl",
    work: Annotated[Path, typer.Option(help="Folder for indexes and answers.")] = Path("work/own-documents"),
    reuse: Annotated[bool, typer.Option("--reuse", help="Use the indexes that are in the folder.")] = False,
    output: OutOption = None,
) -> None:
    """Build an index per collection, answer, and print what the answers contain."""
    items = [row for _, row in read_objects(questions) if part in ("all", row.get("part"))][::every]
    rows: dict[str, list[dict[str, Any]]] = {}
    work.mkdir(parents=True, exist_ok=True)
    texts = []
    for collection in dict.fromkeys(row["collection"] for row in items):
        folder = work / f"{collection}.index"
        if not (reuse and folder.exists()):
            rag.build_index([(data / "documents" / collection).resolve()], to=folder, skip_bad=True, replace=True)
        index = rag.open_index(folder)
        for name, ask in systems(index, system or ["reader", "reader,retriever=shortlist", "extractive"]):
            for row in items:
                if row["collection"] != collection:
                    continue
                start = time.perf_counter()
                answer = ask(Question(row["id"], row["question"]))
                record = row_of(row, answer, time.perf_counter() - start)
                rows.setdefault(name, []).append(record)
                texts.append({"system": name, "question": row["question"], **record, "answer": answer.text,
                              "reason": answer.reason, "nuggets": row.get("nuggets"),
                              "hits": [h.passage.id for h in answer.hits]})  # fmt: skip
    result: dict[str, Any] = {
        "benchmark": f"{questions.parent.name}/{questions.name}",
        "part": part if every == 1 else f"every {every}th of {part}",
        "systems": {name: summary(record) for name, record in rows.items()},
        "provenance": provenance({"questions": questions, "collections": _collections(questions)}),
    }
    write_atomic(work / f"answers-{part}.jsonl", (dumps(round_floats(row)) for row in texts))
    for name, record in result["systems"].items():
        print(name, dumps(round_floats(record, 3)))
    if output is not None:
        write_atomic(output, [dumps(round_floats(result, 4), indent=2)])


def _folders(data: Sequence[Path]) -> list[Path]:
    """The documents of each collection in these data folders."""
    return sorted(path for folder in data for path in (folder / "documents").iterdir())


def _index(documents: Path, work: Path) -> Index:
    """The index of a collection, built if it is missing."""
    folder = work / f"{documents.name}.index"
    if not folder.exists():
        rag.build_index([documents.resolve()], to=folder, skip_bad=True)
    return rag.open_index(folder)


@app.command()
def identifiers(
    data: Annotated[list[Path], typer.Argument(help="Folders that `fetch` filled.")],
    limit: Annotated[int, typer.Option(min=1, help="Names of a collection.")] = 12,
    work: WorkOption = Path("work/own-documents"),
    output: OutOption = None,
) -> None:
    """Ask for names of options and functions that one passage has, and count where it is found and cited."""
    outcomes: dict[str, list[tuple[bool, ...]]] = {retriever: [] for retriever in ("bm25", "shortlist", "hybrid")}
    for folder in _folders(data):
        index = _index(folder, work)
        readers = {retriever: open_system("reader", index, retriever=retriever) for retriever in outcomes}
        retrievers = {retriever: rag.open_retriever(retriever, index) for retriever in outcomes}
        for name, passage in sorted(_unique_names(index).items(), key=lambda pair: _sort_key(pair[0]))[:limit]:
            question = Question(name, f"What does {name} do?")
            for retriever, rows in outcomes.items():
                try:
                    answer = readers[retriever].ask(question)
                    hits = retrievers[retriever].search([question.text], READER_DEPTH)[0]
                except QuestionError:  # nothing but stop words
                    break
                ids = [hit.passage.id for hit in hits]
                is_cited = any(
                    citation.passage == passage for sentence in answer.sentences for citation in sentence.citations
                )
                rows.append((passage in ids[:1], passage in ids, is_cited, answer.abstained))
    metrics = ("first", f"first {READER_DEPTH}", "cited by the reader", "refused by the reader")
    result = {
        "question": "What does NAME do?",
        "names": len(outcomes["bm25"]),
        "recipes": {
            retriever: {
                metric: share(column)
                for metric, column in zip(metrics, zip(*rows, strict=True), strict=True)
            }
            for retriever, rows in outcomes.items()
        },
        "provenance": provenance({name: COLLECTIONS.parents[2] / name for name in _TABLES}),
    }  # fmt: skip
    tell(result, output)


@app.command()
def hits(
    data: Annotated[list[Path], typer.Argument(help="Folders that `fetch` filled.")],
    work: WorkOption = Path("work/own-documents"),
    output: OutOption = None,
) -> None:
    """Count the questions whose first 1, 5 and 16 hits hold all that is needed, by retriever."""
    retrievers, questions = (
        ("bm25", "shortlist", "bm25-rerank", "hybrid", "hybrid-reranked"),
        dict[str, list[dict[str, Any]]](),
    )
    for file in (BENCHMARK / "questions.jsonl", VALIDATION):
        for _, row in read_objects(file):
            if _answerable(row) and row.get("part", "validation") != "kept":
                questions.setdefault(row["collection"], []).append(row)
    outcomes: dict[str, dict[str, list[list[bool]]]] = {}
    folders = _folders(data)
    if missing := questions.keys() - {folder.name for folder in folders}:
        raise SystemExit(f"error: the documents of {', '.join(sorted(missing))} are missing: fetch them first")
    for folder in folders:
        index = _index(folder, work)
        for name in retrievers:
            retriever = rag.open_retriever(name, index)
            for row in questions.get(folder.name, ()):
                (ranking,) = retriever.search([row["question"]], READER_DEPTH)
                texts = ["\n\n".join(hit.passage.text for hit in ranking[:k]) for k in _FIRST]
                matches = [all(_match_nuggets(row, text)) for text in texts]
                outcomes.setdefault(row.get("part", "validation"), {}).setdefault(name, []).append(matches)
    result = {
        part: {
            retriever: {
                f"first {k}": share(matches) for k, matches in zip(_FIRST, zip(*rows, strict=True), strict=True)
            }
            for retriever, rows in retrievers.items()
        }
        for part, retrievers in outcomes.items()
    } | {"provenance": provenance({"questions": BENCHMARK / "questions.jsonl", "validation": VALIDATION})}
    tell(result, output)


_TABLES = ("benchmarks/own-documents/collections.toml", "recipes/reader-validation.toml")
_NAME = re.compile(r"(?<![\w-])(?:--[a-z][\w-]{3,}|[A-Za-z]+(?:_[A-Za-z0-9]+)+|[a-z]+[A-Z]\w+)\b")


@app.command()
def sample(
    data: Annotated[Path, typer.Argument(help="Folder that `fetch` filled.")],
    to: Annotated[Path, typer.Option(help="The file to write.")],
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    per_collection: Annotated[int, typer.Option(min=1, help="Passages of a collection.")] = 50,
) -> None:
    """Write random passages of each collection to a text, numbered, with ids and headings."""
    draw = []
    rng = random.Random(seed)
    for folder in sorted((data / "documents").iterdir()):
        with tempfile.TemporaryDirectory() as temporary:
            index = rag.build_index([folder.resolve()], to=Path(temporary) / "index", skip_bad=True, retrievers=())
            passages = [*index.store.scan()]
        draw += [(folder.name, passage) for passage in rng.sample(passages, min(per_collection, len(passages)))]
    write_atomic(to, (
        f"=== {number} | {name} | {passage.id} | {passage.headings}\n{passage.text}\n"
        for number, (name, passage) in enumerate(draw)
    ))  # fmt: skip


def _unique_names(index: Index) -> dict[str, str]:
    """The names that only one passage has, with its id."""
    owners: dict[str, set[str]] = {}
    for passage in index.store.scan():
        for name in set(_NAME.findall(passage.contents)):
            owners.setdefault(name, set()).add(passage.id)
    return {name: min(ids) for name, ids in owners.items() if len(ids) == 1}


def _sort_key(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


if __name__ == "__main__":
    app()
