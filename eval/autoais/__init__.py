"""Scores anybody's cited answers; knows nothing of `rag`."""

from autoais.types import Attribution, Judge, Judgement, Verdict

__all__ = ["Attribution", "Judge", "Judgement", "Verdict"]
