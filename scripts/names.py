"""How far the names in the code follow the vocabulary: values named by nouns, functions by verbs in the imperative.

Run: python -m scripts.names [FOLDER ...] [--room rag.index] [--list] [--json]
"""

import argparse
import ast
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

# In percent: `tests/test_names.py` fails above. httpx, starlette, rich and ir_measures have 0.6 to 1.2 and 0.9 to 1.7.
MAX_BANNED_NAMES_SHARE = 1.5  # per cent; other libraries have .6 to 1.2
MAX_PARTICIPLE_SHARE = 3.0  # per cent

ROOT = Path(__file__).parents[1]
PACKAGES = ("rag", "eval/autoais")

# Words that say nothing about what a value is: it takes the noun of its type, or of what a loop goes over.
PRONOUNS = frozenset(
    "all_of another anything both each either everything few fewer her here his how it its least less many mine more "
    "most much neither nothing one ones one_of others our ours own rest same several some something such that their "
    "theirs them there these they thing things this those thus twin twins what when where which who whole wholes whom "
    "whose why your yours".split()
)
PREPOSITIONS = frozenset(
    "about above across again against ahead alike alone along among apart around at away behind below beneath "
    "beside besides between beyond by down elsewhere far from here hence inside into like near of off on onto "
    "once out outside over past since so then through throughout to together too toward towards twice under until up "
    "upon via with within without yet".split()
)
VAGUE_NOUNS = frozenset("left_out made_by made_of place places stuff way way_of ways".split())
PARTICIPLES_OF_PRESENT = frozenset(
    "asking being coming doing finding giving going having holding keeping knowing lacking making placing saying "
    "seeing showing taking telling wanting writing".split()
)
VERBS_OF_PAST = frozenset(
    "became began came did ended fell gave got grew had knew ran saw says took wants was went were wrote".split()
)

IRREGULAR_PARTICIPLES = frozenset(
    "begun bent bitten blown borne bought bound bred broken brought built burnt caught chosen come cut dealt done "
    "drawn driven dug eaten fallen fed felt fit flown forbidden forgotten forgiven found fought frozen given gone "
    "gotten ground grown hung heard held hidden hit hurt kept known laid learnt led left lent let lit lost made meant "
    "met misread mistaken overridden paid proven put read rebuilt redone rewritten ridden risen rung said seen sent "
    "sewn shaken shown shrunk shut slept sold sought sown spelt spent split spoken spread sprung spun stolen stood "
    "strewn struck stuck sung sunk swept sworn swum taken taught thought thrown told torn understood undone undrawn "
    "unread unseen unsent unwritten woken won worn woven written".split()
)
# Forms that are also an infinitive or a noun: `cut_text` and `put_row` are imperatives, a `split` is a part of a set.
AMBIGUOUS_PARTICIPLES = frozenset("bound come cut fit ground hit hurt let lit put read set shut split spread".split())
# Nouns and verbs in -ed that are no participles.
WORDS_IN_ED = frozenset(
    "bed bleed breed embed exceed feed greed hundred indeed led med need proceed reed seed shed shred sled speed "
    "succeed ted weed wed zed".split()
)
# Values that other libraries and the papers call so.
FIELD_TERMS = {
    "cached": "a value from a cache, in every library that has one",
    "decoded": "what a tokenizer or a codec returns",
    "encoded": "what a tokenizer or a codec returns",
    "expected": "the value that a test or a reproduction compares with",
    "normalized": "a text after the normalization of SQuAD or Unicode",
    "now": "the present time",
    "parsed": "what urllib.parse and argparse return",
    "required": "whether a field must be there, in every schema",
    "uncited": "a label of the literature: a statement without a citation",
    "undecided": "a verdict",
    "unresolved": "a key of our reports: markers that point nowhere",
    "unsupported": "a label of the literature: a statement that its citations do not support",
}
# Names that callers spell out: of our public API, of typing, and of the attributes of files.
PUBLIC_NAMES = {
    "by": "the grouping in `autoais.agreement(ratings, by=...)`, the aim in `autoais.calibrate_judge(labels, by=...)`",
    "without": "the annotators to ignore in `autoais.agreement(ratings, without=...)`",
    "to": "the path in `rag.export_answers(answers, to=...)`",
    "In": "the type that goes into a generic function",
    "Out": "the type that comes out of a generic function",
}
# Functions in which the participle is part of a term.
FIELD_FUNCTIONS = {
    "attributed_qa": "the benchmark",
    "balanced_accuracy": "the metric",
    "closed_book": "the setting: answers without passages",
    "connection_lost": "a method of asyncio protocols",
    "connection_made": "a method of asyncio protocols",
    "data_received": "a method of asyncio protocols",
    "estimated_tokens": "the unit of budgets",
    "mcnemar_corrected": "the test with continuity correction",
    "mixed_precision": "the mode of training",
    "read_expected": "expected values, as in a test",
    "shared_lock": "the mode of `flock`",
}
# A superlative as a constant is a limit, which begins with MAX_ or MIN_.
SUPERLATIVES = frozenset(
    "deepest fewest highest largest least longest lowest most narrowest shortest smallest widest".split()
)
FORBIDDEN_WORDS = PRONOUNS | PREPOSITIONS | VAGUE_NOUNS | PARTICIPLES_OF_PRESENT | VERBS_OF_PAST | {"read"}


@dataclass(frozen=True, order=True)
class Name:
    """A name that a file binds, or a function that it defines."""

    file: str
    line: int
    text: str


@dataclass
class Count:
    """The names of a package, and those that break the rule."""

    total: int = 0
    offenders: list[Name] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The offenders in percent."""
        return 100 * len(self.offenders) / self.total if self.total else 0.0

    def add(self, name: Name, is_offender: bool) -> None:
        """Count one more name."""
        self.total += 1
        if is_offender:
            self.offenders.append(name)


def is_participle(word: str) -> bool:
    """Whether a word of a name is a past participle: `joined`, `found`; not `seed` or `read`."""
    if word in IRREGULAR_PARTICIPLES:
        return word not in AMBIGUOUS_PARTICIPLES
    return len(word) > 3 and word.endswith("ed") and word not in WORDS_IN_ED


def is_banned(name: str) -> bool:
    """Whether a bound name says nothing about its value: `one`, `found`, `_MOST`."""
    plain = name.strip("_").lower()
    if name in PUBLIC_NAMES or plain in FIELD_TERMS:
        return False
    if name.isupper() and plain.split("_")[0] in SUPERLATIVES:
        return True
    return plain in FORBIDDEN_WORDS or ("_" not in plain and is_participle(plain))


def is_participle_function(name: str) -> bool:
    """Whether a function is named by a participle: `_opened`, `told_of`, `as_given`."""
    plain = name.strip("_")
    words = plain.lower().split("_")
    if words[0] in {"is", "has", "are"} or plain in FIELD_FUNCTIONS:
        return False
    return is_participle(words[0]) or is_participle(words[-1])


def bindings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a syntax tree assigns, with their lines; arguments and `except ... as` included."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if name != "_":
                yield name, node.lineno
            case ast.arg(arg=name) if name not in {"self", "cls", "_"}:
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The functions and methods that a syntax tree defines, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno


def count_names(folder: Path, room: str = "") -> tuple[Count, Count]:
    """The bound names and the functions of a package, or of the rooms in it that `room` begins."""
    names, definitions = Count(), Count()
    for path in sorted(folder.rglob("*.py")):
        module = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        if room and not f"{module}.".startswith(room.replace("/", ".").strip(".") + "."):
            continue
        tree = ast.parse(path.read_bytes(), str(path))
        file = str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
        for name, line in bindings(tree):
            names.add(Name(file, line, name), is_banned(name))
        for name, line in functions(tree):
            definitions.add(Name(file, line, name), is_participle_function(name))
    return names, definitions


def merge(counts: Sequence[Count]) -> Count:
    """The counts of several packages as one."""
    return Count(sum(count.total for count in counts), [name for count in counts for name in count.offenders])


def frequent(count: Count, limit: int) -> list[tuple[str, int]]:
    """The offenders that come most often, with how often."""
    return Counter(name.text for name in count.offenders).most_common(limit)


def _print_table(rows: Sequence[Sequence[str]], title: str) -> None:
    if not sys.stdout.isatty():
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        print(title)
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            print("  ".join([row[0].ljust(widths[0]), *cells]).rstrip())
        return
    table = Table(title=title, title_justify="left")
    for column, header in enumerate(rows[0]):
        table.add_column(header, justify="right" if column else "left")
    for row in rows[1:]:
        table.add_row(*row)
    Console().print(table)


def _rows(counts: dict[str, Count], limit: float) -> list[list[str]]:
    rows = [["package", "names", "against the rule", "share"]]
    for package, count in {**counts, "all": merge(list(counts.values()))}.items():
        rows.append([package, f"{count.total:,}", f"{len(count.offenders):,}", f"{count.share:.1f} %"])
    return [*rows, ["limit", "", "", f"{limit:.1f} %"]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the two shares, and who breaks the rules."""
    parser = argparse.ArgumentParser(prog="python -m scripts.names", description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", default=PACKAGES, help="packages to read (rag and eval/autoais)")
    parser.add_argument("--room", default="", help="only modules below this one, such as rag.index")
    parser.add_argument("--top", type=int, default=40, help="how many offenders to print")
    parser.add_argument("--list", action="store_true", dest="with_lines", help="print file:line of each offender")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")
    options = parser.parse_args(arguments)
    names: dict[str, Count] = {}
    definitions: dict[str, Count] = {}
    for folder in options.folders:
        path = Path(folder) if Path(folder).is_dir() else ROOT / folder
        if not path.is_dir():
            parser.error(f"{folder} is not a folder; name a package such as rag or eval/autoais")
        names[folder], definitions[folder] = count_names(path.resolve(), options.room)
    sections: list[tuple[str, dict[str, Count], float]] = [
        ("Names that say nothing", names, MAX_BANNED_NAMES_SHARE),
        ("Functions named by a participle", definitions, MAX_PARTICIPLE_SHARE),
    ]
    if options.as_json:
        report = {
            title: {
                package: {
                    "total": count.total,
                    "offenders": len(count.offenders),
                    "share": round(count.share, 2),
                    "frequent": dict(frequent(count, options.top)),
                }
                for package, count in {**counts, "all": merge(list(counts.values()))}.items()
            }
            for title, counts, _ in sections
        }
        print(json.dumps(report, indent=1))
        return
    for title, counts, limit in sections:
        _print_table(_rows(counts, limit), title)
        merged_count = merge(list(counts.values()))
        if options.with_lines:
            for name in sorted(merged_count.offenders):
                print(f"{name.file}:{name.line}: {name.text}")
        else:
            print(", ".join(f"{text} {number}" for text, number in frequent(merged_count, options.top)))
        print()


if __name__ == "__main__":
    main()
