"""The dataset card of a collection (README.md), with front matter as Hugging Face reads it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from autoais.base.io.jsonl import dumps
from autoais.base.terminal import clean, format_count, markdown
from rag.bench.collections.collected import REASONS
from rag.bench.collections.statistics import TABLE2, TABLE3, describe_labellers

PART_FILES = {"all": "hagrid.jsonl", "train": "hagrid-train.jsonl", "dev": "hagrid-dev.jsonl"}
"""The files in HAGRID's schema, by the part of the collection that they hold."""

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LICENCE_ID = re.compile(r"[a-z0-9][a-z0-9.-]*")


def card(manifest: Mapping[str, Any]) -> str:
    """Return the card of a manifest; equal manifests give equal bytes."""
    return "\n".join([*_front(manifest), "", *_body(manifest)]) + "\n"


def _front(manifest: Mapping[str, Any]) -> Iterator[str]:
    rows = manifest["statistics"]["all"]["questions"]  # each is a row of HAGRID's files
    licence_texts = manifest.get("licence", {})
    licences = list(
        dict.fromkeys(str(text).lower() for name in ("answers", "texts") if (text := licence_texts.get(name)))
    )
    licences = licences if licence_texts.get("answers") else ["unknown", *licences]
    licence = re.sub("[<>]", "", " and ".join(licences))  # no markup, even where the front matter is shown as text
    are_known = all(_LICENCE_ID.fullmatch(name) for name in licences)
    yield "---"
    yield f"pretty_name: {dumps(manifest['name'])}"  # a JSON string is a YAML string
    if are_known and len(licences) > 1:
        yield "license:\n" + "\n".join(f"- {name}" for name in licences)
    else:
        yield f"license: {licence if are_known else 'other'}"
    if not are_known:
        yield f"license_name: {dumps(licence)}"
    if manifest.get("language"):
        yield "language:\n" + "\n".join(f"- {language}" for language in manifest["language"])
    yield "task_categories:\n- question-answering\n- text-generation"
    yield "tags:\n- attribution\n- citations\n- hagrid"
    yield f"size_categories:\n- {next((name for limit, name in _SIZES if rows < limit), 'n>1M')}  # questions"
    yield "configs:\n- config_name: default\n  data_files:"
    files = manifest["files"]
    split_files = {part: file for part, file in PART_FILES.items() if part != "all" and file in files}
    split_files = split_files or {"train": PART_FILES["all"]}
    for part, file in split_files.items():
        yield f"  - split: {part}\n    path: {file}"
    yield "---"


def _body(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {_text(manifest['name'])}"
    yield ""
    yield "Questions with numbered quotes, and answers whose sentences cite them, in the form of HAGRID"
    yield "(Kamalloo et al. 2023)."
    yield ""
    yield "## Files"
    yield ""
    yield "| file | content |"
    yield "|---|---|"
    for name, content in _FILES.items():
        if name in manifest["files"] or name in ("collection.json", "SHA256SUMS"):
            yield f"| `{name}` | {content} |"
    yield ""
    yield "## Statistics"
    yield ""
    yield from _statistics(manifest)
    yield from _labels(manifest)
    yield from _history(manifest)
    yield from _licences(manifest)
    yield "## Limits"
    yield ""
    yield from (f"- {line}" for line in _limits(manifest))


_FILES = {
    "answers.jsonl": "all that is known of each answer: sentences, citations with spans, quotes, system, labels",
    "hagrid.jsonl": "the same in HAGRID's schema, a question a line",
    "hagrid-train.jsonl": "its training part",
    "hagrid-dev.jsonl": "its development part; no question is in both",
    "filtered.jsonl": "what was left out, with the reason",
    "collection.json": "how the collection was made: command, versions, checksums, systems, counts",
    "SHA256SUMS": "checksums, for `sha256sum -c`",
}


def _statistics(manifest: Mapping[str, Any]) -> Iterator[str]:
    parts = manifest["statistics"]
    yield f"| | {' | '.join(parts)} |"
    yield f"|---|{'---:|' * len(parts)}"
    for key, name in TABLE2.items():
        yield f"| {name} | {' | '.join(_number(part[key]) for part in parts.values())} |"
    yield ""
    yield "| system | answers |"
    yield "|---|---:|"
    for name, count in manifest["answers_of"].items():
        yield f"| {_text(name)} | {count:,} |"
    yield ""


def _number(value: float | int | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.1f}"


def _labels(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield "## Labels"
    yield ""
    if not manifest["labels"]:
        yield "None yet: `informative` and `attributable` are null. No person has judged these answers."
        yield ""
        return
    labellers = describe_labellers(manifest["labelled_by"])
    yield f"**{labellers}**" if manifest["labelled_by"]["simulated"] else labellers
    yield "A missing label is null, and not a no."
    yield ""
    yield "| part | label | total | yes | no | yes % |"
    yield "|---|---|---:|---:|---:|---:|"
    for part, table in manifest["labels"].items():
        for key, name in TABLE3.items():
            if key in table:
                label_counts = table[key]
                cells = (
                    part,
                    name,
                    *(f"{label_counts[k]:,}" for k in ("total", "yes", "no")),
                    f"{100 * label_counts['share']:.1f}",
                )
                yield f"| {' | '.join(cells)} |"
        if "support" in table:
            counts = ", ".join(f"{count:,} {level}" for level, count in table["support"].items())
            yield f"| {part} | support of citations | {sum(table['support'].values()):,} | {counts} | | |"
    yield ""


def _history(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield "## How it was made"
    yield ""
    yield f"- Command: {_code(manifest['command'])}"
    if "packed" in manifest:
        yield f"- Labels added with: {_code(manifest['packed']['command'])}"
    if study := manifest.get("packed", {}).get("study"):
        alphas = [f"{_text(name)} {alpha:.2f}" for name, alpha in study["alpha"].items() if alpha is not None]
        agreement = f"; Krippendorff's alpha: {', '.join(alphas)}" if alphas else ""
        yield f"- Annotators: {study['annotators']:,}; ties without a label: {study['ties']:,}{agreement}"
        yield from (f"- Note of the study: {_text(line)}" for line in study["notes"])
    for role, data_file in manifest.get("data", {}).items():
        yield f"- {role.capitalize()}: {_code(data_file['file'])}, SHA-256 `{data_file['sha256']}`"
    quotes = manifest.get("quotes")
    if quotes:
        counts = f"{format_count(quotes['questions'], 'questions')} read, {quotes['left_out']:,} left out"
        yield f"- Quotes: {_QUOTES[quotes['kind']]}; {counts}"
    if limit := manifest.get("settings", {}).get("limit"):
        yield f"- Sample: at most {limit:,} of the questions, drawn with seed {manifest['settings']['seed']}"
    for label, system in manifest.get("systems", {}).items():
        prompt = (
            f", prompt `{system['prompt']['name']}` (SHA-256 `{system['prompt']['sha256']}`)"
            if system["prompt"]
            else ""
        )
        seed = "" if system["seed"] is None else f", seed {system['seed']}"
        answer_share = f"{system['kept']:,} of {system['asked']:,} answers kept"
        yield f"- System {_text(label)}: {_code(system['name'])}{prompt}{seed}; {answer_share}"
    if "systems" in manifest:
        is_attached = manifest["settings"]["trailing"] == "attach"
        yield (
            "- A sentence without a citation is grouped with the next one that has one; sentences after the last "
            f"citation {'belong to the last group' if is_attached else 'are a group without citations'}."
        )
    if filter_counts := manifest.get("filtered"):
        yield "- Left out: " + "; ".join(
            f"{count:,} because {_reason(reason)}" for reason, count in filter_counts.items()
        )
    split = manifest["split"]
    if "train" in manifest["statistics"]:
        dev_share = f"{100 * split['dev']:g} % of the questions, drawn with seed {split['seed']}"
        yield f"- Split: {dev_share}, are the development part."
    yield "- Versions: " + ", ".join(f"{name} {value}" for name, value in manifest["versions"].items())
    yield ""


def _reason(name: str) -> str:
    return REASONS.get(name) or _text(name)


_QUOTES = {
    "given": "the passages that came with the questions",
    "gold": "all passages that people judged relevant, in the order of the relevance file",
    "retrieved": "the first hits of a search",
}


def _licences(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield "## Licences"
    yield ""
    unknown = "not stated; find out before you publish"
    for subject, value in (("Answers and labels", "answers"), ("Quotes and questions", "texts")):
        yield f"- {subject}: {_text(manifest.get('licence', {}).get(value) or unknown)}"
    yield ""


def _limits(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield "The answers are written by machines and may be wrong, even where they cite a quote."
    quotes = manifest.get("quotes") or {}
    if quotes.get("kind") == "gold":
        yield "Every quote is relevant by people's judgement, so answering is easier than from retrieved passages."
    if quotes.get("incomplete"):
        question_count = format_count(quotes["incomplete"], "questions are")
        yield f"{question_count} without relevant passages whose text is not in the corpus."
    if manifest.get("filtered"):
        yield "Answers that break the citation format are left out, which makes the systems look better than they are."
    if any(system["kept"] and system["quoting"] for system in manifest.get("systems", {}).values()):
        yield "Systems that quote verbatim are attributable by construction; judge whether they are informative."
    if (cut := manifest.get("cut", 0)) > 0:
        answer_count = format_count(cut, "answers were")
        yield f"{answer_count} written from fewer quotes than listed: the others did not fit the model's context."


def _text(value: object) -> str:
    return markdown(clean(str(value)).replace("\n", " "))


def _code(value: object) -> str:
    text = clean(str(value)).replace("\n", " ").replace("`", "'")
    return f"`{text}`"
