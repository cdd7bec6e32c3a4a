"""Evaluation of runs against relevance judgements, with the measures of ir_measures and `answer_hit@k`.

Every topic of the judgements counts; a topic that the run skips, or that has no relevant passage, scores zero.
"""

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Any

from autoais.base.answers import as_cited_answer
from autoais.base.errors import FormatError, UsageError, UserError, check_list, missing_extra
from autoais.base.io.files import lines
from autoais.base.types import Passage
from autoais.formats.questions import read_questions
from autoais.metrics.comparison import difference_of_means
from autoais.metrics.rates import Mean
from autoais.metrics.short_answers import has_answer

MEASURES = ("nDCG@10", "R@100", "RR@10", "Success@1", "Success@5", "Success@20", "Success@100")
ANSWER_HITS = ("answer_hit@1", "answer_hit@5", "answer_hit@20")
_ANSWER_HIT = "answer_hit"
_EXAMPLES = "such as nDCG@10, R@100, RR@10, Success@20, AP, P(rel=2)@5, answer_hit@20"
_COMMON = ("nDCG", "R", "RR", "Success", "AP", "P", _ANSWER_HIT)
_MEASURE = re.compile(r"(\w+)(?:\(rel=([0-9]{1,4})\))?(?:@([0-9]{1,6}))?")
_MAX_RELEVANCE = 1000  # trec_eval keeps a counter for every level of relevance up to the highest
_BEIR_HEADER = ["query-id", "corpus-id", "score"]
_DUMP = re.compile(r"\A[0-9]{4}:(?=[0-9])")

Qrels = Mapping[str, Mapping[str, int]]
"""Topic -> passage id -> relevance; 0 is judged and not relevant. A topic may have no judgements."""


@dataclass(frozen=True, slots=True)
class Run:
    """The rankings of a system: topic -> passage ids, best first, without duplicates.

    `ties` counts the topics in which passages have the same score, and trec_eval would order them otherwise.
    """

    tag: str
    rankings: Mapping[str, Sequence[str]]
    ties: int = 0


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure; `name` is used in reports, `engine` is the ir_measures object, None for `answer_hit@k`."""

    name: str
    cutoff: int | None
    engine: Any = None


# --- files -----------------------------------------------------------------------------------------------------


def read_run(path: Path) -> Run:
    """Read a TREC run, `topic Q0 id rank score tag` (.gz and .zst too); topics may come in any order.

    Rankings are by descending score; ties keep the file's ranks, then go by id, so that a run is evaluated in the
    order it was written in. (trec_eval ignores ranks and puts the higher id first.) Raises `FormatError` for a wrong
    number of columns, a score that is not finite, a rank that is not an integer, or a duplicate id in a topic.
    """
    scores: dict[str, dict[str, tuple[float, int]]] = {}
    tag = ""
    for location, cells in _rows(path):
        if len(cells) != 6:
            raise FormatError(f"{location}: expected six columns (topic Q0 id rank score tag), found {len(cells)}")
        topic, _, identifier, rank, score, tag = cells
        topic_scores = scores.setdefault(topic, {})
        if identifier in topic_scores:
            raise FormatError(f"{location}: {identifier!r} occurs twice in the list of topic {topic!r}")
        topic_scores[identifier] = (-_score(score, location), _whole(rank, "rank", location))
    if not scores:
        raise UserError(f"{path}: holds no results; write a run with: rag search --questions FILE --run {path}")
    rankings = {t: sorted(of, key=lambda passage: (*of[passage], passage)) for t, of in scores.items()}
    by_score = {topic: {passage: -score for passage, (score, _) in of.items()} for topic, of in scores.items()}
    return Run(tag, rankings, _count_ties(rankings, by_score))


def as_run(run: object) -> Run:
    """Return a run from a file, a dict (topic -> passage id -> score), or tuples (topic, passage id, score, ...).

    Rankings are by descending score, ties by id. Raises `UsageError` for anything else, or a score that is not finite.
    """
    if isinstance(run, Run):
        return run
    if isinstance(run, str | Path):
        return read_run(Path(run))
    scores = _by_topic(run, "run", "score")
    rankings = {t: sorted(topic_scores, key=lambda i: (-topic_scores[i], i)) for t, topic_scores in scores.items()}
    return Run("run", rankings, _count_ties(rankings, scores))


def _count_ties(rankings: Mapping[str, Sequence[str]], scores: Mapping[str, Mapping[str, float]]) -> int:
    """The topics that trec_eval orders otherwise: of passages with the same score, it puts the higher id first."""
    return sum(
        any(
            topic_scores[first] == topic_scores[second] and first < second
            for first, second in pairwise(rankings[topic])
        )
        for topic, topic_scores in scores.items()
    )


def as_qrels(qrels: object) -> Qrels:
    """Return qrels from a file, a dict (topic -> passage id -> relevance), or tuples (topic, id, relevance, ...).

    A relevance below 0 counts as 0. Raises `UsageError` for anything else, or a relevance that is not an integer.
    """
    if isinstance(qrels, str | Path):
        return read_qrels(Path(qrels))
    relevances = _by_topic(qrels, "qrels", "relevance")
    for topic, topic_relevances in relevances.items():
        for identifier, value in topic_relevances.items():
            if value != int(value) or value > _MAX_RELEVANCE:
                expectation = f"expected an integer up to {_MAX_RELEVANCE:,}"
                raise UsageError(
                    f"qrels: the relevance of {identifier!r} for topic {topic!r} is {value:g}; {expectation}"
                )
    return {
        topic: {i: max(int(value), 0) for i, value in topic_relevances.items()}
        for topic, topic_relevances in relevances.items()
    }


def _by_topic(rows: object, argument: str, number: str) -> dict[str, dict[str, float]]:
    """Return topic -> passage id -> number, from a dict of dicts or from tuples whose first three items are these."""
    expectation = (
        f"{argument} should be a file, a dict (topic -> passage id -> {number}) or tuples (topic, passage id, {number})"
    )
    numbers: dict[str, dict[str, float]] = {}
    try:
        if isinstance(rows, Mapping):
            triples: Any = (
                (topic, i, value) for topic, topic_numbers in rows.items() for i, value in topic_numbers.items()
            )
        else:
            triples = map(_triple, rows)  # type: ignore[call-overload]
        for topic, identifier, value in triples:
            right = isinstance(topic, str) and isinstance(identifier, str) and isinstance(value, Real)
            if not right or not math.isfinite(value):
                raise UsageError(f"{argument}: {(topic, identifier, value)!r}; {expectation}")
            topic_numbers = numbers.setdefault(topic, {})
            if identifier in topic_numbers:
                raise UsageError(f"{argument}: {identifier!r} occurs twice for topic {topic!r}")
            topic_numbers[identifier] = float(value)
        for topic in rows if isinstance(rows, Mapping) else ():
            numbers.setdefault(topic, {})
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{expectation}, found {type(rows).__name__}") from error
    return numbers


def _triple(row: Iterable[object]) -> tuple[object, ...]:
    if isinstance(row, str):  # such as a column's name, which a data frame yields
        raise TypeError(f"{row!r:.60} is no tuple")
    return tuple(row)[:3]


def read_qrels(path: Path) -> Qrels:
    """Read TREC qrels (`topic 0 id relevance`), BEIR's TSV with its header, or questions (jsonl) with `gold`.

    A relevance below 0 counts as 0. Raises `FormatError` for a broken line or a passage judged twice, `UserError` if
    no passage is judged relevant.
    """
    if holds_questions(path):
        qrels: dict[str, dict[str, int]] = {q.id: dict.fromkeys(q.gold, 1) for q in read_questions(path)}
        problem = "none of its questions has gold passages"
    else:
        qrels = read_judgements(path)
        problem = "judges no passage as relevant" if qrels else "holds no judgements"
    if not any(relevance > 0 for relevances in qrels.values() for relevance in relevances.values()):
        raise UserError(f"{path}: {problem}")
    return qrels


def read_judgements(path: Path) -> dict[str, dict[str, int]]:
    """Read TREC qrels or BEIR's TSV as `read_qrels` does, also where no passage is relevant or nothing is judged."""
    qrels: dict[str, dict[str, int]] = {}
    columns = 0
    for location, cells in _rows(path):
        if not columns:
            columns = 3 if cells == _BEIR_HEADER else 4
            if columns == 3:
                continue
        if len(cells) != columns:
            expectation = "four columns (topic 0 id relevance)" if columns == 4 else "three columns"
            hint = "" if columns == 3 or qrels else f"; BEIR's three columns need a header, {' '.join(_BEIR_HEADER)}"
            raise FormatError(f"{location}: expected {expectation}, found {len(cells)}{hint}")
        topic, identifier, relevance = cells[0], cells[-2], _whole(cells[-1], "relevance", location)
        if relevance > _MAX_RELEVANCE:
            raise FormatError(f"{location}: the relevance should be at most {_MAX_RELEVANCE:,}, found {relevance:,}")
        relevances = qrels.setdefault(topic, {})
        if identifier in relevances:
            raise FormatError(f"{location}: {identifier!r} is judged twice for topic {topic!r}")
        relevances[identifier] = max(relevance, 0)
    return qrels


def _rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield `file:line` and the columns of every line that is not blank."""
    for number, line in enumerate(lines(path), 1):
        try:
            cells = line.decode("utf-8-sig" if number == 1 else "utf-8").split()
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}:{number}: not UTF-8 at byte {error.start}") from error
        if cells:
            yield f"{path}:{number}", cells


def _score(text: str, location: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise FormatError(f"{location}: the score should be a finite number, found {text[:40]!r}")
    return score


def _whole(text: str, name: str, location: str) -> int:
    if len(text) <= 18:  # more digits than any rank has, fewer than trec_eval's integers hold
        try:
            return int(text)
        except ValueError:
            pass
    raise FormatError(f"{location}: the {name} should be a whole number, found {text[:40]!r}")


def holds_questions(path: Path) -> bool:
    """Return whether a file of judgements holds questions (jsonl) rather than qrels."""
    return next((cells[0].startswith("{") for _, cells in _rows(path)), False)


def run_lines(run: Run) -> Iterator[str]:
    """Return the lines of a TREC run; the scores only order the ranks, so that trec_eval reads the same ranking.

    Raises `UserError` for an id that a column cannot hold.
    """
    tag = "_".join(run.tag.split()) or "-"
    for topic, ranking in run.rankings.items():
        for rank, identifier in enumerate(ranking, 1):
            yield f"{_cell(topic)} Q0 {_cell(identifier)} {rank} {len(ranking) - rank + 1} {tag}"


def qrels_lines(qrels: Qrels) -> Iterator[str]:
    """Return the lines of TREC qrels, `topic 0 id relevance`; raises `UserError` for an id that no column can hold."""
    for topic, relevances in qrels.items():
        for identifier, relevance in relevances.items():
            yield f"{_cell(topic)} 0 {_cell(identifier)} {relevance}"


def run_of_answers(answers: Iterable[object], tag: str = "run") -> Run:
    """Return the run of the passages that answers list, in the order of the retriever.

    The answers are what `autoais.score` takes in a list: `CitedAnswer`, `rag.Answer` or rows of `answers.jsonl`.
    """
    check_list("answers", answers, "a list of answers")
    cited_answers = (as_cited_answer(answer, number) for number, answer in enumerate(answers, 1))
    return Run(tag, {answer.id: answer.ranking for answer in cited_answers})


def _cell(identifier: str) -> str:
    if not identifier or any(c.isspace() for c in identifier):
        raise UserError(f"TREC runs and qrels cannot hold the id {identifier!r}: it is empty or contains white space")
    return identifier


# --- pages -----------------------------------------------------------------------------------------------------


def page(identifier: str) -> str:
    """Return the page of a passage id: `12` for `12#4`, and for `2021:12#0`, where our pool adds the dump's year.

    MIRACL's page ids carry over to other dumps; its paragraph numbers do not.
    """
    return _DUMP.sub("", identifier).partition("#")[0]


def run_of_pages(run: Run) -> Run:
    """Return a run of pages; each page has the rank of its best passage."""
    rankings = {topic: list(dict.fromkeys(map(page, ranking))) for topic, ranking in run.rankings.items()}
    return Run(run.tag, rankings, run.ties)


def qrels_of_pages(qrels: Qrels) -> Qrels:
    """Return qrels of pages; each page has the relevance of its most relevant passage."""
    pages: dict[str, dict[str, int]] = {}
    for topic, relevances in qrels.items():
        page_relevances = pages.setdefault(topic, {})
        for identifier, relevance in relevances.items():
            page_relevances[page(identifier)] = max(relevance, page_relevances.get(page(identifier), 0))
    return pages


# --- measures --------------------------------------------------------------------------------------------------


def open_measures(names: Iterable[str]) -> list[Measure]:
    """Return the measures of these names, without duplicates.

    Raises `UserError` for an unknown name, a missing cutoff, or a measure that is not a mean over topics.
    """
    measures = {measure.name: measure for measure in map(_open, names)}
    return list(measures.values())


def _open(text: str) -> Measure:
    match = _MEASURE.fullmatch(text.strip())
    name, rel, cutoff_text = match.groups() if match else (text.strip(), None, None)
    cutoff = None if cutoff_text is None else int(cutoff_text)
    if match and cutoff == 0:
        raise UserError(f"measure {text!r}: the cutoff should be at least 1")
    if match and name == _ANSWER_HIT and rel is None and cutoff:
        return Measure(f"{name}@{cutoff}", cutoff)
    try:
        import ir_measures
    except ImportError:
        missing = missing_extra(f"the measure {text!r}", "measures")
        if name in _COMMON:
            raise missing from None
        raise UserError(f"{missing}; no measure of that name is known without it{_nearest(name, _COMMON)}") from None
    kind = ir_measures.measures.registry.get(name) if match else None
    if kind is None:
        nearest = _nearest(name, (*sorted(ir_measures.measures.registry), _ANSWER_HIT))
        raise UserError(f"no measure called {text!r}{nearest}; {_EXAMPLES}")
    takes = kind.SUPPORTED_PARAMS
    if cutoff is None and "cutoff" in takes and takes["cutoff"].required:
        raise UserError(f"measure {text!r} needs a cutoff, such as {name}@10")
    settings = {"cutoff": cutoff, "rel": None if rel is None else int(rel)}
    parameters = {key: value for key, value in settings.items() if value is not None}
    if unknown := [key for key in parameters if key not in takes]:
        raise UserError(f"measure {text!r}: {name} takes no {unknown[0]}")
    engine = kind(**parameters)
    engines: Any = ir_measures.DefaultPipeline
    if isinstance(engine.aggregator(), ir_measures.measures.SumAgg):
        raise UserError(f"measure {text!r} is a count, not a mean over topics; {_EXAMPLES}")
    if any(param.required and key not in parameters for key, param in takes.items()) or not engines.supports(engine):
        raise UserError(f"measure {text!r}: no installed engine of ir_measures computes it; {_EXAMPLES}")
    return Measure(str(engine), cutoff, engine)


def _nearest(name: str, names: Iterable[str]) -> str:
    """Return "; nearest: ..." for the name of a measure, empty if none is near."""
    by_lower_case = {candidate.lower(): candidate for candidate in names}
    bare = re.split(r"[@(]", name)[0].lower()
    close_names = [by_lower_case[match] for match in difflib.get_close_matches(bare, by_lower_case, n=4, cutoff=0.5)]
    return f"; nearest: {', '.join(close_names)}" if close_names else ""


def engines() -> dict[str, str]:
    """Return the versions of the installed packages that compute the measures."""
    versions = {}
    for name in ("ir-measures", "pytrec-eval-terrier"):
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def per_topic(
    measures: Sequence[Measure], qrels: Qrels, run: Run, hit_ranks: Mapping[str, int] | None = None
) -> dict[str, list[float]]:
    """Return, for each measure, the values of the topics of `qrels` in the order of their ids; 0 if the run skips one.

    `hit_ranks` holds the rank of the first passage with a reference answer (`answer_ranks`), for `answer_hit@k`.
    """
    topics = sorted(qrels)
    values = _by_ir_measures([measure for measure in measures if measure.engine is not None], topics, qrels, run)
    for measure in measures:
        if measure.engine is None:
            ranks = ((hit_ranks or {}).get(topic) for topic in topics)
            values[measure.name] = [float(rank is not None and rank <= (measure.cutoff or 0)) for rank in ranks]
    return {measure.name: values[measure.name] for measure in measures}


def _by_ir_measures(
    measures: Sequence[Measure], topics: Sequence[str], qrels: Qrels, run: Run
) -> dict[str, list[float]]:
    """Compute measures with ir_measures.

    Its engines break ties in their own ways and are written in C: they get ranks as scores, and no ids from files.
    """
    if not measures:
        return {}
    import ir_measures

    numbered_qrels: dict[str, dict[str, int]] = {}
    numbered_run: dict[str, dict[str, float]] = {}
    for number, topic in enumerate(topics):
        ranking = run.rankings.get(topic, ())
        rank_names = {identifier: str(rank) for rank, identifier in enumerate(ranking)}
        missing = sorted(qrels[topic].keys() - rank_names.keys())
        names = rank_names | {identifier: f"missed{index}" for index, identifier in enumerate(missing)}
        # The engines leave topics without judgements out of their denominators.
        numbered_qrels[str(number)] = {names[i]: relevance for i, relevance in qrels[topic].items()} or {"none": 0}
        if ranking:
            numbered_run[str(number)] = {str(rank): float(len(ranking) - rank) for rank in range(len(ranking))}
    values = {measure.name: [0.0] * len(topics) for measure in measures}
    for result in ir_measures.iter_calc([measure.engine for measure in measures], numbered_qrels, numbered_run):
        value = float(result.value)
        values[str(result.measure)][int(result.query_id)] = value if math.isfinite(value) else 0.0
    return values


def answer_ranks(
    runs: Sequence[Run], answers: Mapping[str, Sequence[str]], passages: Iterable[Passage], depth: int
) -> tuple[list[dict[str, int]], int]:
    """Return, for each run, topic -> rank of the first passage with an answer in its text, up to rank `depth`.

    Also returns how many of the runs' passages occur in `passages`, which is read once.
    """
    lookups: dict[str, list[tuple[int, str, int]]] = {}
    for number, run in enumerate(runs):
        for topic in answers:
            for rank, identifier in enumerate(run.rankings.get(topic, ())[:depth], 1):
                lookups.setdefault(identifier, []).append((number, topic, rank))
    first: list[dict[str, int]] = [{} for _ in runs]
    n_seen = 0
    for passage in passages:
        positions = lookups.pop(passage.id, [])
        n_seen += bool(positions)
        for number, topic, rank in positions:
            if rank < first[number].get(topic, depth + 1) and has_answer(passage.text, answers[topic]):
                first[number][topic] = rank
    return first, n_seen


# --- reports ---------------------------------------------------------------------------------------------------


def evaluate(
    runs: Mapping[str, Run],
    qrels: Qrels,
    measures: Sequence[Measure],
    *,
    baseline: str | None = None,
    hit_ranks: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, Any]:
    """Evaluate runs: value, n and 95 % interval of each measure over the topics of `qrels`, and per topic.

    `baseline` names one of `runs`; the others get a `difference` from it. `hit_ranks` holds `answer_ranks` by run.
    Raises `UserError` if a run has none of the topics.
    """
    if not qrels:
        raise UserError("the judgements have no topics")
    values = {name: per_topic(measures, qrels, run, (hit_ranks or {}).get(name)) for name, run in runs.items()}
    relevant = {topic: sum(relevance > 0 for relevance in relevances.values()) for topic, relevances in qrels.items()}
    result: dict[str, Any] = {
        "topics": len(qrels),
        "relevant": sum(relevant.values()),
        "topics_without_relevant": sum(not count for count in relevant.values()),
        "baseline": baseline,
        "runs": [],
        "notes": [],
    }
    if result["topics_without_relevant"]:
        result["notes"].append(
            f"{result['topics_without_relevant']:,} topics have no relevant passage and count as zero"
        )
    for name, run in runs.items():
        other_topics = sorted(run.rankings.keys() - qrels.keys())
        if not run.rankings:
            raise UserError(f"{name}: holds no results")
        if not run.rankings.keys() & qrels.keys():
            raise UserError(
                f"{name}: none of its {len(other_topics):,} topics (such as {min(other_topics)!r}) is in the "
                f"judgements (such as {min(qrels)!r}); are these the judgements of other topics?"
            )
        means = {}
        for measure, topic_values in values[name].items():
            means[measure] = Mean.of(topic_values).record()
            if baseline is not None and name != baseline:
                means[measure]["difference"] = difference_of_means(topic_values, values[baseline][measure])
        result["runs"].append(
            {
                "run": name,
                "tag": run.tag,
                "topics_skipped": len(qrels.keys() - run.rankings.keys()),
                "topics_not_judged": len(other_topics),
                "measures": means,
                "per_topic": {
                    measure: dict(zip(sorted(qrels), topic_values, strict=True))
                    for measure, topic_values in values[name].items()
                },
            }
        )
        result["notes"] += _notes(name, run, qrels, measures, other_topics)
    return result


def _notes(
    name: str, run: Run, qrels: Qrels, measures: Sequence[Measure], other_topics: Sequence[str]
) -> Iterator[str]:
    if n_skipped := len(qrels.keys() - run.rankings.keys()):
        yield f"{name}: {n_skipped:,} of {len(qrels):,} topics are not in the run and count as zero"
    if other_topics:
        examples = ", ".join(map(repr, other_topics[:3])) + (", ..." if len(other_topics) > 3 else "")
        yield f"{name}: {len(other_topics):,} topics are not in the judgements and are left out: {examples}"
    if run.ties:
        yield (
            f"{name}: in {run.ties:,} of {len(run.rankings):,} topics, passages with the same score stay in the order "
            "of the run; trec_eval puts the higher id first, so that its figures may differ"
        )
    longest = max(map(len, run.rankings.values()))
    if deeper := [measure.name for measure in measures if (measure.cutoff or 0) > longest]:
        names = ", ".join(deeper)
        yield f"{name}: its longest list has {longest:,}; {names} count passages beyond it as not found"
