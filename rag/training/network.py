"""The reader's network: BERT over question and passage, with heads for relevance, answer span and sentences."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import torch

from autoais.models.pairs import TYPES
from autoais.training.loop import Tensors, mixed_precision
from rag.errors import RagError

if TYPE_CHECKING:
    from transformers import BertModel


class Network(torch.nn.Module):
    """A cross-encoder as in DPR (Karpukhin et al. 2020, Section 6.1): relevance from `[CLS]`, a span from its tokens.

    A third head says of each token whether it belongs to a sentence that answers the question.

    The types of `rag.reader.Window`, which mark shared words, are added to the embeddings (exact-match marking,
    Boualili et al. 2020). The embeddings are frozen, which saves a fifth of the time without a measurable loss.
    """

    outputs: ClassVar[Mapping[str, bool]] = MappingProxyType(
        {"relevance": False, "starts": True, "ends": True, "keep": True}
    )

    def __init__(self, encoder: "BertModel") -> None:
        super().__init__()
        size = encoder.config.hidden_size
        self.embeddings = encoder.embeddings.requires_grad_(False)
        self.layer = encoder.encoder.layer
        self.types = torch.nn.Embedding(TYPES, size)
        torch.nn.init.normal_(self.types.weight, std=0.02)
        self.mix = torch.nn.Linear(size, size)
        self.relevance = torch.nn.Linear(size, 1)
        self.span = torch.nn.Linear(size, 2)
        self.keep = torch.nn.Linear(size, 1)

    def start_from(self, file: Path) -> None:
        """Take over the weights of an exported reader; the embeddings stay the base's, and a head it lacks is new."""
        from autoais.training.export import weights_of

        state = weights_of(file)
        missing = [name for name in self.state_dict() if name not in state and not name.startswith(("keep", "embed"))]
        if missing:
            raise RagError(f"{file}: has no {missing[0]}; name the model.onnx of a reader")
        self.load_state_dict({n: v for n, v in state.items() if not n.startswith("embed")}, strict=False)

    def layers(self) -> Iterator[torch.nn.Module]:
        """The transformer layers."""
        yield from self.layer

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return logits of relevance (pairs,), and of the first, the last and any answer token (pairs, length).

        `ids`, `mask`, `types`: (pairs, length) int64.
        """
        hidden = self.embeddings(input_ids=ids) + self.types(types)
        seen = (1.0 - mask[:, None, None, :].to(torch.float32)) * -1e4
        for layer in self.layer:
            hidden = layer(hidden, attention_mask=seen)
        relevance = self.relevance(torch.nn.functional.gelu(self.mix(hidden[:, 0])))
        spans = self.span(hidden)
        return relevance.squeeze(-1), spans[..., 0], spans[..., 1], self.keep(hidden).squeeze(-1)


def loss_of(network: Network, tensors: Tensors) -> tuple[torch.Tensor, float]:
    """The loss of a batch, and the accuracy: the share of groups whose top passage is one with the answer.

    The loss is the cross-entropy of each positive among the negatives of its group (DPR), averaged over the positives
    of a group, plus half the mean binary cross-entropy per passage, which makes a logit meaningful on its own, plus
    half the negative log marginal likelihood of the short answer's occurrences (as in DPR and Clark & Gardner 2018),
    plus the binary cross-entropy of the labelled tokens. A group without a positive counts in the second term alone.
    """
    ids, mask, types, keep, group_of, positive, text_starts, spans = tensors
    with mixed_precision():
        relevance, starts, ends, kept = (output.float() for output in network(ids, mask, types))
    binary = torch.nn.functional.binary_cross_entropy_with_logits
    loss = 0.5 * binary(relevance, positive.float())
    accuracy = 1.0
    if positive.any():
        rivals = (group_of[positive, None] == group_of[None, :]) & ~positive[None, :]  # of each positive: negatives
        others, own = relevance[None, :].masked_fill(~rivals, -1e4), relevance[positive]
        _, groups, counts = torch.unique(group_of[positive], return_inverse=True, return_counts=True)
        each = torch.nn.functional.softplus(others.logsumexp(dim=1) - own)
        loss = loss + (each / counts[groups]).sum() / len(counts)
        first = torch.zeros(len(counts)).scatter_reduce(0, groups, (own > others.amax(dim=1)).float(), "amax")
        accuracy = float(first.mean())
    if (known := keep >= 0).any():
        loss = loss + binary(kept[known], keep[known].float())
    if len(spans):
        length = ids.shape[1]
        inside = (torch.arange(length) >= text_starts[:, None]) & (torch.arange(length) < mask.sum(1, keepdim=True) - 1)
        inside[:, 0] = True  # no short answer
        start, end = (torch.log_softmax(side.masked_fill(~inside, -1e4), dim=1) for side in (starts, ends))
        rows = spans[:, 0]
        scores = start[rows, spans[:, 1]] + end[rows, spans[:, 2]]
        distinct = sorted(set(rows.tolist()))
        likelihoods = torch.stack([torch.logsumexp(scores[rows == row], dim=0) for row in distinct])
        loss = loss - 0.5 * likelihoods.mean()
    return loss, accuracy
