"""Quantisation-aware training: the network computes with the numbers that the int8 file will compute with.

Weights on 129 steps a column, activations on 256 steps a pair (onnxruntime's dynamic quantisation with its reduced
range), embeddings on 255 steps a row; gradients pass straight through the rounding (Jacob et al. 2018).
"""

import torch

from autoais.training.model import Network

LIMIT = 8.0
STEPS = 64  # a weight is a whole number from -64 to 64 times its column's scale


def _straight(exact: torch.Tensor, rounded: torch.Tensor) -> torch.Tensor:
    return exact + (rounded - exact).detach()


class ClippedLinear(torch.nn.Linear):
    """A linear layer that reads its inputs cut off at plus and minus `LIMIT`.

    Before the feed-forward layers, the first token of MiniLM has one channel of 20 to 30 where all others stay below
    10; it would stretch the 256 steps of a pair threefold. Trained with the cut, the network does without it.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(pairs, length, in_features) to (pairs, length, out_features)."""
        return super().forward(x.clamp(-LIMIT, LIMIT))


class QuantizedLinear(ClippedLinear):
    """The same as MatMulInteger computes it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(pairs, length, in_features) to (pairs, length, out_features)."""
        x = _activations(x.clamp(-LIMIT, LIMIT))
        return torch.nn.functional.linear(x, _weights(self.weight), self.bias)


def _weights(weight: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        scale = (weight.abs().amax(dim=1, keepdim=True) / STEPS).clamp_min(1e-12)
        rounded = torch.round(weight / scale).clamp_(-STEPS, STEPS) * scale
    return _straight(weight, rounded)


def _activations(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        exact = x.float()
        every = tuple(range(1, x.ndim))
        low = exact.amin(dim=every, keepdim=True).clamp_max(0)
        high = exact.amax(dim=every, keepdim=True).clamp_min(0)
        scale = ((high - low) / 255).clamp_min(1e-12)
        zero = torch.round(-low / scale).clamp_(0, 255)
        rounded = (torch.round(exact / scale).add_(zero).clamp_(0, 255) - zero) * scale
    return _straight(x, rounded.to(x.dtype))


class QuantizedEmbedding(torch.nn.Embedding):
    """Rows as int8 with a scale each."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Rows of the ids, float32."""
        rows = super().forward(ids)
        with torch.no_grad():
            scale = (rows.abs().amax(dim=-1, keepdim=True) / 127).clamp_min(1e-12)
            rounded = torch.round(rows / scale) * scale
        return _straight(rows, rounded)


class StoredEmbedding(torch.nn.Module):
    """A quantised embedding as it is stored: int8 rows and their scales."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        scale = (weight.abs().amax(dim=1, keepdim=True) / 127).clamp_min(1e-12)
        self.rows = torch.nn.Buffer(torch.round(weight / scale).to(torch.int8))
        self.scale = torch.nn.Buffer(scale)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Rows of the ids, float32."""
        return self.rows[ids].float() * self.scale[ids]


def quantized(network: Network) -> Network:
    """The same network, computing as its int8 file will; parameters keep their names. The heads stay as they are."""
    for module in list(network.bert.modules()):
        for name, child in list(module.named_children()):
            if type(child) is torch.nn.Linear:
                new: torch.nn.Module = QuantizedLinear(child.in_features, child.out_features)
            elif type(child) is torch.nn.Embedding and name == "word_embeddings":
                new = QuantizedEmbedding(child.num_embeddings, child.embedding_dim)
            else:
                continue
            new.load_state_dict(child.state_dict())
            setattr(module, name, new)
    return network


def stored(network: Network) -> Network:
    """The network with layers as they are exported: linear ones not quantised yet, the embedding stored."""
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, QuantizedLinear):
                clipped = ClippedLinear(child.in_features, child.out_features)
                clipped.load_state_dict(child.state_dict())
                setattr(module, name, clipped)
            elif isinstance(child, QuantizedEmbedding):
                setattr(module, name, StoredEmbedding(child.weight.data))
    return network
