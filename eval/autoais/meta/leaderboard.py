"""The leaderboard of judges: every judge over every labelled set, beside what others have published."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from autoais import formats
from autoais.base.errors import UserError, check_type
from autoais.base.io.jsonl import check_distinct, round_floats
from autoais.base.io.provenance import judge_record, processor, provenance
from autoais.base.labels import LabelledClaim
from autoais.base.progress import Progress
from autoais.base.types import Judge, Judgement, nothing_to_judge
from autoais.formats.base import dataset_name
from autoais.judges import JUDGES, open_judge
from autoais.judges.cache import CachedJudge, JudgementCache, pair_hash
from autoais.metrics import intervals, paired

if TYPE_CHECKING:
    from autoais.meta.evaluate import Rows
    from autoais.metrics.intervals import Estimate

BASELINE = "lexical"
"""The judge that the others are compared with: it counts shared words."""

FIGURES = ("balanced_accuracy", "macro_f1", "roc_auc", "calibration_error")
DIFFERENCES = ("balanced_accuracy", "macro_f1", "roc_auc")
LEVEL = 0.05
ALL = "all sets"

_NEED_MORE = ("hf", "human", "llm")  # judges that need a model, a server or a file, run only if named
_BATCH = 64  # pairs between two steps of the progress, and between two writes to the cache
_SAMPLE_SIZE = 200
_COLLECTIONS = {"attributionbench": "AttributionBench", "aggrefact": "LLM-AggreFact"}
_DEFAULT_SET_NAMES = (
    "AttrScore",
    "answers",
)  # what formats call a set whose name is not in the file; HAGRID, after the file
_PUBLISHED_FILE = "published-judges.toml"


@dataclass(frozen=True, slots=True)
class LabelledSets:
    """A collection of labelled data sets: its name and files. `only` names the data sets that count (None: all).

    A set is called `collection/set`, or as the collection if the file does not name it.
    """

    name: str
    files: tuple[Path, ...]
    only: tuple[str, ...] | None = None


def list_installed_judges() -> list[str]:
    """Return the names of the judges that need no model, server, file or option: `lexical`, `minilm`, of packages."""
    return [name for name in JUDGES if name not in _NEED_MORE]


def rank_judges(
    labels: Sequence[str | Path | LabelledSets],
    judges: Sequence[str | Judge] = (),
    *,
    cache: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    timing_count: int = _SAMPLE_SIZE,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run judges over labelled sets and return the leaderboard, as JSON.

    `labels` are files in any format that has labels, or `LabelledSets`. `judges` are names as for `open_judge`, or open
    judges (default: `list_installed_judges`); `lexical` always runs, as the others are compared with it. `cache` is a
    file that keeps judgements, so that a stopped run continues. `limit` draws so many claims of each set, by `seed`.
    The speed of each judge is measured on the same `timing_count` claims, judged once more (0: not measured).

    - `sets`: collection, claims, groups of claims that are not independent, share of attributable.
    - `judges`: for each, the figures of `autoais.meta.evaluate` by set, with 95 % intervals over groups; `averages` by
      collection and over all sets; `speed`, also per second of CPU in this process; `against_baseline`: the differences
      from `lexical` by set and average, in which undecided counts as no. That in balanced accuracy has p of a
      randomisation test, also corrected for all tests of sets, or of averages (Holm).
    - `list_published_figures`: figures of others for these sets, with metric, source and how their set differs.

    Raises `UserError` if a file has no labels, holds a claim twice, or a judge cannot be opened; a judge that was not
    named is left out instead (`skipped`).
    """
    check_type("labels", labels, "a list of files", list, tuple)
    check_type("judges", judges, "a list of names or judges", list, tuple)
    _check_counts(limit, timing_count)
    collections = _collections(labels)
    claims, collection_of = _read(collections)
    counts = {name: len(labels_of_set) for name, labels_of_set in claims.items()}
    claims = {name: _draw(labels_of_set, limit, seed) for name, labels_of_set in claims.items()}
    open_judges, skip_reasons = _open_judges(judges)
    rows_of_judges: dict[str, dict[str, Rows]] = {}
    speeds = {}
    with nullcontext() if cache is None else JudgementCache(Path(cache)) as journal:
        for judge in open_judges:
            speeds[judge.name] = _speed(judge, claims, timing_count, seed)
            rows_of_judges[judge.name] = _judge_sets(judge, claims, journal, progress)
    base = open_judges[0].name
    base_rows = rows_of_judges[base]
    records = _records(rows_of_judges, collection_of)
    differences = _differences(rows_of_judges, collection_of, base)
    for judge in open_judges:
        records[judge.name] |= _facts(judge, speeds[judge.name], differences.get(judge.name))
    result: dict[str, Any] = round_floats(
        {
            "baseline": base,
            "seed": seed,
            "limit": limit,
            "processor": processor(),
            "sets": {name: _about(rows, collection_of[name], counts[name]) for name, rows in base_rows.items()},
            "judges": {judge.name: records[judge.name] for judge in open_judges},
            "skipped": skip_reasons,
            "published": list_published_figures([*claims, *_group_sets(collection_of)]),
            "provenance": provenance(_inputs(collections)),
        }
    )
    return result


def _facts(judge: Judge, speed: object, differences: object) -> dict[str, Any]:
    """What the record of a judge holds besides its figures."""
    against_baseline = {} if differences is None else {"against_baseline": differences}
    about = {key: value for key, value in judge_record(judge).items() if key not in ("name", "usage")}
    return against_baseline | {"speed": speed} | about


def _inputs(collections: Iterable[LabelledSets]) -> dict[str, Path]:
    """The files of the labels, numbered, for the provenance."""
    paths = [path for collection in collections for path in collection.files]
    return {f"labels{n}": path for n, path in enumerate(paths, 1)}


def _check_counts(limit: int | None, timing_count: int) -> None:
    if limit is not None and limit < 1:
        raise UserError(f"limit should be at least 1, found {limit}")
    if timing_count < 0:
        raise UserError(f"timing_count (--timed) should be at least 0, found {timing_count}")


# --- labels ----------------------------------------------------------------------------------------------------


def _collections(labels: Sequence[str | Path | LabelledSets]) -> list[LabelledSets]:
    """Files of one collection together, in the order of the first ones."""
    sets_by_name: dict[str, LabelledSets] = {}
    for entry in labels:
        if isinstance(entry, LabelledSets):
            labelled_sets = entry
        else:
            path = Path(entry)
            name = _COLLECTIONS.get(formats.detect(path), dataset_name(path))
            labelled_sets = LabelledSets(name, (path,))
        before = sets_by_name.get(labelled_sets.name)
        if before is not None and before.only != labelled_sets.only:
            raise UserError(
                f"{labelled_sets.files[0]}: its sets are called {labelled_sets.name!r}, as those of {before.files[0]}"
            )
        sets_by_name[labelled_sets.name] = (
            labelled_sets if before is None else replace(labelled_sets, files=(*before.files, *labelled_sets.files))
        )
    if not sets_by_name:
        raise UserError("name at least one file of labels")
    check_distinct(path for labelled_sets in sets_by_name.values() for path in labelled_sets.files)
    return list(sets_by_name.values())


def _read(collections: Iterable[LabelledSets]) -> tuple[dict[str, list[LabelledClaim]], dict[str, str]]:
    """The labels of each set, and its collection; raises `UserError` for a file without labels, and a repeated one."""
    claims: dict[str, list[LabelledClaim]] = {}
    collection_of: dict[str, str] = {}
    for labelled_sets in collections:
        keys_of_claims: set[tuple[str, str, str]] = set()
        for path in labelled_sets.files:
            empty = True
            for label in formats.read_labels(path):
                empty = False
                if labelled_sets.only is not None and label.dataset not in labelled_sets.only:
                    continue
                key = (label.dataset, label.id, pair_hash(label.attribution))
                if key in keys_of_claims:
                    raise UserError(
                        f"{path}: claim {label.id!r} of {label.dataset!r} occurs twice; it would count twice"
                    )
                keys_of_claims.add(key)
                has_default_name = label.dataset in (labelled_sets.name, dataset_name(path), *_DEFAULT_SET_NAMES)
                name = labelled_sets.name if has_default_name else f"{labelled_sets.name}/{label.dataset}"
                claims.setdefault(name, []).append(replace(label, dataset=name))
                collection_of[name] = labelled_sets.name
            if empty:
                raise UserError(f"{path}: no labels in it")
        if missing := sorted(set(labelled_sets.only or ()) - {dataset for dataset, _, _ in keys_of_claims}):
            raise UserError(f"{labelled_sets.files[0]}: no labels of the set {missing[0]!r} in it")
    return claims, collection_of


def _draw(labels: list[LabelledClaim], limit: int | None, seed: int) -> list[LabelledClaim]:
    """So many of the labels, in their order, by a hash of seed, id and texts; a larger draw holds a smaller one."""
    if limit is None or limit >= len(labels):
        return labels

    def hash_key(label: LabelledClaim) -> bytes:
        return sha256(f"{seed}:{label.id}:{pair_hash(label.attribution)}".encode()).digest()

    last = sorted(map(hash_key, labels))[limit - 1]
    return [label for label in labels if hash_key(label) <= last]


# --- judging ---------------------------------------------------------------------------------------------------


def _open_judges(judges: Sequence[str | Judge]) -> tuple[list[Judge], dict[str, str]]:
    """The judges, the baseline first and none twice, and why judges that were not named are left out."""
    judges_by_name: dict[str, Judge] = {}
    skip_reasons = {}
    for name_or_judge in (BASELINE, *(judges or list_installed_judges())):
        try:
            judge = open_judge(name_or_judge) if isinstance(name_or_judge, str) else name_or_judge
        except (UserError, TypeError) as error:  # a judge of another package may need options
            if judges or not isinstance(name_or_judge, str):
                raise
            skip_reasons[name_or_judge] = str(error)
            continue
        check_type("judge", judge, "a name such as 'minilm' or an open judge", Judge)
        judges_by_name.setdefault(judge.name, judge)
    return list(judges_by_name.values()), skip_reasons


def _judge_sets(
    judge: Judge,
    claims: Mapping[str, list[LabelledClaim]],
    journal: JudgementCache | None,
    progress: Progress | None,
) -> "dict[str, Rows]":
    """The columns of each set, judged through the cache."""
    from autoais.meta.evaluate import rows_by_set

    wrapped_judge = judge if journal is None else CachedJudge(judge, journal, getattr(judge, "at_once", _BATCH))
    labels = [label for labels_of_set in claims.values() for label in labels_of_set]

    def pairs() -> Iterator[tuple[LabelledClaim, Judgement]]:
        for start in range(0, len(labels), _BATCH):
            batch = labels[start : start + _BATCH]
            yield from zip(batch, wrapped_judge.judge([label.attribution for label in batch]), strict=True)
            if progress is not None:
                progress(f"judging with {judge.name}", start + len(batch), len(labels))

    return rows_by_set(pairs())


def _speed(
    judge: Judge, claims: Mapping[str, list[LabelledClaim]], timing_count: int, seed: int
) -> dict[str, Any] | None:
    """Claims per second on a sample of all sets, after one to warm up; None if it is not measured."""
    labels_to_judge = [
        label
        for labels_of_set in claims.values()
        for label in labels_of_set
        if nothing_to_judge(label.attribution) is None
    ]
    sample = list(dict.fromkeys(label.attribution for label in _draw(labels_to_judge, timing_count or None, seed)))
    if not timing_count or not sample:
        return None
    judge.judge(sample[:1])
    start, cpu_seconds = perf_counter(), process_time()
    judge.judge(sample)
    seconds, cpu_seconds = perf_counter() - start, process_time() - cpu_seconds
    words = sum(len(" ".join((attribution.claim, *attribution.evidence)).split()) for attribution in sample)
    return {
        "pairs": len(sample),
        "words_per_pair": words / len(sample),
        "pairs_per_second": len(sample) / seconds,
        "pairs_per_cpu_second": len(sample) / cpu_seconds,
    }


# --- figures ---------------------------------------------------------------------------------------------------


def _about(rows: "Rows", collection: str, n_labels: int) -> dict[str, Any]:
    import numpy as np

    return {
        "collection": collection,
        "claims": len(rows.truth),
        "drawn_from": n_labels,
        "groups": len(np.unique(rows.question)),
        "attributable": float(rows.truth.mean()),
    }


def _group_sets(collection_of: Mapping[str, str]) -> dict[str, list[str]]:
    """The sets of each average: a collection with several sets, and all, if there are several collections."""
    sets_of_collection: dict[str, list[str]] = {}
    for name, collection in collection_of.items():
        sets_of_collection.setdefault(collection, []).append(name)
    groups = {name: names for name, names in sets_of_collection.items() if len(names) > 1}
    return groups | ({ALL: list(collection_of)} if len(sets_of_collection) > 1 else {})


def _records(
    rows_of_judges: "Mapping[str, Mapping[str, Rows]]", collection_of: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """The figures of each judge by set, and their averages."""
    from autoais.meta.evaluate import average_of, estimates_of, one_set

    records = {}
    for judge, by_set in rows_of_judges.items():
        estimates = {name: estimates_of(rows) for name, rows in by_set.items()}
        full = {name: one_set(rows, estimates[name]) for name, rows in by_set.items()}
        averages = {
            name: _leaderboard_record(
                average_of(
                    [full[name_of_set] for name_of_set in names], [estimates[name_of_set] for name_of_set in names]
                ),
                ("sets",),
            )
            for name, names in _group_sets(collection_of).items()
        }
        counts = ("n", "undecided", "with_probability")
        records[judge] = {
            "sets": {name: _leaderboard_record(record, counts) for name, record in full.items()},
            "averages": averages,
        }
    return records


def _leaderboard_record(record: Mapping[str, Any], counts_to_add: Sequence[str]) -> dict[str, Any]:
    """The figures of the leaderboard, from a record of `evaluate`."""
    counts = {name: record[name] for name in counts_to_add}
    if "sets" in counts:
        counts["sets"] = {name: counts["sets"][name] for name in FIGURES}
    return {
        **counts,
        **{name: record[name] for name in FIGURES},
        "interval95": {name: record["interval95"][name] for name in FIGURES},
        "reasons": {name: reason for name, reason in record["reasons"].items() if name in FIGURES},
    }


def _differences(
    rows_of_judges: "Mapping[str, Mapping[str, Rows]]", collection_of: Mapping[str, str], base: str
) -> dict[str, dict[str, Any]]:
    """The differences of each other judge from the baseline, by set and by average."""
    records: dict[str, dict[str, Any]] = {}
    tests: dict[str, list[tuple[dict[str, Any], paired.Pairs]]] = {"sets": [], "averages": []}
    for judge, by_set in rows_of_judges.items():
        if judge == base:
            continue
        differences = {name: _difference(by_set[name], rows_of_judges[base][name]) for name in collection_of}
        pairs = {name: _pairs(by_set[name], rows_of_judges[base][name]) for name in collection_of}
        records[judge] = {"sets": {name: _mean_of([difference]) for name, difference in differences.items()}}
        averages = {
            name: _mean_of([differences[name_of_set] for name_of_set in names])
            for name, names in _group_sets(collection_of).items()
        }
        records[judge]["averages"] = averages
        for kind, members in (
            ("sets", {name: [name] for name in collection_of}),
            ("averages", _group_sets(collection_of)),
        ):
            for name, names in members.items():
                record = records[judge][kind][name]["balanced_accuracy"]
                if record is not None:
                    pairs_of_sets = [
                        pairs[name_of_set]
                        for name_of_set in names
                        if differences[name_of_set]["balanced_accuracy"] is not None
                    ]
                    tests[kind].append((record, _mean_pairs(pairs_of_sets)))
    for listed_tests in tests.values():
        p_values = [p for p, _ in paired.p_values([combined_pairs for _, combined_pairs in listed_tests])]
        for (record, _), p, corrected_p in zip(listed_tests, p_values, paired.holm(p_values), strict=True):
            record |= {"p": p, "p_holm": corrected_p}
    return records


def _mean_of(sets: "Sequence[Mapping[str, Estimate | None]]") -> dict[str, Any]:
    """The mean difference over the sets that have it, by figure."""
    means: dict[str, Any] = {}
    for figure in DIFFERENCES:
        estimates_of_sets = [estimate for estimates in sets if (estimate := estimates[figure]) is not None]
        means[figure] = None
        if estimates_of_sets:
            value = sum(estimate.value for estimate in estimates_of_sets) / len(estimates_of_sets)
            means[figure] = {
                "value": value,
                "interval95": list(intervals.average(estimates_of_sets)),
                "sets": len(estimates_of_sets),
            }
    return means


def _difference(own_rows: "Rows", base_rows: "Rows") -> "dict[str, Estimate | None]":
    """Differences over the same claims; undecided counts as no, and a probability is needed of every claim."""
    import numpy as np

    from autoais.meta.evaluate import estimates_of

    estimates_of_sides = [
        estimates_of(replace(rows, is_decided=np.ones_like(rows.is_decided))) for rows in (own_rows, base_rows)
    ]
    complete = not (np.isnan(own_rows.probability).any() or np.isnan(base_rows.probability).any())
    differences: dict[str, Estimate | None] = {}
    for name in DIFFERENCES:
        a, b = (estimates[name] for estimates in estimates_of_sides)
        has_estimates = a is not None and b is not None and (complete or name != "roc_auc")
        differences[name] = intervals.difference(a, b) if has_estimates and a and b else None
    return differences


def _pairs(own_rows: "Rows", base_rows: "Rows") -> paired.Pairs:
    """What each group of claims adds to the balanced accuracy of both judges."""
    return paired.Pairs(_parts(own_rows), _parts(base_rows), paired.first_sum)


def _parts(rows: "Rows") -> "intervals.Floats":
    import numpy as np

    yes = rows.truth.sum()
    weight = np.where(rows.truth, 0.5 / max(yes, 1), 0.5 / max(len(rows.truth) - yes, 1))
    (parts,) = intervals.by_question(rows.question, np.where(rows.truth == rows.prediction, weight, 0.0))
    return parts[:, None]


def _mean_pairs(sets: Sequence[paired.Pairs]) -> paired.Pairs:
    """The mean over sets: each of its groups adds a share."""
    import numpy as np

    a, b = (np.concatenate(side) / len(sets) for side in zip(*((pairs.a, pairs.b) for pairs in sets), strict=True))
    return paired.Pairs(a, b, paired.first_sum)


# --- published figures -----------------------------------------------------------------------------------------


def list_published_figures(sets: Iterable[str]) -> list[dict[str, Any]]:
    """Return the published figures for these sets by name, and for averages by the name of the collection.

    They are those of `published-judges.toml`. Each has `set`, `judge`, `metric`, `value` (percent), `source`, `url` and
    `differs`: how the set that they were measured on differs from the one at hand. An average over a collection is left
    out if one of its sets is not wanted.
    """
    names = list(sets)
    table = tomllib.loads(files("autoais").joinpath("data", _PUBLISHED_FILE).read_text("utf-8"))
    figures = []
    for comparison in table["beside"]:
        if comparison.get("whole") and any(
            other["set"].startswith(f"{comparison['set']}/") and other["set"] not in names for other in table["beside"]
        ):
            continue
        source = table["sources"][comparison["source"]]
        index = source["sets"].index(comparison["theirs"])
        for judge, values in source["values"].items():
            if comparison["set"] in names:
                figures.append(
                    {
                        "set": comparison["set"],
                        "judge": judge,
                        "metric": source["metric"],
                        "value": values[index],
                        "source": source["title"],
                        "url": source["url"],
                        "differs": comparison["differs"],
                    }
                )
    return sorted(figures, key=lambda figure: names.index(figure["set"]))
