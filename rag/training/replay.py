"""Learning without forgetting (Li and Hoiem 2016): the reader learns from new groups and keeps what it said of others.

Of the passages of the kept files no label is used. The reader learns to say of them what it said before the training,
beside the groups of the other files.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from autoais.training.loop import Tensors, mixed_precision
from rag.training.distillation import distance
from rag.training.mining import Groups
from rag.training.network import Network, loss_of

_NEW_TENSORS = 8  # tensors of a batch that are of groups to learn from
SPANS, UNSURE = 0.5, 0.05  # more than in teaching: short answers are forgotten first


class ReplayBatches:
    """Batches of groups to learn from, and of groups of which the reader keeps what it said.

    Both kinds are spread evenly over the steps, and a pass ends with whichever ends first.
    """

    def __init__(self, new_groups: Groups, old_groups: Groups) -> None:
        self._learnt, self._kept = new_groups, old_groups

    def order(self, batch: int, seed: int) -> list[NDArray[np.int64]]:
        """One pass; `batch` counts the pairs of both kinds, and numbers from the count of the first on are kept."""
        share = self._learnt.pairs / (self._learnt.pairs + self._kept.pairs)
        new_order = self._learnt.order(round(batch * share), seed)
        old_order = self._kept.order(round(batch * (1 - share)), seed)
        return [np.concatenate([a, b + len(self._learnt)]) for a, b in zip(new_order, old_order, strict=False)]

    def batch(self, numbers: NDArray[np.int64]) -> Tensors:
        """The tensors of `Groups.batch`, first for the groups to learn from, then for the others."""
        is_old = numbers >= len(self._learnt)
        return (*self._learnt.batch(numbers[~is_old]), *self._kept.batch(numbers[is_old] - len(self._learnt)))


def replay_loss(network: Network, tensors: Tensors, *, before: Network, weight: float) -> tuple[torch.Tensor, float]:
    """The loss of a batch of `ReplayBatches`, and the accuracy on the groups to learn from.

    The loss is that of these groups (`rag.training.network.loss_of`), plus `weight` times the distance of the outputs
    for the others from those of the network `before`.
    """
    ids, mask, types, _, group_of, _, first, _ = tensors[_NEW_TENSORS:]
    with mixed_precision(ids.device):
        with torch.no_grad():
            outputs_before = before(ids, mask, types)
        outputs = network(ids, mask, types)
    loss, accuracy = loss_of(network, tensors[:_NEW_TENSORS])
    return loss + weight * distance(
        outputs, outputs_before, mask, first, group_of, spans=SPANS, unsure=UNSURE
    ), accuracy
