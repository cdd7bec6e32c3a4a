"""The command `rag`: parse, call, print."""

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.cli import VersionOption, run

# Imports stand inside the commands: `rag --help` must not wait for an engine.

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Answers in which every sentence cites its source.",
)
index_app = typer.Typer(no_args_is_help=True, help="Build and look at indexes.")
app.add_typer(index_app, name="index")

IndexOption = Annotated[
    Path | None, typer.Option("--index", help="Index folder; without it, the handbook that ships with the product.")
]
KOption = Annotated[int, typer.Option("--k", help="How many passages to retrieve.")]
SystemOption = Annotated[str, typer.Option("--system", help="Which system answers; `rag systems` lists them.")]
SystemKOption = Annotated[int | None, typer.Option("--k", help="How many passages to retrieve; else the system's own.")]
RecipeOption = Annotated[
    str | None, typer.Option("--recipe", help="The retriever, as for `rag search`; else the system's own.")
]
PromptOption = Annotated[
    str | None, typer.Option("--prompt", help="For a language model: a prompt's name, or a .txt file of your own.")
]
ContextOption = Annotated[
    int | None, typer.Option("--context", min=256, help="For a language model: tokens of prompt and reply (4096).")
]
TemperatureOption = Annotated[
    float | None, typer.Option("--temperature", min=0, max=2, help="For a language model: how freely it writes (0).")
]
SeedOption = Annotated[int | None, typer.Option("--seed", help="For a language model above temperature 0 (0).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LeastOption = Annotated[
    float | None, typer.Option("--least", help="Least confidence (0 to 1) of an answer; else the system's own.")
]

DEFAULT_SYSTEM = "reader"
NOTHING_FOUND = 1  # exit code, as grep has it


@app.callback()
def _root(version: VersionOption = False) -> None:
    pass


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    index: IndexOption = None,
    system: SystemOption = DEFAULT_SYSTEM,
    recipe: RecipeOption = None,
    k: SystemKOption = None,
    least: LeastOption = None,
    prompt: PromptOption = None,
    context: ContextOption = None,
    temperature: TemperatureOption = None,
    seed: SeedOption = None,
    stream: Annotated[bool, typer.Option("--stream", help="Print a language model's text as it comes.")] = False,
    history: Annotated[
        Path | None, typer.Option(help="The turns before (jsonl: question, answer), for a follow-up question.")
    ] = None,
    history_model: Annotated[
        str | None,
        typer.Option(help="A language model that makes it stand by itself, such as gguf:<file>; else rules."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer one question, with citations. Exit code 1 if the passages do not answer or the model fails."""
    from rag.errors import UserError
    from rag.index.open import open_index
    from rag.systems import Options, open_system, stream_answer
    from rag.terminal import show_streamed
    from rag.types import Question

    if stream and as_json:
        raise UserError("--stream prints text as it comes, --json the whole answer; choose one")
    started = time.perf_counter()
    if history is not None:
        question = _standalone(question, history, history_model)
    opened = open_index(index)
    options = Options(least, prompt, context, temperature, seed)
    chosen = open_system(system, opened, options, k=k, recipe=recipe)
    asked = Question("q1", question)
    if stream:
        if show_streamed(stream_answer(chosen, asked)).abstained:
            raise typer.Exit(NOTHING_FOUND)
        return
    answer = next(iter(chosen.answer([asked])))
    if as_json:
        from autoais.io.jsonl import dumps
        from rag.answering import answer_record

        record = answer_record(answer, opened.name, time.perf_counter() - started)
        typer.echo(dumps(record, indent=2))
    else:
        from rag.terminal import show_answer, show_uncited

        show_answer(answer)
        show_uncited(answer)
    if answer.abstained:
        raise typer.Exit(NOTHING_FOUND)


def _standalone(question: str, history: Path, model: str | None) -> str:
    """The question with what the history adds to it, which is told."""
    from rag.generators.follow_up import read_history, standalone
    from rag.terminal import note

    turns = read_history(history)
    opened = None
    if model is not None:
        from rag.llms import open_model

        opened = open_model(model)
    asked = standalone(question, turns, opened)
    note(f"searched for: {asked}")
    return asked


@app.command()
def search(
    query: Annotated[str | None, typer.Argument(help="The query, in quotes.")] = None,
    topics: Annotated[Path | None, typer.Option(help="A file of queries instead: jsonl, Open-NQ, TREC topics.")] = None,
    index: IndexOption = None,
    k: KOption = 10,
    recipe: Annotated[
        str, typer.Option(help="A retriever: a name of indexes/, a .toml file, or a+b to fuse two.")
    ] = "bm25",
    run_file: Annotated[Path | None, typer.Option("--run", help="Write a TREC run.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Find passages for a query, or for every query of a file."""
    from autoais.io.jsonl import dumps, keep_inputs, write_whole
    from autoais.questions import read_questions
    from rag.answering import search_record, trec_lines
    from rag.errors import QuestionError, UserError
    from rag.index.open import open_index
    from rag.retrievers import open_retriever
    from rag.terminal import note, progress_bar, show_hits
    from rag.types import Hit, Question

    if (query is None) == (topics is None):
        raise UserError("give either a query or --topics FILE")
    keep_inputs([topics], [run_file])
    chosen = open_retriever(recipe, open_index(index))
    questions = [Question("q1", query)] if query is not None else list(read_questions(topics or Path()))

    def hits_of(question: Question) -> list[Hit]:
        try:
            return chosen.search([question.text], k)[0]
        except QuestionError as error:
            if query is not None:
                raise
            note(f"{question.id}: {error}")  # one query that cannot be searched for does not end a run
            return []

    found = ((question, hits_of(question)) for question in questions)
    if run_file is not None:
        started = time.perf_counter()
        with progress_bar("searching", len(questions), "queries") as advance:

            def run_lines() -> Iterator[str]:
                for done, (each, hits) in enumerate(found, 1):
                    yield from trec_lines(each, hits, chosen.name)
                    advance(done, "")

            write_whole(run_file, run_lines())
        seconds = time.perf_counter() - started
        rate = f"{seconds:.1f} s, {len(questions) / seconds:,.1f} queries a second"
        note(f"{len(questions):,} queries in {rate}; run in {run_file}")
        return
    any_hits = False
    for each, hits in found:
        any_hits = any_hits or bool(hits)
        if as_json:
            typer.echo(dumps(search_record(each, hits)))
        else:
            show_hits(each, hits)
    if not any_hits:
        raise typer.Exit(NOTHING_FOUND)


@app.command("eval-run")
def eval_run(
    runs: Annotated[list[Path], typer.Argument(help="TREC runs, as `rag search --run` writes them.")],
    qrels: Annotated[Path, typer.Option(help="Judgements: TREC qrels, BEIR's tsv, or questions (jsonl) with `gold`.")],
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", help="By ir_measures' names, nDCG@10, AP, P(rel=2)@5; or answer_hit@k."),
    ] = None,
    baseline: Annotated[Path | None, typer.Option(help="A run that the others are compared with, by topic.")] = None,
    topics: Annotated[
        Path | None, typer.Option(help="For answer_hit: questions with reference answers; without it, the qrels'.")
    ] = None,
    index: Annotated[Path | None, typer.Option(help="For answer_hit: the index that has the texts.")] = None,
    corpus: Annotated[list[Path] | None, typer.Option(help="Or the corpus files that have them.")] = None,
    page_level: Annotated[
        bool, typer.Option("--page-level", help="Count pages, not passages: what stands before # in an id.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write the report (json): values by topic too, and how it came about.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """How good are runs? Each measure with n and 95 % interval; every topic counts, a skipped one as zero."""
    from autoais.io.jsonl import dumps, keep_inputs, round_floats, write_whole
    from autoais.io.provenance import provenance
    from rag.evaluation import engines, evaluate_files
    from rag.terminal import show_evaluation

    texts = corpus or []
    keep_inputs([*runs, qrels, baseline, topics, *texts], [report])
    result = evaluate_files(
        runs, qrels, measure or (), baseline=baseline, topics=topics, index=index, corpus=texts, page_level=page_level
    )
    named = {"qrels": qrels, "baseline": baseline, "topics": topics}
    inputs = {role: path for role, path in named.items() if path is not None}
    inputs |= {f"run{number}": path for number, path in enumerate(runs, 1)}
    inputs |= {f"corpus{number}": path for number, path in enumerate(texts, 1)}
    result = round_floats({**result, "engines": engines(), "provenance": provenance(inputs)})
    if report is not None:
        write_whole(report, [dumps(result, indent=2)])
    for run_result in result["runs"]:
        del run_result["per_topic"]  # for the report: too long to be read
    if as_json:
        typer.echo(dumps(result, indent=2))
    else:
        show_evaluation(result)


@app.command()
def answer(
    questions: Annotated[Path, typer.Argument(help="Questions: jsonl (id, question), Open-NQ jsonl or TREC topics.")],
    out: Annotated[Path, typer.Option(help="Where the answers go, one JSON row a question.")],
    index: IndexOption = None,
    system: SystemOption = DEFAULT_SYSTEM,
    recipe: RecipeOption = None,
    k: SystemKOption = None,
    least: LeastOption = None,
    prompt: PromptOption = None,
    context: ContextOption = None,
    temperature: TemperatureOption = None,
    seed: SeedOption = None,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="How many questions to answer at once.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a stopped run ended.")] = False,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Ask only those again whose model gave nothing; rows keep their place."),
    ] = False,
    price: Annotated[
        tuple[float, float] | None,
        typer.Option(min=0, metavar="READ WRITTEN", help="What a million tokens cost; the run's cost is told."),
    ] = None,
) -> None:
    """Answer every question of a file; a stopped run goes on with --resume and ends with the same rows."""
    from autoais.io.provenance import command, sha256_file, versions
    from autoais.questions import read_questions
    from rag.answering import Journal, answer_record, pending, tokens_of
    from rag.errors import UserError
    from rag.index.open import open_index
    from rag.systems import Options, answer_each, open_system
    from rag.terminal import counted, note, progress_bar

    if retry_failed and not out.exists():
        raise UserError(f"{out}: no such file; --retry-failed needs the answers of an earlier run")
    listed = list(read_questions(questions))
    opened = open_index(index)
    options = Options(least, prompt, context, temperature, seed)
    chosen = open_system(system, opened, options, k=k, recipe=recipe)
    settings: dict[str, Any] = {
        "system": chosen.name,
        "index": {"name": opened.name} | {key: opened.manifest[key] for key in ("checksum", "recipe", "analyzer")},
        "questions": {"file": questions.name, "sha256": sha256_file(questions)},
        "versions": versions(),
        "command": command(),
    }
    journal = Journal(out, settings, resume=resume or retry_failed)
    left = pending(listed, journal.done)
    done, failed = len(journal.done), len(journal.failed)
    if retry_failed:
        again = set(journal.failed)
        left, done, failed = [question for question in listed if question.id in again], done - failed, 0
    renewed: dict[str, Any] = {}
    try:
        with progress_bar("answering", len(listed), "questions") as advance:
            for answered, seconds in answer_each(chosen, left, concurrency):
                record = answer_record(answered, opened.name, seconds)
                if retry_failed:
                    renewed[answered.question.id] = record
                else:
                    journal.write(record)
                done, failed = done + 1, failed + answered.failed
                advance(done, "")
    except KeyboardInterrupt:
        way = "--retry-failed" if retry_failed else "--resume"
        note(f"stopped after {done} of {len(listed)} questions; {way} goes on from there")
        raise
    finally:
        if renewed:
            journal.replace(renewed)
    journal.close()
    hint = f", {failed} of them failed (--retry-failed asks again)" if failed else ""
    read, written = tokens_of(out)
    if read or written:
        cost = f": {(read * price[0] + written * price[1]) / 1e6:.4f} by the price given" if price else ""
        note(f"{read:,} tokens read and {written:,} written{cost}")
    note(f"{counted(done, 'answer')} in {out}{hint}")


@app.command()
def attribute(
    answers: Annotated[
        Path, typer.Argument(help="Answers of any system, in any format of `autoais schema`, told from the file.")
    ],
    out: Annotated[Path, typer.Option(help="Where the answers go with their sources, one JSON row an answer.")],
    index: IndexOption = None,
    recipe: Annotated[str, typer.Option("--recipe", help="The retriever, as for `rag search`.")] = "bm25",
    k: Annotated[int, typer.Option("--k", help="How many passages each search brings.")] = 10,
    judge: Annotated[str, typer.Option(help="Which judge decides what supports, as for `autoais score`.")] = "minilm",
    revise: Annotated[
        str | None, typer.Option(help="Sentences without support: drop, or a language model that rewrites them.")
    ] = None,
    name: Annotated[str | None, typer.Option("--format", help="The format of ANSWERS, where it is not told.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a stopped run ended.")] = False,
) -> None:
    """Find sources for answers that are there: each sentence gets a passage that supports it, or stands uncited."""
    from autoais.io.jsonl import keep_inputs
    from autoais.io.provenance import command, sha256_file, versions
    from autoais.judges import open_judge
    from rag.answering import Journal, answer_record, pending
    from rag.attribution.post_hoc import PostHoc, read_given
    from rag.attribution.revise import open_reviser
    from rag.index.open import open_index
    from rag.retrievers import open_retriever
    from rag.terminal import counted, note, progress_bar

    keep_inputs([answers], [out])
    given = list(read_given(answers, name))
    opened = open_index(index)
    post_hoc = PostHoc(open_retriever(recipe, opened), open_judge(judge), k)
    reviser = None if revise is None else open_reviser(revise, post_hoc.attributor)
    settings: dict[str, Any] = {
        "system": post_hoc.name if reviser is None else f"{post_hoc.name}>{reviser.name}",
        "index": {"name": opened.name} | {key: opened.manifest[key] for key in ("checksum", "recipe", "analyzer")},
        "answers": {"file": answers.name, "sha256": sha256_file(answers)},
        "versions": versions(),
        "command": command(),
    }
    journal = Journal(out, settings, resume=resume)
    pending([answer.question for answer in given], journal.done)
    done, attached, uncited = len(journal.done), 0, 0
    try:
        with progress_bar("attributing", len(given), "answers") as advance:
            for answer in given[done:]:
                started = time.perf_counter()
                sourced = post_hoc.attribute(answer)
                attached += sourced.trace["attribution"]["attached"]
                uncited += sourced.trace["attribution"]["uncited"]
                if reviser is not None:
                    sourced = reviser.revise(sourced)
                journal.write(answer_record(sourced, opened.name, time.perf_counter() - started))
                done += 1
                advance(done, "")
    except KeyboardInterrupt:
        note(f"stopped after {done} of {len(given)} answers; --resume goes on from there")
        raise
    journal.close()
    support = f"{counted(attached, 'sentence')} sourced, {uncited:,} without support"
    note(f"{counted(len(given), 'answer')} in {out}: {support}")


@app.command()
def systems() -> None:
    """List the systems that answer, and what each needs."""
    from rag.systems import SYSTEMS
    from rag.terminal import show_systems

    show_systems(SYSTEMS)


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="A training recipe (toml), such as eval/recipes/reader.toml.")],
    index: Annotated[Path, typer.Option(help="The index whose passages are learnt from.")],
    data: Annotated[list[Path], typer.Option(help="A folder with the recipe's files; may be given several times.")],
    out: Annotated[Path, typer.Option(help="The folder of the model; a stopped run goes on from what is in it.")],
    short: Annotated[bool, typer.Option(help="A few pairs and steps, to see that the recipe runs.")] = False,
) -> None:
    """Train a reader or static embeddings, with all their data and checksums on record."""
    from rag.index.open import open_index
    from rag.terminal import note
    from rag.training import run as run_recipe

    run_recipe(recipe, open_index(index), data, out, short=short, say=note)


@index_app.command()
def build(
    to: Annotated[Path, typer.Option(help="The folder of the index.")],
    sources: Annotated[
        list[Path] | None, typer.Argument(help="Corpus files (.gz, .zst too) or folders of documents.")
    ] = None,
    recipe: Annotated[
        list[str] | None,
        typer.Option(help="A retriever that adds a part of its own; without SOURCES, to the index that is there."),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="The most that a part may keep in memory, such as 8GiB; picks its kind.")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="miracl, aqa, dpr, beir, pyserini or documents; else told from the file."),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count and report broken lines instead of stopping.")
    ] = False,
) -> None:
    """Build an index, or add to one. An index already there is replaced only when the new one is whole."""
    from rag.corpus.reader import Corpus
    from rag.errors import UserError
    from rag.index.steps import add_parts, build_base, check_parts

    if not sources and not recipe:
        raise UserError("nothing to build: give SOURCES, or --recipe NAME to add to the index that is there")
    if memory is not None and not recipe:
        raise UserError("--memory is for the parts that --recipe NAME adds")
    check_parts(recipe or [], memory)
    if sources:
        build_base(Corpus(sources, format_, skip_bad), to)
    if recipe:
        add_parts(to, recipe, memory)


@index_app.command()
def info(
    folder: Annotated[Path | None, typer.Argument(help="Index folder; without it, the handbook.")] = None,
) -> None:
    """Print an index's manifest as JSON."""
    from autoais.io.jsonl import dumps
    from rag.index.open import open_index

    typer.echo(dumps(open_index(folder).manifest, indent=2))


@index_app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A Lucene index that others have built, such as miracl-v1.0-en.")],
    table: Annotated[Path | None, typer.Option(help="A table of indexes of your own (toml).")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Open no connection (also RAG_OFFLINE=1).")] = False,
) -> None:
    """Download a prebuilt Lucene index, going on where that broke off, and print its folder: search --recipe lucene."""
    from rag.index.download import fetch as fetch_index
    from rag.index.download import named, read_table
    from rag.terminal import megabytes, note, progress_bar

    item = named(name, read_table(table))
    note(f"{item.name}: {item.description}, {megabytes(item.size)} packed")
    with progress_bar("downloading", item.size, None) as advance:
        home = fetch_index(item, offline=offline, tell=lambda done: advance(done, ""))
    typer.echo(home)


@index_app.command("import")
def import_(
    folder: Annotated[Path, typer.Argument(help="A Lucene index made by Anserini or Pyserini, with its text stored.")],
    to: Annotated[Path, typer.Option(help="The folder of the index.")],
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count and report broken documents instead of stopping.")
    ] = False,
) -> None:
    """Build an index of the passages that a Lucene index stores, for all retrievers and not Lucene alone."""
    from rag.index.lucene import Stored
    from rag.index.steps import build_base

    build_base(Stored(folder, skip_bad=skip_bad), to)


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Say which engines work here, and what to do about those that do not."""
    from rag.doctor import examine, show

    found = examine()
    if as_json:
        from dataclasses import asdict

        from autoais.io.jsonl import dumps

        typer.echo(dumps([asdict(check) for check in found], indent=2))
    else:
        show(found)


def main() -> None:
    """Entry point of `rag`."""
    if hasattr(signal, "SIGPIPE"):  # `rag search ... | head` ends quietly, as other commands do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    # A pipe or a C locale must not turn a passage in another script into a traceback.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    run(app)
