"""Terminal output of the commands: tables, and lines without control characters from files."""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from autoais.base.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def clean(text: str) -> str:
    """Return the text with line breaks and control characters replaced."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def markdown(text: str) -> str:
    """Return the text with the characters escaped that Markdown or HTML would take for markup."""
    result = re.sub(r"([\\`*_{}\[\]|#~$])", r"\\\1", text)
    return result.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def format_count(count: int, noun: str) -> str:
    """Return `1,200 answers that are read` for a plural `noun`; of one, its first noun and the verbs are singular."""
    if count == 1:
        noun = re.sub(r"(\w)s\b", r"\1", noun, count=1)
        for plural, singular in (("they are", "it is"), ("are", "is"), ("were", "was")):
            noun = re.sub(rf"\b{plural}\b", singular, noun)
    return f"{count:,} {noun}"


def print_line(line: str) -> None:
    """Print a line, cleaned."""
    typer.echo(clean(line))


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    from autoais.base.io.jsonl import dumps

    typer.echo(dumps(value, indent=2))


def note(line: str) -> None:
    """Print a line to standard error, cleaned."""
    typer.echo(clean(line), err=True)


# Metrics that systems are chosen by; `answer_recall` replaces exact match and F1 of systems without short answers.
MAIN_METRICS = ("autoais", "citation_recall", "citation_precision", "em", "f1", "verbatim_quotes")
_FAMILY_PREFIXES = {
    "alce": ("citation_", "str_", "qampari_", "claims_nli", "rougeLsum", "mauve"),
    "hagrid": ("hagrid",),
    "liu": ("liu_",),
    "trec": ("trec_",),
}


def main_metrics(metrics: dict[str, Any], families: Collection[str] = ()) -> dict[str, Any]:
    """Return the `MAIN_METRICS` of a report, and all metrics of these families of citation metrics (`alce`, ...)."""
    prefixes = tuple(prefix for family in families for prefix in _FAMILY_PREFIXES[family])
    has_short_answers = metrics["em"]["value"] is not None
    has_answer_recall = not has_short_answers and metrics["answer_recall"]["value"] is not None
    names = {name for name in MAIN_METRICS if has_short_answers or name not in ("em", "f1")}
    names |= {"answer_recall"} if has_answer_recall else set()
    return {name: metric for name, metric in metrics.items() if name in names or name.startswith(prefixes)}


def show_report(result: dict[str, Any], families: Collection[str] = (), *, is_complete: bool = False) -> None:
    """Print the report of `score`: the `main_metrics`, or all, then the human labels if the file holds some."""
    console = new_console()
    mode = "" if result["mode"] == "default" else f", mode {result['mode']}"
    answers = f", {format_count(result['answers'], 'answers')}" if "answers" in result else ""
    answer_note = f"{result['answered']:,} {'with sentences' if answers else 'answered'}"
    different = f" ({result['different_questions']:,} different)" if "different_questions" in result else ""
    question_note = f"{format_count(result['questions'], 'questions')}{different}"
    console.print(f"{question_note}{answers}, {answer_note}, judge {result['judge']}{mode}")
    metrics = result["metrics"] if is_complete else main_metrics(result["metrics"], families)
    _show_metrics(console, metrics)
    if n_more := sum(name not in metrics and metric["value"] is not None for name, metric in result["metrics"].items()):
        console.print(f"{format_count(n_more, 'more metrics')} with --all")
    if (levels := metrics.get("trec_precision", {}).get("levels")) is not None:
        counts = ", ".join(f"{count} {level}" for level, count in levels.items())
        console.print(f"support of all citations (trec): {counts}")
    if result["not_applicable"]:
        noun = "sentences without a claim to verify (such as questions), not judged"
        console.print(format_count(result["not_applicable"], noun))
    if (quotes := result["quoted"])["rejected"]:
        console.print(
            f"{quotes['rejected']:,} of {format_count(quotes['sentences'], 'sentences')} with the very words of a "
            "cited passage judged not attributable: likely errors of the judge",
            style="yellow",
        )
    if (quotations := result.get("quotations", {})).get("verbatim", 0) < sum(quotations.values()):
        counts = ", ".join(f"{count} {status}" for status, count in quotations.items() if count)
        console.print(f"{format_count(sum(quotations.values()), 'quotations')} in the answers: {counts}")
    if result["unresolved_markers"]:
        console.print(format_count(result["unresolved_markers"], "markers could not be resolved to a passage"))
    if "without_citations" in result:
        noun = "answers without citations are left out of the citation metrics"
        console.print(format_count(result["without_citations"], noun))
    if "refusals" in result:
        _show_refusals(console, result["refusals"])
    if "same_judge" in result:
        console.print(
            f"warning: the system of {format_count(result['same_judge'], 'answers')} has this judge as a part, so its "
            "score is partly circular; score with a judge that has no part in it too",
            style="yellow",
        )
    if "human" in result:
        _show_human(result["human"], result["judge"])


def _show_refusals(console: "Console", refusals: dict[str, Any]) -> None:
    """Print the number of right refusals, and the rate without refusals."""
    rate_of_answers = refusals["attributed_answers"]
    rate = f"has no value, because {rate_of_answers['reason']}" if rate_of_answers["value"] is None else ""
    if not rate:
        low, high = rate_of_answers["interval95"]
        rate = f"is {rate_of_answers['value']:.3f} [{low:.3f}, {high:.3f}], n {rate_of_answers['n']:,}"
    console.print(
        f"{refusals['without_an_answer']:,} of {format_count(refusals['all'], 'refusals')} right, as the question has "
        "no answer; every question counts, so each is a no in autoais and the citation metrics; over the answers given "
        f"(attributed_answers), autoais {rate}",
        style="yellow",
    )


def _show_metrics(console: "Console", metrics: dict[str, Any]) -> None:
    """Print a table with a row per metric; metrics without a value follow it, grouped by reason.

    Where undecided items count as no in the value itself, their number says so.
    """
    table = new_table("metric", "value", "95 % interval", "n", "undecided", "floor")
    absent: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        if metric["value"] is None:
            reason = re.sub(r"lists \d+ passages", "lists that many passages", metric["reason"])
            absent.setdefault(reason, []).append(name)
            continue
        ends = metric["interval95"]
        interval = f"[{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""
        floor = f"{metric['floor']:.3f} of {metric['total']}" if "floor" in metric else ""
        as_no = metric.get("undecided_as_no", 0)
        undecided = f"{as_no} as no" if as_no else str(metric.get("undecided", ""))
        table.add_row(name, f"{metric['value']:.3f}", interval, str(metric["n"]), undecided, floor)
    if table.row_count:
        console.print(table)
    for reason, names in absent.items():
        console.print(f"absent, because {reason}: {', '.join(names)}")
    if any(metric["value"] is not None and metric.get("undecided_as_no") for metric in metrics.values()):
        console.print(
            "as no: undecided sentences and claims count as no in the value, as ALCE's script knows only yes and no"
        )
    for splitter in {metric["splitter"]: None for metric in metrics.values() if "splitter" in metric}:
        splitter_note = (
            "" if splitter.startswith("nltk") else ", with another splitter than ALCE's (NLTK's is not used)"
        )
        console.print(f"ALCE's sentences: {splitter}{splitter_note}")


def _show_human(human: dict[str, Any], judge: str) -> None:
    console = new_console()
    data = human["data"]
    console.print("\nHuman labels", style="bold")
    console.print(
        f"{format_count(data['questions'], 'questions')} with {data['quotes_per_question']:.1f} quotes each; "
        f"{format_count(data['answers'], 'answers')}, {data['answers_per_question']:.1f} per question; "
        f"{format_count(data['citations'], 'citations')}, {data['citations_per_answer']:.1f} per answer"
    )
    if human["labels"]:
        table = new_table("label", "total", "yes", "no", "yes %", "95 % interval")
        for name, label in human["labels"].items():
            low, high = label["interval95"]
            counts = (str(label[key]) for key in ("n", "yes", "no"))
            table.add_row(
                name.replace("_", " "), *counts, f"{100 * label['value']:.1f}", f"[{100 * low:.1f}, {100 * high:.1f}]"
            )
        console.print(table)
    if human["metrics"]:
        _show_metrics(console, human["metrics"])
    for unit, agreement in human["agreement"].items():
        f1, kappa = ("-" if agreement[key] is None else f"{agreement[key]:.3f}" for key in ("macro_f1", "cohen_kappa"))
        console.print(
            f"{judge} against people on {agreement['n']} {unit}: macro-F1 {f1}, kappa {kappa} "
            f"({agreement['undecided']} undecided)"
        )
    if "levels" in human:
        levels = human["levels"]
        console.print(
            f"{judge} against people on {levels['n']} levels of support, macro-F1 {levels['macro']['value']:.3f}"
        )
        table = new_table("human label", *(f"judge: {level}" for level in levels["classes"]))
        for level, counts in zip(levels["classes"], levels["confusion"], strict=True):
            table.add_row(level, *map(str, counts))
        console.print(table)


def p_value(p: float) -> str:
    """Return p with four digits, or `< 0.0001`."""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def p_equals(p: float) -> str:
    """Return `= 0.0312` or `< 0.0001`, to follow the letter p."""
    return p_value(p) if p < 0.0001 else f"= {p_value(p)}"


def show_comparison(result: dict[str, Any]) -> None:
    """Print the result of `comparison.compare_files`."""
    console = new_console()
    table = new_table("", "attributable", "95 % interval", "n", "undecided", "floor")
    for side in ("a", "b"):
        rate = result[side]
        ends = rate["interval95"]
        value, interval = ("-", "") if ends is None else (f"{rate['value']:.3f}", f"[{ends[0]:.3f}, {ends[1]:.3f}]")
        table.add_row(side.upper(), value, interval, str(rate["n"]), str(rate["undecided"]), f"{rate['floor']:.3f}")
    difference, tests, counts = result["difference"], result["mcnemar"], result["table"]
    low, high = difference["interval95"]
    answer_note = "" if result["answers"] == result["questions"] else f", {format_count(result['answers'], 'answers')}"
    console.print(f"{format_count(result['questions'], 'questions')}{answer_note}, judge {result['judge']}")
    for warning in result["warnings"]:
        console.print(clean(f"warning: {warning}"), style="yellow")
    console.print(table)
    console.print(
        f"A - B (floors): {difference['value']:+.3f} [{low:+.3f}, {high:+.3f}], p {p_equals(difference['p'])} "
        f"({difference['method']})"
    )
    console.print(f"only A right {counts['only_a']}, only B right {counts['only_b']}, both {counts['both']}")
    if "reason" in tests:
        console.print(f"McNemar: {tests['reason']}")
    for test in (tests[name] for name in ("exact", "corrected") if name in tests):
        p = test.get("reason") or f"p {p_equals(test['p'])}"
        console.print(f"McNemar, {test['variant']}: {p}")
    if result["metrics"]:
        table = new_table("metric (undecided as no)", "A", "B", "A - B", "95 % interval", "n", "p", "p (Holm)", "test")
        for name, metric in result["metrics"].items():
            low, high = metric["interval95"]
            cells = [
                f"{metric['a']:.3f}",
                f"{metric['b']:.3f}",
                f"{metric['value']:+.3f}",
                f"[{low:+.3f}, {high:+.3f}]",
            ]
            table.add_row(
                clean(name), *cells, str(metric["n"]), p_value(metric["p"]), p_value(metric["p_holm"]), metric["method"]
            )
        console.print()
        console.print(table)
        console.print(
            f"tests are over questions; p (Holm) is corrected for {format_count(len(result['metrics']), 'metrics')}; "
            "fewer, chosen before you look, need less correction: --metrics autoais,citation_f1"
        )
    for note in result["notes"]:
        console.print(clean(note))


def show_evaluation(result: dict[str, Any]) -> None:
    """Print the result of `autoais.metrics.run_files.evaluate_files`: one table per run, then the notes."""

    console = new_console()
    console.print(f"{format_count(result['topics'], 'topics')}, {result['relevant']:,} relevant {result['level']}")
    baseline = result["baseline"]
    for run in result["runs"]:
        is_compared = baseline is not None and run["run"] != baseline
        columns = ("difference", "95 % interval", "p", "better", "worse") if is_compared else ()
        table = new_table("measure", "value", "95 % interval", "n", *columns)
        for name, mean in run["measures"].items():
            cells = [f"{mean['value']:.4f}", "[{:.4f}, {:.4f}]".format(*mean["interval95"]), str(mean["n"])]
            if is_compared:
                difference = mean["difference"]
                interval = "[{:+.4f}, {:+.4f}]".format(*difference["interval95"])
                cells += [f"{difference['value']:+.4f}", interval, f"{difference['p']:.4f}"]
                cells += [str(difference["better"]), str(difference["worse"])]
            table.add_row(name, *cells)
        role = ", the baseline" if run["run"] == baseline else ""
        console.print()
        console.print(clean(f"{run['run']} ({run['tag']}){role}"), style="bold")
        console.print(table)
        if is_compared:
            methods = ", ".join(sorted({mean["difference"]["method"] for mean in run["measures"].values()}))
            console.print(clean(f"difference from {baseline}; p: {methods}, two-sided, not corrected for their number"))
    if result["notes"]:
        console.print()
    for line in result["notes"]:
        console.print(clean(line))


def show_spans(result: dict[str, Any]) -> None:
    """Print the result of `autoais.metrics.span_files.evaluate_span_files`: a line per unit and average."""
    console = new_console()
    console.print(f"{format_count(result['questions'], 'questions')}, {format_count(result['texts'], 'passages')}")
    table = new_table("units", "average", "precision", "recall", "F1", "n", words=2)
    for unit in ("words", "characters"):
        for average in ("micro", "per_question"):
            means = [result[unit][average][name] for name in ("precision", "recall", "f1")]
            table.add_row(unit, average.replace("_", " "), *map(_share, means), str(means[-1]["n"]))
    console.print(table)
    for line in result["notes"]:
        console.print(clean(line))


def _share(mean: dict[str, Any]) -> str:
    if mean["value"] is None:
        return "-"
    return f"{100 * mean['value']:.1f} " + "({:.1f} to {:.1f})".format(*(100 * end for end in mean["interval95"]))


def show_ais(result: dict[str, Any]) -> None:
    """Print the result of `ais_report.report` for one file."""
    console = new_console()
    table = new_table("model", "n", "Flag %", "Int %", "AIS %", "95 % interval", "AIS of unflagged %")
    for model in result["models"]:
        rates = [model[name] for name in ("flagged", "interpretable", "ais", "ais_of_unflagged")]
        percent = ["-" if rate["value"] is None else f"{100 * rate['value']:.1f}" for rate in rates]
        low, high = rates[2]["interval95"] or (0.0, 1.0)
        interval = f"[{100 * low:.1f}, {100 * high:.1f}] n={rates[2]['n']}"
        table.add_row(clean(model["model"]), str(rates[0]["total"]), *percent[:3], interval, percent[3])
    console.print(clean(result["file"]), style="bold")
    console.print(table)
    for name, agreement in result["agreement"].items():
        values = [agreement[key] for key in ("krippendorff_alpha", "pairwise_agreement", "f1_to_majority")]
        alpha, pairs, f1 = ("-" if value is None else f"{value:.3f}" for value in values)
        subset = "attributable, by those who found it interpretable"
        console.print(
            f"{subset if name == 'attributable_of_asked' else name}: "
            f"alpha {alpha}, pairwise agreement {pairs}, F1 to majority {f1} "
            f"({format_count(agreement['items'], 'items')}, {agreement['left_out']} without a usable count)"
        )
    if result["paper"] is not None:
        _show_paper_cells(console, result["paper"])
    console.print()


def _show_paper_cells(console: "Console", paper: dict[str, Any]) -> None:
    """Print the cells of the paper's table beside those of the release, and the reason where they cannot match."""
    missing = {entry["model"]: entry for entry in paper["incomplete"]}
    table = new_table("model", "rows missing", "Flag %", "Int %", "AIS %")
    rows: dict[str, dict[str, str]] = {}
    for cell in paper["cells"]:
        values = cell["printed"] if cell["status"] == "match" else f"{cell['printed']} / {cell['released']}"
        mark = {"match": "", "rows missing": " *", "differs": " !"}[cell["status"]]
        rows.setdefault(cell["model"], {})[cell["rate"]] = values + mark
    for model, cells in rows.items():
        texts = (cells.get(rate, "-") for rate in ("flagged", "interpretable", "ais"))
        table.add_row(clean(model), str(missing[model]["missing"]) if model in missing else "0", *texts)
    console.print(f"Table {paper['table']} of the paper ({paper['data']}); where they differ: paper / release")
    console.print(table)
    counts = {
        status: sum(cell["status"] == status for cell in paper["cells"]) for status in ("rows missing", "differs")
    }
    console.print(f"{paper['matching']} of {len(paper['cells'])} cells match")
    if counts["rows missing"]:
        console.print(
            f"* {counts['rows missing']} cannot match: the paper rated 200 outputs of each model, the release lacks "
            "some, and with some ratings of the missing ones the paper's value comes out"
        )
    if counts["differs"]:
        console.print(f"! {counts['differs']} differ, and no ratings of missing rows explain it")
    for entry in paper["incomplete"]:
        if not entry["together"]:
            console.print(f"  {entry['model']}: each value can come out, but not all in one completion of the rows")
    cells, asked_cells = (paper["agreement"][name] for name in ("cells", "asked"))
    console.print(f"Table 7, F1, pairwise agreement and alpha of Int, then of AIS: {_format_cells(cells)}")
    console.print(f"Table 7, AIS by those who found the output interpretable: {_format_cells(asked_cells)}")
    matches, asked_matches = (sum(cell["status"] == "match" for cell in part) for part in (cells, asked_cells))
    if matches < len(cells):
        console.print(
            f"{matches} of {len(cells)} match, {asked_matches} of {len(asked_cells)} in the second line; the "
            f"others differ: {paper['agreement']['why']}"
        )


def _format_cells(cells: list[dict[str, str]]) -> str:
    return ", ".join(
        cell["printed"] if cell["status"] == "match" else f"{cell['printed']} / {cell['released']}" for cell in cells
    )


def show_other_tables(other: dict[str, Any]) -> None:
    """Print the count of matching cells, Table 15, and why the release gives no other table of the AIS paper."""
    console = new_console()
    match, missing, differ = (other["cells"][status] for status in ("match", "rows missing", "differs"))
    console.print(
        f"Tables 3 to 6: {match} of {match + missing + differ} cells match, rows that are missing from the release may "
        f"explain {missing} ({other['not_together']} of them not all at once), {differ} differ otherwise"
    )
    table_7 = other["table_7"]
    console.print(
        f"Table 7: {table_7['match']} of {table_7['cells']} values match, and {table_7['asked_match']} of "
        f"{table_7['asked']} of AIS by those who found the output interpretable"
    )
    console.print("Table 15, correct against the experts (50 outputs)", style="bold")
    table = new_table(
        "variant", "both", "original only", "variant only", "neither", "p printed", "p exact", "p corrected"
    )
    for row in other["table_15"]:
        counts = (str(row[name]) for name in ("both", "only_original", "only_variant", "neither"))
        table.add_row(row["variant"], *counts, row["printed"], f"{row['exact']:.3f}", f"{row['corrected']:.3f}")
    console.print(table)
    for number, reason in other["without_data"].items():
        console.print(f"Table {number}, {reason}")


@contextmanager
def show_progress(unit: str) -> Iterator[Progress]:
    """Yield a callback that shows a bar for each step on standard error; it shows nothing in a pipe."""
    import sys

    import rich.progress
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    console = Console(stderr=True, markup=False, highlight=False)
    bars = rich.progress.Progress(*columns, TimeRemainingColumn(), console=console, disable=not sys.stderr.isatty())
    tasks: dict[str, rich.progress.TaskID] = {}
    with bars:

        def report(step: str, done: int, total: int, /) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=total)
            bars.update(tasks[step], completed=done, total=total)

        yield report


def new_table(*heads: str, words: int = 1) -> "Table":
    """Return a table without lines; the columns after the first `words` hold numbers."""
    from rich.table import Table

    table = Table(*heads, box=None, pad_edge=False)
    for column in table.columns[words:]:
        column.justify = "right"
    return table


def new_console() -> "Console":
    """Return a console for plain text: no markup, no highlighting, no fixed width."""
    from rich.console import Console

    # A narrower console would drop columns and figures of wide tables; a terminal wraps long lines.
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True, width=1000)
