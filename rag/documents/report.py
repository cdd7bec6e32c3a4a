"""What was read of a corpus, and what was not: for the progress of a build, its manifest and its log."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rag.base.errors import FormatError
from rag.base.terminal import pluralize
from rag.documents.navigation import SURROUNDINGS

_NAME_WIDTH = 60  # characters
EXAMPLES = 3  # of files that are no documents, by kind
MAX_FILES = 20  # whose losses are listed, and documents that cannot be read
MAX_KINDS = 12  # of files that are not read, the most frequent


@dataclass(slots=True)
class ReadReport:
    """What one pass over a corpus has read so far, and what it left out; it fills while the passages are taken.

    Files of folders that are not read are counted in `links`, `unread` and `passed`, each in one of them.
    """

    bytes_read: int = 0  # of source files as they lie on disk; for a Lucene index, its passages
    bad: int = 0  # documents and lines that were skipped as they cannot be read
    reasons: list[str] = field(default_factory=list)  # the errors of the first 20 of them
    dropped: Counter[str] = field(default_factory=Counter)  # parts of documents that were left out, by what they are
    losses: dict[str, str] = field(default_factory=dict)  # a file -> what may be missed of it
    duplicates: dict[str, str] = field(default_factory=dict)  # a file that repeats another one -> that other file
    repeats: dict[str, list[str]] = field(default_factory=dict)  # a file -> keys of its passages that repeat others
    repeat: tuple[str, str] = ("", "")  # the first of them, by its id, and the file that it repeats
    sketches: dict[str, str] = field(default_factory=dict)  # of the documents read, to find duplicates in an update
    escaped: list[str] = field(default_factory=list)  # names of files whose paths are not UTF-8
    links: int = 0  # that lead out of their folder
    unread: Counter[str] = field(default_factory=Counter)  # files that are no documents, by suffix
    examples: dict[str, list[str]] = field(default_factory=dict)  # the names of up to three of them, by suffix
    passed: Counter[str] = field(default_factory=Counter)  # other files and folders, by the reason

    def skip(self, error: FormatError) -> None:
        """Count a document or a line that cannot be read."""
        self.bad += 1
        if len(self.reasons) < MAX_FILES:
            self.reasons.append(str(error))

    def leave(self, name: str, kind: str) -> None:
        """Count a file that is no document."""
        self.unread[kind] += 1
        if self.unread[kind] <= EXAMPLES:
            self.examples.setdefault(kind, []).append(name)


def describe_loss(dropped: Counter[str], passages: int) -> str:
    """What may be missed of a document, by what was left out of it and the number of its passages; "" if nothing."""
    parts = Counter({part: count for part, count in dropped.items() if part not in SURROUNDINGS})
    return ", ".join([*(["no text"] if not passages else []), *([_count_each(parts)] if parts else [])])


def describe_losses(losses: Mapping[str, str], more: str) -> Iterator[str]:
    """The files of which parts are missing, as a table of up to 20 lines; `more` names where the others are listed."""
    if losses:
        width = min(max(map(len, [*losses][:MAX_FILES])), _NAME_WIDTH)
        yield f"not read whole: {pluralize(len(losses), 'file')}"
        yield from (f"  {name:{width}}  {loss}" for name, loss in [*losses.items()][:MAX_FILES])
        if len(losses) > MAX_FILES:
            yield f"  and {len(losses) - MAX_FILES:,} more: {more}"


def describe_left_out(report: ReadReport) -> Iterator[str]:
    """What the readers of documents left out, and why: a line each for parts, repeated files, links and other files."""
    if report.dropped:
        yield f"left out of documents: {_count_each(report.dropped)}"
    if report.duplicates:
        name, duplicate = next(iter(report.duplicates.items()))
        repeats = "repeats" if len(report.duplicates) == 1 else "repeat"
        count = pluralize(len(report.duplicates), "file")
        yield f"left out {count} that {repeats} another, such as {name} ({duplicate})"
    if report.repeats:
        passages = pluralize(sum(map(len, report.repeats.values())), "passage")
        name, other = report.repeat
        yield f"left out {passages} that other files hold: each is indexed once, such as {name} ({other})"
    if report.escaped:
        names_are = "name that is" if len(report.escaped) == 1 else "names that are"
        yield f"{pluralize(len(report.escaped), 'file')} with {names_are} not UTF-8, such as {report.escaped[0]}"
    if report.links:
        leads = "leads" if report.links == 1 else "lead"
        yield f"left out {pluralize(report.links, 'link')} that {leads} out of the folder: name the target as a source"
    if report.unread:
        kinds = report.unread.most_common()
        descriptions = [f"{count:,} {kind}" for kind, count in kinds[:MAX_KINDS]]
        if tail := kinds[MAX_KINDS:]:
            descriptions.append(f"{sum(count for _, count in tail):,} of {pluralize(len(tail), 'other kind')}")
        label = [report.examples.get(kind, []) for kind, _ in kinds]
        names = [name for number in range(EXAMPLES) for item in label for name in item[number : number + 1]]
        yield f"not read, as they are no documents: {', '.join(descriptions)}; such as {', '.join(names[:EXAMPLES])}"
    if report.passed:
        yield f"not read: {_count_each(report.passed)}"


def _count_each(counts: Counter[str]) -> str:
    """How many there are of each thing, the most frequent first: `2 listings of source code, 1 redirect`."""
    result = ((count, noun.partition(" ")) for noun, count in counts.most_common())
    return ", ".join(
        f"{pluralize(count, noun)}{space}{tail if count == 1 else tail.replace('that is ', 'that are ', 1)}"
        for count, (noun, space, tail) in result
    )
