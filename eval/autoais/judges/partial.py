"""`partial_from`: partial support by the probability of judges that tell only full support from the rest."""

from dataclasses import replace

from autoais.base.errors import UserError
from autoais.base.types import Judgement, Verdict

_NO = (Verdict.NOT_ATTRIBUTABLE, Verdict.EXTRAPOLATORY)


def check_partial_from(partial_from: float | None, limit: float = 1.0) -> None:
    """Raise `UserError` unless the value is None, or above 0 and below the threshold of full support."""
    if partial_from is not None and not 0 < partial_from < limit:
        raise UserError(f"partial_from {partial_from}: must be above 0 and below {limit}, where full support begins")


def partial_suffix(partial_from: float | None) -> str:
    """Return what a judge's name ends with: `+partial0.3`, or nothing."""
    return "" if partial_from is None else f"+partial{partial_from!r}"


def with_partial(judgement: Judgement, partial_from: float | None) -> Judgement:
    """Return the judgement as partially attributable if it is a no, without contradiction, from that probability on."""
    is_near = partial_from is not None and judgement.probability is not None and judgement.probability >= partial_from
    return (
        replace(judgement, verdict=Verdict.PARTIALLY_ATTRIBUTABLE)
        if is_near and judgement.verdict in _NO
        else judgement
    )
