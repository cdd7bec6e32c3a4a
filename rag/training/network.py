"""The reader's network: BERT over question and passage, with a relevance head and a span head."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import torch

from autoais.models.pairs import TYPES
from autoais.training.loop import Tensors

if TYPE_CHECKING:
    from transformers import BertModel


class Network(torch.nn.Module):
    """A cross-encoder as in DPR (Karpukhin et al. 2020, Section 6.1): relevance from `[CLS]`, a span from its tokens.

    The types of `rag.reader.Window`, which mark shared words, are added to the embeddings (exact-match marking,
    Boualili et al. 2020). The embeddings are frozen, which saves a fifth of the time without a measurable loss.
    """

    outputs: ClassVar[Mapping[str, bool]] = MappingProxyType({"relevance": False, "starts": True, "ends": True})

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

    def layers(self) -> Iterator[torch.nn.Module]:
        """The transformer layers."""
        yield from self.layer

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return logits of relevance (pairs,) and of the first and last answer token (pairs, length).

        `ids`, `mask`, `types`: (pairs, length) int64.
        """
        hidden = self.embeddings(input_ids=ids) + self.types(types)
        seen = (1.0 - mask[:, None, None, :].to(torch.float32)) * -1e4
        for layer in self.layer:
            hidden = layer(hidden, attention_mask=seen)
        relevance = self.relevance(torch.nn.functional.gelu(self.mix(hidden[:, 0])))
        spans = self.span(hidden)
        return relevance.squeeze(-1), spans[..., 0], spans[..., 1]


def loss_of(network: Network, tensors: Tensors) -> tuple[torch.Tensor, float]:
    """The loss of a batch, and the accuracy: the share of groups whose top passage is the one with the answer.

    The loss is the cross-entropy within the group (DPR), plus half the mean binary cross-entropy per passage, which
    makes a logit meaningful on its own, plus half the negative log marginal likelihood of the answer's occurrences (as
    in DPR and Clark & Gardner 2018).
    """
    ids, mask, types, places, first, spans = tensors
    with torch.autocast("cpu", dtype=torch.bfloat16):
        relevance, starts, ends = network(ids, mask, types)
    relevance, starts, ends = relevance.float(), starts.float(), ends.float()
    grouped = relevance[places.clamp_min(0)].masked_fill(places < 0, -1e4)
    right = torch.zeros(len(places), dtype=torch.long)
    loss = torch.nn.functional.cross_entropy(grouped, right)
    holds = torch.zeros_like(relevance)
    holds[places[:, 0]] = 1.0
    loss = loss + 0.5 * torch.nn.functional.binary_cross_entropy_with_logits(relevance, holds)
    length = ids.shape[1]
    inside = (torch.arange(length) >= first[:, None]) & (torch.arange(length) < mask.sum(1, keepdim=True) - 1)
    start, end = (torch.log_softmax(side.masked_fill(~inside, -1e4), dim=1) for side in (starts, ends))
    rows = spans[:, 0]
    scores = start[rows, spans[:, 1]] + end[rows, spans[:, 2]]
    positive = places[:, 0]
    likelihoods = torch.stack([torch.logsumexp(scores[rows == row], dim=0) for row in positive if (rows == row).any()])
    return loss - 0.5 * likelihoods.mean(), float((grouped.argmax(dim=1) == 0).float().mean())
