"""What the tests of the server share."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rag.index.index import Index


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> "Index":
    """An index of two documents."""
    from tests.rag.serve.served import make_index

    return make_index(tmp_path_factory.mktemp("served"))
