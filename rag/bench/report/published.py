"""Figures of other systems that others have published (`rag/data/published-systems.toml`), by benchmark."""

from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from rag.bench.tables import Table, read_table

_KEYS = ("title", "where", "url", "benchmarks", "corpus", "n", "judge", "metrics", "ours", "compares", "values")


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """What one source reports in one place: a row of figures, in per cent, for each system.

    `where` is the place in the source, `n` the number of questions in words. `ours` names the metric of a run that
    counts the same as each of `metrics`; empty if none does. `compares` says what compares with what.
    """

    title: str
    where: str
    url: str
    benchmarks: tuple[str, ...]
    corpus: str
    n: str
    judge: str | None
    metrics: tuple[str, ...]
    ours: tuple[str, ...]
    compares: str
    systems: tuple[tuple[str, tuple[float, ...]], ...]

    def record(self) -> dict[str, Any]:
        """Return the table as JSON, without the names of its benchmarks."""
        record = asdict(self)
        del record["benchmarks"]
        return record | {"systems": [{"system": name, "values": list(values)} for name, values in self.systems]}


def read_published_tables(path: Path | None = None) -> tuple[PublishedTable, ...]:
    """Return the published tables that ship, or those of a file; raises `RagError` for a file that is not in order."""
    return _tables_that_ship() if path is None else _read(read_table(path, str(path), "list of published figures")[0])


@cache
def _tables_that_ship() -> tuple[PublishedTable, ...]:
    path = files("rag").joinpath("data", "published-systems.toml")
    return _read(read_table(path, path.name, "list of published figures")[0])


def _read(document: Table) -> tuple[PublishedTable, ...]:
    document.only("tables")
    return tuple(map(_table, document.tables("tables")))


def _table(table: Table) -> PublishedTable:
    table.only(*_KEYS)
    url = table.line("url")
    if not url.startswith("https://") or " " in url:
        raise table.error("url", "an address that starts with https://", url)
    metrics = table.lines("metrics")
    ours = table.row.get("ours")
    if not isinstance(ours, list) or len(ours) != len(metrics) or not all(isinstance(name, str) for name in ours):
        raise table.error("ours", "a name for each of the metrics, or an empty one", ours)
    values = table.table("values")
    if not values.row:
        raise table.error("values", "a row for each system", {})
    return PublishedTable(
        title=table.line("title"),
        where=table.line("where"),
        url=url,
        benchmarks=table.lines("benchmarks"),
        corpus=table.line("corpus"),
        n=table.line("n"),
        judge=table.line("judge") if "judge" in table.row else None,
        metrics=metrics,
        ours=tuple(ours),
        compares=table.line("compares"),
        systems=tuple((name, values.percentages(name, len(metrics))) for name in values.row),
    )
