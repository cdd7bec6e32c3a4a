"""The dataset card of a collection (README.md), with front matter as Hugging Face reads it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from autoais.base.io.jsonl import dumps
from autoais.base.terminal import clean, how_many, markdown
from rag.bench.collections.collected import REASONS
from rag.bench.collections.statistics import TABLE2, TABLE3, labelled_by

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LICENCE_ID = re.compile(r"[a-z0-9][a-z0-9.-]*")


def card(manifest: Mapping[str, Any]) -> str:
    """Return the card of a manifest; equal manifests give equal bytes."""
    return "\n".join([*_front(manifest), "", *_body(manifest)]) + "\n"


def _front(manifest: Mapping[str, Any]) -> Iterator[str]:
    rows = manifest["statistics"]["all"]["questions"]  # each is a row of HAGRID's files
    stated = manifest.get("licence", {})
    licences = list(dict.fromkeys(str(one).lower() for name in ("answers", "texts") if (one := stated.get(name))))
    licences = licences if stated.get("answers") else ["unknown", *licences]
    licence = re.sub("[<>]", "", " and ".join(licences))  # no markup, even where the front matter is shown as text
    known = all(_LICENCE_ID.fullmatch(one) for one in licences)
    yield "---"
    yield f"pretty_name: {dumps(manifest['name'])}"  # a JSON string is a YAML string
    if known and len(licences) > 1:
        yield "license:\n" + "\n".join(f"- {one}" for one in licences)
    else:
        yield f"license: {licence if known else 'other'}"
    if not known:
        yield f"license_name: {dumps(licence)}"
    if manifest.get("language"):
        yield "language:\n" + "\n".join(f"- {one}" for one in manifest["language"])
    yield "task_categories:\n- question-answering\n- text-generation"
    yield "tags:\n- attribution\n- citations\n- hagrid"
    yield f"size_categories:\n- {next((name for most, name in _SIZES if rows < most), 'n>1M')}  # questions"
    yield "configs:\n- config_name: default\n  data_files:"
    files = manifest["files"]
    split = {"train": "hagrid-train.jsonl", "dev": "hagrid-dev.jsonl"}
    named = {part: file for part, file in split.items() if file in files} or {"train": "hagrid.jsonl"}
    for part, file in named.items():
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
    for name, what in _FILES.items():
        if name in manifest["files"] or name in ("collection.json", "SHA256SUMS"):
            yield f"| `{name}` | {what} |"
    yield ""
    yield "## Statistics"
    yield ""
    yield from _statistics(manifest)
    yield from _labels(manifest)
    yield from _made(manifest)
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
    who = labelled_by(manifest["labelled_by"])
    yield f"**{who}**" if manifest["labelled_by"]["simulated"] else who
    yield "A missing label is null, and not a no."
    yield ""
    yield "| part | label | total | yes | no | yes % |"
    yield "|---|---|---:|---:|---:|---:|"
    for part, table in manifest["labels"].items():
        for key, name in TABLE3.items():
            if key in table:
                one = table[key]
                cells = (part, name, *(f"{one[k]:,}" for k in ("total", "yes", "no")), f"{100 * one['share']:.1f}")
                yield f"| {' | '.join(cells)} |"
        if "support" in table:
            counts = ", ".join(f"{count:,} {level}" for level, count in table["support"].items())
            yield f"| {part} | support of citations | {sum(table['support'].values()):,} | {counts} | | |"
    yield ""


def _made(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield "## How it was made"
    yield ""
    yield f"- Command: {_code(manifest['command'])}"
    if "packed" in manifest:
        yield f"- Labels added with: {_code(manifest['packed']['command'])}"
    if study := manifest.get("packed", {}).get("study"):
        alphas = [f"{_text(name)} {one:.2f}" for name, one in study["alpha"].items() if one is not None]
        agreement = f"; Krippendorff's alpha: {', '.join(alphas)}" if alphas else ""
        yield f"- Annotators: {study['annotators']:,}; ties without a label: {study['ties']:,}{agreement}"
        yield from (f"- Note of the study: {_text(line)}" for line in study["notes"])
    for role, one in manifest.get("data", {}).items():
        yield f"- {role.capitalize()}: {_code(one['file'])}, SHA-256 `{one['sha256']}`"
    quotes = manifest.get("quotes")
    if quotes:
        counts = f"{how_many(quotes['questions'], 'questions')} read, {quotes['left_out']:,} left out"
        yield f"- Quotes: {_QUOTES[quotes['kind']]}; {counts}"
    if limit := manifest.get("settings", {}).get("limit"):
        yield f"- Sample: at most {limit:,} of the questions, drawn with seed {manifest['settings']['seed']}"
    for label, one in manifest.get("systems", {}).items():
        prompt = f", prompt `{one['prompt']['name']}` (SHA-256 `{one['prompt']['sha256']}`)" if one["prompt"] else ""
        seed = "" if one["seed"] is None else f", seed {one['seed']}"
        kept = f"{one['kept']:,} of {one['asked']:,} answers kept"
        yield f"- System {_text(label)}: {_code(one['name'])}{prompt}{seed}; {kept}"
    if "systems" in manifest:
        attached = manifest["settings"]["trailing"] == "attach"
        yield (
            "- A sentence without a citation is grouped with the next one that has one; sentences after the last "
            f"citation {'belong to the last group' if attached else 'are a group without citations'}."
        )
    if filtered := manifest.get("filtered"):
        yield "- Left out: " + "; ".join(f"{count:,} because {_reason(reason)}" for reason, count in filtered.items())
    split = manifest["split"]
    if "train" in manifest["statistics"]:
        drawn = f"{100 * split['dev']:g} % of the questions, drawn with seed {split['seed']}"
        yield f"- Split: {drawn}, are the development part."
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
    for what, value in (("Answers and labels", "answers"), ("Quotes and questions", "texts")):
        yield f"- {what}: {_text(manifest.get('licence', {}).get(value) or unknown)}"
    yield ""


def _limits(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield "The answers are written by machines and may be wrong, even where they cite a quote."
    quotes = manifest.get("quotes") or {}
    if quotes.get("kind") == "gold":
        yield "Every quote is relevant by people's judgement, so answering is easier than from retrieved passages."
    if quotes.get("incomplete"):
        asked = how_many(quotes["incomplete"], "questions are")
        yield f"{asked} without relevant passages whose text is not in the corpus."
    if manifest.get("filtered"):
        yield "Answers that break the citation format are left out, which makes the systems look better than they are."
    if any(one["kept"] and one["quoting"] for one in manifest.get("systems", {}).values()):
        yield "Systems that quote verbatim are attributable by construction; judge whether they are informative."
    if (cut := manifest.get("cut", 0)) > 0:
        written = how_many(cut, "answers were")
        yield f"{written} written from fewer quotes than listed: the others did not fit the model's context."


def _text(value: object) -> str:
    return markdown(clean(str(value)).replace("\n", " "))


def _code(value: object) -> str:
    text = clean(str(value)).replace("\n", " ").replace("`", "'")
    return f"`{text}`"
