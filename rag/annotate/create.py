"""Create and open studies: the folder, its secret and its database."""

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from autoais.base.answers import CitedAnswer, read_answers, write_answers
from autoais.base.io.jsonl import sync, write_atomic
from autoais.base.types import Judge
from rag.annotate.crowd_file import CROWD, read_crowd
from rag.annotate.export import SCHEME
from rag.annotate.items import (
    Item,
    attention_checks,
    check_items,
    item_row,
    items_of,
    open_items,
    order_items,
    pool_of,
    write_items,
)
from rag.annotate.links import Links, make_key, read_key, study_id
from rag.annotate.scheme_file import SUFFIX, open_scheme
from rag.annotate.schemes import Kind, Scheme
from rag.annotate.settings import Settings, read_settings, write_settings
from rag.annotate.store import BUSY_SECONDS, IN_CREATION, SOURCE_FILE, Database, pairs, study_facts
from rag.annotate.store import items as item_table
from rag.annotate.study import Study
from rag.annotate.triage import TriageDecision, triage, write_triage
from rag.base.errors import FormatError, StudyError, UsageError, UserError

_FORMAT = "1"
_AT_ONCE = 500
SETTINGS, KEY, ITEMS, TRAINING, GOLD, ANSWERS, TRIAGE = (
    "study.toml", "key", "items.jsonl", "training.jsonl", "gold.jsonl", "answers.jsonl", "triage.jsonl",
)  # fmt: skip
_SCHEME_SHA256 = "scheme sha256"
"""Name of a fact: the checksum of a study's own scheme."""
_WRONG_VALUES = {"yes": "no", "full": "none", "5": "1", "words": "none"}
"""By the first value of the last question, the one that is right where the source is foreign (attention checks)."""


def create_study(
    folder: str | Path,
    *,
    items: str | Path | Iterable[Item] | None = None,
    answers: str | Path | Iterable[CitedAnswer] | None = None,
    training: str | Path | Iterable[Item] = (),
    gold: str | Path | Iterable[Item] = (),
    settings: Settings | None = None,
    kind: Kind = "qa",
    flag_incomplete: bool = False,
    attention: int = 0,
    judge: "str | Judge | None" = None,
    confident: float = 0.9,
    sample_share: float = 0.2,
    crowd: str | Path | None = None,
    clock: Callable[[], float] = time.time,
) -> Study:
    """Create a study in a new folder, and open it.

    `answers` (a file in any format of `autoais schema`, or `CitedAnswer`s) become items of the units that the scheme
    asks about; `kind` is their task. If the scheme of the settings is a file (`.toml`), it is copied into the folder.
    Give `items` instead for texts that are no answers, such as captions of tables.
    `training` and `gold` are items with expected verdicts. `attention` is a number of attention checks: gold items with
    the source of another item. Nobody judges the items that they are made from, so that nobody sees one text with two
    sources. With a `judge`, people first get the items that it is not sure of (its probability, or one minus it, is
    below `confident`); of the others they get a random sample of the share `sample_share`. `crowd` is a file with the
    consent text and what crowd services need (`rag.annotate.crowd_file`), which is copied into the folder.

    Raises `FormatError` for an item with missing parts; with `flag_incomplete` it is stored with a flag instead, and
    nobody is asked about it. Raises `UserError` if the folder is not empty or the database holds a study.
    """
    folder, settings = Path(folder), settings or Settings()
    scheme = open_scheme(settings.scheme)
    if (items is None) == (answers is None):
        raise UsageError("a study needs either items or answers")
    building = _start_folder(folder)
    try:
        settings, scheme = _copy_files(building, settings, scheme, crowd)
        pools = _pools(
            building, scheme, items, answers, kind, training, gold, flag_incomplete, attention, settings.seed
        )
        asked_items = [item for item in pools["study"] if pool_of(item, scheme) == "study"]
        decisions = _triage_items(building, asked_items, judge, confident, sample_share, settings.seed)
        _write_files(building, settings, pools)
        _fill_database(building, settings, scheme, pools, decisions)
        for path in building.iterdir():
            path.chmod(0o600)
        if folder.exists():
            folder.rmdir()
        building.rename(folder)
        sync(folder.resolve().parent)
    except OSError as error:
        raise UserError(f"{folder}: cannot be created: {error.strerror or error}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return open_study(folder, clock=clock)


def _start_folder(folder: Path) -> Path:
    """Return a new folder beside the study's, which takes its name when all is written."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists, and is not an empty folder; name another one")
    try:
        folder.resolve().parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.resolve().parent))
    except OSError as error:
        raise UserError(f"{folder}: cannot be created: {error.strerror or error}") from error
    return building


def _copy_files(
    building: Path, settings: Settings, scheme: Scheme, crowd: str | Path | None
) -> tuple[Settings, Scheme]:
    """Copy the files of a scheme and of a crowd into the folder; return the settings and scheme that name them."""
    if settings.scheme.endswith(SUFFIX):
        shutil.copyfile(settings.scheme, building / SCHEME)
        settings, scheme = replace(settings, scheme=SCHEME), open_scheme(SCHEME, building)
    if crowd is not None:
        read_crowd(Path(crowd))
        shutil.copyfile(crowd, building / CROWD)
    return settings, scheme


def _pools(
    building: Path,
    scheme: Scheme,
    items: str | Path | Iterable[Item] | None,
    answers: str | Path | Iterable[CitedAnswer] | None,
    kind: Kind,
    training: str | Path | Iterable[Item],
    gold: str | Path | Iterable[Item],
    flag_incomplete: bool,
    attention: int,
    seed: int,
) -> dict[str, list[Item]]:
    """Return the items by pool: study, training, gold and check. Copies the answers into the folder."""
    if answers is not None:
        study_items, name = _answer_items(building, answers, scheme, kind, flag_incomplete), "answers"
    else:
        assert items is not None
        study_items, name = open_items(items, flag_incomplete=flag_incomplete), "items"
    pools: dict[str, list[Item]] = {"study": list(check_items(study_items, scheme, name)), "check": []}
    for pool, pool_items in (("training", training), ("gold", gold)):
        pools[pool] = list(check_items(open_items(pool_items), scheme, pool, expected=True))
    if attention:
        question = scheme.questions_of(pools["study"][0].unit)[-1] if pools["study"] else scheme.questions[-1]
        wrong_value = _WRONG_VALUES.get(question.values[0])
        if wrong_value not in question.values:
            values = ", ".join(_WRONG_VALUES)
            raise UsageError(
                f"attention checks need a last question whose first value is one of {values}; {question.name!r} has"
                f" {question.values[0]!r}"
            )
        candidates = [item for item in pools["study"] if scheme.questions_of(item.unit)[-1] is question]
        checks = attention_checks(candidates, attention, question.name, wrong_value, seed)
        pools["gold"] += checks.values()
        pools["check"] = [item for item in pools["study"] if item.id in checks]
        pools["study"] = [item for item in pools["study"] if item.id not in checks]
    if not any(pool_of(item, scheme) == "study" for item in pools["study"]):
        raise UserError("there is no item to judge: answers that abstain, or that cite nothing, may have none")
    pools_by_id: dict[str, str] = {}
    for pool, found_items in pools.items():
        for item in found_items:
            if item.id in pools_by_id:
                raise FormatError(
                    f"item {item.id[:60]!r} of {pool} is also one of {pools_by_id[item.id]}; rename one of them"
                )
            pools_by_id[item.id] = pool
    return pools


def _answer_items(
    building: Path,
    answers: str | Path | Iterable[CitedAnswer],
    scheme: Scheme,
    kind: Kind,
    flag_incomplete: bool,
) -> Iterable[Item]:
    from autoais import formats

    copy = building / ANSWERS
    write_atomic(copy, write_answers(formats.read(Path(answers)) if isinstance(answers, str | Path) else answers))
    has_claims = any(answer.sentences or answer.abstained for answer in read_answers(copy))
    if not has_claims and "passage" not in scheme.units:
        source = answers if isinstance(answers, str | Path) else "answers"
        raise UserError(f"{source}: no record has an answer with sentences; are they questions alone?")
    return items_of(read_answers(copy), scheme, kind=kind, flag_incomplete=flag_incomplete)


def _triage_items(
    building: Path, items: Sequence[Item], judge: "str | Judge | None", confident: float, sample_share: float, seed: int
) -> dict[str, TriageDecision]:
    if judge is None:
        return {}
    if any(item.unit == "passage" for item in items):
        raise UsageError("a judge cannot choose passages, which claim nothing; give no judge")
    rows = triage(items, judge, confident=confident, sample_share=sample_share, seed=seed)
    write_atomic(building / TRIAGE, write_triage(rows))
    return {row.item: row for row in rows}


def _write_files(building: Path, settings: Settings, pools: dict[str, list[Item]]) -> None:
    write_settings(building / SETTINGS, settings)
    for name, pool_items in (
        (ITEMS, pools["study"] + pools["check"]),
        (TRAINING, pools["training"]),
        (GOLD, pools["gold"]),
    ):
        if pool_items:
            write_atomic(building / name, write_items(pool_items))
    make_key(building / KEY)


def _fill_database(
    building: Path,
    settings: Settings,
    scheme: Scheme,
    pools: dict[str, list[Item]],
    decisions: dict[str, TriageDecision],
) -> None:
    database = _database(building, settings, create=True)
    try:
        with database.create() as connection:
            facts = {
                "format": _FORMAT,
                "id": study_id(read_key(building / KEY)),
                IN_CREATION: "until the study is opened",
                "scheme": settings.scheme,
                "annotators": str(settings.annotators),
                SOURCE_FILE: ANSWERS if (building / ANSWERS).exists() else ITEMS,
            }
            if (building / SCHEME).exists():
                facts[_SCHEME_SHA256] = _checksum(building / SCHEME)
            connection.execute(
                sa.insert(study_facts), [{"name": name, "value": value} for name, value in facts.items()]
            )
            rows = list(_rows(settings, scheme, pools, decisions))
            for start in range(0, len(rows), _AT_ONCE):
                connection.execute(sa.insert(item_table), rows[start : start + _AT_ONCE])
    finally:
        database.close()


def _rows(
    settings: Settings, scheme: Scheme, pools: dict[str, list[Item]], decisions: dict[str, TriageDecision]
) -> Iterable[dict[str, Any]]:
    study = order_items(pools["study"], settings.seed)
    study.sort(key=lambda item: item.id in decisions and decisions[item.id].confident)  # a stable sort
    position = 0
    for pool, pool_items in (("study", study), *((name, pools[name]) for name in ("training", "gold", "check"))):
        for item in pool_items:
            item_pool = pool
            if pool == "study" and pool_of(item, scheme) != "study":
                item_pool = pool_of(item, scheme)
            elif item.id in decisions and not decisions[item.id].chosen:
                item_pool = "judged"
            yield item_row(item, position, item_pool)
            position += 1


def _database(
    folder: Path, settings: Settings, *, create: bool = False, busy_seconds: float = BUSY_SECONDS
) -> Database:
    return Database(settings.database or str(folder / "study.db"), create=create, busy_seconds=busy_seconds)


def open_study(
    folder: str | Path, *, clock: Callable[[], float] = time.time, busy_seconds: float = BUSY_SECONDS
) -> Study:
    """Open a study; several processes may open it at the same time.

    `clock` returns the time in seconds since 1970; `busy_seconds` is how long to wait for a locked database. Raises
    `StudyError` if there is no study in the folder or its database cannot be reached, `UserError` for settings that
    cannot be used.
    """
    folder = Path(folder)
    if not (folder / SETTINGS).is_file():
        raise StudyError(f"{folder}: no study here; `rag annotate init` creates one")
    settings, key = read_settings(folder / SETTINGS), read_key(folder / KEY)
    database = _database(folder, settings, busy_seconds=busy_seconds)
    try:
        facts = _facts(database)
        if facts["scheme"] != settings.scheme:
            raise UserError(f"{folder / SETTINGS}: the scheme of a study is fixed: {facts['scheme']!r}")
        if _SCHEME_SHA256 in facts and facts[_SCHEME_SHA256] != _checksum(folder / SCHEME):
            raise UserError(f"{folder / SCHEME}: the scheme of a study is fixed, and the file has changed; restore it")
        if IN_CREATION in facts:  # the first opening: the folder exists now
            if facts["id"] != study_id(key):
                raise StudyError(
                    f"{database.name}: holds another study; name another database, and create this study again"
                )
            with database.write() as connection:
                connection.execute(sa.delete(study_facts).where(study_facts.c.name == IN_CREATION))
        study = Study(folder, settings, database, Links(key, facts["id"]), clock=clock)
        if facts["annotators"] != str(settings.annotators) or not study.is_settled():
            study.reconsider_all()
    except UserError:
        database.close()
        raise
    return study


def _checksum(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise StudyError(f"{path}: the scheme of the study cannot be read: {error.strerror or error}") from error


def _facts(database: Database) -> dict[str, str]:
    with database.read() as connection:
        if not sa.inspect(connection).has_table(study_facts.name):
            raise StudyError(f"{database.name}: holds no study; restore it from a backup")
        facts: dict[str, str] = pairs(connection, sa.select(study_facts.c.name, study_facts.c.value))
    if facts.get("format") != _FORMAT:
        raise StudyError(f"{database.name}: made by another version of rag (format {facts.get('format')!r:.20})")
    return facts
