"""The figures of a collection's report: HAGRID's Figures 3 to 5 (Kamalloo et al. 2023)."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag.bench.collections.report.analyses import LABELS, MARKED, Analyses, quartiles
from rag.bench.plots import COLOURS, Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABEL_COLOURS = (COLOURS[2], COLOURS[1], COLOURS[0], COLOURS[4])
_MOST_QUOTES = 12  # columns of Figure 5
_BINS = 24  # hexagons across Figure 4


def figures(found: Analyses) -> list[Figure]:
    """Return the figures for which there are numbers, in the order of the paper."""
    drawn = [
        _violins("figure-3a", "Number of quotes by label", "answers", "quotes given with the question", found.quotes),
        _violins(
            "figure-3b",
            f"Answer sentence and cited quote: {found.similarity.name}",
            "pairs of a labelled answer sentence and a cited quote",
            "similarity",
            found.alike,
            most=1.0,
        ),
        _extractive(found),
        _indices(found.figure5()),
    ]
    return [one for one in drawn if one is not None]


def _violins(
    name: str,
    title: str,
    units: str,
    axis: str,
    values: Mapping[str, Sequence[float]],
    *,
    most: float = math.inf,
) -> Figure | None:
    """Figure 3: a kernel density estimate of each group, with lines at the quartiles; n counts `units`.

    The axis ends at `most`, the largest value that there can be.
    """
    listed = {label: list(values[label]) for label in LABELS if values[label]}
    if not listed:
        return None
    summary = {label: quartiles(one) for label, one in listed.items()}

    def draw(axes: "Axes") -> None:
        places = range(1, len(listed) + 1)
        parts: Any = axes.violinplot(
            list(listed.values()),
            positions=list(places),
            widths=0.8,
            showextrema=False,
            quantiles=[[0.25, 0.5, 0.75]] * len(listed),
        )
        for body, label in zip(parts["bodies"], listed, strict=True):
            body.set(facecolor=_LABEL_COLOURS[LABELS.index(label)], edgecolor="none", alpha=0.55)
        ink = axes.xaxis.label.get_color()
        parts["cquantiles"].set(color=ink, linestyle="--", linewidth=0.9)
        axes.set_xticks(list(places), [f"{label}\nn = {len(one):,}" for label, one in listed.items()], fontsize=8)
        axes.set_ylabel(axis)
        low, high = (pick(pick(one) for one in listed.values()) for pick in (min, max))
        margin = max(0.05, (high - low) / 20)
        axes.set_ylim(low - margin, min(most, high + margin))
        axes.set_xlabel(f"n: {units}")
        axes.grid(visible=False, axis="x")

    said = [f"{label} ({one['n']:,}): {_in_words(one)}" for label, one in summary.items()]
    return Figure(name, title, f"n counts {units}. {'; '.join(said)}.", {"groups": summary}, draw)


def _in_words(one: Mapping[str, Any]) -> str:
    return f"quartiles {one['q1']:.3g}, {one['median']:.3g}, {one['q3']:.3g}, mean {one['mean']:.3g}"


def _extractive(found: Analyses) -> Figure | None:
    """Figure 4: how much of an answer is copied (coverage), in what runs (density)."""
    coverage, density = found.coverage, found.density
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

    said = [f"{name}: {_in_words(one)}" for name, one in data.items()]
    text = f"{len(coverage):,} answers with citations. " + "; ".join(said) + "."
    return Figure("figure-4", "Coverage against density of answers and cited quotes", text, data, draw)


def _indices(shares: Mapping[int, Sequence[float]]) -> Figure | None:
    """Figure 5: which quotes are cited, by the number of quotes."""
    if not shares:
        return None
    shown = {n: one for n, one in shares.items() if n <= _MOST_QUOTES}

    def draw(axes: "Axes") -> None:
        from matplotlib import colormaps
        from matplotlib.ticker import PercentFormatter

        colours = colormaps["viridis"].resampled(_MOST_QUOTES + 1)
        for column, one in enumerate(shown.values()):
            below = 0.0
            for index, share in enumerate(one):
                axes.bar(
                    column, share, bottom=below, color=colours(index), edgecolor="white", linewidth=0.5, width=0.85
                )
                if share >= MARKED:
                    ink = "white" if index < _MOST_QUOTES * 0.6 else "black"
                    text = f"[{index + 1}] {100 * share:.0f} %" if len(shown) <= 8 else f"{100 * share:.0f}"
                    axes.text(column, below + share / 2, text, ha="center", va="center", color=ink, fontsize=6.5)
                below += share
        axes.set_xticks(range(len(shown)), [str(n) for n in shown])
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_ylim(0, 1)
        axes.set_xlabel(
            "quotes given with the question" + (f" (up to {_MOST_QUOTES})" if len(shown) < len(shares) else "")
        )
        axes.set_ylabel("share of the citations; quote 1 is lowest")
        axes.grid(visible=False, axis="x")

    said = [f"{n} quote{'s' if n > 1 else ''}: {_shares(one)}" for n, one in shown.items()]
    data = {"shares": {str(n): list(one) for n, one in shares.items()}}
    return Figure("figure-5", "Citations by the number of the quote", "; ".join(said) + ".", data, draw)


def _shares(one: Sequence[float]) -> str:
    """The shares of a column in words; the small ones, which the drawing does not name, together."""
    named = [f"[{number}] {100 * share:.0f} %" for number, share in enumerate(one, 1) if share >= MARKED]
    small = [share for share in one if 0 < share < MARKED]
    return ", ".join(named + ([f"{len(small)} more together {100 * sum(small):.0f} %"] if small else []))
