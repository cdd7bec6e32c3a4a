"""Terminal output of `rag bench`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from autoais.base.terminal import clean, format_count, new_console, new_table, p_value, print_line
from rag.base.terminal import note, pluralize
from rag.bench.benchmark import Benchmark, LabelSet
from rag.bench.predictions import DID_NOT_FIT
from rag.bench.selections import describe_deviations, describe_sample, sample_of

if TYPE_CHECKING:
    from rich.table import Table

    from rag.bench.folder import BenchRun
    from rag.bench.reproductions import Reproduction
    from rag.bench.rerun import Reproduced

_ROWS = (
    "right", "right@60", "right@120", "em", "f1", "answer_recall", "nugget_recall", "str_em", "str_hit", "qampari_prec",
    "qampari_rec", "qampari_rec_top5", "qampari_f1", "claims_nli", "rougeLsum", "autoais", "autoais_corrected",
    "attributed_answers", "citation_recall", "citation_precision", "hagrid", "liu_recall", "liu_precision",
    "trec_recall", "trec_precision", "span_f1", "span_precision", "span_recall", "answerable_refused",
    "unanswerable_refused", "Success@1", "Success@5", "Success@20", "answer_hit@5", "answer_hit@20",
)  # fmt: skip


def benchmark_record(benchmark: Benchmark) -> dict[str, Any]:
    """Return what `rag bench list` says of a benchmark, as JSON."""
    return {
        "name": benchmark.name,
        "version": benchmark.version,
        "description": benchmark.description,
        "questions": benchmark.count,
        "corpus": _corpus(benchmark),
        "closed_pool": benchmark.closed_pool,
        "task": benchmark.task,
        "right": benchmark.right,
        "needs_data": benchmark.needs_data,
        "licence": benchmark.licence,
    }


def label_set_record(labels: LabelSet) -> dict[str, Any]:
    """Return what `rag bench list` says of a labelled set, as JSON."""
    return {
        "name": labels.name,
        "version": labels.version,
        "description": labels.description,
        "labels": labels.count,
        "task": "judge",
        "needs_data": not all(file.is_shipped for file in labels.files),
        "licence": labels.licence,
        "command": f"rag bench judges --set {labels.name}",
    }


def _corpus(benchmark: Benchmark) -> str:
    corpora = list(benchmark.corpora.values())
    if not corpora:
        return "given"
    if len(corpora) > 1:
        return f"{len(corpora)} collections"
    return corpora[0].path + (" (ships)" if corpora[0].is_shipped else "")


def show_benchmarks(benchmarks: Sequence[Benchmark], label_sets: Sequence[LabelSet]) -> None:
    """Print the benchmarks, and the labelled sets for judges; a terminal's width wraps the lines."""
    for benchmark in benchmarks:
        questions = "number of questions unknown"
        if benchmark.count is not None:
            questions = pluralize(benchmark.count, "question")
        _show_entry(
            benchmark.name,
            f"{questions}; corpus: {_corpus(benchmark)}; task: {benchmark.task}",
            benchmark,
        )
    show_line("\nLabelled sets to measure judges on: rag bench judges --set NAME\n")
    for labels in label_sets:
        _show_entry(labels.name, f"{labels.count:,} labels", labels)


def _show_entry(name: str, holds: str, entry: Benchmark | LabelSet) -> None:
    show_line(f"{clean(name)}: {clean(holds)}", style="bold")
    show_line(clean(entry.description), indent=4)
    show_line(clean(f"licence: {entry.licence}"), indent=4)


def show_line(text: str, *, indent: int = 0, style: str = "") -> None:
    """Print a line, wrapped and indented to the width of a terminal."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        console.print(Padding(Text(text, style=style), (0, 0, 0, indent)))
    else:
        console.print(f"{' ' * indent}{text}", soft_wrap=True)


def show_run(run: "BenchRun", system_metrics: Sequence[Mapping[str, Any]], *, all_metrics: bool = False) -> None:
    """Print a line per system, with the rates to decide by and their intervals, then what to know about them.

    With `all_metrics`, print every outcome and metric instead, two columns per system; the second is the number of
    questions, answers, sentences or citations that a rate is over.
    """
    record, console = run.record["benchmark"], new_console()
    pool = ", a closed pool" if record["closed_pool"] else ""
    pool += f", a {sample}" if (sample := describe_sample(sample_of(run.record))) else ""
    n, total = run.record["questions"]["n"], record.get("questions")
    count = pluralize(n, "question") if total in (n, None) else f"{n:,} of {pluralize(total, 'question')}"
    title = f"{record['name']}.v{record['version']}: {count}{pool}"
    console.print(clean(f"{title}, judged by {system_metrics[0]['judge']}"))
    console.print()
    console.print(_metrics_table(system_metrics) if all_metrics else _systems_table(system_metrics))
    for line in _remarks(run, system_metrics):
        note(line)
    more = "" if all_metrics else "; add --resume --all to the command to print all metrics"
    note(f"run in {run.folder}{more}")


def _systems_table(system_metrics: Sequence[Mapping[str, Any]]) -> "Table":
    """A line per system. A rate that no system has is left out, such as right answers where there is no rule."""
    from rag.bench.report.tables import metric_of

    names = {
        "right": "right",
        "attributed": "autoais",
        "attributed, corrected": "autoais_corrected",
        "right and attributed": "right_attributed",
    }
    columns = {head: [metric_of(system, name) for system in system_metrics] for head, name in names.items()}
    columns["refused"] = [_refusal_rate(system) for system in system_metrics]
    columns = {head: rates for head, rates in columns.items() if any(rate.get("value") is not None for rate in rates)}
    table = new_table("system", *columns)
    for system, *rates in zip(system_metrics, *columns.values(), strict=True):
        table.add_row(clean(system["label"]), *map(_value, rates))
    return table


def _refusal_rate(system: Mapping[str, Any]) -> dict[str, Any]:
    """The refusals among all questions, right or wrong."""
    from autoais.metrics.rates import Rate

    outcomes = system["ways"]
    return Rate(outcomes["refused_right"]["count"] + outcomes["refused_wrong"]["count"], system["n"]).record()


def _metrics_table(system_metrics: Sequence[Mapping[str, Any]]) -> "Table":
    table = new_table("", *(head for system in system_metrics for head in (clean(system["label"]), "n")))
    for outcome in system_metrics[0]["ways"]:
        outcome_shares = ((system["ways"][outcome], system["n"]) for system in system_metrics)
        cells = ((_value(share, "share"), f"{share['count']:,}/{n:,}") for share, n in outcome_shares)
        table.add_row(outcome.replace("_", " "), *_pairs(cells))
    table.add_section()
    for name in _ROWS:
        if any(system["metrics"].get(name, {}).get("value") is not None for system in system_metrics):
            metrics = (system["metrics"].get(name, {}) for system in system_metrics)
            table.add_row(name, *_pairs((_value(metric), _over(metric)) for metric in metrics))
        if name == "autoais_corrected" and any(system.get("human") for system in system_metrics):
            table.add_row("labelled answers", *_pairs(("", _count_labels(system)) for system in system_metrics))
    if any(system["latency"] for system in system_metrics):
        for name in ("p50", "p95"):
            times = (system["latency"] for system in system_metrics)
            cells = ((_seconds(time[name]), f"{time['n']:,}") if time else ("", "") for time in times)
            table.add_row(f"seconds, {name}", *_pairs(cells))
    if any(system["money"] for system in system_metrics):
        money = (system["money"] for system in system_metrics)
        table.add_row("money", *_pairs((f"{amount['total']:.4f}" if amount else "", "") for amount in money))
    return table


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _pairs(cells: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (cell for pair in cells for cell in pair)


def _over(metric: Mapping[str, Any]) -> str:
    return "" if metric.get("value") is None or metric.get("n") is None else f"{metric['n']:,}"


def _count_labels(system: Mapping[str, Any]) -> str:
    """The number of answers of a system that people have labelled."""
    return f"{system['human']['answers']:,}" if system.get("human") else ""


def _value(metric: Mapping[str, Any], name: str = "value") -> str:
    if metric.get(name) is None:
        return ""
    ends = metric.get("interval95")
    return f"{metric[name]:.3f}" + (" [{:.3f}, {:.3f}]".format(*ends) if ends else "")


def _remarks(run: "BenchRun", system_metrics: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    benchmark = run.record["benchmark"]
    if missing_gold := benchmark["without_gold"]:
        count = pluralize(missing_gold, "answerable question")
        yield f"{count} without a known gold passage in this corpus, counted like the others"
    for index in run.record["indexes"].values():
        if (selection := index.get("selection")) and (line := describe_deviations(selection)):
            yield line
    missing_by_retriever = [
        retrieval["gold_not_in_corpus"]
        for retrieval in run.record["retrieval"].values()
        if "gold_not_in_corpus" in retrieval
    ]
    if missing_by_retriever:
        missing_gold = max(missing_by_retriever, key=itemgetter("count"))
        are = "is" if missing_gold["count"] == 1 else "are"
        count, example = pluralize(missing_gold["count"], "gold passage"), missing_gold["examples"][0]
        yield f"{count} {are} not in the corpus, such as {example!r:.80}; retrieval cannot find what is not there"
    for system in system_metrics:
        if system["same_judge"]:
            count = pluralize(system["same_judge"], "answer")
            yield f"{system['label']}: {count} by a system that has the judge as a part; its AutoAIS is circular"
        join_record = system["predictions"] or {}
        for key, remark in DID_NOT_FIT.items():
            if (problem := join_record.get(key)) and problem["count"]:
                example = f", such as {problem['examples'][0]!r:.80}" if problem["examples"] else ""
                yield f"{system['label']}: {format_count(problem['count'], remark)}{example}"
        if join_record.get("not_asked"):
            answer_count = pluralize(join_record["not_asked"], "answer")
            yield f"{system['label']}: {answer_count} to questions outside the sample, left out"
        for name, system_note in system["notes"].items():
            # Runs measured by an earlier version have counts by sentence.
            note_record = system_note if isinstance(system_note, dict) else {"count": system_note, "text": name}
            yield f"{system['label']}: {format_count(note_record['count'], note_record['text'])}"


_MAX_EXAMPLES = 3  # pairs that a line names


def show_changes(changes: Mapping[str, Any]) -> None:
    """Print what `run_changes` returns."""
    for difference in changes["inputs"]:
        print_line(f"{difference['place']}: {difference['old']} -> {difference['new']}")
    for label in changes["only_old"]:
        print_line(f"{label}: in the old run only")
    for label in changes["only_new"]:
        print_line(f"{label}: in the new run only")
    for label, system in changes["systems"].items():
        differences = [
            format_count(len(system[part]), description) for part, description in _CHANGES.items() if system[part]
        ]
        print_line(
            f"{label}: "
            f"{', '.join(differences) + ' differ' if differences else 'the same hits, answers, verdicts and metrics'}"
        )
        for difference in system["metrics"]:
            old, new = (
                f"{difference[side]:.3f}" if isinstance(difference[side], float) else difference[side]
                for side in ("old", "new")
            )
            print_line(f"  {difference['place']}: {old} -> {new}")
        for difference in system["ways"][:_MAX_EXAMPLES]:
            print_line(
                f"  question {difference['id']}: "
                f"{difference['old'].replace('_', ' ')} -> {difference['new'].replace('_', ' ')}"
            )
        if (remaining := len(system["ways"]) - _MAX_EXAMPLES) > 0:
            print_line(f"  and {format_count(remaining, 'questions')} more that went another way (--json)")
    if not changes["systems"]:
        print_line("no system is in both runs")


_CHANGES = {
    "questions": "questions",
    "ranking": "lists of hits",
    "answer": "answers",
    "verdicts": "verdicts on the same answers",
    "ways": "ways",
    "metrics": "metrics",
}


def show_comparison(group: Mapping[str, Any]) -> None:
    """Print the systems of one group of `compare_runs`: letters, smallest differences, wins and losses."""

    from autoais.metrics.comparison import CONTRADICTION
    from rag.bench.compare import disagreeing

    console = new_console()
    console.print(clean(group["name"]))
    systems = list(group["systems"])
    table = new_table("metric", *map(clean, systems), "n", "detectable")
    for name, metric in group["metrics"].items():
        smallest = [pair["smallest_difference"] for pair in metric["pairs"] if pair["smallest_difference"]]
        cells = [
            f"{metric['values'][label]:.3f} {metric['letters'][label]}" if label in metric["values"] else ""
            for label in systems
        ]
        table.add_row(clean(name), *cells, f"{metric['n']:,}", f"{max(smallest):.3f}" if smallest else "")
    console.print(table)
    level, power = f"{group['level']:.0%}", f"{group['power']:.0%}"
    console.print(
        f"Systems with a common letter cannot be told apart ({level}, Holm's correction over the pairs of a metric). "
        "Values count undecided as no. "
        f"`detectable`: the minimum detectable difference ({power} power) of the pair that needs the largest."
    )
    for pair in group["metrics"]["right_attributed"]["pairs"]:
        low, high = pair["interval95"]
        p = (
            "no difference"
            if not pair["better"] + pair["worse"]
            else f"p {p_value(pair['p'])}, with Holm's correction {p_value(pair['p_holm'])}"
        )
        console.print(
            f"right and attributed: {clean(pair['a'])} - {clean(pair['b'])} = {pair['value']:+.3f} "
            f"[{low:+.3f}, {high:+.3f}], {pair['better']} wins, {pair['worse']} losses, {p}"
        )
    if names := disagreeing(group["metrics"]):
        remainder = f", and {len(names) - _MAX_EXAMPLES:,} more in the JSON" if len(names) > _MAX_EXAMPLES else ""
        console.print(clean(f"{', '.join(names[:_MAX_EXAMPLES])}{remainder}: {CONTRADICTION}"))
    for name, correlation in group["correlation"].items():
        if correlation["kendall_tau_b"] is not None:
            console.print(f"order of the systems by {name}: Kendall's tau-b {correlation['kendall_tau_b']:.2f}")


def show_reproductions(reproductions: Sequence["Reproduction"], not_reproducible: Sequence[Mapping[str, str]]) -> None:
    """Print a table of the reproductions, and one of what cannot be reproduced, with the reasons."""
    from rich.table import Table

    table = Table("name", "values", "takes", "data", "reproduces", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for reproduction in reproductions:
        takes = "seconds" if reproduction.minutes is None else f"{reproduction.minutes} min"
        count = sum(len(step.expected) for step in reproduction.steps)
        data = ", ".join(data_file.file.file for data_file in reproduction.data) or "none"
        table.add_row(clean(reproduction.name), f"{count:,}", takes, clean(data), clean(reproduction.reproduces))
    console = new_console()
    console.print(table)
    console.print()
    table = Table("not reproducible", "what", "reason", box=None, pad_edge=False)
    for row in not_reproducible:
        table.add_row(*(clean(row[name]) for name in ("name", "reproduces", "reason")))
    console.print(table)


def show_reproduction(result: "Reproduced") -> None:
    """Print the values of one reproduction, or why it was skipped."""

    console = new_console()
    console.print(clean(f"{result.reproduction.name}: {result.reproduction.reproduces}"))
    if result.skip_reason is not None:
        console.print(clean(f"skipped {pluralize(len(result.values), 'value')}: {result.skip_reason}"))
        return
    for number, step in enumerate(result.reproduction.steps, 1):
        if step.expected:
            console.print(clean(f"$ {step.line}"))
            table = new_table("value", "expected", "found", "difference", "")
            table.columns[-1].justify = "left"
            for step_value in (value for value in result.values if value.step == number):
                actual = "" if step_value.found is None else _short(step_value.found)
                difference = "" if step_value.difference is None else f"{step_value.difference:+.6g}"
                status = (
                    f"{step_value.status}: {step_value.reason}"
                    if step_value.status == "differs" and step_value.reason
                    else step_value.status
                )
                table.add_row(*map(clean, (step_value.place, _short(step_value.expected), actual, difference, status)))
            console.print(table)
    for reason in dict.fromkeys(value.reason for value in result.values if value.status == "failed" and value.reason):
        note(f"failed: {reason}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def show_counts(results: Sequence["Reproduced"]) -> None:
    """Print how many values are as expected."""
    from rag.bench.rerun import counts

    status_counts = ", ".join(f"{count:,} {status}" for status, count in counts(results).items() if count)
    new_console().print(f"{pluralize(len(results), 'reproduction')}: {status_counts or 'nothing to do'}")
