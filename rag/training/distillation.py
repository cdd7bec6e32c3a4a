"""Teaching the reader by a larger network (Hinton et al. 2015): what that says of the hits of many questions.

The larger network learns from the groups of the recipe first. Then it reads the hits of every labelled question, and of
others without labels, and the reader learns its outputs beside the groups: it sees far more passages than anybody
labelled, and of each how well it answers.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from autoais.training.loop import Tensors, batches_of_like_length, mixed_precision, training_device
from rag.base.errors import RagError
from rag.base.types import Passage
from rag.retrieval.reader import WindowEncoder
from rag.training.mining import Groups
from rag.training.network import Network, Outputs, Teacher, logsumexp_by_group, loss_of, text_of

WINDOWS = 3  # of a passage; later ones are not read
GROUPS_SHARE, GROUPS_WEIGHT = 0.25, 0.3  # passages of groups in a step, and the weight of their loss
OUTPUTS = ("starts", "ends", "keep")  # logits per token
BLOCK = 50_000  # windows that a teacher reads between two files
_MAX_VOCABULARY = 1 << 16  # ids are stored in 16 bits

Arrays = dict[str, NDArray[np.int64]]


class HitWriter:
    """Collects the windows of questions and their hits, and writes them to one `.npz`.

    Arrays: `ids` (uint16) and `types` of all windows, concatenated, with the `ends` of each window; `first`, the
    position of the first token of the text; `group_ends`, in windows, one per question. Memory holds all of them, and
    twice that while they are written.
    """

    def __init__(self, encoder: WindowEncoder) -> None:
        if encoder.words > _MAX_VOCABULARY:
            raise RagError(f"a vocabulary of {encoder.words:,} word pieces; a teacher's may have {_MAX_VOCABULARY:,}")
        self._encoder = encoder
        self._ids: list[NDArray[np.uint16]] = []
        self._types: list[NDArray[np.uint8]] = []
        self._first: list[int] = []
        self._group_ends: list[int] = []

    def add(self, question: str, passages: Sequence[Passage]) -> None:
        """Encode a question with each of its hits."""
        for passage in passages:
            for window in self._encoder.windows(question, passage)[:WINDOWS]:
                self._ids.append(np.array(window.ids, dtype=np.uint16))
                self._types.append(np.array(window.types, dtype=np.uint8))
                self._first.append(window.first)
        if passages:
            self._group_ends.append(len(self._first))

    def write(self, out: Path) -> int:
        """Write the file and return the number of windows; raises `RagError` if there is none."""
        if not self._first:
            raise RagError("no hits to teach with: the index finds nothing for these questions; name another index")
        temporary = out.with_suffix(".new.npz")
        np.savez(
            temporary,
            ids=np.concatenate(self._ids), types=np.concatenate(self._types), first=np.array(self._first),
            ends=np.cumsum([len(ids) for ids in self._ids]), group_ends=np.array(self._group_ends),
        )  # fmt: skip
        temporary.replace(out)
        return len(self._first)


def read_hits(
    teacher: Teacher, hits: Path, out: Path, *, batch: int, block: int = BLOCK, log: Callable[[str], None]
) -> None:
    """Write what the larger network says of all windows to the folder `out`, in files of `block` windows each.

    A file holds the `relevance` of its windows, and `OUTPUTS` per token in float16. Files that are there are kept, so
    that a stopped run goes on. The network is on the CPU afterwards.
    """
    arrays = _load_arrays(hits)
    device = training_device()
    teacher.to(device).eval()
    out.mkdir(exist_ok=True)
    total = len(arrays["ends"])
    for first in range(0, total, block):
        last = min(first + block, total)
        file = out / f"{first:09}.npz"
        if not file.exists():
            temporary = file.with_suffix(".new")
            with temporary.open("wb") as file_handle:
                np.savez(file_handle, **_read(teacher, arrays, np.arange(first, last), batch, device))  # type: ignore[arg-type]
            temporary.replace(file)
        log(f"{last:,} of {total:,} windows read by the teacher")
    teacher.to("cpu")


def _read(
    teacher: Teacher, arrays: Arrays, rows: NDArray[np.int64], batch: int, device: torch.device
) -> dict[str, NDArray[np.floating]]:
    """The outputs for adjacent windows."""
    start, end = int(arrays["starts"][rows[0]]), int(arrays["ends"][rows[-1]])
    relevance = np.zeros(len(rows), dtype=np.float32)
    tokens = {name: np.zeros(end - start, dtype=np.float16) for name in OUTPUTS}
    order = rows[np.argsort((arrays["ends"] - arrays["starts"])[rows], kind="stable")]
    for at in range(0, len(order), batch):
        batch_rows = order[at : at + batch]
        ids, mask, types, positions = _pad(arrays, batch_rows)
        with torch.inference_mode(), mixed_precision(device):
            outputs = teacher(*(torch.from_numpy(array).to(device) for array in (ids, mask, types)))
        relevance[batch_rows - rows[0]] = outputs[0].float().cpu().numpy()
        for name, logits in zip(OUTPUTS, outputs[1:], strict=True):
            tokens[name][positions[mask == 1] - start] = logits.float().cpu().numpy()[mask == 1]
    return {"relevance": relevance, **tokens}


class HitBatches:
    """Batches of hits with the outputs of the larger network (`read_hits`), and of groups beside them.

    Every step has about `batch` windows of hits, and a quarter as many passages of groups, which come round again.
    Raises `RagError` for outputs that are not of these hits.
    """

    def __init__(self, hits: Path, outputs: Path, groups: Groups) -> None:
        self._arrays, self._groups = _load_arrays(hits), groups
        output_files = [np.load(file, allow_pickle=False) for file in sorted(outputs.glob("*.npz"))]
        self._outputs = {
            name: np.concatenate([file_outputs[name] for file_outputs in output_files])
            for name in ("relevance", *OUTPUTS)
        }
        expected = [len(self._arrays["ends"]), *[len(self._arrays["ids"])] * len(OUTPUTS)]
        if [len(values) for values in self._outputs.values()] != expected:
            raise RagError(f"{outputs}: not the outputs for {hits}; remove the folder, and train again")
        lengths = self._arrays["ends"] - self._arrays["starts"]
        ends = self._arrays["group_ends"].astype(np.int64)
        self._firsts, self._ends = np.concatenate([[0], ends[:-1]]), ends
        self._longest = np.maximum.reduceat(lengths, self._firsts)

    def __len__(self) -> int:
        return len(self._ends)

    def order(self, batch: int, seed: int) -> list[NDArray[np.int64]]:
        """One pass over the questions; numbers from their count on are those of groups."""
        questions_per_batch = max(1, batch * len(self) // int(self._ends[-1]))
        question_batches = batches_of_like_length(self._longest, questions_per_batch, seed)
        group_batches: list[NDArray[np.int64]] = []
        while len(group_batches) < len(question_batches):
            group_batches += self._groups.order(max(1, round(batch * GROUPS_SHARE)), seed + len(group_batches))
        return [np.concatenate([a, b + len(self)]) for a, b in zip(question_batches, group_batches, strict=False)]

    def batch(self, numbers: NDArray[np.int64]) -> Tensors:
        """Ids, mask, types, group and start of the text of the hits, the four outputs; then those of `Groups.batch`."""
        question_numbers, group_numbers = numbers[numbers < len(self)], numbers[numbers >= len(self)] - len(self)
        spans = [(int(self._firsts[number]), int(self._ends[number])) for number in question_numbers]
        rows = np.concatenate([np.arange(start, end) for start, end in spans])
        ids, mask, types, positions = _pad(self._arrays, rows)
        group_of = np.repeat(np.arange(len(spans)), [end - start for start, end in spans])
        outputs = (np.where(mask == 1, self._outputs[name][positions], 0).astype(np.float32) for name in OUTPUTS)
        first = self._arrays["first"][rows].astype(np.int64)
        arrays_of_batch = (ids, mask, types, group_of, first, self._outputs["relevance"][rows], *outputs)
        return (*(torch.from_numpy(array) for array in arrays_of_batch), *self._groups.batch(group_numbers))

    def some(self, count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """As `Groups.some`."""
        return self._groups.some(count)


_HIT_TENSORS = 9  # tensors of a batch that are of hits


def distillation_loss(network: Network, tensors: Tensors) -> tuple[torch.Tensor, float]:
    """The loss of a batch of `HitBatches`, and the accuracy on its groups.

    The loss is the distance of the outputs for the hits from the larger network's (`distance`), and 0.3 times the loss
    of the groups (`rag.training.network.loss_of`).
    """
    ids, mask, types, group_of, first, *teacher_outputs = tensors[:_HIT_TENSORS]
    with mixed_precision(ids.device):
        outputs = network(ids, mask, types)
    difference = distance(
        outputs, (teacher_outputs[0], teacher_outputs[1], teacher_outputs[2], teacher_outputs[3]), mask, first, group_of
    )
    group_loss, accuracy = loss_of(network, tensors[_HIT_TENSORS:])
    return difference + GROUPS_WEIGHT * group_loss, accuracy


def distance(
    student_outputs: Outputs,
    teacher_outputs: Outputs,
    mask: torch.Tensor,
    first: torch.Tensor,
    group_of: torch.Tensor,
    *,
    spans: float = 0.25,
    unsure: float = 0.02,
) -> torch.Tensor:
    """How far a network's outputs for passages of questions are from those that are wanted.

    `student_outputs` and `teacher_outputs` are outputs of `rag.training.network.Network.forward`, `mask` is (pairs,
    length), `first` (the position of the text) and `group_of` are (pairs,). The sum of: the divergence
    (Kullback-Leibler) of the relevance among the passages of a question (`group_of`); half the cross-entropy of the
    relevance of each passage; `spans` times the divergences of the first and the last token of the short answer; and
    the cross-entropy of the tokens that answer. In the terms of tokens a passage weighs as much as the wanted
    probability that it answers, plus `unsure`.
    """
    own_relevance, own_starts, own_ends, own_keep = (output.float() for output in student_outputs)
    relevance, starts, ends, keep = (output.float() for output in teacher_outputs)
    log_wanted, log_own = (
        logits - logsumexp_by_group(logits, group_of)[group_of] for logits in (relevance, own_relevance)
    )
    binary = torch.nn.functional.binary_cross_entropy_with_logits
    loss = (log_wanted.exp() * (log_wanted - log_own)).sum() / (group_of.max() + 1)
    loss = loss + 0.5 * binary(own_relevance, relevance.sigmoid())
    weight = relevance.sigmoid() + unsure
    weight = weight / weight.sum()
    text = text_of(mask, first)
    is_position = text.clone()
    is_position[:, 0] = True  # no short answer
    for student_side, teacher_side in ((own_starts, starts), (own_ends, ends)):
        log_one, log_theirs = (
            torch.log_softmax(side.masked_fill(~is_position, -1e4), dim=1) for side in (student_side, teacher_side)
        )
        divergence = (log_theirs.exp() * (log_theirs - log_one)).masked_fill(~is_position, 0).sum(1)
        loss = loss + spans * (weight * divergence).sum()
    keep_losses = (binary(own_keep, keep.sigmoid(), reduction="none") * text).sum(1) / text.sum(1).clamp_min(1)
    return loss + (weight * keep_losses).sum()


def _load_arrays(hits: Path) -> Arrays:
    arrays: Arrays = dict(np.load(hits, allow_pickle=False))
    arrays["starts"] = np.concatenate([[0], arrays["ends"][:-1]])
    return arrays


def _pad(arrays: Arrays, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Ids, mask, types, and places in the concatenated arrays, each (rows, length) with a length divisible by 8."""
    starts = arrays["starts"][rows].astype(np.int64)
    lengths = arrays["ends"][rows].astype(np.int64) - starts
    columns = np.arange(-(-int(lengths.max()) // 8) * 8)[None]
    mask = (columns < lengths[:, None]).astype(np.int64)
    positions = np.minimum(starts[:, None] + columns, len(arrays["ids"]) - 1)
    ids, types = (arrays[name][positions].astype(np.int64) * mask for name in ("ids", "types"))
    return ids, mask, types, positions
