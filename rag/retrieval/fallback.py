"""Several retrievers in order of preference: the first one whose data the index has."""

import logging

from rag.base.errors import IndexingError, RagError
from rag.index.index import Index
from rag.index.parts import read_data_configs
from rag.index.retriever_config import RetrieverConfig
from rag.retrieval import (
    Retriever,
    RetrieverKind,
    missing_retrievers,
    open_retriever,
    walk_data_configs,
    way_to_complete,
)

_log = logging.getLogger(__name__)


def open_fallback(index: Index, config: RetrieverConfig) -> Retriever:
    """Open the first of the `choices` whose data the index has, or else the last one.

    Data that is damaged, was made by another model or is still to be added by a build is passed over with a warning
    that says how to add it.
    """
    config.check_settings(["choices"])
    choices = config.setting("choices", list)
    if not choices or not all(isinstance(name, str) for name in choices):
        raise RagError(
            f"retriever {config.name}: a fallback needs one or more retrievers in 'choices', found {choices}"
        )
    names = {part.name for part in read_data_configs(index)}
    awaited = {part.name: name for name in missing_retrievers(index) for _, part in walk_data_configs(name)}
    for name in choices[:-1]:
        missing = [part.name for _, part in walk_data_configs(name) if part.name not in names]
        if not missing:
            try:
                return open_retriever(name, index)
            except IndexingError as error:
                folder = index.build.parent if index.build is not None else index.name
                command = f"rag index build --to {folder} --retriever {name}"
                _log.warning("searched without the retriever %s: %s: %s", name, error, command)
        elif missing[0] in awaited:
            way_out = way_to_complete(index, awaited[missing[0]])
            _log.warning("%s has not all of its vectors yet; answers get better with them: %s", index.name, way_out)
        else:
            _warn_of_members(index, name, missing[0])
    return open_retriever(choices[-1], index)


def _warn_of_members(index: Index, name: str, part: str) -> None:
    """Say which of several indexes lacks data that others have, so that none is searched with them."""
    members = index.members.values()
    without = [member for member in members if part not in {config.name for config in read_data_configs(member)}]
    if 0 < len(without) < len(members):
        way_out = way_to_complete(without[0], name)
        _log.warning("%s: searched without vectors, as %s has none: %s", index.name, without[0].name, way_out)


KIND = RetrieverKind(open_fallback)
