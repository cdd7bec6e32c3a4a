"""What a browser gets of an item while a question about it is asked."""

from dataclasses import replace

from rag.annotate.items import Item
from rag.annotate.schemes import Question


def redact(item: Item, handle: str, question: Question) -> Item:
    """Return the item without what a browser must not get while the question is asked."""
    visible_item = replace(item, id=handle, answer="", group="", system="", expected={}, explanation="", flags=())
    if question.source == "hidden":
        visible_item = replace(visible_item, sources=(), table=None)
        if item.kind != "qa":  # a summary or caption is judged by itself
            visible_item = replace(visible_item, query="", turns=())
    if "question" in question.hides:
        visible_item = replace(visible_item, query="", turns=())
    if "claim" in question.hides:
        visible_item = replace(visible_item, text="", before="", after="")
    return visible_item
