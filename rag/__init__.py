"""Answers in which every sentence cites its source."""

from rag.types import Answer, Citation, Hit, Passage, Question, Sentence, Unresolved

__all__ = ["Answer", "Citation", "Hit", "Passage", "Question", "Sentence", "Unresolved"]
