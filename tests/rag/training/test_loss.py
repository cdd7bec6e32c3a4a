"""What the reader learns: the labels of its tokens, and a loss that falls as its outputs become right."""

import pytest

pytest.importorskip("torch")

import torch

from rag.base.types import Passage
from rag.retrieval.reader import Window
from rag.training.mining import Group, _keep
from rag.training.network import loss_of


def test_the_tokens_of_quotes_are_kept_and_those_that_are_unsure_are_not_learnt() -> None:
    # [CLS] question [SEP] headings [SEP] and four words of the text, then [SEP]
    window = Window([0] * 10, [0] * 10, 5, [(0, 3), (4, 8), (9, 12), (13, 17)])
    passage = Passage("p", text="one, two. six seven")
    group = Group("q", (passage,), None, kept=((4, 8),), unsure=((13, 17),), others=())
    assert _keep(window, group) == [-1, -1, -1, -1, -1, 0, 1, 0, -1, -1]
    nothing = Group("q", (passage,), None, kept=(), unsure=(), others=())
    assert set(_keep(window, nothing)) == {-1}


class Fixed:
    """A network with given outputs."""

    def __init__(self, relevance: list[float], starts: list[float], keep: list[float]) -> None:
        self.relevance, self.starts, self.kept = relevance, starts, keep

    def __call__(self, *_: object) -> tuple[torch.Tensor, ...]:
        rows = len(self.relevance)
        spans = torch.tensor([self.starts] * rows)
        return torch.tensor(self.relevance), spans, spans.clone(), torch.tensor([self.kept] * rows)


def loss(relevance: list[float], starts: list[float] | None = None, keep: list[float] | None = None) -> float:
    """Of a group of one positive and one negative passage; the answer is the fourth token, which is kept."""
    length = 6
    ids = torch.zeros((2, length), dtype=torch.long)
    labels = torch.full((2, length), -1)
    labels[0, 2:5] = torch.tensor([0, 1, 0])
    tensors = (
        ids, torch.ones_like(ids), ids, labels, torch.tensor([0, 0]), torch.tensor([True, False]),
        torch.tensor([2, 2]), torch.tensor([[0, 3, 3]]),
    )  # fmt: skip
    network = Fixed(relevance, starts or [0.0] * length, keep or [0.0] * length)
    found, _ = loss_of(network, tensors)  # type: ignore[arg-type]
    return float(found)


def test_the_loss_falls_as_the_outputs_become_right() -> None:
    unsure = loss([0.0, 0.0])
    assert loss([2.0, 0.0]) < unsure < loss([-2.0, 0.0])
    assert loss([0.0, -2.0]) < unsure < loss([0.0, 2.0])
    assert loss([0.0, 0.0], starts=[0, 0, 0, 3, 0, 0]) < unsure < loss([0.0, 0.0], starts=[3, 0, 0, 0, 0, 0])
    assert loss([0.0, 0.0], keep=[0, 0, -3, 3, -3, 0]) < unsure < loss([0.0, 0.0], keep=[0, 0, 3, -3, 3, 0])


def relevance_loss(relevance: list[float], groups: list[int], positive: list[bool]) -> tuple[float, float]:
    """The loss and the accuracy of passages of which nothing is known but whether they answer."""
    ids = torch.zeros((len(relevance), 4), dtype=torch.long)
    known = torch.tensor(groups), torch.tensor(positive), torch.ones(len(relevance), dtype=torch.long)
    tensors = (ids, torch.ones_like(ids), ids, torch.full_like(ids, -1), *known, torch.zeros((0, 3), dtype=torch.long))
    loss, accuracy = loss_of(Fixed(relevance, [0.0] * 4, [0.0] * 4), tensors)  # type: ignore[arg-type]
    return float(loss), accuracy


def test_the_accuracy_is_the_share_of_groups_whose_positive_is_first() -> None:
    groups, positive = [0, 0, 1], [True, False, False]  # the second group has no positive
    assert relevance_loss([1.0, 0.0, 5.0], groups, positive)[1] == 1.0
    assert relevance_loss([0.0, 1.0, 5.0], groups, positive)[1] == 0.0
    assert relevance_loss([0.0, 1.0, 2.0], [0, 0, 0], [True, False, True])[1] == 1.0


def test_the_passages_that_answer_are_no_rivals_and_share_the_weight_of_their_group() -> None:
    def ranking(*relevance: float, positive: list[bool]) -> float:
        """The loss without its second term."""
        scores, labels = torch.tensor(relevance), torch.tensor(positive).float()
        both, _ = relevance_loss([*relevance], [0] * len(positive), positive)
        return both - 0.5 * float(torch.nn.functional.binary_cross_entropy_with_logits(scores, labels))

    one = ranking(1.0, 0.0, positive=[True, False])
    assert one == pytest.approx(float(torch.nn.functional.cross_entropy(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))))
    assert ranking(1.0, 1.0, 0.0, positive=[True, True, False]) == pytest.approx(one)
    weak = ranking(-1.0, 0.0, positive=[True, False])
    assert ranking(1.0, -1.0, 0.0, positive=[True, True, False]) == pytest.approx((one + weak) / 2)
