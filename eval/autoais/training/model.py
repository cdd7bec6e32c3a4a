"""The network: MiniLM reads claim and evidence apart, then a few layers more read them together."""

import copy
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from autoais.judges.encoding import TYPES

if TYPE_CHECKING:
    from transformers import BertModel

JOINT_LAYERS = 3


class Network(torch.nn.Module):
    """A sentence encoder (`trunk`, kept as it is) and a cross-encoder on top of its token vectors.

    Ids are `[CLS] claim [SEP] [CLS] evidence [SEP]`; types 0 and 1 mark the claim, 2 and 3 the evidence
    (`autoais.judges.encoding`). In the trunk each side sees only itself, as in the encoder's own training, so that its
    similarities hold; in the joint layers all see all, and the types say which words the sides share.
    """

    def __init__(self, trunk: "BertModel", layers: int = JOINT_LAYERS) -> None:
        super().__init__()
        size = trunk.config.hidden_size
        self.trunk = trunk.requires_grad_(False)
        self.types = torch.nn.Embedding(TYPES, size)
        self.joint = torch.nn.ModuleList(copy.deepcopy(layer) for layer in trunk.encoder.layer[-layers:])
        self.joint.requires_grad_(True)
        self.nearness = torch.nn.Linear(1, size)
        self.mix = torch.nn.Linear(2 * size + 1, size)
        self.pair = torch.nn.Linear(size, 1)
        self.token = torch.nn.Linear(size, 1)
        torch.nn.init.normal_(self.types.weight, std=0.02)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """`ids`, `mask`, `types`: (pairs, length) int64.

        Gives, float32: logits of `supported` for the pair (pairs,) and for every token (pairs, length); the cosine of
        both sides' mean vectors (pairs,); and for every token the cosine of its nearest on the other side (pairs,
        length).
        """
        claim, evidence = mask * (types < 2), mask * (types >= 2)
        same = claim.unsqueeze(2) * claim.unsqueeze(1) + evidence.unsqueeze(2) * evidence.unsqueeze(1)
        places = claim * (claim.cumsum(1) - 1) + evidence * (evidence.cumsum(1) - 1)
        with torch.no_grad():
            apart = self.trunk(
                input_ids=ids, position_ids=places, attention_mask=_additive(same.unsqueeze(1))
            ).last_hidden_state
            unit = torch.nn.functional.normalize(apart.float(), dim=-1)
            near = (unit @ unit.transpose(1, 2)).masked_fill(_far(claim, evidence) == 0, -1.0).amax(dim=2)
            cosine = torch.nn.functional.cosine_similarity(_mean(apart.float(), claim), _mean(apart.float(), evidence))
        hidden = apart + self.types(types) + self.nearness(near.unsqueeze(-1))
        everything = _additive(mask[:, None, None, :])
        for layer in self.joint:
            hidden = layer(hidden, attention_mask=everything)
        read = torch.cat([hidden[:, 0], _mean(hidden, claim), cosine.unsqueeze(-1).to(hidden.dtype)], dim=1)
        mixed = torch.nn.functional.gelu(self.mix(read))
        return self.pair(mixed).squeeze(-1), self.token(hidden).squeeze(-1), cosine, near


def _additive(seen: torch.Tensor) -> torch.Tensor:
    return (1.0 - seen.to(torch.float32)) * -1e4


def _far(claim: torch.Tensor, evidence: torch.Tensor) -> torch.Tensor:
    return claim.unsqueeze(2) * evidence.unsqueeze(1) + evidence.unsqueeze(2) * claim.unsqueeze(1)


def _mean(hidden: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    weight = chosen.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weight).sum(1) / weight.sum(1)


def build(base: Path, seed: int) -> Network:
    """The network from a sentence encoder's weights (a folder as transformers saves it)."""
    from transformers import BertModel

    torch.manual_seed(seed)
    # No dropout: pairs are seen once, and drawing it costs the CPU more than the rest of a step.
    return Network(
        BertModel.from_pretrained(
            str(base),
            add_pooling_layer=False,
            attn_implementation="sdpa",
            attention_probs_dropout_prob=0.0,
            hidden_dropout_prob=0.0,
        )
    )
