"""How good result lists are: TREC runs against relevance judgements, by ir_measures' names and by answer hits.

Every topic that the judgements name counts (spec I1): one that a run skips, or that has no relevant passage, is zero.
"""

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.compare import RESAMPLES
from autoais.errors import FormatError, UserError
from autoais.io.files import lines
from autoais.io.jsonl import each_once
from autoais.metrics.rates import Mean
from autoais.metrics.short_answers import has_answer
from autoais.questions import read_questions
from rag.errors import missing_extra
from rag.types import Passage

if TYPE_CHECKING:
    from rag.index.index import Index

MEASURES = ("nDCG@10", "R@100", "RR@10", "Success@1", "Success@5", "Success@20", "Success@100")
ANSWER_HITS = ("answer_hit@1", "answer_hit@5", "answer_hit@20")
_ANSWER_HIT = "answer_hit"
_EXAMPLES = "such as nDCG@10, R@100, RR@10, Success@20, AP, P(rel=2)@5, answer_hit@20"
_MEASURE = re.compile(r"(\w+)(?:\(rel=([0-9]{1,4})\))?(?:@([0-9]{1,6}))?")
_HIGHEST = 1000  # trec_eval keeps a counter for every level of relevance up to the highest
_BEIR_HEADER = ["query-id", "corpus-id", "score"]
_DUMP = re.compile(r"\A[0-9]{4}:(?=[0-9])")
_METHOD = "paired bootstrap over topics, two-sided, not corrected for the number of comparisons"

Qrels = Mapping[str, Mapping[str, int]]
"""Topic -> passage id -> relevance; 0 is judged and not relevant. A topic may have no judgements at all."""


@dataclass(frozen=True, slots=True)
class Run:
    """A system's result lists: topic -> passage ids, best first, each once."""

    tag: str
    ranked: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure by the name that reports carry; `engine` is ir_measures' own object, None for `answer_hit@k`."""

    name: str
    cutoff: int | None
    engine: Any = None


# --- files -----------------------------------------------------------------------------------------------------


def read_run(path: Path) -> Run:
    """A TREC run, `topic Q0 id rank score tag` (.gz and .zst too); the topics in any order.

    Lists go by score, falling; ties as the file ranks them, then by id, so that a run evaluates in the order it was
    written in. (trec_eval looks at no rank, and puts the higher id first.) `FormatError` names the line with other
    columns, a score that is no finite number, a rank that is no whole one, or an id that its topic has already.
    """
    found: dict[str, dict[str, tuple[float, int]]] = {}
    tag = ""
    for where, cells in _rows(path):
        if len(cells) != 6:
            raise FormatError(f"{where}: six columns (topic Q0 id rank score tag) were expected, found {len(cells)}")
        topic, _, identifier, rank, score, tag = cells
        listed = found.setdefault(topic, {})
        if identifier in listed:
            raise FormatError(f"{where}: {identifier!r} stands twice in the list of topic {topic!r}")
        listed[identifier] = (-_score(score, where), _whole(rank, "rank", where))
    if not found:
        raise UserError(f"{path}: holds no results; a run is made with: rag search --topics FILE --run {path}")
    return Run(
        tag, {topic: sorted(of, key=lambda identifier: (*of[identifier], identifier)) for topic, of in found.items()}
    )


def read_qrels(path: Path) -> Qrels:
    """Judgements: TREC qrels `topic 0 id relevance`, BEIR's tsv with its header, or questions (jsonl) with `gold`.

    A relevance below 0 counts as 0. `FormatError` names the line that is broken or judges a passage again;
    `UserError` where nothing is judged, or nothing as relevant.
    """
    if _holds_questions(path):
        qrels: dict[str, dict[str, int]] = {q.id: dict.fromkeys(q.gold, 1) for q in read_questions(path)}
        wanting = "none of its questions has gold passages"
    else:
        qrels = _judgements(path)
        wanting = "judges no passage as relevant" if qrels else "holds no judgements"
    if not any(relevance > 0 for judged in qrels.values() for relevance in judged.values()):
        raise UserError(f"{path}: {wanting}, so there is nothing to measure a run by")
    return qrels


def _judgements(path: Path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    columns = 0
    for where, cells in _rows(path):
        if not columns:
            columns = 3 if cells == _BEIR_HEADER else 4
            if columns == 3:
                continue
        if len(cells) != columns:
            wanted = "four columns (topic 0 id relevance)" if columns == 4 else "three columns"
            hint = "" if columns == 3 or qrels else f"; BEIR's three need their header, {' '.join(_BEIR_HEADER)}"
            raise FormatError(f"{where}: {wanted} were expected, found {len(cells)}{hint}")
        topic, identifier, relevance = cells[0], cells[-2], _whole(cells[-1], "relevance", where)
        if relevance > _HIGHEST:
            raise FormatError(f"{where}: the relevance should be at most {_HIGHEST:,}, found {relevance:,}")
        judged = qrels.setdefault(topic, {})
        if identifier in judged:
            raise FormatError(f"{where}: {identifier!r} is judged twice for topic {topic!r}")
        judged[identifier] = max(relevance, 0)
    return qrels


def _rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """`file:line` and the columns of every line that is not blank."""
    for number, line in enumerate(lines(path), 1):
        try:
            cells = line.decode("utf-8-sig" if number == 1 else "utf-8").split()
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}:{number}: not UTF-8 at byte {error.start}") from error
        if cells:
            yield f"{path}:{number}", cells


def _score(text: str, where: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise FormatError(f"{where}: the score should be a finite number, found {text[:40]!r}")
    return score


def _whole(text: str, name: str, where: str) -> int:
    if len(text) <= 18:  # more digits than any rank has, and fewer than trec_eval's integers
        try:
            return int(text)
        except ValueError:
            pass
    raise FormatError(f"{where}: the {name} should be a whole number, found {text[:40]!r}")


def _holds_questions(path: Path) -> bool:
    return next((cells[0].startswith("{") for _, cells in _rows(path)), False)


# --- pages -----------------------------------------------------------------------------------------------------


def page(identifier: str) -> str:
    """What stands before `#`: `12` of `12#4`, and of `2021:12#0`, where our pool names the year of the dump.

    MIRACL's paragraph numbers do not carry over to other dumps, its page ids do (spec J).
    """
    return _DUMP.sub("", identifier).partition("#")[0]


def run_of_pages(run: Run) -> Run:
    """Each page once, at the rank of its best passage."""
    return Run(run.tag, {topic: list(dict.fromkeys(map(page, listed))) for topic, listed in run.ranked.items()})


def qrels_of_pages(qrels: Qrels) -> Qrels:
    """Each page as relevant as its most relevant passage."""
    pages: dict[str, dict[str, int]] = {}
    for topic, judged in qrels.items():
        of = pages.setdefault(topic, {})
        for identifier, relevance in judged.items():
            of[page(identifier)] = max(relevance, of.get(page(identifier), 0))
    return pages


# --- measures --------------------------------------------------------------------------------------------------


def open_measures(names: Iterable[str]) -> list[Measure]:
    """Measures by name, each once; `UserError` for one that there is not, that lacks a cutoff or is no mean."""
    opened = {measure.name: measure for measure in map(_open, names)}
    return list(opened.values())


def _open(text: str) -> Measure:
    match = _MEASURE.fullmatch(text.strip())
    name, rel, at = match.groups() if match else (text.strip(), None, None)
    cutoff = None if at is None else int(at)
    if match and cutoff == 0:
        raise UserError(f"measure {text!r}: the cutoff should be at least 1")
    if match and name == _ANSWER_HIT and rel is None and cutoff:
        return Measure(f"{name}@{cutoff}", cutoff)
    try:
        import ir_measures
    except ImportError:
        raise missing_extra(f"the measure {text!r}", "measures") from None
    kind = ir_measures.measures.registry.get(name) if match else None
    if kind is None:
        known = {one.lower(): one for one in (*sorted(ir_measures.measures.registry), _ANSWER_HIT)}
        bare = re.split(r"[@(]", name)[0].lower()
        near = [known[one] for one in difflib.get_close_matches(bare, known, n=4, cutoff=0.5)]
        nearest = f"; nearest: {', '.join(near)}" if near else ""
        raise UserError(f"no measure called {text!r}{nearest}; {_EXAMPLES}")
    takes = kind.SUPPORTED_PARAMS
    if cutoff is None and "cutoff" in takes and takes["cutoff"].required:
        raise UserError(f"measure {text!r} needs a cutoff, such as {name}@10")
    settings = {"cutoff": cutoff, "rel": None if rel is None else int(rel)}
    given = {key: value for key, value in settings.items() if value is not None}
    if unknown := [key for key in given if key not in takes]:
        raise UserError(f"measure {text!r}: {name} takes no {unknown[0]}")
    engine = kind(**given)
    engines: Any = ir_measures.DefaultPipeline
    if isinstance(engine.aggregator(), ir_measures.measures.SumAgg):
        raise UserError(f"measure {text!r} is a count, not a mean over topics; {_EXAMPLES}")
    if any(param.required and key not in given for key, param in takes.items()) or not engines.supports(engine):
        raise UserError(f"measure {text!r}: no installed engine of ir_measures computes it as it stands; {_EXAMPLES}")
    return Measure(str(engine), cutoff, engine)


def engines() -> dict[str, str]:
    """The versions of the packages that compute the measures; those not installed are left out."""
    found = {}
    for name in ("ir-measures", "pytrec-eval-terrier"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def per_topic(
    measures: Sequence[Measure], qrels: Qrels, run: Run, answered: Mapping[str, int] | None = None
) -> dict[str, list[float]]:
    """Of each measure the value of every topic of `qrels` in the order of their ids, 0 where the run skips it.

    `answered` holds, for `answer_hit@k`, the rank of the first passage with a reference answer (`answer_ranks`).
    """
    topics = sorted(qrels)
    found = _by_ir_measures([measure for measure in measures if measure.engine is not None], topics, qrels, run)
    for measure in measures:
        if measure.engine is None:
            ranks = ((answered or {}).get(topic) for topic in topics)
            found[measure.name] = [float(rank is not None and rank <= (measure.cutoff or 0)) for rank in ranks]
    return {measure.name: found[measure.name] for measure in measures}


def _by_ir_measures(
    measures: Sequence[Measure], topics: Sequence[str], qrels: Qrels, run: Run
) -> dict[str, list[float]]:
    """The engines break ties in ways of their own and are in C: they get ranks, and no id that came from a file."""
    if not measures:
        return {}
    import ir_measures

    judged: dict[str, dict[str, int]] = {}
    ranked: dict[str, dict[str, float]] = {}
    for number, topic in enumerate(topics):
        listed = run.ranked.get(topic, ())
        places = {identifier: str(place) for place, identifier in enumerate(listed)}
        missed = sorted(qrels[topic].keys() - places.keys())
        names = places | {identifier: f"missed{place}" for place, identifier in enumerate(missed)}
        # A topic without a judgement would leave the engines' denominators.
        judged[str(number)] = {names[i]: relevance for i, relevance in qrels[topic].items()} or {"none": 0}
        if listed:
            ranked[str(number)] = {str(place): float(len(listed) - place) for place in range(len(listed))}
    values = {measure.name: [0.0] * len(topics) for measure in measures}
    for one in ir_measures.iter_calc([measure.engine for measure in measures], judged, ranked):
        value = float(one.value)
        values[str(one.measure)][int(one.query_id)] = value if math.isfinite(value) else 0.0
    return values


def answer_ranks(
    runs: Sequence[Run], answers: Mapping[str, Sequence[str]], passages: Iterable[Passage], depth: int
) -> tuple[list[dict[str, int]], int]:
    """For each run, topic -> rank of the first passage of its first `depth` whose text holds an answer of the topic.

    And how many of the passages that were looked for `passages` holds, which is read once.
    """
    wanted: dict[str, list[tuple[int, str, int]]] = {}
    for number, run in enumerate(runs):
        for topic in answers:
            for rank, identifier in enumerate(run.ranked.get(topic, ())[:depth], 1):
                wanted.setdefault(identifier, []).append((number, topic, rank))
    first: list[dict[str, int]] = [{} for _ in runs]
    seen = 0
    for passage in passages:
        places = wanted.pop(passage.id, [])
        seen += bool(places)
        for number, topic, rank in places:
            if rank < first[number].get(topic, depth + 1) and has_answer(passage.text, answers[topic]):
                first[number][topic] = rank
    return first, seen


# --- reports ---------------------------------------------------------------------------------------------------


def difference(ours: Sequence[float], theirs: Sequence[float], *, seed: int = 0) -> dict[str, Any]:
    """The mean of ours - theirs with a 95 % interval and a two-sided p, from a paired bootstrap over topics.

    As `autoais.compare` does it for verdicts; `better` and `worse` count topics.
    """
    import numpy as np

    # Sorted, so that the order of the topics changes nothing; rounded, so that equal values cancel out.
    differences = np.sort(np.round(np.subtract(ours, theirs), 12))
    rng, n, blocks = np.random.default_rng(seed), len(differences), 10
    shape = (RESAMPLES // blocks, n)
    drawn = np.concatenate([differences[rng.integers(0, n, shape)].mean(axis=1) for _ in range(blocks)]).round(12)
    low, high = np.percentile(drawn, [2.5, 97.5])
    tail = 1 + min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))  # the sample itself is a draw: p is never 0
    return {
        "value": float(differences.mean()),
        "interval95": [float(low), float(high)],
        "p": min(1.0, 2 * tail / (RESAMPLES + 1)),
        "better": int((differences > 0).sum()),
        "worse": int((differences < 0).sum()),
        "method": _METHOD,
        "resamples": RESAMPLES,
        "seed": seed,
    }


def evaluate(
    runs: Mapping[str, Run],
    qrels: Qrels,
    measures: Sequence[Measure],
    *,
    baseline: str | None = None,
    answered: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, Any]:
    """Each run's measures: value, n and 95 % bootstrap interval over the topics of `qrels`, and values per topic.

    `baseline` is one of `runs`; the others carry their `difference` from it. `answered` is `answer_ranks` by run.
    `UserError` where a run has none of the topics.
    """
    values = {name: per_topic(measures, qrels, run, (answered or {}).get(name)) for name, run in runs.items()}
    relevant = {topic: sum(relevance > 0 for relevance in judged.values()) for topic, judged in qrels.items()}
    result: dict[str, Any] = {
        "topics": len(qrels),
        "relevant": sum(relevant.values()),
        "topics_without_relevant": sum(not count for count in relevant.values()),
        "baseline": baseline,
        "runs": [],
        "notes": [],
    }
    if result["topics_without_relevant"]:
        result["notes"].append(f"{result['topics_without_relevant']:,} topics have nothing relevant and count as zero")
    for name, run in runs.items():
        others = sorted(run.ranked.keys() - qrels.keys())
        if not run.ranked.keys() & qrels.keys():
            raise UserError(
                f"{name}: none of its {len(others):,} topics (such as {min(others, default='')!r}) is in the "
                f"judgements (such as {min(qrels)!r}); are these the judgements of other topics?"
            )
        means = {}
        for measure, ours in values[name].items():
            means[measure] = Mean.of(ours).record()
            if baseline is not None and name != baseline:
                means[measure]["difference"] = difference(ours, values[baseline][measure])
        result["runs"].append(
            {
                "run": name,
                "tag": run.tag,
                "topics_skipped": len(qrels.keys() - run.ranked.keys()),
                "topics_not_judged": len(others),
                "measures": means,
                "per_topic": {
                    measure: dict(zip(sorted(qrels), ours, strict=True)) for measure, ours in values[name].items()
                },
            }
        )
        result["notes"] += _notes(name, run, qrels, measures, others)
    return result


def _notes(name: str, run: Run, qrels: Qrels, measures: Sequence[Measure], others: Sequence[str]) -> Iterator[str]:
    if skipped := len(qrels.keys() - run.ranked.keys()):
        yield f"{name}: {skipped:,} of {len(qrels):,} topics are not in the run and count as zero"
    if others:
        shown = ", ".join(map(repr, others[:3])) + (", ..." if len(others) > 3 else "")
        yield f"{name}: {len(others):,} topics are not in the judgements and are left out: {shown}"
    longest = max(map(len, run.ranked.values()))
    if deeper := [measure.name for measure in measures if (measure.cutoff or 0) > longest]:
        yield f"{name}: its longest list has {longest:,}; what is deeper in {', '.join(deeper)} is taken as not found"


def evaluate_files(
    runs: Sequence[Path],
    qrels: Path,
    measures: Sequence[str] = (),
    *,
    baseline: Path | None = None,
    topics: Path | None = None,
    index: Path | None = None,
    corpus: Sequence[Path] = (),
    page_level: bool = False,
) -> dict[str, Any]:
    """`evaluate` on files. `answer_hit@k` takes the reference answers from `topics`, or `qrels` where it holds
    questions, and the texts from an index or from corpus files; it looks at passages also where `page_level` is on.

    `UserError` where a file is named twice, or an answer hit lacks answers or texts.
    """
    paths = [*([] if baseline is None else [baseline]), *runs]
    each_once(paths)
    if index is not None and corpus:
        raise UserError("give either --index or --corpus: both hold the texts of the passages")
    texts = index is not None or bool(corpus)
    wanted = open_measures(measures or (*MEASURES, *(ANSWER_HITS if texts else ())))
    depth = max((measure.cutoff or 0 for measure in wanted if measure.engine is None), default=0)
    if depth and not texts:
        raise UserError("answer_hit needs the texts of the passages: give --index DIR, or --corpus FILE")
    if not depth and (texts or topics):
        raise UserError("--topics, --index and --corpus are for answer_hit@k, which is not among the measures")
    judged = read_qrels(qrels)
    read = {str(path): read_run(path) for path in paths}
    opened = _open_index(index)
    answered = None
    notes: list[str] = []
    if depth:
        first, notes = _answered(list(read.values()), judged, qrels, topics, opened or corpus, depth)
        answered = dict(zip(read, first, strict=True))
    if page_level:
        judged, read = qrels_of_pages(judged), {name: run_of_pages(run) for name, run in read.items()}
    first_name = None if baseline is None else str(baseline)
    result = evaluate(read, judged, wanted, baseline=first_name, answered=answered)
    result["notes"] += notes
    made_of = {} if opened is None else {"index": {"name": opened.name, "checksum": opened.manifest["checksum"]}}
    return {"level": "pages" if page_level else "passages", **made_of, **result}


def _open_index(folder: Path | None) -> "Index | None":
    from rag.index.open import open_index

    return None if folder is None else open_index(folder)


def _answered(
    runs: Sequence[Run],
    judged: Qrels,
    qrels: Path,
    topics: Path | None,
    texts: "Index | Sequence[Path]",
    depth: int,
) -> tuple[list[dict[str, int]], list[str]]:
    source = topics or qrels
    if topics is None and not _holds_questions(qrels):
        raise UserError("answer_hit needs reference answers: name the file of the questions with --topics")
    answers = {q.id: q.answers for q in read_questions(source) if q.answers and q.id in judged}
    if not answers:
        raise UserError(f"{source}: none of the topics that are judged has reference answers in it")
    sought = {i for run in runs for topic in answers for i in run.ranked.get(topic, ())[:depth]}
    first, seen = answer_ranks(runs, answers, _passages(sought, texts), depth)
    where = ", ".join(map(str, texts)) if isinstance(texts, Sequence) else f"index {texts.name}"
    if sought and not seen:
        raise UserError(f"{where}: holds none of the {len(sought):,} passages of the runs; another index?")
    notes = []
    if without := len(judged) - len(answers):
        notes.append(f"{without:,} topics have no reference answer in {source} and count as zero in answer_hit")
    if seen < len(sought):
        notes.append(f"{len(sought) - seen:,} of {len(sought):,} passages are not in {where}: taken to hold no answer")
    return first, notes


def _passages(identifiers: Iterable[str], texts: "Index | Sequence[Path]") -> Iterator[Passage]:
    if isinstance(texts, Sequence):
        from rag.corpus.reader import Corpus

        yield from (passage for _, passage in Corpus(texts).read())
    else:
        yield from filter(None, map(texts.store.get, sorted(identifiers)))
