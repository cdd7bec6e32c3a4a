"""The figures of a collection's report: HAGRID's Figures 3 to 5 (Kamalloo et al. 2023)."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag.bench.collections.report.analyses import LABELS, MIN_LABEL_SHARE, Analyses, quartiles
from rag.bench.plots import COLOURS, Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABEL_COLOURS = (COLOURS[2], COLOURS[1], COLOURS[0], COLOURS[4])
_MAX_QUOTES = 12  # columns of Figure 5
_BINS = 24  # hexagons across Figure 4


def figures(analyses: Analyses) -> list[Figure]:
    """Return the figures for which there are numbers, in the order of the paper."""
    candidates = [
        _violins(
            "figure-3a", "Number of quotes by label", "answers", "quotes given with the question", analyses.quotes
        ),
        _violins(
            "figure-3b",
            f"Answer sentence and cited quote: {analyses.similarity.name}",
            "pairs of a labelled answer sentence and a cited quote",
            "similarity",
            analyses.similarities,
            max_value=1.0,
        ),
        _extractive(analyses),
        _indices(analyses.figure5()),
    ]
    return [figure for figure in candidates if figure is not None]


def _violins(
    name: str,
    title: str,
    units: str,
    axis: str,
    values: Mapping[str, Sequence[float]],
    *,
    max_value: float = math.inf,
) -> Figure | None:
    """Figure 3: a kernel density estimate of each group, with lines at the quartiles; n counts `units`.

    The axis ends at `max_value`, the largest value that there can be.
    """
    groups = {label: list(values[label]) for label in LABELS if values[label]}
    if not groups:
        return None
    summary = {label: quartiles(group) for label, group in groups.items()}

    def draw(axes: "Axes") -> None:
        positions = range(1, len(groups) + 1)
        parts: Any = axes.violinplot(
            list(groups.values()),
            positions=list(positions),
            widths=0.8,
            showextrema=False,
            quantiles=[[0.25, 0.5, 0.75]] * len(groups),
        )
        for body, label in zip(parts["bodies"], groups, strict=True):
            body.set(facecolor=_LABEL_COLOURS[LABELS.index(label)], edgecolor="none", alpha=0.55)
        ink = axes.xaxis.label.get_color()
        parts["cquantiles"].set(color=ink, linestyle="--", linewidth=0.9)
        axes.set_xticks(
            list(positions), [f"{label}\nn = {len(group):,}" for label, group in groups.items()], fontsize=8
        )
        axes.set_ylabel(axis)
        low, high = (pick(pick(group) for group in groups.values()) for pick in (min, max))
        margin = max(0.05, (high - low) / 20)
        axes.set_ylim(low - margin, min(max_value, high + margin))
        axes.set_xlabel(f"n: {units}")
        axes.grid(visible=False, axis="x")

    captions = [f"{label} ({group['n']:,}): {_in_words(group)}" for label, group in summary.items()]
    return Figure(name, title, f"n counts {units}. {'; '.join(captions)}.", {"groups": summary}, draw)


def _in_words(group: Mapping[str, Any]) -> str:
    return f"quartiles {group['q1']:.3g}, {group['median']:.3g}, {group['q3']:.3g}, mean {group['mean']:.3g}"


def _extractive(analyses: Analyses) -> Figure | None:
    """Figure 4: how much of an answer is copied (coverage), in what runs (density)."""
    coverage, density = analyses.coverage, analyses.density
    if not coverage:
        return None
    data = {"coverage": quartiles(coverage), "density": quartiles(density)}

    def draw(axes: "Axes") -> None:
        from matplotlib.colors import LogNorm
        from matplotlib.ticker import FuncFormatter, NullFormatter

        top = max(1.0, max(density))
        cells = axes.hexbin(
            coverage, density, gridsize=_BINS, extent=(0, 1, 0, top), mincnt=1, cmap="viridis", norm=LogNorm(1)
        )
        figure = axes.get_figure()
        assert figure is not None
        bar = figure.colorbar(cells, ax=axes, label="answers", format=FuncFormatter(lambda value, _: f"{value:g}"))
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("coverage: share of the words copied")
        axes.set_ylabel("density: mean length of the run of a word")

    captions = [f"{name}: {_in_words(values)}" for name, values in data.items()]
    text = f"{len(coverage):,} answers with citations. " + "; ".join(captions) + "."
    return Figure("figure-4", "Coverage against density of answers and cited quotes", text, data, draw)


def _indices(shares: Mapping[int, Sequence[float]]) -> Figure | None:
    """Figure 5: which quotes are cited, by the number of quotes."""
    if not shares:
        return None
    columns = {n: column for n, column in shares.items() if n <= _MAX_QUOTES}

    def draw(axes: "Axes") -> None:
        from matplotlib import colormaps
        from matplotlib.ticker import PercentFormatter

        colours = colormaps["viridis"].resampled(_MAX_QUOTES + 1)
        for column, shares_of_column in enumerate(columns.values()):
            bottom = 0.0
            for index, share in enumerate(shares_of_column):
                axes.bar(
                    column, share, bottom=bottom, color=colours(index), edgecolor="white", linewidth=0.5, width=0.85
                )
                if share >= MIN_LABEL_SHARE:
                    ink = "white" if index < _MAX_QUOTES * 0.6 else "black"
                    text = f"[{index + 1}] {100 * share:.0f} %" if len(columns) <= 8 else f"{100 * share:.0f}"
                    axes.text(column, bottom + share / 2, text, ha="center", va="center", color=ink, fontsize=6.5)
                bottom += share
        axes.set_xticks(range(len(columns)), [str(n) for n in columns])
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_ylim(0, 1)
        axes.set_xlabel(
            "quotes given with the question" + (f" (up to {_MAX_QUOTES})" if len(columns) < len(shares) else "")
        )
        axes.set_ylabel("share of the citations; quote 1 is lowest")
        axes.grid(visible=False, axis="x")

    captions = [f"{n} quote{'s' if n > 1 else ''}: {_shares(column)}" for n, column in columns.items()]
    data = {"shares": {str(n): list(column) for n, column in shares.items()}}
    return Figure("figure-5", "Citations by the number of the quote", "; ".join(captions) + ".", data, draw)


def _shares(column: Sequence[float]) -> str:
    """The shares of a column in words; the small ones, which the drawing does not name, together."""
    captions = [f"[{number}] {100 * share:.0f} %" for number, share in enumerate(column, 1) if share >= MIN_LABEL_SHARE]
    small = [share for share in column if 0 < share < MIN_LABEL_SHARE]
    return ", ".join(captions + ([f"{len(small)} more together {100 * sum(small):.0f} %"] if small else []))
