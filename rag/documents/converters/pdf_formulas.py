"""Formulas in the text of a PDF: fractions, raised and lowered signs, which are lines of their own in the file."""

import re

from rag.documents.converters.pdf_pages import Line

_EQUATION = re.compile(r"\(\w{1,3}(?:\.\w{1,3})*\)")  # its number, at the right edge

_LIMITS = ("min", "max", "lim", "inf", "sup", "log", "arg")


def with_piece(line: Line, last: Line, piece: Line, leading: int, *, is_inside: bool) -> Line | None:
    """A line with another piece of its formula; None if the piece is none.

    `last` is the piece before it, at first the line itself. `is_inside`: the line is not the first of its text.
    """
    rise = piece.y - line.y
    if not -0.72 * leading <= rise <= 1.2 * leading or line.mono or piece.mono:
        return None
    size = max(line.size, last.size)
    signs = not any(map(str.isalnum, piece.text))
    tall = signs or len(piece.text) < 4  # brackets and roots hang from their upper ends
    if rise > (1.2 if tall else 0.72) * leading:
        return None
    ranges = last is line  # the numerator, if there is one, ends the line
    starts = ranges and is_inside and is_numerator(line)
    level = abs(rise) <= 0.1 * size
    gap = piece.left - line.right
    if level:
        if not (-size < gap < 3 * size or (gap > 0 and _EQUATION.fullmatch(piece.text))):
            return None
    elif not -2.5 * size < gap < 3 * size:
        if ranges:  # a fraction at the beginning of a line
            is_aligned = starts and abs(piece.left - line.left) < 3 * size
        else:
            is_aligned = piece.left < last.right and last.left < piece.right
        if not is_aligned:
            return None
    small = not ranges or starts or piece.size < line.size - 15
    bar = "/" if small and not signs and _is_below(line, last, piece) else " "
    y = line.y
    if bar == "/" and starts:
        y = (line.y + piece.y) // 2
    longest = max(line, piece, key=lambda part: len(part.text))
    return Line(f"{line.text}{bar}{piece.text}", line.left, piece.right, y, longest.size, longest.look)


def is_numerator(line: Line) -> bool:
    """Whether a line is as short as what stands above the bar of a fraction."""
    return len(line.text) < 25


def _is_below(line: Line, last: Line, piece: Line) -> bool:
    """Whether a piece is the denominator of the fraction whose numerator is the piece before it or ends the line."""
    rows = 0.3 * line.size
    if piece.y - line.y > -rows or not any(map(str.isalnum, last.text[-2:])):
        return False
    upper, lower = last.text.split()[-1], piece.text.split()[0]
    if "=" in lower or (
        len(upper) > 2 and upper.isalpha() and (len(lower) > 2 or upper in _LIMITS) and lower.isalpha()
    ):
        return False  # what stands below a sum, a limit or a word
    if last is line:
        return piece.left < line.right - 0.3 * line.size
    return last.y - line.y >= rows and piece.left < last.right and last.left < piece.right
