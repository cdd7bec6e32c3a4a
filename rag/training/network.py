"""The reader's network: BERT over question and passage, with heads for relevance, answer span and sentences.

A larger network with the same heads may teach it (`rag.training.distillation`).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import torch

from autoais.base.errors import first_line
from autoais.base.models.onnx import open_tokenizer
from autoais.base.models.pairs import TYPES
from autoais.training.loop import Tensors, mixed_precision
from rag.base.errors import RagError

if TYPE_CHECKING:
    from transformers import BertModel

Outputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]

_SPECIAL = {"[CLS]": "<s>", "[SEP]": "</s>", "[PAD]": "<pad>", "[MASK]": "<mask>"}  # MPNet's names for BERT's tokens


class _Heads(torch.nn.Module):
    """The embedding of types, and the heads: relevance from the first token, spans and sentences from each."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.types = torch.nn.Embedding(TYPES, size)
        torch.nn.init.normal_(self.types.weight, std=0.02)
        self.mix = torch.nn.Linear(size, size)
        self.relevance = torch.nn.Linear(size, 1)
        self.span = torch.nn.Linear(size, 2)
        self.keep = torch.nn.Linear(size, 1)

    def outputs_of(self, states: torch.Tensor) -> Outputs:
        """The four outputs of `Network.forward` for the last layer's output, (pairs, length, size)."""
        relevance = self.relevance(torch.nn.functional.gelu(self.mix(states[:, 0])))
        spans = self.span(states)
        return relevance.squeeze(-1), spans[..., 0], spans[..., 1], self.keep(states).squeeze(-1)


class Network(_Heads):
    """A cross-encoder as in DPR (Karpukhin et al. 2020, Section 6.1): relevance from `[CLS]`, a span from its tokens.

    A third head says of each token whether it belongs to a sentence that answers the question.

    The types of `rag.retrieval.reader.Window`, which mark shared words, are added to the embeddings (exact-match
    marking, Boualili et al. 2020). The embeddings are frozen, which saves a fifth of the time without a measurable
    loss.
    """

    outputs: ClassVar[Mapping[str, bool]] = MappingProxyType(
        {"relevance": False, "starts": True, "ends": True, "keep": True}
    )

    def __init__(self, encoder: "BertModel") -> None:
        super().__init__(encoder.config.hidden_size)
        self.embeddings = encoder.embeddings.requires_grad_(False)
        self.layer = encoder.encoder.layer

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

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> Outputs:
        """Return logits of relevance (pairs,), and of the first, the last and any answer token (pairs, length).

        `ids`, `mask`, `types`: (pairs, length) int64.
        """
        states = self.embeddings(input_ids=ids) + self.types(types)
        attention_mask = (1.0 - mask[:, None, None, :].to(torch.float32)) * -1e4
        for layer in self.layer:
            states = layer(states, attention_mask=attention_mask)
        return self.outputs_of(states)


class Teacher(_Heads):
    """A larger BERT or MPNet with the reader's heads, all of it trained, with dropout.

    Its inputs are the reader's: ids of the reader's tokenizer become those of its own tokens. `base` is a folder saved
    by transformers, `tokenizer` the reader's tokenizer.json. Raises `RagError` for other networks and vocabularies.
    """

    def __init__(self, base: Path, tokenizer: Path) -> None:
        from transformers import AutoConfig, AutoModel

        from autoais.base.models.transformers import quiet_logging

        ids = match_ids(base, tokenizer)
        try:
            with quiet_logging(local=True):
                kind = AutoConfig.from_pretrained(str(base)).model_type
                if kind not in ("bert", "mpnet"):
                    raise RagError(f"{base}: a {kind}; a teacher is a bert or an mpnet")
                encoder = AutoModel.from_pretrained(str(base), add_pooling_layer=False, dtype=torch.float32)
        except RagError:
            raise
        except Exception as error:
            raise RagError(f"{base}: cannot be opened as a teacher ({first_line(error)})") from error
        super().__init__(encoder.config.hidden_size)
        self.embeddings, self.encoder = encoder.embeddings, encoder.encoder
        self.ids = torch.nn.Buffer(torch.tensor(ids), persistent=False)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> Outputs:
        """As `Network.forward`."""
        states = self.embeddings(input_ids=self.ids[ids]) + self.types(types)
        attention_mask = (1.0 - mask[:, None, None, :].to(torch.float32)) * -1e4
        return self.outputs_of(self.encoder(states, attention_mask=attention_mask)[0])


def match_ids(base: Path, tokenizer: Path) -> list[int]:
    """For each id of the reader's tokenizer, that of the same token in a base's; raises `RagError` if there is none."""
    base_vocabulary, reader_vocabulary = (
        open_tokenizer(path, RagError).get_vocab() for path in (base / "tokenizer.json", tokenizer)
    )
    ids = [
        base_vocabulary.get(_SPECIAL.get(token, token), base_vocabulary.get(token))
        for token in sorted(reader_vocabulary, key=lambda t: reader_vocabulary[t])
    ]
    missing = [token for token in reader_vocabulary if ids[reader_vocabulary[token]] is None]
    if missing:
        raise RagError(f"{base}: its tokenizer lacks {missing[0]!r}; name a network with the word pieces of the reader")
    return [int(number) for number in ids if number is not None]


def loss_of(network: _Heads, tensors: Tensors) -> tuple[torch.Tensor, float]:
    """The loss of a batch, and the accuracy: the share of groups whose top passage is one with the answer.

    The loss is the cross-entropy of each positive among the negatives of its group (DPR), averaged over the positives
    of a group, plus half the mean binary cross-entropy per passage, which makes a logit meaningful on its own, plus
    half the negative log marginal likelihood of the short answer's occurrences (as in DPR and Clark & Gardner 2018),
    plus the binary cross-entropy of the labelled tokens. A group without a positive counts in the second term alone.
    """
    ids, mask, types, keep, group_of, positive, text_starts, spans = tensors
    with mixed_precision(ids.device):
        relevance, starts, ends, keep_logits = (output.float() for output in network(ids, mask, types))
    binary = torch.nn.functional.binary_cross_entropy_with_logits
    loss = 0.5 * binary(relevance, positive.float())
    accuracy = 1.0
    if positive.any():
        rivals = (group_of[positive, None] == group_of[None, :]) & ~positive[None, :]  # of each positive: negatives
        rival_logits, positive_logits = relevance[None, :].masked_fill(~rivals, -1e4), relevance[positive]
        _, groups, counts = torch.unique(group_of[positive], return_inverse=True, return_counts=True)
        losses = torch.nn.functional.softplus(rival_logits.logsumexp(dim=1) - positive_logits)
        loss = loss + (losses / counts[groups]).sum() / len(counts)
        is_first = (positive_logits > rival_logits.amax(dim=1)).float()
        first = torch.zeros(len(counts), device=ids.device).scatter_reduce(0, groups, is_first, "amax")
        accuracy = float(first.mean())
    if (has_label := keep >= 0).any():
        loss = loss + binary(keep_logits[has_label], keep[has_label].float())
    if len(spans):
        is_text = text_of(mask, text_starts)
        is_text[:, 0] = True  # no short answer
        start, end = (torch.log_softmax(side.masked_fill(~is_text, -1e4), dim=1) for side in (starts, ends))
        rows = spans[:, 0]
        scores = start[rows, spans[:, 1]] + end[rows, spans[:, 2]]
        loss = loss - 0.5 * logsumexp_by_group(scores, torch.unique(rows, return_inverse=True)[1]).mean()
    return loss, accuracy


def logsumexp_by_group(values: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """The logsumexp of the values (n,) of each group; `groups` (n,) numbers them from 0, without gaps."""
    count = int(groups.max()) + 1
    maxima = torch.full((count,), -torch.inf, device=values.device)
    maxima = maxima.scatter_reduce(0, groups, values.detach(), "amax")
    sums = torch.zeros_like(maxima).index_add(0, groups, torch.exp(values - maxima[groups]))
    return maxima + torch.log(sums)


def text_of(mask: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
    """Which tokens (pairs, length) are of the passage's text, which begins at `first` (pairs,) and ends with [SEP]."""
    positions = torch.arange(mask.shape[1], device=mask.device)
    return (positions >= first[:, None]) & (positions < mask.sum(1, keepdim=True) - 1)
