"""The recipe of a reader."""

from dataclasses import dataclass

from autoais.training.schedule import Schedule
from rag.retrieval.reader import MAX_LENGTH


@dataclass(frozen=True, slots=True)
class TeacherRecipe:
    """The table `[teacher]`: a larger network that learns first and then teaches the reader
    (`rag.training.distillation`).

    `base` is a package's folder as in `ReaderRecipe`, or a folder below a data folder. It learns from the groups of the
    recipe, each `times` as often as the recipe says. The reader learns from the first `depth` hits (1 to 24) of each
    labelled question, and of each question in the files `questions`, which maps them to their greatest number; these
    need no answers.
    """

    base: str
    base_sha256: str
    schedule: Schedule
    times: int
    depth: int
    questions: dict[str, int]


@dataclass(frozen=True, slots=True)
class KeptRecipe:
    """The table `[kept]`: of these files, the reader keeps what `start` says of the passages (`rag.training.replay`).

    `files` are names in `questions` and `labelled`; their labels are not learnt. `weight` is that of the distance from
    the outputs of `start`, beside the loss of the other files; the `batch` of the schedule counts the passages of both.
    The reader's weights are the mean of those of `start` and of the trained ones, whose part is `share` (Wortsman et
    al. 2022).
    """

    files: tuple[str, ...]
    weight: float
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class ReaderRecipe:
    """A recipe file (`eval/recipes/reader.toml`): base weights, questions, held-out questions, a schedule.

    `questions` maps a file of questions with short answers to the maximum number of groups (`rag.training.mining`) per
    question, `labelled` a file of questions with quotes (`rag.training.labelled_questions`) to the number of times it
    is used (0.5: every second question). Questions that also occur in a file of `held_out` are dropped, and labelled
    ones about a collection of `unseen`, on which the reader can be tried afterwards. `retriever` finds the hits,
    `depth` is the number of hits considered, `others` the number of negatives per group, and `least` the minimum cosine
    of a positive passage. The documents of labelled questions are searched as users search theirs, by the last of
    `rag.api.default_retrievers` if there is one.

    `start` is the `model.onnx` of a reader to continue from, with `start_sha256`; with `kept`, it forgets less of what
    that knew. With a `teacher`, `schedule` is that of learning from it and from the groups together; its `batch` counts
    the windows of hits. With `finetune`, a second schedule, the reader then learns from the groups alone, and its
    weights are the mean of those before and after (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models").
    """

    name: str
    kind: str
    base: str
    base_sha256: str
    seed: int
    depth: int
    others: int
    least: float
    questions: dict[str, int]
    labelled: dict[str, float]
    held_out: tuple[str, ...]
    schedule: Schedule
    max_length: int = MAX_LENGTH
    retriever: str = "bm25"
    labelled_others: int = 6
    start: str | None = None
    start_sha256: str | None = None
    teacher: TeacherRecipe | None = None
    finetune: Schedule | None = None
    kept: KeptRecipe | None = None
    unseen: tuple[str, ...] = ()
