"""Benchmarks: from questions to a report, for our systems and for others' answers.

    from rag.bench import compare_runs, run_benchmark, write_report

    run = run_benchmark("handbook", "RUN", systems=["reader", "extractive"])
    run.metrics("reader")["ways"]
    compare_runs("RUN")
    write_report("RUN")

Each name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag.bench.benchmark import Benchmark, list_benchmarks, read_benchmark
    from rag.bench.compare import compare_runs
    from rag.bench.items import Item, read_items
    from rag.bench.report import report_table, write_report
    from rag.bench.reproductions import list_reproductions, read_reproduction
    from rag.bench.rerun import reproduce
    from rag.bench.run import BenchRun, open_run, run_benchmark

_WHERE = {
    "rag.bench.benchmark": ["Benchmark", "list_benchmarks", "read_benchmark"],
    "rag.bench.compare": ["compare_runs"],
    "rag.bench.items": ["Item", "read_items"],
    "rag.bench.report": ["report_table", "write_report"],
    "rag.bench.reproductions": ["list_reproductions", "read_reproduction"],
    "rag.bench.rerun": ["reproduce"],
    "rag.bench.run": ["BenchRun", "open_run", "run_benchmark"],
}
_MODULE = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "BenchRun",
    "Benchmark",
    "Item",
    "compare_runs",
    "list_benchmarks",
    "list_reproductions",
    "open_run",
    "read_benchmark",
    "read_items",
    "read_reproduction",
    "report_table",
    "reproduce",
    "run_benchmark",
    "write_report",
]


def __getattr__(name: str) -> object:
    if name in _MODULE:
        return getattr(import_module(_MODULE[name]), name)
    raise AttributeError(f"module 'rag.bench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
