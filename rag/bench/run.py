"""`rag bench run`: questions, hits, answers, judgements and metrics of systems on a benchmark, each in its own file.

Every stage can be run alone and continues after a kill. The folder is described in the handbook (benchmarking.md).
"""

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path

from autoais.base.engines import Engine
from autoais.base.io.provenance import command
from autoais.base.models.pace import AUTO, Pace
from autoais.base.progress import Progress, no_progress
from autoais.base.types import Judge
from autoais.judges import open_judge
from autoais.metrics.scoring import choose_metrics
from rag.answer.llms.prompts import Prompt
from rag.answer.specs import SystemSpec
from rag.base.errors import RagError, UsageError, check_list, check_type
from rag.bench.benchmark import Benchmark, read_benchmark
from rag.bench.corpora import Corpora
from rag.bench.datasets import choose_data_folder
from rag.bench.downloads import plan_download
from rag.bench.folder import STAGES, BenchRun, RunFolder, check_goes_on, describe_inputs
from rag.bench.human import HumanLabels
from rag.bench.output_folder import lock_folder
from rag.bench.predictions import join_predictions
from rag.bench.questions import questions_of
from rag.bench.retrieval import OF_THE_QUESTION
from rag.bench.stages import Stages
from rag.retrieval import walk_data_configs


def run_benchmark(
    benchmark: str | Path | Benchmark,
    output_folder: str | Path,
    data: str | Path | None = None,
    *,
    systems: Sequence[str] = (),
    predictions: Sequence[str | Path] = (),
    index: str | Path | None = None,
    corpus: str | Path | None = None,
    corpus_sample: int | None = None,
    judge: str | Judge | None = None,
    metrics: str | Sequence[str] | None = None,
    human: str | Path | None = None,
    price: tuple[float, float] | None = None,
    limit: int | None = None,
    seed: int | None = None,
    stage: str | None = None,
    resume: bool = False,
    concurrency: int | str = AUTO,
    engine: Engine | None = None,
    download: bool | str | Path = False,
    progress: Progress | None = None,
) -> BenchRun:
    """Run systems over a benchmark and measure them; every result is a file in the folder `output_folder`.

    `benchmark` is a name (`list_benchmarks`) or your own .toml file, `data` the folder of its files (default:
    `rag.bench.datasets.data_folder`). `download` fetches there what is missing of public data sets (`plan_download`):
    True, or your own table of them; it needs the network. `systems` are
    names as for `rag.open_system`, with options after commas (`reader,retriever=bm25-rerank,k=16`); `predictions` are
    files of others' answers in any format of `autoais schema`. Without either, the default system runs. `index` is the
    index of the corpus, built there if it is missing (default: in `output_folder`); `corpus` replaces the benchmark's
    corpus: a path, or one of its `other_corpora` by name. `corpus_sample` is the number of its passages that are
    searched: the gold passages that are known, and others by a hash of their id. `metrics` are citation metrics,
    `human` a file of labelled answers of these systems, `price` (input, output) is per million tokens. `limit` draws a
    sample of the questions by `seed`. `stage` runs one stage alone, again if it is done; later ones are then out of
    date and removed, and so is a report in `output_folder`. `resume` continues a stopped run, which ends with the same
    files; what is not given is taken from it. It may name other `systems` or `predictions`: answers that are there
    stay, and the run is of those named now.
    `concurrency` is the number of questions asked at once, or `auto`: as many as make a model server faster, and one of
    a system that asks none. The workers of `engine` answer and judge (`autoais.engines`), with the same results. Raises
    `RagError` if `output_folder` holds a run and neither is set, or another process is writing it.
    """
    check_type("output_folder", output_folder, "a folder (str or Path)", str, Path)
    for parameter, values in (("systems", systems), ("predictions", predictions)):
        check_list(parameter, values)
    if stage is not None and stage not in STAGES:
        raise RagError(f"no stage called {stage!r}; there are: {', '.join(STAGES)}")
    Pace(concurrency)  # checks it
    if engine is not None and str(concurrency) not in (AUTO, "1"):
        raise UsageError("concurrency and engine exclude each other; each worker asks a question at a time")
    if engine is not None and isinstance(judge, Judge):
        raise UsageError("judge should be a name where there is an engine, whose workers open it")
    for system in systems:
        check_type("system", system, "a name, also with options, such as 'reader,k=16'", str)
    for parameter, number in (("limit", limit), ("corpus_sample", corpus_sample)):
        if number is not None:
            check_type(parameter, number, "an int", Integral)
            if number < 1:
                raise RagError(f"{parameter} must be at least 1, not {number}")
    benchmark_settings = benchmark if isinstance(benchmark, Benchmark) else read_benchmark(benchmark)
    specs = [_spec(system) for system in systems]
    settings = {
        "systems": [str(spec) for spec in specs] or None,
        "predictions": [str(path) for path in predictions] or None,
        "judge": judge.name if isinstance(judge, Judge) else judge,
        "metrics": None if metrics is None else list(choose_metrics(_join_names(metrics))),
        "human": None if human is None else str(human),
        "price": None if price is None else list(price),
        "limit": limit,
        "seed": seed,
    }
    opened_judge, people = _open_judge_and_labels(judge, human, predictions, stage)
    folder, show = Path(output_folder), progress or no_progress
    root, index_path = choose_data_folder(data, download=bool(download)), Path(index or folder / "index")
    with lock_folder(folder):
        if download:
            check_goes_on(folder, stage=stage, resume=resume)
            table = None if download is True else download
            plan = plan_download(
                benchmark_settings, root, corpus=corpus, corpus_sample=corpus_sample, index=index_path, table=table
            )
            plan.fetch(show)
        other_corpus = None if corpus is None else benchmark_settings.other_corpus(corpus, root)
        has_gold = corpus is None or benchmark_settings.ids is not None
        questions = questions_of(benchmark_settings, root, gold=has_gold, within_list=corpus_sample is None)
        gold = {key for question in questions for key in question.question.gold}
        corpora = Corpora(benchmark_settings, root, index_path, other_corpus, show, sample=corpus_sample, gold=gold)
        for path in map(Path, predictions if stage in (None, *STAGES[:2]) else ()):
            join_predictions(path, questions, (), None)  # tells a broken file before any system has answered
        # A sample with gold passages is a closed pool, whatever the corpus is.
        closed_pool = True if corpus_sample and gold else benchmark_settings.closed_pool if has_gold else None
        facts = describe_inputs(benchmark_settings, questions, root, corpora.source_record(), closed_pool=closed_pool)
        run_folder = RunFolder(folder, settings, facts, questions, stage=stage, resume=resume)
        stages = Stages(
            run_folder, benchmark_settings, questions, corpora, opened_judge, people, concurrency, show, engine
        )
        run = _run(run_folder, stages, corpora, stage)
        return replace(run, request_totals=stages.request_totals)


def _open_judge_and_labels(
    judge: str | Judge | None, human: str | Path | None, predictions: Sequence[str | Path], stage: str | None
) -> tuple[Judge | None, HumanLabels | None]:
    """Open what a later stage needs, so that a wrong name is told before anything is searched or removed."""
    for path in map(Path, predictions):
        if not path.is_file():
            raise RagError(f"{path}: no such file; name a file of predictions")
    people = None if human is None else HumanLabels(Path(human))
    if isinstance(judge, str):
        judge = open_judge(judge) if stage in (None, "judge") else None
    return judge, people


def _spec(text: str) -> SystemSpec:
    """Read a system; raises `RagError` if it, an option, its retriever or its prompt is unknown."""
    spec = SystemSpec.parse(text)
    if spec.retriever is not None and spec.retriever not in OF_THE_QUESTION:
        list(walk_data_configs(spec.retriever))
    if spec.options.prompt is not None:
        Prompt.read(spec.options.prompt)
    return spec


def _join_names(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else ",".join(names) or "none"


def _run(run: RunFolder, stages: Stages, corpora: Corpora, only: str | None) -> BenchRun:
    """Run the stages that are left, or one alone; what stages that are made again have written is removed first."""
    run.check()
    redone_stages = [stage for stage in STAGES if run.is_redone(stage)]
    if run.has_other_systems:
        run.record["reruns"].append(command())
    if redone_stages:
        # Also the files of systems that are set aside, which are among those of the record alone.
        dropped_files = [name for stage in redone_stages for name in run.record["stages"].get(stage, ())]
        dropped_files += [name for stage in redone_stages for _, files, _ in stages.work(stage) for name in files]
        if run.forget(redone_stages):
            run.record["reruns"].append(command())
        run.remove(dropped_files)
    if run.has_other_systems or redone_stages:
        run.remove_report()
    run.write()
    for stage in [only] if only else STAGES:
        for before in STAGES[: STAGES.index(stage)]:
            for label, files, _ in stages.work(before):
                if not run.is_done(before, files):
                    raise RagError(
                        f"{run.path} lacks the stage {before} of {label}: run that stage first (--stage {before})"
                    )
        for _, files, make in stages.work(stage):
            if not run.is_done(stage, files):
                make()
                run.record["indexes"] |= corpora.record()
                run.complete_stage(stage, files)
    return BenchRun(run.path, run.record)
