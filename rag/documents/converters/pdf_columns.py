"""The columns of a PDF's page whose lines are drawn across the gutter: the left column, then the right one."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from rag.documents.converters.pdf_pages import Line

_MIN_LINES = 4  # of each column
_MIN_LENGTH = 20  # characters of a usual line in a column
_ENDS = ".:!?"


def in_columns(lines: list[Line]) -> list[Line]:
    """The lines of a page, where runs of lines from two columns in turns become one column after the other."""
    halves = [half for line in lines for half in split_at_gap(line)]
    gutter = _gutter(halves)
    if gutter is None:
        return lines
    lines_by_column: list[Line] = []
    for is_across, group in groupby(halves, lambda line: line.left < gutter < line.right):
        run = [*group]
        left, right = [line for line in run if line.right <= gutter], [line for line in run if line.left >= gutter]
        lines_by_column += run if is_across or not _are_columns(run, (left, right)) else [*left, *right]
    return lines_by_column if lines_by_column != halves else lines


def split_at_gap(line: Line) -> Iterator[Line]:
    """A line that one gap parts, as two."""
    if len(line.cells) != 6:
        yield line
        return
    _, left, end, start, begin, right = line.cells
    yield line._replace(text=line.text[:start].rstrip(), left=left, right=end, cells=())
    yield line._replace(text=line.text[start:], left=begin, right=right, cells=())


def _gutter(lines: Sequence[Line]) -> int | None:
    """The place between two columns, left of most lines of the right one; None if there are none side by side."""
    jumps = [after.left for before, after in pairwise(lines) if before.right < after.left and _is_beside(before, after)]
    if len(jumps) < _MIN_LINES:
        return None
    return sorted(jumps)[len(jumps) // 2] - 10


def _is_beside(line: Line, other: Line) -> bool:
    return abs(line.y - other.y) < line.size and abs(line.size - other.size) <= 15


def _are_columns(lines: Sequence[Line], sides: tuple[list[Line], list[Line]]) -> bool:
    """Whether the lines of a run are drawn in turns, and sentences go on in the next line of each column."""
    turns = sum(_is_beside(before, after) for before, after in pairwise(lines) if after.left > before.right)
    return all(
        len(side) >= _MIN_LINES
        and 2 * turns > len(side)
        and sorted(len(line.text) for line in side)[len(side) // 2] >= _MIN_LENGTH
        and 3 * sum(before.text[-1] not in _ENDS and after.text[0].islower() for before, after in pairwise(side))
        >= len(side)
        for side in sides
    )
