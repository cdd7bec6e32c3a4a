"""The evaluator's sentence splitter is the system's too, so that both mean the same by a sentence."""

from autoais.sentences import sentence_spans

__all__ = ["sentence_spans"]
