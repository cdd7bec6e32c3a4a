"""A choice of recipes: the first one whose parts the index has."""

import logging

from rag.base.errors import IndexingError, RagError
from rag.index.index import Index
from rag.index.parts import recipes_of
from rag.index.recipes import Recipe
from rag.retrieval import Retriever, RetrieverKind, open_retriever, parts_of

_log = logging.getLogger(__name__)


def open_choice(index: Index, recipe: Recipe) -> Retriever:
    """Open the first of the recipe's `choices` whose parts the index has, or else the last one.

    A part that is damaged or was made by another model is passed over with a warning that says how to add it again.
    """
    recipe.only(["choices"])
    choices = recipe.setting("choices", list)
    if not choices or not all(isinstance(name, str) for name in choices):
        raise RagError(f"recipe {recipe.name}: a choice needs one or more recipes in 'choices', found {choices}")
    there = {part.name for part in recipes_of(index)}
    for name in choices[:-1]:
        if all(part.name in there for _, part in parts_of(name)):
            try:
                return open_retriever(name, index)
            except IndexingError as error:
                folder = index.build.parent if index.build is not None else index.name
                again = f"rag index build --to {folder} --recipe {name}"
                _log.warning("searched without the recipe %s: %s: %s", name, error, again)
    return open_retriever(choices[-1], index)


KIND = RetrieverKind(open_choice)
