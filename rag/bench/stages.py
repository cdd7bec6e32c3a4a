"""The stages of a benchmark run: hits, answers, judgements and metrics, each written to files of the run folder."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from autoais.base.answers import CitedAnswer, read_answers, to_row, write_answers
from autoais.base.engines import Engine
from autoais.base.io.jsonl import dumps, read_objects, round_floats, write_atomic
from autoais.base.io.notes import Notes
from autoais.base.io.provenance import judge_record, sha256_file, versions
from autoais.base.models.pace import Pace, RequestTotals
from autoais.base.progress import Progress
from autoais.base.types import Judge
from autoais.judges import open_judge
from autoais.judges.cache import CachedJudge, JudgementCache
from autoais.judges.engine import EngineJudge
from autoais.metrics.scoring import Measures, ScoreRun, with_notes
from rag.answer.specs import SystemSpec, number_duplicates, safe_name
from rag.answer.system import map_in_order
from rag.base.errors import RagError
from rag.bench import metrics as measures
from rag.bench.answering import OpenAnswering
from rag.bench.benchmark import Benchmark
from rag.bench.corpora import Corpora
from rag.bench.folder import ANSWERS, CACHE, ITEMS, JUDGEMENTS, METRICS, SCORE, RunFolder
from rag.bench.human import HumanLabels
from rag.bench.items import Item, write_items
from rag.bench.outcomes import make_item
from rag.bench.output_folder import count_examples, read_record, write_record, write_rows
from rag.bench.predictions import GivenPassages, join_predictions
from rag.bench.question_files import BenchQuestion
from rag.bench.retrieval import OF_THE_QUESTION, Given, HitRows, Search, search_file
from rag.bench.selections import sample_of
from rag.bench.spans import GoldSpans
from rag.retrieval import Retriever, walk_data_configs

Task = tuple[str, Sequence[str], Callable[[], None]]
"""A piece of work of a stage: its label, the files that it writes, and the call that writes them."""

_MAX_EXAMPLES = 5  # ids that a record names
_AT_ONCE = 16  # pairs that a kill can lose, if the judge has no `at_once` of its own


def _adds_data(retriever: str) -> bool:
    return retriever not in OF_THE_QUESTION and any(True for _ in walk_data_configs(retriever))


class Stages:
    """The work of each stage of a run, and how it is done. `questions` are all of the benchmark."""

    def __init__(
        self,
        folder: RunFolder,
        benchmark: Benchmark,
        questions: Sequence[BenchQuestion],
        corpora: Corpora,
        judge: Judge | None,
        people: HumanLabels | None,
        concurrency: int | str,
        progress: Progress,
        engine: Engine | None = None,
    ) -> None:
        self._run, self._benchmark, self._all, self._corpora = folder, benchmark, questions, corpora
        self._judge, self._people, self._concurrency, self._progress = judge, people, concurrency, progress
        self._engine = engine
        self._gold_spans = GoldSpans(folder.questions, corpora)
        self.request_totals: dict[str, RequestTotals] = {}  # what model servers did for a system
        self._folder, self._record, self._questions = folder.path, folder.record, folder.questions
        self._specs = {
            label: SystemSpec.parse(source["spec"])
            for label, source in self._record["answers"].items()
            if "spec" in source
        }

    def work(self, stage: str) -> Iterator[Task]:
        """The pieces of work of a stage, done or not."""
        work = {"retrieve": self._retrieve, "answer": self._answer, "judge": self._judge_all, "measure": self._measure}
        return work[stage]()

    # --- retrieve -----------------------------------------------------------------------------------------------

    def _retrieve(self) -> Iterator[Task]:
        files = self._hits_files()  # a run that goes on with other systems keeps the names that it has
        used_names = [Path(file).stem for file in files.values()]
        searches = [search for spec in self._specs.values() if (search := self._search_of(spec)) is not None]
        for retriever, k in searches:
            if (retriever, k) not in files:
                name = safe_name(f"{Path(retriever).stem if retriever.endswith('.toml') else retriever}@{k}")
                (name,) = number_duplicates([name], used_names)
                used_names.append(name)
                files[retriever, k] = f"retrieval/{name}.jsonl"
        # First those that add data to an index, as a retriever may fall back on another by the data that is there.
        for retriever, k in sorted(dict.fromkeys(searches), key=lambda search: not _adds_data(search[0])):
            file = files[retriever, k]
            yield file, [file], partial(self._search, retriever, k, file)

    def _hits_files(self) -> dict[tuple[str, int], str]:
        """The files of hits in the record, by retriever and depth."""
        return {(search["recipe"], search["k"]): name for name, search in self._record["retrieval"].items()}

    def _search_of(self, spec: SystemSpec) -> tuple[str, int] | None:
        """Retriever and depth of a system that searches with the question, else None."""
        if not spec.kind.searches_question:
            return None
        retriever, k = spec.kind.search_defaults(spec.options)
        k = spec.k or self._benchmark.k or k
        has_passages = self._benchmark.task == "given" and spec.retriever != "gold"
        return ("given" if has_passages else spec.retriever or retriever), k

    def _search(self, retriever: str, k: int, file: str) -> None:
        name, search = self._open_search(retriever, k)
        settings = {
            "retriever": name,
            "k": k,
            "questions": self._record["questions"]["sha256"],
            "corpus": self._record["data"]["corpus"],
            "versions": versions(),
        }
        missing_gold = self._corpora.find_missing(
            (question.collection, key) for question in self._questions for key in question.question.gold
        )
        facts = {"gold_not_in_corpus": count_examples(missing_gold, _MAX_EXAMPLES)} if missing_gold else {}
        self._record["retrieval"][file] = {"recipe": retriever, "k": k, "name": name, **facts}
        search_file(self._folder / file, self._questions, search, settings, self._progress)

    def _open_search(self, retriever: str, k: int) -> tuple[str, Search]:
        if retriever in OF_THE_QUESTION:
            given = Given(retriever, self._corpora.find, self._questions)
            return given.name, lambda question: given.search(question, k)
        open_over = cache(partial(self._corpora.retriever, retriever=retriever))

        def open_for(question: BenchQuestion) -> Retriever:
            return open_over(self._corpora.name_of(question.collection))

        name = open_for(self._questions[0]).name
        return name, lambda question: open_for(question).search([question.question.text], k)[0]

    # --- answer -------------------------------------------------------------------------------------------------

    def _answer(self) -> Iterator[Task]:
        for label, source in self._record["answers"].items():
            file = f"{label}/{ANSWERS}"
            if "predictions" in source:
                yield label, [file], partial(self._read_predictions, label, file)
            else:
                yield label, [file], partial(self._answer_all, label, file)

    def _read_predictions(self, label: str, file: str) -> None:
        path = Path(self._record["answers"][label]["predictions"])
        ids = {question.question.id for question in self._questions}
        other_texts = [question.question.text for question in self._all if question.question.id not in ids]
        corpus = self._corpora if self._benchmark.corpora else GivenPassages(self._questions)
        predictions = join_predictions(path, self._questions, other_texts, corpus)
        write_atomic(self._folder / file, write_answers(predictions.answers))
        self._record["systems"][label] = predictions.system
        self._record["answers"][label] |= {
            "sha256": sha256_file(path),
            "joined": predictions.record,
            "notes": predictions.notes.record(),
        }

    def _answer_all(self, label: str, file: str) -> None:
        spec, rows = self._specs[label], None
        opening = OpenAnswering(self._benchmark, self._questions[0], spec)
        if (search := self._search_of(spec)) is not None:
            hits = self._hits_files().get(search)
            if hits is None:
                raise RagError(f"{self._folder} lacks the hits of {spec}: run the stage retrieve")
            path, name = self._folder / hits, self._record["retrieval"][hits]["name"]
            opening, rows = replace(opening, hits_source=(search[0], name, path)), HitRows(path, self._questions)
        answering = opening.over(self._corpora)
        settings = {
            "system": answering.name,
            "questions": self._record["questions"]["sha256"],
            "corpus": self._record["data"]["corpus"],
            "versions": versions(),
        }
        pace = Pace(self._concurrency)

        def answer_rows(questions: Sequence[BenchQuestion]) -> Iterator[Mapping[str, Any]]:
            items = ((question, None if rows is None else rows.of(question)) for question in questions)
            if self._engine is None:
                answers = map_in_order(answering, items, pace)
            else:
                answers = self._engine.map(self._elsewhere(opening, answering.name), items)
            for answer, seconds in answers:
                yield to_row(answer.to_cited(self._benchmark.id, seconds))

        step = f"answering with {label}"
        write_rows(self._folder / file, self._questions, settings, answer_rows, self._progress, step)
        self._record["systems"][label] = answering.name
        if (totals := pace.totals) is not None:
            self.request_totals[label] = totals

    def _elsewhere(self, opening: OpenAnswering, name: str) -> OpenAnswering:
        """What opens the system in a worker, with the same indexes; builds those that are missing."""
        corpus_names = {self._corpora.name_of(question.collection) for question in self._questions}
        names = sorted(corpus_names) if self._benchmark.corpora else []
        checksums = {corpus: self._corpora.open(corpus).manifest["checksum"] for corpus in names}
        paths, sample = self._corpora.corpus_paths, self._corpora.sample
        return replace(opening, corpus_paths=paths, sample=sample, checksums=checksums, expected=name)

    # --- judge --------------------------------------------------------------------------------------------------

    def _judge_all(self) -> Iterator[Task]:
        for label in self._record["systems"]:
            yield label, [f"{label}/{JUDGEMENTS}", f"{label}/{SCORE}"], partial(self._judge_one, label)

    def _judge_one(self, label: str) -> None:
        name = self._run.settings["judge"]
        judge = self._judge or open_judge(name)
        self._judge = judge
        engine_judge = judge if self._engine is None else EngineJudge(judge, name, {}, self._engine)
        notes = Notes()
        alce_references = {question.question.id: question.alce for question in self._questions}
        answer_count = self._record["answers"][label].get("joined", {}).get("answers", len(self._questions))

        def answers() -> Iterator[CitedAnswer]:
            for number, answer in enumerate(read_answers(self._folder / label / ANSWERS), 1):
                references = alce_references.get(answer.id)
                yield replace(answer, extra={**answer.extra, **references}) if references else answer
                self._progress(f"judging {label}", number, answer_count)

        with JudgementCache(self._folder / CACHE) as cache:
            cached = CachedJudge(engine_judge, cache, getattr(engine_judge, "at_once", _AT_ONCE))
            run = ScoreRun(cached, Measures(self._run.settings["metrics"]))
            rows = run.records(with_notes(answers(), notes), [question.question for question in self._questions])
            write_atomic(self._folder / label / JUDGEMENTS, (dumps(round_floats(row)) for row in rows))
        judge_facts = {key: value for key, value in judge_record(judge).items() if key != "usage"}  # of this call only
        write_record(self._folder / label / SCORE, run.report() | {"notes": notes.record(), "judged_by": judge_facts})

    # --- measure ------------------------------------------------------------------------------------------------

    def _measure(self) -> Iterator[Task]:
        for label in self._record["systems"]:
            yield label, [f"{label}/{ITEMS}", f"{label}/{METRICS}"], partial(self._measure_one, label)

    def _measure_one(self, label: str) -> None:
        folder, settings = self._folder / label, self._run.settings
        items = list(self._items(folder))
        if self._people is None and settings["human"] is not None:
            self._people = HumanLabels(Path(settings["human"]))
        people = self._people
        if people is not None:
            items = people.on(items)
        answers = {answer.id: answer for answer in read_answers(folder / ANSWERS)}
        items = [replace(item, span_f1=self._gold_spans.f1_of(item.id, answers.get(item.id))) for item in items]
        write_items(folder / ITEMS, items)
        score = read_record(folder / SCORE, {}, "run the stage judge first")
        metrics = score["metrics"] | measures.item_metrics(items)
        span_metrics, spans = self._gold_spans.score(answers)
        metrics |= span_metrics
        facts: dict[str, Any] = {"spans": round_floats(spans)} if spans else {}
        if people is not None:
            corrected_rate, human = measures.correct_autoais(items, people)
            metrics["autoais_corrected"] = corrected_rate
            facts["human"] = human | {"sha256": sha256_file(Path(settings["human"]))}
        source, token_usage = self._record["answers"][label], measures.tokens(items)
        price = settings["price"]
        result = {
            "system": self._record["systems"][label],
            "label": label,
            "judge": score["judge"],
            "benchmark": self._benchmark.id,
            "closed_pool": self._record["benchmark"]["closed_pool"],
            "sample": sample_of(self._record),
            "n": len(items),
            "answered": score["answered"],
            "unresolved_markers": score["unresolved_markers"],
            "same_judge": score.get("same_judge", 0),
            "right": self._benchmark.right,
            "ways": measures.ways(items),
            "metrics": metrics,
            **facts,
            "latency": measures.latency(items),
            "tokens": token_usage,
            "money": measures.money(token_usage, None if price is None else (price[0], price[1])),
            "predictions": source.get("joined"),
            "notes": score["notes"] | source.get("notes", {}),
            "provenance": {
                "command": self._record["command"],
                "reruns": self._record["reruns"],
                "versions": self._record["versions"],
                "judge": score["judged_by"],
                "data": self._record["data"],
                "indexes": self._record["indexes"],
            },
        }
        write_record(folder / METRICS, result)

    def _items(self, folder: Path) -> Iterator[Item]:
        answers = {answer.id: answer for answer in read_answers(folder / ANSWERS)}
        rows = (row for _, row in read_objects(folder / JUDGEMENTS))
        rows_by_id = {key: list(group) for key, group in groupby(rows, itemgetter("id"))}
        short = any(answer.short_answer is not None for answer in answers.values()) or not answers
        for question in self._questions:
            identifier = question.question.id
            yield make_item(
                question, answers.get(identifier), rows_by_id[identifier], self._benchmark.right, short_answers=short
            )
