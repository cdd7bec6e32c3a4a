"""A choice of recipes: the first one whose parts the index has."""

from rag.errors import RagError
from rag.index.index import Index
from rag.index.parts import recipes_of
from rag.index.recipes import Recipe
from rag.retrievers import Retriever, RetrieverKind, open_retriever, parts_of


def open_choice(index: Index, recipe: Recipe) -> Retriever:
    """Open the first of the recipe's `choices` whose parts the index has, or else the last one."""
    recipe.only(["choices"])
    choices = recipe.setting("choices", list)
    if not choices or not all(isinstance(name, str) for name in choices):
        raise RagError(f"recipe {recipe.name}: a choice needs one or more recipes in 'choices', found {choices}")
    there = {part.name for part in recipes_of(index)}
    found = (name for name in choices if all(part.name in there for _, part in parts_of(name)))
    return open_retriever(next(found, choices[-1]), index)


KIND = RetrieverKind(open_choice)
