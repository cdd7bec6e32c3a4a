"""The latest answers, so that an export has the answer that the page shows, and a rating the one that was rated."""

import threading
from collections import OrderedDict

from rag.index.index import Index
from rag.serve.service import Reply

_MAX_ANSWERS = 256


class RecentAnswers:
    """The latest answers, by the ids of their questions. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._replies: OrderedDict[str, Reply] = OrderedDict()

    def add(self, reply: Reply) -> None:
        """Add an answer, and remove the oldest."""
        with self._lock:
            self._replies[reply.answer.question.id] = reply
            if len(self._replies) > _MAX_ANSWERS:
                self._replies.popitem(last=False)

    def find(self, question: str, index: str, system: str, current_index: Index) -> Reply | None:
        """Return the last answer to a question, unless the index has been replaced since."""
        with self._lock:
            replies = [*reversed(self._replies.values())]
        for reply in replies:
            if (reply.question, reply.index, reply.system) == (question, index, system):
                return reply if reply.passages.index is current_index else None
        return None

    def find_by_id(self, identifier: str) -> Reply | None:
        """Return an answer by the id of its question."""
        with self._lock:
            return self._replies.get(identifier)
