"""The network: MiniLM as a cross-encoder with one output for the pair and one for every token of the claim."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from autoais.judges.encoding import TYPES

if TYPE_CHECKING:
    from transformers import BertModel


class Network(torch.nn.Module):
    """Logits of `supported`: for the pair, from the first token and the mean of the claim's, and for every token."""

    def __init__(self, bert: "BertModel") -> None:
        super().__init__()
        size = bert.config.hidden_size
        self.bert = bert
        self.mix = torch.nn.Linear(2 * size, size)
        self.pair = torch.nn.Linear(size, 1)
        self.token = torch.nn.Linear(size, 1)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """`ids`, `mask`, `types`: (pairs, length) int64; gives (pairs,) and (pairs, length) float32."""
        hidden = self.bert(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        claim = (mask * (types < 2)).unsqueeze(-1).to(hidden.dtype)  # types 0 and 1 are the claim's
        mean = (hidden * claim).sum(1) / claim.sum(1)
        mixed = torch.nn.functional.gelu(self.mix(torch.cat([hidden[:, 0], mean], dim=1)))
        return self.pair(mixed).squeeze(-1), self.token(hidden).squeeze(-1)


def build(base: Path, seed: int) -> Network:
    """The network from base weights (a folder as transformers saves it); the token types begin as the base's first."""
    from transformers import BertModel

    torch.manual_seed(seed)
    # No dropout inside: pairs are seen once, and drawing it costs the CPU more than the rest of a step.
    bert = BertModel.from_pretrained(
        str(base), add_pooling_layer=False, attn_implementation="sdpa",
        attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0,
    )  # fmt: skip
    first = bert.embeddings.token_type_embeddings.weight.data[:1]
    table = torch.nn.Embedding(TYPES, first.shape[1])
    table.weight.data = first.repeat(TYPES, 1) + 0.02 * torch.randn(TYPES, first.shape[1])
    bert.embeddings.token_type_embeddings = table
    bert.config.type_vocab_size = TYPES
    return Network(bert)
