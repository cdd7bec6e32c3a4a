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
    for title, rows_of_table in ((head, rows), (_SPEED, _speeds(result))):
        table = Table(*title, box=None, pad_edge=False)
        for number, column in enumerate(table.columns):
            is_left = number in (_TEXTS if title is head else (0,))
            column.justify = "left" if is_left else "right"
            column.no_wrap = True
        for row in rows_of_table:
            table.add_row(*(Text(clean(cell)) for cell in row))
        console.print(table)
        console.print()
    for note in notes:
        console.print(clean(note), markup=False)


def leaderboard_markdown(result: Mapping[str, Any]) -> str:
    """Return both tables and the notes as Markdown; ends with a line break."""
    head, rows, notes = _table(result)
    bullets = "\n".join(f"- {markdown(note)}" for note in notes)
    return f"{_markdown(head, rows)}\n\n{_markdown(_SPEED, _speeds(result))}\n\n{bullets}\n"


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
        sets = [record for record in result["sets"].values() if name in (ALL, record["collection"])]
        label = _name_average(name, len(sets)) if kind == "averages" else _name_set(name, result["sets"][name])
        for judge, record in result["judges"].items():
            difference = record.get("against_baseline", {}).get(kind, {}).get(name, {}).get("balanced_accuracy")
            rows.append([label, short[judge], *_figures(record[kind][name], len(sets)), _difference(difference), ""])
            label = ""
        for figure_record in result["published"]:
            if figure_record["set"] == name:
                number = sources.setdefault((figure_record["source"], figure_record["url"]), len(sources) + 1)
                figure = (
                    f"{figure_record['value']:.1f} {figure_record['metric']} [{number}], {figure_record['differs']}"
                )
                rows.append(["", figure_record["judge"], *[""] * 6, figure])
    base = short[result["baseline"]]
    return [heading.format(base) for heading in HEAD], rows, list(_notes(result, base, sources))


def _short(judges: Sequence[str]) -> dict[str, str]:
    """The first word of each judge's name if that tells them apart, else the whole name."""
    first = [judge.partition("@")[0] for judge in judges]
    return {judge: word if first.count(word) == 1 else judge for judge, word in zip(judges, first, strict=True)}


def _order(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The sets and averages: each collection's sets, then its average, and at the end the average of all."""
    averages = next(iter(result["judges"].values()))["averages"]
    names = list(result["sets"])
    for index, name in enumerate(names):
        yield "sets", name
        collection = result["sets"][name]["collection"]
        last = all(result["sets"][other]["collection"] != collection for other in names[index + 1 :])
        if last and collection in averages:
            yield "averages", collection
    if ALL in averages:
        yield "averages", ALL


def _name_average(name: str, sets: int) -> str:
    return f"mean of all {sets} sets" if name == ALL else f"{name}: mean of {sets} sets"


def _name_set(name: str, set_record: Mapping[str, Any]) -> str:
    total_note = f" of {set_record['drawn_from']:,}" if set_record["drawn_from"] > set_record["claims"] else ""
    return f"{name} (n = {set_record['claims']:,}{total_note})"


def _figures(record: Mapping[str, Any], sets: int) -> list[str]:
    """The cells of a set, or of an average over `sets`, some of which may not have the figure."""
    cells = []
    for name in FIGURES:
        value, ends = record[name], record["interval95"][name]
        percent = name in ("balanced_accuracy", "macro_f1")
        numbers = [
            f"{100 * number:.1f}" if percent else f"{number:.3f}"
            for number in (value, *(ends or ()))
            if number is not None
        ]
        has_interval = len(numbers) == 3 and name != "calibration_error"
        cell = f"{numbers[0]} ({numbers[1]} to {numbers[2]})" if has_interval else "".join(numbers[:1])
        is_partial = "sets" in record and value is not None and record["sets"][name] < sets
        cells.append(f"{cell} of {record['sets'][name]}" if is_partial else cell)
    return [*cells, f"{record['undecided']:,}" if "undecided" in record else ""]


def _difference(difference: Mapping[str, Any] | None) -> str:
    if difference is None:
        return ""
    low, high = difference["interval95"]
    level = "" if difference["p_holm"] < LEVEL else ", not told apart"
    return f"{100 * difference['value']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f}){level}"


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
    speeds = [record["speed"] for record in result["judges"].values() if record["speed"] is not None]
    if speeds:
        yield (
            f"pairs per second: {speeds[0]['pairs']:,} of these claims, of {speeds[0]['words_per_pair']:.0f} words "
            f"with their evidence, judged once more on {result['processor']}"
        )
    if result["limit"] is not None:
        yield f"at most {result['limit']:,} claims of a set, drawn by seed {result['seed']}"
    for judge, reason in result["skipped"].items():
        yield f"{judge} is left out: {reason}"
    if sources:
        yield "published figures are those of others, each with how its set differs from the one here:"
    for (source, url), number in sources.items():
        yield f"[{number}] {source}, {url}"
