"""The leaderboard of judges for readers: in the terminal and as Markdown, from what `rank_judges` returns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from autoais.base.terminal import clean, markdown
from autoais.meta.leaderboard import ALL, FIGURES, LEVEL

if TYPE_CHECKING:
    from rich.console import Console

HEAD = ("set", "judge", "balanced accuracy", "macro-F1", "ROC-AUC", "ECE", "undecided", "against {}", "published")
_TEXTS = (0, 1, 8)  # columns that are not numbers


def show_leaderboard(console: "Console", result: Mapping[str, Any]) -> None:
    """Print the table of sets and judges, the speeds, then what to know about both."""
    from rich.table import Table
    from rich.text import Text

    head, rows, notes = _table(result)
    for title, listed in ((head, rows), (_SPEED, _speeds(result))):
        table = Table(*title, box=None, pad_edge=False)
        for number, column in enumerate(table.columns):
            left = number in (_TEXTS if title is head else (0,))
            column.justify = "left" if left else "right"
            column.no_wrap = True
        for row in listed:
            table.add_row(*(Text(clean(cell)) for cell in row))
        console.print(table)
        console.print()
    for note in notes:
        console.print(clean(note), markup=False)


def leaderboard_markdown(result: Mapping[str, Any]) -> str:
    """Return both tables and the notes as Markdown; ends with a line break."""
    head, rows, notes = _table(result)
    listed = "\n".join(f"- {markdown(note)}" for note in notes)
    return f"{_markdown(head, rows)}\n\n{_markdown(_SPEED, _speeds(result))}\n\n{listed}\n"


_SPEED = ("judge", "pairs per second", "per second of CPU")


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(markdown(clean(cell)) for cell in line) + " |" for line in lines)


def _table(result: Mapping[str, Any]) -> tuple[list[str], list[list[str]], list[str]]:
    """Head, rows and notes: a row for each judge on each set and average, then a row for each published figure."""
    short = _short(list(result["judges"]))
    sources: dict[tuple[str, str], int] = {}
    rows = []
    for kind, name in _order(result):
        sets = [one for one in result["sets"].values() if name in (ALL, one["collection"])]
        label = _called(name, len(sets)) if kind == "averages" else _called_set(name, result["sets"][name])
        for judge, record in result["judges"].items():
            against = record.get("against_baseline", {}).get(kind, {}).get(name, {}).get("balanced_accuracy")
            rows.append([label, short[judge], *_figures(record[kind][name], len(sets)), _difference(against), ""])
            label = ""
        for one in result["published"]:
            if one["set"] == name:
                number = sources.setdefault((one["source"], one["url"]), len(sources) + 1)
                figure = f"{one['value']:.1f} {one['metric']} [{number}], {one['differs']}"
                rows.append(["", one["judge"], *[""] * 6, figure])
    base = short[result["baseline"]]
    return [one.format(base) for one in HEAD], rows, list(_notes(result, base, sources))


def _short(judges: Sequence[str]) -> dict[str, str]:
    """The first word of each judge's name if that tells them apart, else the whole name."""
    first = [judge.partition("@")[0] for judge in judges]
    return {judge: one if first.count(one) == 1 else judge for judge, one in zip(judges, first, strict=True)}


def _order(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The sets and averages: each collection's sets, then its average, and at the end the average of all."""
    averages = next(iter(result["judges"].values()))["averages"]
    names = list(result["sets"])
    for place, name in enumerate(names):
        yield "sets", name
        collection = result["sets"][name]["collection"]
        last = all(result["sets"][other]["collection"] != collection for other in names[place + 1 :])
        if last and collection in averages:
            yield "averages", collection
    if ALL in averages:
        yield "averages", ALL


def _called(name: str, sets: int) -> str:
    return f"mean of all {sets} sets" if name == ALL else f"{name}: mean of {sets} sets"


def _called_set(name: str, about: Mapping[str, Any]) -> str:
    of = f" of {about['drawn_from']:,}" if about["drawn_from"] > about["claims"] else ""
    return f"{name} (n = {about['claims']:,}{of})"


def _figures(record: Mapping[str, Any], sets: int) -> list[str]:
    """The cells of a set, or of an average over `sets`, some of which may not have the figure."""
    cells = []
    for name in FIGURES:
        value, ends = record[name], record["interval95"][name]
        percent = name in ("balanced_accuracy", "macro_f1")
        shown = [f"{100 * one:.1f}" if percent else f"{one:.3f}" for one in (value, *(ends or ())) if one is not None]
        whole = len(shown) == 3 and name != "calibration_error"
        cell = f"{shown[0]} ({shown[1]} to {shown[2]})" if whole else "".join(shown[:1])
        few = "sets" in record and value is not None and record["sets"][name] < sets
        cells.append(f"{cell} of {record['sets'][name]}" if few else cell)
    return [*cells, f"{record['undecided']:,}" if "undecided" in record else ""]


def _difference(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    low, high = found["interval95"]
    level = "" if found["p_holm"] < LEVEL else ", not told apart"
    return f"{100 * found['value']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f}){level}"


def _speeds(result: Mapping[str, Any]) -> list[list[str]]:
    keys = ("pairs_per_second", "pairs_per_cpu_second")
    return [
        [judge, *("" if record["speed"] is None else f"{record['speed'][key]:,.1f}" for key in keys)]
        for judge, record in result["judges"].items()
    ]


def _notes(result: Mapping[str, Any], base: str, sources: Mapping[tuple[str, str], int]) -> Iterator[str]:
    yield (
        "balanced accuracy and macro-F1 in percent over the decided claims, with 95 % intervals over groups of claims "
        "that share question, text or evidence; ECE is the expected calibration error"
    )
    if len(result["judges"]) > 1:
        yield (
            f"against {base}: difference in balanced accuracy, undecided as no; `not told apart`: p of a randomisation "
            f"test is at least {LEVEL:g} with Holm's correction, over the sets or over the means"
        )
    measured = [one["speed"] for one in result["judges"].values() if one["speed"] is not None]
    if measured:
        yield (
            f"pairs per second: {measured[0]['pairs']:,} of these claims, of {measured[0]['words_per_pair']:.0f} words "
            f"with their evidence, judged once more on {result['processor']}"
        )
    if result["limit"] is not None:
        yield f"at most {result['limit']:,} claims of a set, drawn by seed {result['seed']}"
    for judge, why in result["skipped"].items():
        yield f"{judge} is left out: {why}"
    if sources:
        yield "published figures are those of others, each with how its set differs from the one here:"
    for (source, url), number in sources.items():
        yield f"[{number}] {source}, {url}"
