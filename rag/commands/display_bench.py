"""Terminal output of `rag bench`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from autoais.base.terminal import clean, format_count, new_console, new_table, p_value, say
from rag.base.terminal import counted, note
from rag.bench.benchmark import Benchmark, LabelSet
from rag.bench.predictions import DID_NOT_FIT

if TYPE_CHECKING:
    from rag.bench.folder import BenchRun
    from rag.bench.reproductions import Reproduction
    from rag.bench.rerun import Reproduced

_ROWS = (
    "right", "right@60", "right@120", "em", "f1", "answer_recall", "nugget_recall", "autoais", "autoais_corrected",
    "attributed_answers", "citation_recall", "citation_precision", "hagrid", "liu_recall", "liu_precision",
    "trec_recall", "trec_precision", "answerable_refused", "unanswerable_refused", "Success@1", "Success@5",
    "Success@20", "answer_hit@5", "answer_hit@20",
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
    for one in benchmarks:
        _show_listed(one.name, f"{counted(one.count or 0, 'question')}; corpus: {_corpus(one)}; task: {one.task}", one)
    _show_line("\nLabelled sets to measure judges on: rag bench judges --set NAME\n")
    for labels in label_sets:
        _show_listed(labels.name, f"{labels.count:,} labels", labels)


def _show_listed(name: str, holds: str, one: Benchmark | LabelSet) -> None:
    _show_line(f"{clean(name)}: {clean(holds)}", style="bold")
    _show_line(clean(one.description), indent=4)
    _show_line(clean(f"licence: {one.licence}"), indent=4)


def _show_line(text: str, *, indent: int = 0, style: str = "") -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        console.print(Padding(Text(text, style=style), (0, 0, 0, indent)))
    else:
        console.print(f"{' ' * indent}{text}", soft_wrap=True)


def show_run(run: "BenchRun", measured: Sequence[Mapping[str, Any]]) -> None:
    """Print the four ways and the metrics of a run, two columns per system, then what to know about them.

    The column after a system is the number of questions, answers, sentences or citations that a rate is over.
    """

    record, console = run.record["benchmark"], new_console()
    pool = ", a closed pool" if record["closed_pool"] else ""
    title = f"{record['name']}.v{record['version']}: {counted(run.record['questions']['n'], 'question')}{pool}"
    console.print(clean(f"{title}, judged by {measured[0]['judge']}"))
    console.print()
    table = new_table("", *(head for one in measured for head in (clean(one["label"]), "n")))
    for way in measured[0]["ways"]:
        told = ((one["ways"][way], one["n"]) for one in measured)
        cells = ((_value(found, "share"), f"{found['count']:,}/{n:,}") for found, n in told)
        table.add_row(way.replace("_", " "), *_pairs(cells))
    table.add_section()
    for name in _ROWS:
        if any(one["metrics"].get(name, {}).get("value") is not None for one in measured):
            metrics = (one["metrics"].get(name, {}) for one in measured)
            table.add_row(name, *_pairs((_value(metric), _over(metric)) for metric in metrics))
        if name == "autoais_corrected" and any(one.get("human") for one in measured):
            table.add_row("labelled answers", *_pairs(("", _labelled(one)) for one in measured))
    if any(one["latency"] for one in measured):
        for name in ("p50", "p95"):
            times = (one["latency"] for one in measured)
            cells = ((_seconds(time[name]), f"{time['n']:,}") if time else ("", "") for time in times)
            table.add_row(f"seconds, {name}", *_pairs(cells))
    if any(one["money"] for one in measured):
        money = (one["money"] for one in measured)
        table.add_row("money", *_pairs((f"{one['total']:.4f}" if one else "", "") for one in money))
    console.print(table)
    for line in _remarks(run, measured):
        note(line)
    note(f"run in {run.folder}")


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _pairs(cells: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (cell for pair in cells for cell in pair)


def _over(metric: Mapping[str, Any]) -> str:
    return "" if metric.get("value") is None or metric.get("n") is None else f"{metric['n']:,}"


def _labelled(one: Mapping[str, Any]) -> str:
    """The number of answers of a system that people have labelled."""
    return f"{one['human']['answers']:,}" if one.get("human") else ""


def _value(metric: Mapping[str, Any], name: str = "value") -> str:
    if metric.get(name) is None:
        return ""
    ends = metric.get("interval95")
    return f"{metric[name]:.3f}" + (" [{:.3f}, {:.3f}]".format(*ends) if ends else "")


def _remarks(run: "BenchRun", measured: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    benchmark = run.record["benchmark"]
    if lost := benchmark["without_gold"]:
        count = counted(lost, "answerable question")
        yield f"{count} without a known gold passage in this corpus, counted like the others"
    lacking = [one["gold_not_in_corpus"] for one in run.record["retrieval"].values() if "gold_not_in_corpus" in one]
    if lacking:
        lost = max(lacking, key=itemgetter("count"))
        are = "is" if lost["count"] == 1 else "are"
        count, example = counted(lost["count"], "gold passage"), lost["examples"][0]
        yield f"{count} {are} not in the corpus, such as {example!r:.80}; retrieval cannot find what is not there"
    for one in measured:
        if one["same_judge"]:
            count = counted(one["same_judge"], "answer")
            yield f"{one['label']}: {count} by a system that has the judge as a part; its AutoAIS is circular"
        joined = one["predictions"] or {}
        for what, remark in DID_NOT_FIT.items():
            if (found := joined.get(what)) and found["count"]:
                example = f", such as {found['examples'][0]!r:.80}" if found["examples"] else ""
                yield f"{one['label']}: {format_count(found['count'], remark)}{example}"
        if joined.get("not_asked"):
            yield f"{one['label']}: {counted(joined['not_asked'], 'answer')} to questions outside the sample, left out"
        for name, kept in one["notes"].items():
            # Runs measured by an earlier version have counts by sentence.
            told = kept if isinstance(kept, dict) else {"count": kept, "text": name}
            yield f"{one['label']}: {format_count(told['count'], told['text'])}"


_NAMED = 3  # pairs that a line names


def show_changes(found: Mapping[str, Any]) -> None:
    """Print what `run_changes` returns."""
    for one in found["inputs"]:
        say(f"{one['place']}: {one['old']} -> {one['new']}")
    for label in found["only_old"]:
        say(f"{label}: in the old run only")
    for label in found["only_new"]:
        say(f"{label}: in the new run only")
    for label, system in found["systems"].items():
        told = [format_count(len(system[part]), what) for part, what in _CHANGES.items() if system[part]]
        say(f"{label}: {', '.join(told) + ' differ' if told else 'the same hits, answers, verdicts and metrics'}")
        for one in system["metrics"]:
            old, new = (f"{one[side]:.3f}" if isinstance(one[side], float) else one[side] for side in ("old", "new"))
            say(f"  {one['place']}: {old} -> {new}")
        for one in system["ways"][:_NAMED]:
            say(f"  question {one['id']}: {one['old'].replace('_', ' ')} -> {one['new'].replace('_', ' ')}")
        if (more := len(system["ways"]) - _NAMED) > 0:
            say(f"  and {format_count(more, 'questions')} more that went another way (--json)")
    if not found["systems"]:
        say("no system is in both runs")


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
            f"{metric['values'][one]:.3f} {metric['letters'][one]}" if one in metric["values"] else ""
            for one in systems
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
        more = f", and {len(names) - _NAMED:,} more in the JSON" if len(names) > _NAMED else ""
        console.print(clean(f"{', '.join(names[:_NAMED])}{more}: {CONTRADICTION}"))
    for name, one in group["correlation"].items():
        if one["kendall_tau_b"] is not None:
            console.print(f"order of the systems by {name}: Kendall's tau-b {one['kendall_tau_b']:.2f}")


def show_reproductions(found: Sequence["Reproduction"], others: Sequence[Mapping[str, str]]) -> None:
    """Print a table of the reproductions, and one of what cannot be reproduced, with the reasons."""
    from rich.table import Table

    table = Table("name", "values", "takes", "data", "reproduces", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for one in found:
        takes = "seconds" if one.minutes is None else f"{one.minutes} min"
        count = sum(len(step.expected) for step in one.steps)
        data = ", ".join(needed.file.file for needed in one.data) or "none"
        table.add_row(clean(one.name), f"{count:,}", takes, clean(data), clean(one.reproduces))
    console = new_console()
    console.print(table)
    console.print()
    table = Table("not reproducible", "what", "reason", box=None, pad_edge=False)
    for row in others:
        table.add_row(*(clean(row[name]) for name in ("name", "reproduces", "reason")))
    console.print(table)


def show_reproduced(result: "Reproduced") -> None:
    """Print the values of one reproduction, or why it was skipped."""

    console = new_console()
    console.print(clean(f"{result.reproduction.name}: {result.reproduction.reproduces}"))
    if result.skip_reason is not None:
        console.print(clean(f"skipped {counted(len(result.values), 'value')}: {result.skip_reason}"))
        return
    for number, step in enumerate(result.reproduction.steps, 1):
        if step.expected:
            console.print(clean(f"$ {step.line}"))
            table = new_table("value", "expected", "found", "difference", "")
            table.columns[-1].justify = "left"
            for one in (value for value in result.values if value.step == number):
                found = "" if one.found is None else _short(one.found)
                difference = "" if one.difference is None else f"{one.difference:+.6g}"
                status = f"{one.status}: {one.reason}" if one.status == "differs" and one.reason else one.status
                table.add_row(*map(clean, (one.place, _short(one.expected), found, difference, status)))
            console.print(table)
    for reason in dict.fromkeys(one.reason for one in result.values if one.status == "failed" and one.reason):
        note(f"failed: {reason}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def show_counts(results: Sequence["Reproduced"]) -> None:
    """Print how many values are as expected."""
    from rag.bench.rerun import counts

    said = ", ".join(f"{count:,} {status}" for status, count in counts(results).items() if count)
    new_console().print(f"{counted(len(results), 'reproduction')}: {said or 'nothing to do'}")
