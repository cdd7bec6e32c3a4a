"""`rag collect`: parse, call, print."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.base.config import DEFAULT_JUDGE
from rag.commands.options import ConcurrencyOption, CorpusOption, PriceOption, ResumeOption, note, print_json

if TYPE_CHECKING:
    from rag.bench.collections.build import Plan
    from rag.bench.collections.folder import Collection

# Commands import what they use, so that `rag --help` loads no engine.

collect_app = typer.Typer(no_args_is_help=True, help="Collect cited answers for people to judge.")

OutArgument = Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the collection.")]
NameOption = Annotated[str | None, typer.Option(help="Name of the collection (default: the name of its folder).")]
LicenceOption = Annotated[str | None, typer.Option(help="Licence of answers and labels, for the card.")]
TextLicenceOption = Annotated[str | None, typer.Option(help="Licence of questions and quotes, for the card.")]
LanguageOption = Annotated[
    str | None, typer.Option(help="Language of questions and answers, for the card, such as en.")
]
AnswersFormatOption = Annotated[
    str | None, typer.Option("--format", help="A format of `autoais schema` (default: detected).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the manifest as JSON.")]


@collect_app.command("build")
def build(
    folder: OutArgument,
    questions: Annotated[Path, typer.Option(help="Questions, in any format of `rag answer`.")],
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SYSTEM",
            help="System, also with options: gguf:FILE,prompt=hagrid.v1; repeatable (default: reader).",
        ),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Relevance file (TREC); all relevant passages of a question become its quotes.")
    ] = None,
    corpus: Annotated[Path | None, typer.Option(help="Corpus with the texts of the quotes.")] = None,
    index: Annotated[
        Path | None, typer.Option(help="Index with the texts of the quotes, or to search for quotes.")
    ] = None,
    quotes: Annotated[
        str | None, typer.Option(help="given, gold or retrieved (default: what the files allow).")
    ] = None,
    retriever: Annotated[str | None, typer.Option(help="Retriever of retrieved quotes (default: default-llm).")] = None,
    k: Annotated[int | None, typer.Option("--k", "-k", min=1, help="Number of retrieved quotes (default: 5).")] = None,
    answers: Annotated[
        int, typer.Option(min=1, help="Answers per question from each language model, each with its own seed.")
    ] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of questions to sample (default: all).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample and of the split.")] = 0,
    dev: Annotated[float, typer.Option(min=0, max=1, help="Share of the questions in the development part.")] = 0.2,
    trailing: Annotated[
        str, typer.Option(help="Uncited sentences at the end: their `own` group, or `attach` to the last one.")
    ] = "own",
    repair: Annotated[
        bool, typer.Option("--repair", help="Check and repair a model's citations first, as `rag ask` does.")
    ] = False,
    name: NameOption = None,
    licence: LicenceOption = None,
    text_licence: TextLicenceOption = None,
    language: LanguageOption = None,
    price: PriceOption = None,
    resume: ResumeOption = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Continue, and ask again where a model failed.")
    ] = False,
    concurrency: ConcurrencyOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Let systems answer questions from numbered quotes, as in HAGRID.

    Answers that break the citation format go to filtered.jsonl with the reason.
    A stopped build continues with --resume and ends with the same files.
    """
    from rag.bench.collections.build import build_collection
    from rag.commands.display import step_progress

    systems = system or ["reader"]
    with step_progress("answers") as progress:
        collection = build_collection(
            folder,
            questions,
            systems=systems,
            qrels=qrels,
            corpus=corpus,
            index=index,
            quotes=quotes,
            retriever=retriever,
            k=k,
            answers=answers,
            limit=limit,
            seed=seed,
            dev=dev,
            trailing=trailing,  # type: ignore[arg-type]  # checked there
            repair=repair,
            name=name,
            licence=licence,
            text_licence=text_licence,
            language=language,
            price=price,
            resume=resume,
            retry_failed=retry_failed,
            concurrency=concurrency,
            progress=progress,
            on_plan=lambda plan: _note_plan(plan, systems, answers),
        )
    _show(collection, as_json=as_json)


def _note_plan(plan: "Plan", systems: list[str], answers: int) -> None:
    """Print to stderr what a build will ask for, and which systems have only one answer to give."""
    from rag.answer.specs import SystemSpec
    from rag.base.terminal import pluralize

    single_systems = [name for name in systems if "seed" not in SystemSpec.parse(name).kind.options]
    if answers > 1 and single_systems:
        note(f"--answers {answers} is for language models; asked once per question: {', '.join(single_systems)}")
    omission_text = f" ({plan.omission_count:,} left out)" if plan.omission_count else ""
    done_text = f", {plan.answers_done:,} are there" if plan.answers_done else ""
    question_text = f"{pluralize(plan.questions, 'question')}{omission_text}"
    note(f"{question_text}, {pluralize(plan.answers, 'answer')} to ask for{done_text}")


@collect_app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Answers: HAGRID, ALCE, TREC RAG, Verifiability, ...")],
    folder: OutArgument,
    kind: AnswersFormatOption = None,
    corpus: CorpusOption = None,
    dev: Annotated[float, typer.Option(min=0, max=1, help="Share of the questions in the development part.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    name: NameOption = None,
    licence: LicenceOption = None,
    text_licence: TextLicenceOption = None,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import answers of any system as a collection, with their labels."""
    from rag.bench.collections.importing import import_collection

    collection = import_collection(
        file,
        folder,
        format=kind,
        corpus=corpus or (),
        dev=dev,
        seed=seed,
        name=name,
        licence=licence,
        text_licence=text_licence,
        language=language,
    )
    _show(collection, as_json=as_json)


@collect_app.command("pack")
def pack(
    folder: OutArgument,
    answers: Annotated[
        Path | None, typer.Option(help="Labelled answers from `rag annotate export`; only labels may differ.")
    ] = None,
    licence: LicenceOption = None,
    text_licence: TextLicenceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add labels to a collection, and rewrite its files, card and checksums."""
    from rag.bench.collections.folder import pack_collection

    _show(pack_collection(folder, answers, licence=licence, text_licence=text_licence), as_json=as_json)
    if (folder / "report").is_dir():
        note(f"{folder / 'report'} is out of date: rag collect report {folder} writes it again")


@collect_app.command("report")
def report(
    source: Annotated[Path, typer.Argument(metavar="COLLECTION|FILE", help="A collection, or answers in any format.")],
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder of the report (default: COLLECTION/report).")
    ] = None,
    kind: AnswersFormatOption = None,
    corpus: CorpusOption = None,
    judge: Annotated[
        str, typer.Option(help="Judge to compare with people, as for `autoais score`, or none.")
    ] = DEFAULT_JUDGE,
    similarity: Annotated[
        str | None, typer.Option(help="bertscore or static (default: bertscore where it is installed).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Write HAGRID's tables and figures for a collection: report.html, report.json and figures."""
    from rag.bench.collections.report import report_collection
    from rag.commands.display import step_progress
    from rag.commands.display_collections import show_report

    with step_progress("answers", "the same command starts again") as progress:
        report = report_collection(
            source, folder, format=kind, corpus=corpus or (), judge=judge, similarity=similarity, progress=progress
        )
    if as_json:
        print_json(report.record)
    else:
        show_report(report.record)
    note(str(report.page))


def _show(collection: "Collection", *, as_json: bool) -> None:
    if as_json:
        print_json(dict(collection.manifest))
        return
    from rag.commands.display_collections import show_collection

    show_collection(collection)
