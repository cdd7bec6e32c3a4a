"""The command `rag`: parse, call, print."""

import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autoais.commands.main import HELP, AddressOption, EngineOption, VersionOption, WorkersOption, enter_engine, run
from rag.answer.options import OPTIONS
from rag.base.config import DEFAULT_JUDGE, DEFAULT_SYSTEM, command_defaults
from rag.commands.annotate import annotate_app
from rag.commands.bench import bench_app
from rag.commands.collect import collect_app
from rag.commands.data import data_app
from rag.commands.index import index_app
from rag.commands.options import (
    ConcurrencyOption,
    FormatOption,
    JsonLinesOption,
    JsonOption,
    PriceOption,
    ResumeOption,
    SkipBadOption,
    note,
    print_json,
)
from rag.commands.serve import default_indexes, mcp, open_indexes, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag.answer.export import Link
    from rag.answer.system import System
    from rag.base.types import Hit, Question
    from rag.index.index import Index
    from rag.retrieval import Retriever

# Commands import what they use, so that `rag --help` loads no engine.

app = typer.Typer(
    no_args_is_help=True,
    context_settings=HELP,
    pretty_exceptions_enable=False,
    help="Answer questions so that every sentence cites its source.",
)
app.add_typer(index_app, name="index")
app.add_typer(bench_app, name="bench")
app.add_typer(data_app, name="data")
app.add_typer(collect_app, name="collect")
app.add_typer(annotate_app, name="annotate")
app.command()(serve)
app.command()(mcp)

IndexOption = Annotated[
    Path | None,
    typer.Option("--index", envvar="RAG_INDEX", help="Index folder (default: the handbook that ships with rag)."),
]
AskIndexOption = Annotated[
    list[str] | None,
    typer.Option(
        "--index",
        metavar="[NAME=]DIR",
        help="Index folder; repeatable, to ask several as one (default: RAG_INDEX, the config file, or the handbook "
        "that ships).",
    ),
]
KOption = Annotated[int, typer.Option("--k", "-k", help="Number of passages to retrieve.")]
SystemOption = Annotated[
    str, typer.Option("--system", envvar="RAG_SYSTEM", help="System that answers; see `rag systems`.")
]


def _option_of(name: str, *flags: str) -> Any:  # noqa: ANN401  (what typer.Option returns)
    """An option of the command line from the table of a system's options; `open_system` checks k and min_confidence."""
    option = OPTIONS[name]
    low, high = (None, None) if option.over_http else (option.minimum, option.maximum)
    return typer.Option(f"--{name.replace('_', '-')}", *flags, min=low, max=high, help=option.help)


SystemKOption = Annotated[int | None, _option_of("k", "-k")]
RetrieverOption = Annotated[str | None, _option_of("retriever")]
AnswerOption = Annotated[str | None, _option_of("answer")]
WordsOption = Annotated[int | None, _option_of("words")]
RoundsOption = Annotated[int | None, _option_of("rounds")]
PromptOption = Annotated[str | None, _option_of("prompt")]
ContextOption = Annotated[int | None, _option_of("context")]
TemperatureOption = Annotated[float | None, _option_of("temperature")]
SeedOption = Annotated[int | None, _option_of("seed")]
ReviseOption = Annotated[str | None, _option_of("revise")]
RepairOption = Annotated[bool, _option_of("repair")]
ConfidenceOption = Annotated[float | None, _option_of("min_confidence")]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Ask a server (`rag serve`), such as http://host:8000, or .../INDEX for one of its indexes.",
        show_default=False,
    ),
]

NOTHING_FOUND = 1  # exit code, as in grep
_OF_HANDBOOK = "Answered from the bundled handbook. Use --index DIR for your own documents."
EXTRA_WORDS = {"allow_extra_args": True}  # so that `_check_quotes` says what to do


@app.callback()
def _root(context: typer.Context, version: VersionOption = False) -> None:
    context.default_map = command_defaults()


@app.command(context_settings=EXTRA_WORDS)
def ask(
    call: typer.Context,
    question: Annotated[
        str | None,
        typer.Argument(help="The question, in quotes (default: open a prompt).", show_default=False),
    ] = None,
    index: AskIndexOption = None,
    server: ServerOption = None,
    system: SystemOption = DEFAULT_SYSTEM,
    retriever: RetrieverOption = None,
    k: SystemKOption = None,
    min_confidence: ConfidenceOption = None,
    answer: AnswerOption = None,
    words: WordsOption = None,
    rounds: RoundsOption = None,
    prompt: PromptOption = None,
    context: ContextOption = None,
    temperature: TemperatureOption = None,
    seed: SeedOption = None,
    revise: ReviseOption = None,
    repair: RepairOption = False,
    stream: Annotated[bool, typer.Option("--stream", help="Print a language model's text as it is written.")] = False,
    history: Annotated[
        Path | None, typer.Option(help="Earlier turns of the conversation (jsonl: question, answer).")
    ] = None,
    history_model: Annotated[
        str | None, typer.Option(help="Model that rewrites follow-ups as standalone questions (default: rules).")
    ] = None,
    sources: Annotated[bool, typer.Option("--sources", help="Show the cited passages whole.")] = False,
    as_json: JsonOption = False,
    to: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="Print the answer as markdown, html, csl, bibtex or anthropic."),
    ] = None,
) -> None:
    """Answer a question with citations.

    Exits with code 1 if the passages do not answer it or the model fails.
    """
    from rag.answer.conversation import Conversation, read_history
    from rag.answer.options import Options
    from rag.answer.systems import open_system, system_kind
    from rag.base.errors import UserError
    from rag.base.terminal import pluralize
    from rag.commands.display import converse
    from rag.retrieval import searches_elsewhere

    _check_quotes(call, "ask")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a thread a core costs a tenth of a second
    if stream and as_json:
        raise UserError("--stream and --json exclude each other: --json prints the complete answer")
    if sources and (as_json or to is not None):
        format_option = "json" if as_json else "to"
        raise UserError(f"--sources and --{format_option} exclude each other: --sources is for what a terminal shows")
    if to is not None:
        _check_format(to, stream=stream, as_json=as_json)
    if question is None and (as_json or to is not None or not sys.stdin.isatty()):
        raise UserError('give a question: rag ask "..." (without one, rag ask needs a terminal)')
    start = time.perf_counter()
    turns = [] if history is None else read_history(history)
    opened_system: System
    if server is not None:
        from rag.answer.served import ServedSystem
        from rag.retrieval.client import Client

        _refuse(call, "index", *(option.name for option in OPTIONS.values() if not option.over_http))
        system_name = system if _is_given(call, "system") else None
        index_name = server
        opened_system = ServedSystem(
            Client(server), system_name, retriever=retriever, k=k, min_confidence=min_confidence
        )
    else:
        opened_index = _open_together(index)
        index_name = opened_index.name if retriever is None or not searches_elsewhere(retriever) else retriever
        options = Options(
            min_confidence, prompt, context, temperature, seed, revise, answer, repair or None, words, rounds
        )
        max_k = system_kind(system).max_k
        if k is not None and max_k is not None and k > max_k and not as_json:  # the JSON has all passages
            raise UserError(
                f"system {system!r} answers from the first {pluralize(max_k, 'passage')}, so --k {k} changes nothing; "
                "--system reader reads them all"
            )
        opened_system = open_system(system, opened_index, options, k=k, retriever=retriever)
    if stream and not opened_system.streams:
        note(f"{system} does not stream: answers are printed when they are complete")
    conversation = Conversation(opened_system, turns, history_model)
    # A system from memory has no k: it asks no index.
    of_handbook = (
        server is None and not index and not default_indexes() and index_name != retriever and system_kind(system).k > 0
    )
    if question is None:
        if of_handbook:
            note(_OF_HANDBOOK)
        converse(conversation, stream=stream, sources=sources)
        return
    standalone = conversation.make_standalone(question)
    if history is not None:
        note(f"searched for: {standalone}")
    if to is not None:
        has_answer = _export_once(opened_system, standalone, to, server or opened_index)
    else:
        has_answer = _ask_once(
            opened_system, standalone, index_name, start, stream=stream, sources=sources, as_json=as_json
        )
    if of_handbook and not as_json:  # the JSON names its index
        note(_OF_HANDBOOK)
    if not has_answer:
        raise typer.Exit(NOTHING_FOUND)


def _open_together(values: list[str] | None) -> "Index":
    """Open the index of `[NAME=]DIR` options, or the handbook; several as one."""
    from rag.index.joined import join

    indexes = open_indexes(values)
    return join(indexes) if len(indexes) > 1 else next(iter(indexes.values()))


def _check_quotes(call: typer.Context, command: str) -> None:
    """Raise `UserError` for a question of several words without quotes, or with a path behind it."""
    import shlex

    from rag.base.errors import UserError
    from rag.index.listing import is_index

    if not call.args:
        return
    words = [call.params.get("question") or call.params.get("query") or "", *call.args]
    place = _existing_path(words[-1])
    # "what is docs", in a folder that has docs.
    is_word = len(words) > 2 and "/" not in words[-1] and not any(map(str.isspace, words[0]))
    if place is None or (is_word and not is_index(place)):
        raise UserError(f"found {len(words)} words without quotes; write rag {command} {shlex.quote(' '.join(words))}")
    command_line = f"rag {command} {shlex.quote(' '.join(words[:-1]))} --index"
    path, kind = shlex.quote(words[-1]), "a folder" if place.is_dir() else "a file"
    if is_index(place):
        raise UserError(f"found the index {path} after the question; write {command_line} {path}")
    name = place.resolve().stem if place.is_file() else place.resolve().name
    index = shlex.quote(f"{name}.index")
    raise UserError(
        f"found {path} after the question, {kind} that is no index; build one of it: "
        f"rag index build {path} --to {index}, then {command_line} {index}"
    )


def _existing_path(word: str) -> Path | None:
    """The path that a word names; None if there is none, or it cannot be one."""
    try:
        return Path(word) if word and Path(word).exists() else None
    except (OSError, ValueError):  # too long, or with a null byte
        return None


def _is_given(call: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line, rather than in the environment or the config file."""
    source = call.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _refuse(call: typer.Context, *names: str) -> None:
    """Raise `UserError` for options that a server decides."""
    from rag.base.errors import UserError

    for name in names:
        if _is_given(call, name):
            hint = "; name the index after the server's address" if name == "index" else ""
            raise UserError(f"--{name} and --server exclude each other: the server decides it{hint}")


def _ask_once(
    system: "System", question: str, index: str, start: float, *, stream: bool, sources: bool, as_json: bool
) -> bool:
    """Answer one question and print the answer; returns False for an abstention."""
    from rag.commands.display import note_uncited, show_answer, show_stream

    answer = show_stream(system.stream(question), sources=sources) if stream else system.ask(question)
    if as_json:
        from autoais.base.answers import to_row

        print_json(to_row(answer.to_cited(index, time.perf_counter() - start)))
    else:
        if not stream:
            show_answer(answer, sources=sources)
        note_uncited(answer)
    return not answer.abstained


def _check_format(to: str, *, stream: bool, as_json: bool) -> None:
    """Raise `UserError` for an unknown format, before a question is answered in vain."""
    from rag.answer.export import check_format
    from rag.base.errors import UserError

    check_format(to)
    if stream or as_json:
        raise UserError(f"--to and --{'stream' if stream else 'json'} exclude each other")


def _export_once(system: "System", question: str, to: str, source: "Index | str") -> bool:
    """Answer one question and print the answer in a format; returns False for an abstention.

    Links lead to the web pages of an index, and to the passages of a server whose address (`source`) names the index.
    """
    from datetime import date

    from rag.answer.export import export_answer

    container, link = _open_links(source)
    answer = system.ask(question)
    typer.echo(export_answer(answer, to, link, container=container, accessed=date.today()), nl=False)
    return not answer.abstained


def _open_links(source: "Index | str") -> tuple[str | None, "Link | None"]:
    """The name of an index, or of the index of a server, and the links to its passages."""
    if isinstance(source, str):
        from rag.retrieval.client import Client
        from rag.serve.links import links_to

        client = Client(source)
        if client.index is None:
            return None, None
        base, name = client.url.rpartition("/")[0], client.index
        return name, links_to(base, name)
    from rag.index.originals import page_urls

    urls = page_urls(source)
    return source.name, lambda passage, _: urls.get(passage.id.rpartition("#")[0])


@app.command(context_settings=EXTRA_WORDS)
def search(
    call: typer.Context,
    query: Annotated[str | None, typer.Argument(help="The query, in quotes.")] = None,
    questions: Annotated[
        Path | None, typer.Option(help="File of queries: one a line (.txt), jsonl or TREC topics.")
    ] = None,
    index: IndexOption = None,
    server: ServerOption = None,
    k: KOption = 10,
    retriever: Annotated[
        str,
        typer.Option(
            help="Retriever: one that ships (`rag ask` uses `default`), a .toml file, a+b to fuse two, or remote:URL."
        ),
    ] = "bm25",
    run_file: Annotated[Path | None, typer.Option("--run", help="Write a TREC run to this file.")] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Find passages for a query, or for every query of a file."""
    from autoais.base.io.jsonl import check_outputs, dumps
    from autoais.formats.questions import read_questions
    from rag.base.errors import QuestionError, UserError
    from rag.base.types import Question
    from rag.commands.display import show_hits
    from rag.retrieval.runs import search_each, search_record

    _check_quotes(call, "search")
    if (query is None) == (questions is None):
        raise UserError("give either a query or --questions FILE")
    check_outputs([questions], [run_file])
    if server is not None:
        _refuse(call, "index")
    opened_retriever = _open_retriever(retriever, index, server)
    topics = [Question("q1", query)] if query is not None else list(read_questions(questions or Path()))

    def handle_error(topic: Question, error: QuestionError) -> None:
        if query is not None:
            raise error
        note(f"{topic.id}: {error}")  # a query that cannot be searched does not end a run

    results = search_each(opened_retriever, topics, k, handle_error)
    if run_file is not None:
        _write_run(run_file, results, opened_retriever.name, len(topics))
        return
    any_hits = False
    for topic, hits in results:
        any_hits = any_hits or bool(hits)
        if as_json:
            typer.echo(dumps(search_record(topic, hits)))
        else:
            show_hits(topic, hits)
    if query is not None and not as_json and not _is_given(call, "retriever"):
        note("searched by bm25; --retriever default searches as rag ask does")
    if not any_hits:
        raise typer.Exit(NOTHING_FOUND)


def _open_retriever(name: str, index: Path | None, server: str | None) -> "Retriever":
    """Open a retriever of an index, or of a server."""
    if server is not None:
        from rag.retrieval.client import Client
        from rag.retrieval.remote import Remote

        return Remote(Client(server), name)
    from rag.index.open import open_index
    from rag.retrieval import open_retriever

    return open_retriever(name, open_index(index))


def _write_run(path: Path, results: "Iterator[tuple[Question, list[Hit]]]", name: str, count: int) -> None:
    """Write the hits of so many queries as a TREC run, and say how fast they were found."""
    from rag.commands.display import progress_bar
    from rag.retrieval.runs import write_run

    start = time.perf_counter()
    with progress_bar("searching", count, "queries") as advance:
        write_run(path, results, name, count, lambda _, number, __: advance(number, ""))
    seconds = time.perf_counter() - start
    rate = f"{seconds:.1f} s, {count / seconds:,.1f} queries a second"
    note(f"{count:,} {'query' if count == 1 else 'queries'} in {rate}; run in {path}")


@app.command()
def answer(
    questions: Annotated[
        Path, typer.Argument(help="Questions: one a line (.txt), jsonl (id, question) or TREC topics.")
    ],
    answers_file: Annotated[
        Path, typer.Option("--out", help="Write one JSON row per question to this file (answers.jsonl).")
    ],
    index: IndexOption = None,
    system: SystemOption = DEFAULT_SYSTEM,
    retriever: RetrieverOption = None,
    k: SystemKOption = None,
    min_confidence: ConfidenceOption = None,
    answer: AnswerOption = None,
    words: WordsOption = None,
    rounds: RoundsOption = None,
    prompt: PromptOption = None,
    context: ContextOption = None,
    temperature: TemperatureOption = None,
    seed: SeedOption = None,
    revise: ReviseOption = None,
    repair: RepairOption = False,
    concurrency: ConcurrencyOption = "auto",
    resume: ResumeOption = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Retry only the questions whose model failed.")
    ] = False,
    price: PriceOption = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    workers: WorkersOption = None,
) -> None:
    """Answer every question of a file.

    A stopped run continues with --resume and ends with the same rows.
    """
    from rag.answer.answer_files import answer_file
    from rag.answer.engine_system import EngineSystem, OpenSystem
    from rag.answer.options import Options
    from rag.answer.systems import open_system
    from rag.base.errors import UserError
    from rag.commands.display import run_progress, summarize_run
    from rag.index.open import open_index

    if engine is not None and concurrency not in ("auto", "1"):
        raise UserError(
            "--concurrency and --engine exclude each other; each of its --workers asks a question at a time"
        )
    opened_index = open_index(index)
    options = Options(min_confidence, prompt, context, temperature, seed, revise, answer, repair or None, words, rounds)
    opened_system = open_system(system, opened_index, options, k=k, retriever=retriever)
    continues = "--retry-failed" if retry_failed else "--resume"
    with ExitStack() as stack:
        if (entered_engine := enter_engine(engine, address, workers, stack)) is not None:
            folder = None if index is None else index.resolve()
            checksum = opened_index.manifest["checksum"]
            opened_system = EngineSystem(
                OpenSystem(folder, system, options, k, retriever, checksum, opened_system.name), entered_engine
            )
        progress = stack.enter_context(run_progress("answering", "questions", continues))
        result = answer_file(
            questions,
            answers_file,
            opened_system,
            opened_index,
            concurrency=concurrency,
            resume=resume,
            retry_failed=retry_failed,
            progress=progress,
        )
    for line in summarize_run(result, answers_file, price):
        note(line)


@app.command()
def attribute(
    answers: Annotated[Path, typer.Argument(help="Answers of any system, in any format of `autoais schema`.")],
    target: Annotated[
        Path, typer.Option("--out", help="Write the answers with their sources to this file (answers.jsonl).")
    ],
    index: IndexOption = None,
    retriever: Annotated[str, typer.Option("--retriever", help="Retriever, as for `rag search`.")] = "bm25",
    k: Annotated[int, typer.Option("--k", "-k", help="Number of passages per search.")] = 10,
    judge: Annotated[str, typer.Option(help="Judge of support, as for `autoais score`.")] = DEFAULT_JUDGE,
    revise: Annotated[
        str | None,
        typer.Option(help="Unsupported sentences: `drop`, or a model that rewrites them (default: keep)."),
    ] = None,
    name: Annotated[str | None, typer.Option("--format", help="Format of ANSWERS (default: detected).")] = None,
    resume: ResumeOption = False,
) -> None:
    """Add citations to existing answers.

    Each sentence gets a passage that supports it, or stays uncited.
    """
    from autoais.judges import open_judge
    from rag.answer.answer_files import attribute_file
    from rag.answer.attribution.post_hoc import PostHoc
    from rag.answer.attribution.revise import open_reviser
    from rag.base.terminal import pluralize
    from rag.commands.display import run_progress
    from rag.index.open import open_index
    from rag.retrieval import open_retriever

    opened_index = open_index(index)
    post_hoc = PostHoc(open_retriever(retriever, opened_index), open_judge(judge), k)
    reviser = None if revise is None else open_reviser(revise, post_hoc.attributor)
    with run_progress("attributing", "answers", "--resume") as progress:
        result = attribute_file(
            answers, target, post_hoc, opened_index, reviser=reviser, format=name, resume=resume, progress=progress
        )
    sentence_counts = f"{pluralize(result.attached, 'sentence')} with a source, {result.uncited:,} without"
    contradicted = f" ({result.contradicted:,} contradicted)" if result.contradicted else ""
    note(f"{pluralize(result.answers, 'answer')} in {target}: {sentence_counts}{contradicted}")


@app.command()
def verify(
    answers: Annotated[Path, typer.Argument(help="Answers with quotes, in any format of `autoais schema`.")],
    index: IndexOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that the quotes of stored answers still stand in an index.

    A quote is the same, moved, changed or gone. Exits with code 1 if any is changed or gone.
    """
    from dataclasses import asdict

    from rag.api import verify_quotes
    from rag.commands.display import show_quote_checks

    checks = verify_quotes(answers, index)
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        show_quote_checks(checks)
    if any(check.status in ("changed", "gone") for check in checks):
        raise typer.Exit(NOTHING_FOUND)


@app.command()
def systems() -> None:
    """List the systems and their requirements."""
    from rag.answer.systems import list_systems
    from rag.commands.display import show_systems

    show_systems(list_systems())


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="Training recipe (toml), such as eval/recipes/reader.toml.")],
    data: Annotated[list[Path], typer.Option(help="Folder with the recipe's files; repeatable.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder of the model; a stopped run continues from it.")],
    index: Annotated[
        Path | None, typer.Option(help="Index with the passages to train on (default: what is prepared in --out).")
    ] = None,
    short: Annotated[bool, typer.Option(help="Train on a few pairs only, to check that the recipe runs.")] = False,
    prepare: Annotated[bool, typer.Option(help="Only prepare the data, to train on another machine.")] = False,
) -> None:
    """Train a reader or static embeddings."""
    from rag.index.open import open_index
    from rag.training import run as run_recipe

    opened_index = None if index is None else open_index(index)
    run_recipe(recipe, opened_index, data, folder, short=short, prepare=prepare, log=note)


@app.command()
def plan(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCES...", help="Corpus files or folders of documents.")],
    passages: Annotated[
        str | None, typer.Option(help="Number of passages to plan for, such as 33M (default: those of the sources).")
    ] = None,
    retriever: Annotated[
        list[str] | None,
        typer.Option(help="Retriever whose data are added; repeatable (default: as `rag index build`)."),
    ] = None,
    memory: Annotated[str | None, typer.Option(help="Memory limit for searching vectors, such as 8GiB.")] = None,
    sample: Annotated[int, typer.Option(help="Number of passages to measure.")] = 50_000,
    price: Annotated[float | None, typer.Option(min=0, help="Price of an hour of this machine.")] = None,
    format_: FormatOption = None,
    skip_bad: SkipBadOption = False,
    as_json: JsonOption = False,
) -> None:
    """Estimate time, disk and memory of an index by measuring a sample on this machine."""
    from dataclasses import asdict

    from rag.api import plan_index
    from rag.commands.display import show_plan

    estimate = plan_index(
        sources,
        passages=passages,
        retrievers=retriever,
        memory=memory,
        sample=sample,
        format=format_,
        skip_bad=skip_bad,
        log=note,
    )
    if as_json:
        totals = {
            "seconds": estimate.seconds,
            "disk": estimate.disk,
            "memory": estimate.memory,
            "resident": estimate.resident,
        }
        print_json(asdict(estimate) | totals | ({} if price is None else {"cost": estimate.seconds / 3600 * price}))
    else:
        show_plan(estimate, price)


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Show which engines work on this machine, and how to install the others."""
    from dataclasses import asdict

    from rag.commands.doctor import examine, show

    checks = examine()
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        show(checks)


def main() -> None:
    """Entry point of `rag`."""
    # In a pipe or a C locale, printing a passage with non-ASCII characters would raise UnicodeEncodeError.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    run(app)
