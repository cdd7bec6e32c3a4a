"""The network: MiniLM reads claim and evidence separately, and trained copies of its upper layers read them jointly."""

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import torch

from autoais.base.models.pairs import TYPES

if TYPE_CHECKING:
    from transformers import BertModel


JOINT_LAYERS = 4


class Network(torch.nn.Module):
    """A frozen sentence encoder (`trunk`), and a cross-encoder that branches off before its last `layers` layers.

    Ids are `[CLS] claim [SEP] [CLS] evidence [SEP]`; types 0 and 1 mark the claim, 2 and 3 the evidence
    (`autoais.base.models.pairs`). In the trunk (`lower` and `apart`) each side attends only to itself, as in the
    encoder's own training, so that its similarities stay valid. The `joint` layers start as copies of the trunk's last
    layers and are trained; they attend to both sides, and the types mark shared words. `lower` is computed once for
    both branches (PreTTR, MacAvaney et al. 2020).
    """

    outputs: ClassVar[Mapping[str, bool]] = MappingProxyType(
        {"pair": False, "tokens": True, "cosine": False, "nearest": True}
    )

    def __init__(self, trunk: "BertModel", layers: int = JOINT_LAYERS) -> None:
        super().__init__()
        size = trunk.config.hidden_size
        trunk.requires_grad_(False)
        self.embeddings = trunk.embeddings
        self.lower, self.apart = trunk.encoder.layer[:-layers], trunk.encoder.layer[-layers:]
        self.types = torch.nn.Embedding(TYPES, size)
        torch.nn.init.normal_(self.types.weight, std=0.02)
        self.joint = torch.nn.ModuleList(copy.deepcopy(layer) for layer in self.apart)
        self.joint.requires_grad_(True)
        self.mix = torch.nn.Linear(2 * size, size)
        self.pair = torch.nn.Linear(size, 1)
        self.token = torch.nn.Linear(size, 1)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """The outputs for `ids`, `mask` and `types`, each (pairs, length) int64.

        Returns, in float32: logits of `supported` for the pair (pairs,) and for each token (pairs, length); the cosine
        of the two sides' mean vectors (pairs,); and the cosine of each token to its nearest token on the other side
        (pairs, length).
        """
        claim, evidence = _sides(mask, types)
        states = self._lower(ids, claim, evidence)
        pair, token = self._together(states, mask, types)
        separate_states = states
        own_side_mask = _alone(claim, evidence)
        for layer in self.apart:
            separate_states = layer(separate_states, attention_mask=own_side_mask)
        unit = torch.nn.functional.normalize(separate_states, dim=-1)
        is_other_side = claim.unsqueeze(2) * evidence.unsqueeze(1) + evidence.unsqueeze(2) * claim.unsqueeze(1)
        nearest = (unit @ unit.transpose(1, 2)).masked_fill(is_other_side == 0, -1.0).amax(dim=2)
        cosine = torch.nn.functional.cosine_similarity(_mean(separate_states, claim), _mean(separate_states, evidence))
        return pair, token, cosine, nearest

    def layers(self) -> Iterator[torch.nn.Module]:
        """The frozen layers, then the trained ones."""
        yield from (*self.lower, *self.apart, *self.joint)

    def logits(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The first two outputs of `forward`, which depend on the trained layers."""
        return self._together(self._lower(ids, *_sides(mask, types)), mask, types)

    def _lower(self, ids: torch.Tensor, claim: torch.Tensor, evidence: torch.Tensor) -> torch.Tensor:
        positions = claim * (claim.cumsum(1) - 1) + evidence * (evidence.cumsum(1) - 1)
        own_side_mask = _alone(claim, evidence)
        with torch.no_grad():
            states: torch.Tensor = self.embeddings(input_ids=ids, position_ids=positions)
            for layer in self.lower:
                states = layer(states, attention_mask=own_side_mask)
        return states

    def _together(
        self, states: torch.Tensor, mask: torch.Tensor, types: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        states = states + self.types(types)
        full_mask = _additive(mask[:, None, None, :])
        for layer in self.joint:
            states = layer(states, attention_mask=full_mask)
        pooled_states = torch.cat([states[:, 0], _mean(states, _sides(mask, types)[0])], dim=1)
        mixture = torch.nn.functional.gelu(self.mix(pooled_states))
        return self.pair(mixture).squeeze(-1), self.token(states).squeeze(-1)


def _sides(mask: torch.Tensor, types: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return mask * (types < 2), mask * (types >= 2)


def _alone(claim: torch.Tensor, evidence: torch.Tensor) -> torch.Tensor:
    is_same_side = claim.unsqueeze(2) * claim.unsqueeze(1) + evidence.unsqueeze(2) * evidence.unsqueeze(1)
    return _additive(is_same_side.unsqueeze(1))


def _additive(is_visible: torch.Tensor) -> torch.Tensor:
    return (1.0 - is_visible.to(torch.float32)) * -1e4


def _mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weight = mask.unsqueeze(-1).to(states.dtype)
    return (states * weight).sum(1) / weight.sum(1)


def build(base: Path, seed: int) -> Network:
    """The untrained network on the weights of a sentence encoder (a folder saved by transformers)."""
    torch.manual_seed(seed)
    return Network(sentence_encoder(base))


def sentence_encoder(base: Path) -> "BertModel":
    """The sentence encoder in a folder saved by transformers, without dropout."""
    from transformers import BertModel

    from autoais.base.models.transformers import quiet_logging

    # Pairs are seen about once, and on a CPU dropout takes longer than the rest of a step.
    with quiet_logging(local=True):
        encoder: BertModel = BertModel.from_pretrained(
            str(base),
            add_pooling_layer=False,
            attn_implementation="sdpa",
            attention_probs_dropout_prob=0.0,
            hidden_dropout_prob=0.0,
        )
    return encoder
