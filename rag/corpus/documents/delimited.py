"""Blocks from tables whose cells stand between commas, semicolons or tabs (CSV and TSV)."""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from autoais.io.files import allow_long_cells
from rag.corpus.documents.blocks import Block, squeezed
from rag.corpus.documents.office import MOST_CELLS, table_rows
from rag.errors import FormatError

_SIGNS = ",;\t"
_TRIED = 50  # rows, to find what stands between the cells
_REGULAR = 0.7  # of them have as many cells as most


def delimited_blocks(text: str, where: str) -> list[Block] | None:
    """The rows of a table, each a block; None if it is none, as its lines have different numbers of cells."""
    try:
        sign = max(_SIGNS, key=lambda one: _fits(text, one))
        if _fits(text, sign) == (0, 0):
            return None
        rows = []
        cells = 0
        for line in _read(text, sign):
            cells += len(line)
            if cells > MOST_CELLS:
                raise FormatError(f"{where}: refused, as it has more than {MOST_CELLS:,} cells")
            rows.append([squeezed(cell) for cell in line])
    except csv.Error:
        return None
    return [*table_rows([line for line in rows if any(line)])]


def _read(text: str, sign: str) -> Iterator[list[str]]:
    allow_long_cells(len(text))
    return csv.reader(io.StringIO(text, newline=""), delimiter=sign, skipinitialspace=True)


def _fits(text: str, sign: str) -> tuple[float, int]:
    """The share of rows with the usual number of cells, and that number; zeros if that is one, or few rows have it."""
    widths = Counter(len(line) for line in islice(_read(text, sign), _TRIED) if any(line))
    if not widths:
        return 0, 0
    width, count = widths.most_common(1)[0]
    share = count / widths.total()
    return (share, width) if width > 1 and share >= _REGULAR else (0, 0)


def is_table(head: bytes) -> bool:
    """Whether a file is no collection of passages, as some have such names, by its beginning."""
    from autoais.corpora import CORPORA

    lines = [line for line in head.splitlines() if line.strip()]
    return not any(kind.detect(line) for line in lines[:3] for _, kind in CORPORA.items())
