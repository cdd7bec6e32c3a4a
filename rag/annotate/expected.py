"""Whether people are right on training and gold items."""

from collections.abc import Mapping

from rag.annotate.items import Item
from rag.annotate.schemes import Scheme


def is_right(value: str | None, expected: str) -> bool:
    """Whether a verdict is the expected one; on the scale from 1 to 5, a neighbouring value is right too."""
    if value is not None and value.isdecimal() and expected.isdecimal():
        return abs(int(value) - int(expected)) <= 1
    return value == expected


def item_is_right(item: Item, verdicts: Mapping[str, str], scheme: Scheme) -> bool:
    """Whether all verdicts on a training or gold item are as expected, and it is flagged only if that is expected."""
    flag = item.expected.get("flag")
    if flag is not None or "flag" in verdicts:
        return verdicts.get("flag") == flag
    # "I do not understand it" is no mistake where nothing is expected of it: the later questions are not asked then.
    asked_if = {question.name: question.asked_if for question in scheme.questions_of(item.unit)}
    return all(
        is_right(verdicts.get(question), value)
        for question, value in item.expected.items()
        if not any(
            name not in item.expected and name in verdicts and verdicts[name] not in values
            for name, values in asked_if.get(question, {}).items()
        )
    )
