"""Terminal output of `rag collect`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autoais.base.terminal import clean, format_count, new_console, new_table
from rag.base.terminal import note, pluralize
from rag.bench.collections.statistics import describe_labellers

if TYPE_CHECKING:
    from rich.console import Console

    from rag.bench.collections.folder import Collection

_TABLE2 = ("questions", "quotes_per_question", "answers", "answers_per_question", "citations", "citations_per_answer")


def show_collection(collection: "Collection") -> None:
    """Print the sizes of a collection, the labels in it, and what was left out."""
    from rich.table import Table

    manifest, console = collection.manifest, new_console()
    _show_sizes(console, manifest["statistics"])
    _show_labels(console, manifest["labels"])
    if systems := manifest.get("systems"):
        table = Table("system", "asked", "kept", "left out", "tokens", box=None, pad_edge=False)
        for label, system in systems.items():
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in system["filtered"].items())
            tokens = f"{system['tokens']['read']:,} + {system['tokens']['written']:,}" if system["tokens"] else ""
            table.add_row(clean(label), f"{system['asked']:,}", f"{system['kept']:,}", clean(reasons), tokens)
        console.print()
        console.print(table)
    for line in _remarks(manifest):
        note(line)
    note(f"collection in {collection.folder}")


def _show_sizes(console: "Console", parts: Mapping[str, Any]) -> None:
    table = new_table("", *parts)
    for name in _TABLE2:
        cells = [part[name] for part in parts.values()]
        table.add_row(
            name.replace("_", " "),
            *(
                "" if value is None else f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
                for value in cells
            ),
        )
    console.print(table)


def _show_labels(console: "Console", parts: Mapping[str, Any]) -> None:
    if not parts:
        return
    table = new_table("part", "label", "total", "yes", "no", "yes %", "95 % interval", words=2)
    for part, labels in parts.items():
        for name, label in labels.items():
            if name == "support":
                counts = ", ".join(f"{count:,} {level}" for level, count in label.items())
                table.add_row(part, "support", f"{sum(label.values()):,}", counts, "", "", "")
                continue
            ends = "[{:.1f}, {:.1f}]".format(*(100 * end for end in label["interval95"])) if label["interval95"] else ""
            cells = (
                f"{label['total']:,}",
                f"{label['yes']:,}",
                f"{label['no']:,}",
                f"{100 * label['share']:.1f}",
                ends,
            )
            table.add_row(part, name.replace("_", " "), *cells)
    console.print()
    console.print(table)


def _remarks(manifest: Mapping[str, Any]) -> list[str]:
    lines = []
    quotes = manifest.get("quotes", {})
    for key, description in (
        ("qrels_of_unknown_questions", "questions of the qrels are not in the questions file"),
        ("passages_without_text", "relevant passages are without a text in the corpus"),
    ):
        if (problem := quotes.get(key)) and problem["count"]:
            lines.append(f"{format_count(problem['count'], description)}, such as {problem['examples'][0]!r:.60}")
    if quotes.get("left_out"):
        lines.append(format_count(quotes["left_out"], "questions without a quote are left out (filtered.jsonl)"))
    lines += [format_count(count, description) for description, count in manifest.get("notes", {}).items()]
    lines += [f"study: {line}" for line in manifest.get("packed", {}).get("study", {}).get("notes", ())]
    if manifest.get("cost") is not None:
        lines.append(f"cost: {manifest['cost']:.4f}")
    if not (manifest["licence"]["answers"] and manifest["licence"]["texts"]):
        lines.append("the card states no licence; name it with --licence and --text-licence")
    if not manifest.get("language"):
        lines.append("the card states no language; name it with --language")
    return lines


def show_report(record: Mapping[str, Any]) -> None:
    """Print Tables 2 and 3, and the agreement of a judge with people."""
    console = new_console()
    if record["labelled_by"]["simulated"]:
        console.print(describe_labellers(record["labelled_by"]))
    _show_sizes(console, record["table2"])
    _show_labels(console, record["table3"])
    if not record["table3"]:
        note("no labels of people: Table 3, Figure 3 and the comparison with a judge are left out")
    agreement = record["autoais"]
    if agreement is not None:
        console.print()
        console.print(clean(f"{agreement['judge']} against people, {pluralize(agreement['n'], 'label')}"))
        for side, rate in agreement["attributable_by"]["all"].items():
            if rate["value"] is None:
                continue
            console.print(
                f"attributable by {side}: {rate['value']:.3f} "
                f"[{rate['interval95'][0]:.3f}, {rate['interval95'][1]:.3f}]"
            )
        for name in ("macro_f1", "cohen_kappa", "balanced_accuracy", "roc_auc"):
            if agreement[name] is not None:
                ends = agreement["interval95"].get(name)
                console.print(f"{name}: {agreement[name]:.3f}" + (f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""))
