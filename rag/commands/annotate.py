"""`rag annotate`: parse, call, print."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.commands.options import JsonOption, note, print_json

if TYPE_CHECKING:
    from rag.annotate.types import Progress

# Commands import what they use, so that `rag --help` loads no engine.

annotate_app = typer.Typer(no_args_is_help=True, help="Let people judge cited answers.")

StudyArgument = Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of the study.")]
PeopleArgument = Annotated[list[str], typer.Argument(metavar="PERSON", help="Names of people.")]
BaseOption = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="Public address of the study, such as https://study.example.org."),
]


def _check_kind(kind: str) -> str:
    from rag.annotate.schemes import KINDS
    from rag.base.errors import UsageError

    if kind not in KINDS:
        raise UsageError(f"--kind should be one of {', '.join(KINDS)}, found {kind!r}")
    return kind


KindOption = Annotated[str, typer.Option(callback=_check_kind, help="Kind of the answers: qa or summarization.")]
FlagOption = Annotated[
    bool, typer.Option("--flag-incomplete", help="Keep and flag items with missing parts instead of stopping.")
]
HostOption = Annotated[str, typer.Option(help="Address to listen on; any other address lets other machines connect.")]

_PORT = 8000
_POOLS = {
    "study": "to judge",
    "training": "in the training round",
    "gold": "gold",
    "flagged": "incomplete, flagged",
    "judged": "judged by the judge only",
    "unasked": "not judged, as they cite nothing and all questions are about the source",
    "check": "not judged, as attention checks use their texts",
}


@annotate_app.command()
def init(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder to create.")],
    answers: Annotated[
        Path | None, typer.Option(help="Answers to judge, in any format of `autoais schema`.", show_default=False)
    ] = None,
    items: Annotated[
        Path | None, typer.Option(help="Items to judge instead of answers (items.jsonl), such as captions of tables.")
    ] = None,
    scheme: Annotated[
        str, typer.Option(help="Annotation scheme (`rag annotate schemes`), or a TOML file of your own.")
    ] = "ais",
    annotators: Annotated[int, typer.Option(help="Number of people per item; an even number allows ties.")] = 5,
    kind: KindOption = "qa",
    training: Annotated[
        Path | None, typer.Option(help="Items of the training round (jsonl, with expected verdicts).")
    ] = None,
    gold: Annotated[Path | None, typer.Option(help="Gold items to mix in (jsonl, with expected verdicts).")] = None,
    attention_checks: Annotated[
        int, typer.Option(min=0, help="Number of items to turn into gold items, with the sources of other items.")
    ] = 0,
    title: Annotated[str, typer.Option(help="Title of the pages.")] = "Annotation study",
    seed: Annotated[int, typer.Option(help="Seed of the order of items.")] = 0,
    database: Annotated[
        str,
        typer.Option(metavar="URL", help="PostgreSQL database (default: a file in the folder).", show_default=False),
    ] = "",
    flag_incomplete: FlagOption = False,
    triage: Annotated[
        str | None, typer.Option(metavar="JUDGE", help="Judge that selects items for people, as for `autoais score`.")
    ] = None,
    confident: Annotated[float, typer.Option(help="Probability from which the judge counts as confident.")] = 0.9,
    sample: Annotated[
        float, typer.Option(help="Share of the items with a confident verdict that people also judge.")
    ] = 0.2,
    crowd: Annotated[
        Path | None, typer.Option(help="Consent text, questions about people, and crowd service (TOML).")
    ] = None,
) -> None:
    """Create a study. STUDY/study.toml has further settings."""

    from rag.annotate.create import create_study
    from rag.annotate.settings import settings_of
    from rag.base.terminal import pluralize

    values = {"scheme": scheme, "annotators": annotators, "title": title, "seed": seed, "database": database}
    new_study = create_study(
        study,
        items=items,
        answers=answers,
        training=training or (),
        gold=gold or (),
        settings=settings_of(values),
        kind=kind,  # type: ignore[arg-type]  # its option checks it
        flag_incomplete=flag_incomplete,
        attention=attention_checks,
        judge=triage,
        confident=confident,
        sample_share=sample,
        crowd=crowd,
    )
    new_study.close()
    for pool, n in sorted(new_study.pools.items()):
        typer.echo(f"{pluralize(n, 'item')}: {_POOLS[pool]}")
    if annotators % 2 == 0:
        note(f"note: {annotators} people can tie; an admin decides ties, which have no label until then")
    typer.echo(f"Next: edit {study / 'study.toml'}, then `rag annotate invite {study} NAME`.")


@annotate_app.command()
def add(
    study: StudyArgument,
    answers: Annotated[
        Path | None, typer.Option(help="Answers to add, in any format of `autoais schema`.", show_default=False)
    ] = None,
    items: Annotated[Path | None, typer.Option(help="Items to add (items.jsonl), to a study made of items.")] = None,
    kind: KindOption = "qa",
    flag_incomplete: FlagOption = False,
) -> None:
    """Add items to a study, also while it is served."""
    from rag.annotate.add import add_items
    from rag.annotate.create import open_study
    from rag.base.terminal import pluralize

    with closing(open_study(study)) as annotation_study:
        n = add_items(
            annotation_study,
            items=items,
            answers=answers,
            kind=kind,  # type: ignore[arg-type]  # its option checks it
            flag_incomplete=flag_incomplete,
        )
    typer.echo(f"{pluralize(n, 'item')} added to judge")


@annotate_app.command()
def assign(
    study: StudyArgument,
    batches: Annotated[
        Path, typer.Argument(metavar="BATCHES", help="JSON lines with `name`, `items` and `people` of each batch.")
    ],
) -> None:
    """Give items to named people only: one line per batch."""
    from autoais.base.io.jsonl import field, read_objects
    from rag.annotate.create import open_study
    from rag.base.errors import FormatError, UsageError
    from rag.base.terminal import pluralize

    with closing(open_study(study)) as annotation_study:
        for location, row in list(read_objects(batches)):
            items, people = (field(row, name, list, location) for name in ("items", "people"))
            if not all(isinstance(text, str) for text in (*items, *people)):
                raise FormatError(f"{location}: 'items' and 'people' should be lists of strings")
            name = field(row, "name", str, location)
            try:
                annotation_study.assign(name, items=items, people=people)
            except UsageError as error:
                raise FormatError(f"{location}: {error}") from error
            typer.echo(f"{name}: {pluralize(len(items), 'item')} for {', '.join(people) or 'everybody'}")


@annotate_app.command()
def schemes() -> None:
    """List the annotation schemes."""
    from rag.annotate.schemes import SCHEMES

    width = max(map(len, SCHEMES))
    for annotation_scheme in SCHEMES.values():
        typer.echo(f"{annotation_scheme.name:{width}}  {annotation_scheme.description}")


@annotate_app.command()
def invite(
    study: StudyArgument,
    people: PeopleArgument,
    admin: Annotated[bool, typer.Option("--admin", help="Allow them to see progress, adjudicate and export.")] = False,
    days: Annotated[float | None, typer.Option(help="Number of days until the links expire (default: never).")] = None,
    base_url: BaseOption = None,
) -> None:
    """Print a personal link for each person; earlier links stop working."""
    from rag.annotate.create import open_study
    from rag.web.security import list_hosts

    with closing(open_study(study)) as annotation_study:
        list_hosts(base_url)  # a bad address must not revoke the earlier link
        for person in people:
            token = annotation_study.invite(person, "admin" if admin else None, days=days)
            typer.echo(f"{person}\t{(base_url or f'http://127.0.0.1:{_PORT}').rstrip('/')}/in/{token}")


@annotate_app.command("crowd-link")
def crowd_link(study: StudyArgument, base_url: BaseOption = None) -> None:
    """Print the link by which people of the crowd service take part."""
    from rag.annotate.create import open_study
    from rag.annotate.crowd import Crowd
    from rag.web.security import list_hosts

    list_hosts(base_url)
    with closing(open_study(study)) as annotation_study:
        typer.echo(Crowd(annotation_study).link(base_url or f"http://127.0.0.1:{_PORT}"))


@annotate_app.command()
def participants(
    study: StudyArgument, file: Annotated[Path, typer.Argument(metavar="OUT.jsonl", help="File to write.")]
) -> None:
    """Write who took part, what they accepted, and what they said of themselves; the export has none of it."""
    from rag.annotate.create import open_study
    from rag.annotate.crowd import write_participants
    from rag.base.terminal import pluralize

    with closing(open_study(study)) as annotation_study:
        n = write_participants(annotation_study, file)
    typer.echo(f"{file}: {pluralize(n, 'participant')}")


@annotate_app.command()
def revoke(study: StudyArgument, people: PeopleArgument) -> None:
    """Revoke the links of people; their ratings stay."""
    from rag.annotate.create import open_study

    with closing(open_study(study)) as annotation_study:
        for person in people:
            annotation_study.revoke(person)
            typer.echo(f"{person}: the link is revoked")


@annotate_app.command()
def serve(
    study: StudyArgument,
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on (0: any free port).")] = _PORT,
    base_url: BaseOption = None,
) -> None:
    """Serve the pages of a study until Ctrl-C."""
    from autoais.base.urls import is_loopback
    from rag.annotate.app import create_app
    from rag.annotate.create import open_study
    from rag.annotate.guidelines import record_guidelines
    from rag.base.errors import UsageError
    from rag.base.terminal import pluralize
    from rag.web.server import address, other_address
    from rag.web.server import serve as serve_app

    if base_url is None and not is_loopback(host):
        example = other_address(host, port, "study.example.org")
        raise UsageError(f"--host {host} needs --base-url too, the address that people type, such as {example}")
    with closing(open_study(study)) as annotation_study:
        record_guidelines(annotation_study)  # so that a missing file is an error here, and not on the pages
        items = pluralize(annotation_study.pools.get("study", 0), "item")
        typer.echo(f"{annotation_study.settings.title}: {items}, scheme {annotation_study.scheme.name}")
        if base_url is None and port not in (0, _PORT):
            typer.echo(f"Links of `rag annotate invite` need --base-url {address(host, port)}")
        serve_app(create_app(annotation_study, base_url), host=host, port=port, log=typer.echo)


@annotate_app.command()
def progress(study: StudyArgument, as_json: JsonOption = False) -> None:
    """Show the progress of a study and its people."""
    from dataclasses import asdict

    from rag.annotate.create import open_study

    with closing(open_study(study)) as annotation_study:
        report = annotation_study.progress()
    if as_json:
        from autoais.base.io.jsonl import round_floats

        print_json(round_floats(asdict(report)))
    else:
        _show(report)


def _show(report: "Progress") -> None:
    from autoais.base.terminal import new_console, new_table
    from rag.base.terminal import pluralize

    console = new_console()
    summary = f"{report.finished:,} of {pluralize(report.total, 'item')} finished"
    console.print(
        f"{summary}, {pluralize(report.ratings, 'verdict')}, {pluralize(report.ties, 'tie')} of finished items"
    )
    shares = (f"{pluralize(items, 'item')} with {pluralize(n, 'rating')}" for n, items in report.items.items())
    console.print(", ".join(shares))
    for question, alpha in report.alpha.items():
        console.print(f"{question}: alpha {_number(alpha)}")
    heads = ("person", "done", "flags", "s/item", "gold right", "audits right", "agreement", "state")
    table = new_table(*heads)
    table.columns[-1].justify = "left"
    for person in report.people:
        state = "revoked" if person.revoked else person.blocked or ("" if person.passed else "in training")
        gold = f"{_number(person.gold_right)} of {person.gold}" if person.gold else "-"
        audits = f"{_number(person.audit_right)} of {person.audited}" if person.audited else "-"
        numbers = (
            str(person.done),
            str(person.flagged),
            _number(person.median_seconds, 1),
            gold,
            audits,
            _number(person.agreement),
        )
        table.add_row(person.id, *numbers, state)
    console.print(table)
    for batch in report.batches:
        console.print(f"batch {batch.name}, {batch.annotator}: {batch.done} of {pluralize(batch.items, 'item')} done")
    for warning in report.warnings:
        console.print(f"{warning.annotator}: {warning.text}")


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


@annotate_app.command()
def export(
    study: StudyArgument,
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.")],
    exclude: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="NAME", help="Person whose ratings are ignored; repeatable."),
    ] = None,
    tool: Annotated[
        str | None,
        typer.Option("--to", metavar="TOOL", help="Write the formats of another tool: label-studio or potato."),
    ] = None,
) -> None:
    """Write the ratings, the answers with the consensus, and a manifest."""
    from rag.annotate.create import open_study

    with closing(open_study(study)) as annotation_study:
        manifest = annotation_study.export(folder, exclude=exclude or (), to=tool)
    for name, file in manifest["files"].items():
        typer.echo(f"{folder / name}: {file['bytes']:,} bytes")
    for line in manifest["notes"]:
        note(line)
