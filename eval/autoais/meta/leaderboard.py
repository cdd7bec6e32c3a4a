"""The leaderboard of judges: every judge over every labelled set, beside what others have published."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
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
_TIMED = 200
_COLLECTIONS = {"attributionbench": "AttributionBench", "aggrefact": "LLM-AggreFact"}
_UNNAMED = ("AttrScore", "answers")  # what formats call a set whose name is not in the file; HAGRID, after the file
_PUBLISHED = "published-judges.toml"

Progress = Callable[[str, int, int], None]
"""Called with what is being done, the pairs done, and their number."""


@dataclass(frozen=True, slots=True)
class LabelledSets:
    """A collection of labelled data sets: its name and files. `only` names the data sets that count (None: all).

    A set is called `collection/set`, or as the collection if the file does not name it.
    """

    name: str
    files: tuple[Path, ...]
    only: tuple[str, ...] | None = None


def installed_judges() -> list[str]:
    """Return the names of the judges that need no model, server, file or option: `lexical`, `minilm`, of packages."""
    return [name for name in JUDGES if name not in _NEED_MORE]


def rank_judges(
    labels: Sequence[str | Path | LabelledSets],
    judges: Sequence[str | Judge] = (),
    *,
    cache: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    timed: int = _TIMED,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run judges over labelled sets and return the leaderboard, as JSON.

    `labels` are files in any format that has labels, or `LabelledSets`. `judges` are names as for `open_judge`, or open
    judges (default: `installed_judges`); `lexical` always runs, as the others are compared with it. `cache` is a file
    that keeps judgements, so that a stopped run continues. `limit` draws so many claims of each set, by `seed`. The
    speed of each judge is measured on the same `timed` claims, judged once more (0: not measured).

    - `sets`: collection, claims, groups of claims that are not independent, share of attributable.
    - `judges`: for each, the figures of `autoais.meta.evaluate` by set, with 95 % intervals over groups; `averages` by
      collection and over all sets; `speed`, also per second of CPU in this process; `against_baseline`: the differences
      from `lexical` by set and average, in which undecided counts as no. That in balanced accuracy has p of a
      randomisation test, also corrected for all tests of sets, or of averages (Holm).
    - `published`: figures of others for these sets, with metric, source and how their set differs.

    Raises `UserError` if a file has no labels, holds a claim twice, or a judge cannot be opened; a judge that was not
    named is left out instead (`skipped`).
    """
    check_type("labels", labels, "a list of files", list, tuple)
    check_type("judges", judges, "a list of names or judges", list, tuple)
    if limit is not None and limit < 1:
        raise UserError(f"limit should be at least 1, found {limit}")
    if timed < 0:
        raise UserError(f"timed should be at least 0, found {timed}")
    collections = _collections(labels)
    claims, of = _read(collections)
    found = {name: len(listed) for name, listed in claims.items()}
    claims = {name: _drawn(listed, limit, seed) for name, listed in claims.items()}
    opened, skipped = _opened(judges)
    measured: dict[str, dict[str, Rows]] = {}
    speeds = {}
    with ExitStack() as stack:
        journal = None if cache is None else stack.enter_context(JudgementCache(Path(cache)))
        for judge in opened:
            speeds[judge.name] = _speed(judge, claims, timed, seed)
            measured[judge.name] = _judged(judge, claims, journal, progress)
    base = opened[0].name
    records = _records(measured, of)
    for name, against in _differences(measured, of, base).items():
        records[name]["against_baseline"] = against
    inputs = {f"labels{n}": path for n, path in enumerate((one for c in collections for one in c.files), 1)}
    result: dict[str, Any] = round_floats(
        {
            "baseline": base,
            "seed": seed,
            "limit": limit,
            "processor": processor(),
            "sets": {name: _about(rows, of[name], found[name]) for name, rows in measured[base].items()},
            "judges": {
                judge.name: records[judge.name]
                | {"speed": speeds[judge.name]}
                | {key: value for key, value in judge_record(judge).items() if key not in ("name", "usage")}
                for judge in opened
            },
            "skipped": skipped,
            "published": published([*claims, *_averaged(of)]),
            "provenance": provenance(inputs),
        }
    )
    return result


# --- labels ----------------------------------------------------------------------------------------------------


def _collections(labels: Sequence[str | Path | LabelledSets]) -> list[LabelledSets]:
    """Files of one collection together, in the order of the first ones."""
    found: dict[str, LabelledSets] = {}
    for given in labels:
        if isinstance(given, LabelledSets):
            one = given
        else:
            path = Path(given)
            name = _COLLECTIONS.get(formats.detect(path), dataset_name(path))
            one = LabelledSets(name, (path,))
        before = found.get(one.name)
        if before is not None and before.only != one.only:
            raise UserError(f"{one.files[0]}: its sets are called {one.name!r}, as those of {before.files[0]}")
        found[one.name] = one if before is None else replace(one, files=(*before.files, *one.files))
    if not found:
        raise UserError("name at least one file of labels")
    check_distinct(path for one in found.values() for path in one.files)
    return list(found.values())


def _read(collections: Iterable[LabelledSets]) -> tuple[dict[str, list[LabelledClaim]], dict[str, str]]:
    """The labels of each set, and its collection; raises `UserError` for a file without labels, and a repeated one."""
    claims: dict[str, list[LabelledClaim]] = {}
    of: dict[str, str] = {}
    for one in collections:
        seen: set[tuple[str, str, str]] = set()
        for path in one.files:
            empty = True
            for label in formats.read_labels(path):
                empty = False
                if one.only is not None and label.dataset not in one.only:
                    continue
                key = (label.dataset, label.id, pair_hash(label.attribution))
                if key in seen:
                    raise UserError(
                        f"{path}: claim {label.id!r} of {label.dataset!r} occurs twice; it would count twice"
                    )
                seen.add(key)
                unnamed = label.dataset in (one.name, dataset_name(path), *_UNNAMED)
                name = one.name if unnamed else f"{one.name}/{label.dataset}"
                claims.setdefault(name, []).append(replace(label, dataset=name))
                of[name] = one.name
            if empty:
                raise UserError(f"{path}: no labels in it")
        if missing := sorted(set(one.only or ()) - {dataset for dataset, _, _ in seen}):
            raise UserError(f"{one.files[0]}: no labels of the set {missing[0]!r} in it")
    return claims, of


def _drawn(listed: list[LabelledClaim], most: int | None, seed: int) -> list[LabelledClaim]:
    """So many of the labels, in their order, by a hash of seed, id and texts; a larger draw holds a smaller one."""
    if most is None or most >= len(listed):
        return listed

    def place(label: LabelledClaim) -> bytes:
        return sha256(f"{seed}:{label.id}:{pair_hash(label.attribution)}".encode()).digest()

    last = sorted(map(place, listed))[most - 1]
    return [label for label in listed if place(label) <= last]


# --- judging ---------------------------------------------------------------------------------------------------


def _opened(judges: Sequence[str | Judge]) -> tuple[list[Judge], dict[str, str]]:
    """The judges, the baseline first and none twice, and why judges that were not named are left out."""
    found: dict[str, Judge] = {}
    skipped = {}
    for one in (BASELINE, *(judges or installed_judges())):
        try:
            judge = open_judge(one) if isinstance(one, str) else one
        except (UserError, TypeError) as error:  # a judge of another package may need options
            if judges or not isinstance(one, str):
                raise
            skipped[one] = str(error)
            continue
        check_type("judge", judge, "a name such as 'minilm' or an open judge", Judge)
        found.setdefault(judge.name, judge)
    return list(found.values()), skipped


def _judged(
    judge: Judge,
    claims: Mapping[str, list[LabelledClaim]],
    journal: JudgementCache | None,
    progress: Progress | None,
) -> "dict[str, Rows]":
    """The columns of each set, judged through the cache."""
    from autoais.meta.evaluate import rows_by_set

    asked = judge if journal is None else CachedJudge(judge, journal, getattr(judge, "at_once", _BATCH))
    labels = [label for listed in claims.values() for label in listed]

    def pairs() -> Iterator[tuple[LabelledClaim, Judgement]]:
        for start in range(0, len(labels), _BATCH):
            batch = labels[start : start + _BATCH]
            yield from zip(batch, asked.judge([label.attribution for label in batch]), strict=True)
            if progress is not None:
                progress(f"judging with {judge.name}", start + len(batch), len(labels))

    return rows_by_set(pairs())


def _speed(judge: Judge, claims: Mapping[str, list[LabelledClaim]], timed: int, seed: int) -> dict[str, Any] | None:
    """Claims per second on a sample of all sets, after one to warm up; None if it is not measured."""
    there = [label for listed in claims.values() for label in listed if nothing_to_judge(label.attribution) is None]
    asked = list(dict.fromkeys(label.attribution for label in _drawn(there, timed or None, seed)))
    if not timed or not asked:
        return None
    judge.judge(asked[:1])
    started, used = perf_counter(), process_time()
    judge.judge(asked)
    seconds, used = perf_counter() - started, process_time() - used
    words = sum(len(" ".join((one.claim, *one.evidence)).split()) for one in asked)
    return {
        "pairs": len(asked),
        "words_per_pair": words / len(asked),
        "pairs_per_second": len(asked) / seconds,
        "pairs_per_cpu_second": len(asked) / used,
    }


# --- figures ---------------------------------------------------------------------------------------------------


def _about(rows: "Rows", collection: str, found: int) -> dict[str, Any]:
    import numpy as np

    return {
        "collection": collection,
        "claims": len(rows.truth),
        "drawn_from": found,
        "groups": len(np.unique(rows.question)),
        "attributable": float(rows.truth.mean()),
    }


def _averaged(of: Mapping[str, str]) -> dict[str, list[str]]:
    """The sets of each average: a collection with several sets, and all, if there are several collections."""
    found: dict[str, list[str]] = {}
    for name, collection in of.items():
        found.setdefault(collection, []).append(name)
    several = {name: listed for name, listed in found.items() if len(listed) > 1}
    return several | ({ALL: list(of)} if len(found) > 1 else {})


def _records(measured: "Mapping[str, Mapping[str, Rows]]", of: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The figures of each judge by set, and their averages."""
    from autoais.meta.evaluate import average_of, estimates_of, one_set

    records = {}
    for judge, by_set in measured.items():
        estimates = {name: estimates_of(rows) for name, rows in by_set.items()}
        full = {name: one_set(rows, estimates[name]) for name, rows in by_set.items()}
        averages = {
            name: _kept(average_of([full[one] for one in listed], [estimates[one] for one in listed]), ("sets",))
            for name, listed in _averaged(of).items()
        }
        about = ("n", "undecided", "with_probability")
        records[judge] = {"sets": {name: _kept(one, about) for name, one in full.items()}, "averages": averages}
    return records


def _kept(record: Mapping[str, Any], about: Sequence[str]) -> dict[str, Any]:
    """The figures of the leaderboard, from a record of `evaluate`."""
    counts = {name: record[name] for name in about}
    if "sets" in counts:
        counts["sets"] = {name: counts["sets"][name] for name in FIGURES}
    return {
        **counts,
        **{name: record[name] for name in FIGURES},
        "interval95": {name: record["interval95"][name] for name in FIGURES},
        "reasons": {name: why for name, why in record["reasons"].items() if name in FIGURES},
    }


def _differences(
    measured: "Mapping[str, Mapping[str, Rows]]", of: Mapping[str, str], base: str
) -> dict[str, dict[str, Any]]:
    """The differences of each other judge from the baseline, by set and by average."""
    records: dict[str, dict[str, Any]] = {}
    tests: dict[str, list[tuple[dict[str, Any], paired.Pairs]]] = {"sets": [], "averages": []}
    for judge, by_set in measured.items():
        if judge == base:
            continue
        found = {name: _difference(by_set[name], measured[base][name]) for name in of}
        pairs = {name: _pairs(by_set[name], measured[base][name]) for name in of}
        records[judge] = {"sets": {name: _mean_of([one]) for name, one in found.items()}}
        averaged = {name: _mean_of([found[one] for one in listed]) for name, listed in _averaged(of).items()}
        records[judge]["averages"] = averaged
        for kind, members in (("sets", {name: [name] for name in of}), ("averages", _averaged(of))):
            for name, listed in members.items():
                record = records[judge][kind][name]["balanced_accuracy"]
                if record is not None:
                    both = [pairs[one] for one in listed if found[one]["balanced_accuracy"] is not None]
                    tests[kind].append((record, _joined(both)))
    for listed_tests in tests.values():
        p_values = [p for p, _ in paired.p_values([both for _, both in listed_tests])]
        for (record, _), p, corrected in zip(listed_tests, p_values, paired.holm(p_values), strict=True):
            record |= {"p": p, "p_holm": corrected}
    return records


def _mean_of(sets: "Sequence[Mapping[str, Estimate | None]]") -> dict[str, Any]:
    """The mean difference over the sets that have it, by figure."""
    means: dict[str, Any] = {}
    for figure in DIFFERENCES:
        known = [one for estimates in sets if (one := estimates[figure]) is not None]
        means[figure] = None
        if known:
            value = sum(one.value for one in known) / len(known)
            means[figure] = {"value": value, "interval95": list(intervals.average(known)), "sets": len(known)}
    return means


def _difference(ours: "Rows", theirs: "Rows") -> "dict[str, Estimate | None]":
    """Differences over the same claims; undecided counts as no, and a probability is needed of every claim."""
    import numpy as np

    from autoais.meta.evaluate import estimates_of

    both = [estimates_of(replace(rows, is_decided=np.ones_like(rows.is_decided))) for rows in (ours, theirs)]
    complete = not (np.isnan(ours.probability).any() or np.isnan(theirs.probability).any())
    found: dict[str, Estimate | None] = {}
    for name in DIFFERENCES:
        a, b = (estimates[name] for estimates in both)
        known = a is not None and b is not None and (complete or name != "roc_auc")
        found[name] = intervals.difference(a, b) if known and a and b else None
    return found


def _pairs(ours: "Rows", theirs: "Rows") -> paired.Pairs:
    """What each group of claims adds to the balanced accuracy of both judges."""
    return paired.Pairs(_parts(ours), _parts(theirs), paired.first_sum)


def _parts(rows: "Rows") -> "intervals.Floats":
    import numpy as np

    yes = rows.truth.sum()
    weight = np.where(rows.truth, 0.5 / max(yes, 1), 0.5 / max(len(rows.truth) - yes, 1))
    (parts,) = intervals.by_question(rows.question, np.where(rows.truth == rows.prediction, weight, 0.0))
    return parts[:, None]


def _joined(sets: Sequence[paired.Pairs]) -> paired.Pairs:
    """The mean over sets: each of its groups adds a share."""
    import numpy as np

    a, b = (np.concatenate(side) / len(sets) for side in zip(*((one.a, one.b) for one in sets), strict=True))
    return paired.Pairs(a, b, paired.first_sum)


# --- published figures -----------------------------------------------------------------------------------------


def published(sets: Iterable[str]) -> list[dict[str, Any]]:
    """Return the published figures for these sets by name, and for averages by the name of the collection.

    They are those of `published-judges.toml`. Each has `set`, `judge`, `metric`, `value` (percent), `source`, `url` and
    `differs`: how the set that they were measured on differs from the one at hand. An average over a collection is left
    out if one of its sets is not wanted.
    """
    wanted = list(sets)
    table = tomllib.loads(files("autoais").joinpath("data", _PUBLISHED).read_text("utf-8"))
    found = []
    for beside in table["beside"]:
        if beside.get("whole") and any(
            one["set"].startswith(f"{beside['set']}/") and one["set"] not in wanted for one in table["beside"]
        ):
            continue
        source = table["sources"][beside["source"]]
        place = source["sets"].index(beside["theirs"])
        for judge, values in source["values"].items():
            if beside["set"] in wanted:
                found.append(
                    {
                        "set": beside["set"],
                        "judge": judge,
                        "metric": source["metric"],
                        "value": values[place],
                        "source": source["title"],
                        "url": source["url"],
                        "differs": beside["differs"],
                    }
                )
    return sorted(found, key=lambda one: wanted.index(one["set"]))
