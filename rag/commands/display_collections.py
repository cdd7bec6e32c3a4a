"""Terminal output of `rag collect`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autoais.base.terminal import clean, format_count, new_console, new_table
from rag.base.terminal import counted, note
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
        for label, one in systems.items():
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in one["filtered"].items())
            tokens = f"{one['tokens']['read']:,} + {one['tokens']['written']:,}" if one["tokens"] else ""
            table.add_row(clean(label), f"{one['asked']:,}", f"{one['kept']:,}", clean(reasons), tokens)
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
            *("" if one is None else f"{one:,.4g}" if isinstance(one, float) else f"{one:,}" for one in cells),
        )
    console.print(table)


def _show_labels(console: "Console", parts: Mapping[str, Any]) -> None:
    if not parts:
        return
    table = new_table("part", "label", "total", "yes", "no", "yes %", "95 % interval", words=2)
    for part, labels in parts.items():
        for name, one in labels.items():
            if name == "support":
                counts = ", ".join(f"{count:,} {level}" for level, count in one.items())
                table.add_row(part, "support", f"{sum(one.values()):,}", counts, "", "", "")
                continue
            ends = "[{:.1f}, {:.1f}]".format(*(100 * end for end in one["interval95"])) if one["interval95"] else ""
            cells = (f"{one['total']:,}", f"{one['yes']:,}", f"{one['no']:,}", f"{100 * one['share']:.1f}", ends)
            table.add_row(part, name.replace("_", " "), *cells)
    console.print()
    console.print(table)


def _remarks(manifest: Mapping[str, Any]) -> list[str]:
    lines = []
    quotes = manifest.get("quotes", {})
    for key, what in (
        ("qrels_of_unknown_questions", "questions of the qrels are not in the questions file"),
        ("passages_without_text", "relevant passages are without a text in the corpus"),
    ):
        if (found := quotes.get(key)) and found["count"]:
            lines.append(f"{format_count(found['count'], what)}, such as {found['examples'][0]!r:.60}")
    if quotes.get("left_out"):
        lines.append(format_count(quotes["left_out"], "questions without a quote are left out (filtered.jsonl)"))
    lines += [format_count(count, what) for what, count in manifest.get("notes", {}).items()]
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
    found = record["autoais"]
    if found is not None:
        console.print()
        console.print(clean(f"{found['judge']} against people, {counted(found['n'], 'label')}"))
        for side, one in found["attributable_by"]["all"].items():
            if one["value"] is None:
                continue
            console.print(
                f"attributable by {side}: {one['value']:.3f} [{one['interval95'][0]:.3f}, {one['interval95'][1]:.3f}]"
            )
        for name in ("macro_f1", "cohen_kappa", "balanced_accuracy", "roc_auc"):
            if found[name] is not None:
                ends = found["interval95"].get(name)
                console.print(f"{name}: {found[name]:.3f}" + (f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""))
