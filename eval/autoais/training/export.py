"""From the trained network to the file that ships: ONNX with int8 weights, run by onnxruntime alone; and back."""

import copy
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

import torch

from autoais.errors import UserError
from autoais.training.model import Network

INPUTS = ("ids", "types")
LIMIT = 6.0  # inputs of feed-forward layers beyond it are few, and kept apart

_HEADS = 12  # MiniLM's; the file does not say
_EMBEDDING = "embeddings.word_embeddings"


class SplitLinear(torch.nn.Module):
    """A linear layer that multiplies its few large inputs in float32 and all the rest in int8.

    Before the feed-forward layers a few channels of single tokens reach 20 to 30 where all others stay below 10;
    quantised together, they would take most of the 256 steps (LLM.int8, Dettmers et al. 2022, section 3.2). What
    exceeds `LIMIT` in the channels named is multiplied apart; in other channels it is cut off.
    """

    def __init__(self, layer: torch.nn.Linear, channels: torch.Tensor) -> None:
        super().__init__()
        self.bulk = layer
        self.channels = torch.nn.Buffer(channels)
        self.large = torch.nn.Buffer(layer.weight.detach()[:, channels].T.contiguous())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(pairs, length, in_features) to (pairs, length, out_features)."""
        cut = x.clamp(-LIMIT, LIMIT)
        product: torch.Tensor = self.bulk(cut) + (x - cut).index_select(2, self.channels) @ self.large
        return product


class _Stored(torch.nn.Module):
    """An embedding as it is stored: int8 rows with a scale each."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        scale = (weight.abs().amax(dim=1, keepdim=True) / 127).clamp_min(1e-12)
        self.rows = torch.nn.Buffer(torch.round(weight / scale).to(torch.int8))
        self.scale = torch.nn.Buffer(scale)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.rows[ids].float() * self.scale[ids]


class CrossEncoder(Protocol):
    """A BERT that reads pairs: what `export` has to know of a network."""

    @property
    def outputs(self) -> Mapping[str, bool]:
        """The names of what it gives, and whether that is one value a token."""
        ...

    @property
    def embeddings(self) -> Any:  # noqa: ANN401  (transformers' own)
        """What reads the ids."""
        ...

    def layers(self) -> Iterable[torch.nn.Module]:
        """Its transformer layers."""
        ...


class _Unpadded(torch.nn.Module):
    """The network without its mask: one pair is read at a time, so nothing is padded."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: torch.Tensor, types: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found: tuple[torch.Tensor, ...] = self.network(ids, torch.ones_like(ids), types)
        return found


Pair = tuple[torch.Tensor, torch.Tensor]


def export(trained: CrossEncoder, out: Path, pairs: Iterable[Pair]) -> None:
    """Write `out`: inputs `ids` and `types`, (1, length) int64; outputs as the network gives them.

    Matrix products take int8 weights, one scale a column, and activations quantised as they come; the embeddings are
    int8, one scale a row. Weights use 7 of the 8 bits, so that processors without VNNI cannot overflow. `pairs`
    (ids, types) show which inputs are large.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    network = copy.deepcopy(trained)
    module = cast("torch.nn.Module", network).eval()
    _split(network, module, pairs)
    embeddings = network.embeddings
    setattr(embeddings, "word_embeddings", _Stored(embeddings.word_embeddings.weight.detach()))  # noqa: B010  (another class)
    ids, types = torch.tensor([[1, 2, 3, 1, 2, 3]]), torch.tensor([[0, 1, 0, 2, 3, 2]])
    with tempfile.TemporaryDirectory() as folder:
        plain, ready = Path(folder) / "plain.onnx", Path(folder) / "ready.onnx"
        tokenwise = [*INPUTS, *(name for name, each in network.outputs.items() if each)]
        torch.onnx.export(
            _Unpadded(module),
            (ids, types),
            str(plain),
            input_names=list(INPUTS),
            output_names=list(network.outputs),
            dynamic_axes={name: {1: "length"} for name in tokenwise},
            opset_version=17,
            dynamo=False,
        )
        quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
        nodes = onnx.load(str(ready)).graph.node
        quantize_dynamic(
            str(ready),
            str(out),
            op_types_to_quantize=["MatMul"],
            nodes_to_quantize=[node.name for node in nodes if _is_layer(node.name)],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
        )


def _is_layer(name: str) -> bool:
    return name.endswith(("query/MatMul", "key/MatMul", "value/MatMul", "attention/output/dense/MatMul", "bulk/MatMul"))


def _split(network: CrossEncoder, module: torch.nn.Module, pairs: Iterable[Pair]) -> None:
    """Replace the feed-forward layers by `SplitLinear`, with the channels that exceed `LIMIT` in the pairs."""
    largest: dict[torch.nn.Module, torch.Tensor] = {}

    def note(layer: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        most = inputs[0].detach().abs().flatten(0, -2).amax(dim=0)
        largest[layer] = torch.maximum(largest.get(layer, most), most)

    blocks: list[Any] = list(network.layers())
    layers = [(block.intermediate, "dense") for block in blocks] + [(block.output, "dense") for block in blocks]
    hooks = [getattr(parent, name).register_forward_pre_hook(note) for parent, name in layers]
    with torch.inference_mode():
        for ids, types in pairs:
            module(ids, torch.ones_like(ids), types)
    for hook in hooks:
        hook.remove()
    for parent, name in layers:
        layer = getattr(parent, name)
        setattr(parent, name, SplitLinear(layer, torch.nonzero(largest[layer] > LIMIT).flatten().clone()))


def restore(file: Path) -> Network:
    """The PyTorch network with the weights of an exported file, in float32.

    For comparing the two and for training on from what shipped. `UserError` where the file is not one of ours.
    """
    import onnx
    from onnx import numpy_helper
    from transformers import BertConfig, BertModel

    graph = onnx.load(str(file)).graph
    held = {tensor.name: torch.tensor(numpy_helper.to_array(tensor)) for tensor in graph.initializer}
    state = {name.removeprefix("network.").replace(".bulk.", "."): value for name, value in held.items()}
    for node in graph.node:  # tensors that are alike are stored once, under one name: the nodes tell which they are
        name = node.name.removeprefix("/network/").rpartition("/")[0].removesuffix("/bulk").replace("/", ".")
        if node.op_type == "LayerNormalization":
            state[f"{name}.weight"], state[f"{name}.bias"] = held[node.input[1]], held[node.input[2]]
        elif node.op_type == "Add" and (stored := [one for one in node.input if one in held]):
            state.setdefault(f"{name}.bias", held[stored[0]])
        if node.op_type not in ("MatMul", "MatMulInteger") or node.input[1] not in held:
            continue
        path, weight = node.name.removeprefix("/network/"), held[node.input[1]].float()
        if node.op_type == "MatMulInteger":
            weight = weight * held[node.input[1].removesuffix("_quantized") + "_scale"]
        elif path.endswith(("intermediate/dense/MatMul", "output/dense/MatMul")):
            continue  # the large channels again, which stand in the bulk too
        name = path.removesuffix("_quant").removesuffix("/MatMul").removesuffix("/Gemm_MatMul").removesuffix("/bulk")
        state[f"{name.replace('/', '.')}.weight"] = weight.T.contiguous()
    try:
        rows = state[f"{_EMBEDDING}.rows"].float() * state[f"{_EMBEDDING}.scale"]
        places = state["embeddings.position_embeddings.weight"]
        config = BertConfig(
            vocab_size=rows.shape[0],
            hidden_size=rows.shape[1],
            num_hidden_layers=_layers(state, "lower.") + _layers(state, "apart."),
            num_attention_heads=_HEADS,
            intermediate_size=state["joint.0.intermediate.dense.weight"].shape[0],
            max_position_embeddings=places.shape[0],
            attention_probs_dropout_prob=0.0,
            hidden_dropout_prob=0.0,
        )
        network = Network(BertModel(config, add_pooling_layer=False), _layers(state, "joint."))
        state[f"{_EMBEDDING}.weight"] = rows
        network.load_state_dict({name: state[name] for name in network.state_dict()})
    except KeyError as error:
        raise UserError(f"{file}: no tensor {error}; it was not made by `autoais train`") from None
    return network.eval()


def _layers(state: Mapping[str, torch.Tensor], prefix: str) -> int:
    numbers = [int(name.removeprefix(prefix).split(".")[0]) for name in state if name.startswith(prefix)]
    return 1 + max(numbers, default=-1)
