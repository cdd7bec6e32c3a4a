"""A figure of a report, drawn by matplotlib as SVG and PNG; equal numbers give equal bytes."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag.base.errors import missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# Okabe and Ito's colours that show on white and on black; lines also differ in dashes and markers.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6fd1", "#888888")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: its file name, title, what it shows in words (for those who do not see it), numbers and drawing."""

    name: str
    title: str
    text: str
    data: dict[str, Any]
    draw: "Callable[[Axes], None]"
    height: float = 3.4

    def svg(self, *, dark: bool = False) -> str:
        """The figure as SVG, with light lines on a transparent ground if `dark`."""
        with _draw(self, dark=dark) as canvas:
            buffer = io.StringIO()
            canvas.savefig(buffer, format="svg", metadata={"Date": None, "Title": self.title}, transparent=True)
        return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"

    def png(self) -> bytes:
        """The figure as PNG, 200 dots per inch, on white."""
        with _draw(self, dark=False) as canvas:
            buffer = io.BytesIO()
            canvas.savefig(buffer, format="png", dpi=200, metadata={"Software": None})
        return buffer.getvalue()


@contextmanager
def _draw(figure: Figure, *, dark: bool) -> "Iterator[Canvas]":
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise missing_extra("a report", "report") from error
    from matplotlib import style

    settings: Any = {
        "svg.hashsalt": figure.name, "font.family": "DejaVu Sans", "font.size": 9, "axes.spines.top": False,
        "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3, "grid.linewidth": 0.6,
        "legend.frameon": False, "text.parse_math": False, "figure.constrained_layout.use": True,
    }  # fmt: skip
    with mpl.rc_context(), style.context(["default", *(["dark_background"] if dark else [])]):
        mpl.rcParams.update(settings)
        canvas = Canvas(figsize=(6.4, figure.height))
        FigureCanvasAgg(canvas)
        figure.draw(canvas.subplots())
        yield canvas
