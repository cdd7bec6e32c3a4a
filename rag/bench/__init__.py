"""Benchmarks: from questions to a report, for our systems and for others' answers.

    from rag.bench import compare_runs, run_benchmark, write_report

    run = run_benchmark("handbook", "RUN", systems=["reader", "extractive"])
    run.metrics("reader")["ways"]
    compare_runs("RUN")
    write_report("RUN")

Each name is imported on first use.
"""

from typing import TYPE_CHECKING

from autoais.base.exports import on_first_use

if TYPE_CHECKING:
    from rag.bench.benchmark import (
        Benchmark,
        LabelSet,
        list_benchmarks,
        list_label_sets,
        read_benchmark,
        read_label_set,
    )
    from rag.bench.changes import run_changes
    from rag.bench.compare import compare_runs
    from rag.bench.datasets import Dataset, fetch_dataset, list_datasets
    from rag.bench.downloads import DownloadPlan, plan_download
    from rag.bench.folder import BenchRun, open_run
    from rag.bench.items import Item, read_items
    from rag.bench.judges import rank_judges
    from rag.bench.predictions import split_predictions
    from rag.bench.report import report_table, write_report
    from rag.bench.reproductions import list_reproductions, read_reproduction
    from rag.bench.rerun import reproduce
    from rag.bench.run import run_benchmark

_MODULES = {
    "rag.bench.benchmark": "Benchmark LabelSet list_benchmarks list_label_sets read_benchmark read_label_set",
    "rag.bench.changes": "run_changes",
    "rag.bench.compare": "compare_runs",
    "rag.bench.datasets": "Dataset fetch_dataset list_datasets",
    "rag.bench.downloads": "DownloadPlan plan_download",
    "rag.bench.folder": "BenchRun open_run",
    "rag.bench.items": "Item read_items",
    "rag.bench.judges": "rank_judges",
    "rag.bench.predictions": "split_predictions",
    "rag.bench.report": "report_table write_report",
    "rag.bench.reproductions": "list_reproductions read_reproduction",
    "rag.bench.rerun": "reproduce",
    "rag.bench.run": "run_benchmark",
}

__all__ = [
    "BenchRun",
    "Benchmark",
    "Dataset",
    "DownloadPlan",
    "Item",
    "LabelSet",
    "compare_runs",
    "fetch_dataset",
    "list_benchmarks",
    "list_datasets",
    "list_label_sets",
    "list_reproductions",
    "open_run",
    "plan_download",
    "rank_judges",
    "read_benchmark",
    "read_items",
    "read_label_set",
    "read_reproduction",
    "report_table",
    "reproduce",
    "run_benchmark",
    "run_changes",
    "split_predictions",
    "write_report",
]

if not TYPE_CHECKING:  # so that type checkers see names that are not there
    __getattr__ = on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
