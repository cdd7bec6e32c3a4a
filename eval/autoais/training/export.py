"""Export of the trained network to ONNX with int8 weights, which needs only onnxruntime to run; and the reverse."""

import copy
import io
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

import torch

from autoais.base.errors import UserError, first_line
from autoais.training.model import Network

INPUTS = ("ids", "types")
LIMIT = 6.0  # few inputs of feed-forward layers exceed it; they are multiplied separately

_HEADS = 12  # of MiniLM; the file does not record it
_EMBEDDING = "embeddings.word_embeddings"


class SplitLinear(torch.nn.Module):
    """A linear layer that multiplies its few large inputs in float32 and the rest in int8.

    The inputs of feed-forward layers have a few channels that reach 20 to 30 at single tokens, while all others stay
    below 10; quantised together, they would take up most of the 256 steps (LLM.int8, Dettmers et al. 2022, section
    3.2). In `channels`, the excess over `LIMIT` is multiplied separately; other channels are clipped at `LIMIT`.
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
    """An embedding with int8 rows and one scale per row."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        scale = (weight.abs().amax(dim=1, keepdim=True) / 127).clamp_min(1e-12)
        self.rows = torch.nn.Buffer(torch.round(weight / scale).to(torch.int8))
        self.scale = torch.nn.Buffer(scale)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.rows[ids].float() * self.scale[ids]


class CrossEncoder(Protocol):
    """The interface of a network for `export`: a BERT that reads pairs."""

    @property
    def outputs(self) -> Mapping[str, bool]:
        """The names of the outputs, and whether each has one value per token."""
        ...

    @property
    def embeddings(self) -> Any:  # noqa: ANN401  (transformers' own)
        """The embedding module."""
        ...

    def layers(self) -> Iterable[torch.nn.Module]:
        """The transformer layers."""
        ...


class _Unpadded(torch.nn.Module):
    """The network without a mask, which batches of one pair do not need."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: torch.Tensor, types: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs: tuple[torch.Tensor, ...] = self.network(ids, torch.ones_like(ids), types)
        return outputs


Pair = tuple[torch.Tensor, torch.Tensor]


def export(model: CrossEncoder, output: Path, pairs: Iterable[Pair]) -> None:
    """Write the network to `output`, with inputs `ids` and `types`, (1, length) int64, and the network's outputs.

    Matrix products have int8 weights with one scale per column, and activations are quantised dynamically; embeddings
    are int8 with one scale per row. Weights use 7 of the 8 bits, which avoids overflow on processors without VNNI.
    `pairs` (ids, types) are run to find the channels with large inputs. Raises `UserError` if it cannot be exported.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    network = copy.deepcopy(model)
    module = cast("torch.nn.Module", network).eval()
    _split(network, module, pairs)
    embeddings = network.embeddings
    setattr(embeddings, "word_embeddings", _Stored(embeddings.word_embeddings.weight.detach()))  # noqa: B010  (another class)
    ids, types = torch.tensor([[1, 2, 3, 1, 2, 3]]), torch.tensor([[0, 1, 0, 2, 3, 2]])
    with tempfile.TemporaryDirectory() as folder:
        plain, ready = Path(folder) / "plain.onnx", Path(folder) / "ready.onnx"
        tokenwise = [*INPUTS, *(name for name, is_tokenwise in network.outputs.items() if is_tokenwise)]
        buffer: Any = io.BytesIO()  # a file that torch writes itself is cut off by a full disk without an error
        torch.onnx.export(
            _Unpadded(module),
            (ids, types),
            buffer,
            input_names=list(INPUTS),
            output_names=list(network.outputs),
            dynamic_axes={name: {1: "length"} for name in tokenwise},
            opset_version=17,
            dynamo=False,
        )
        plain.write_bytes(buffer.getbuffer())
        try:
            quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
            nodes = onnx.load(str(ready)).graph.node
            quantize_dynamic(
                str(ready),
                str(output),
                op_types_to_quantize=["MatMul"],
                nodes_to_quantize=[node.name for node in nodes if _is_layer(node.name)],
                per_channel=True,
                reduce_range=True,
                weight_type=QuantType.QInt8,
            )
        except OSError:
            raise
        except Exception as error:  # on a full disk onnxruntime leaves files that are cut off
            raise UserError(
                f"{output}: cannot be exported: {first_line(error)}; is {folder} on a full disk?"
            ) from error


def _is_layer(name: str) -> bool:
    return name.endswith(("query/MatMul", "key/MatMul", "value/MatMul", "attention/output/dense/MatMul", "bulk/MatMul"))


def _split(network: CrossEncoder, module: torch.nn.Module, pairs: Iterable[Pair]) -> None:
    """Replace the feed-forward layers with `SplitLinear`, for the channels that exceed `LIMIT` in the pairs."""
    largest: dict[torch.nn.Module, torch.Tensor] = {}

    def note(layer: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        maxima = inputs[0].detach().abs().flatten(0, -2).amax(dim=0)
        largest[layer] = torch.maximum(largest.get(layer, maxima), maxima)

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


def weights_of(file: Path) -> dict[str, torch.Tensor]:
    """The weights of an exported network by the names of its modules, in float32; embeddings as `rows` and `scale`."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(file)).graph
    tensors = {tensor.name: torch.tensor(numpy_helper.to_array(tensor)) for tensor in graph.initializer}
    state = {name.removeprefix("network.").replace(".bulk.", "."): value for name, value in tensors.items()}
    for node in graph.node:  # equal tensors are stored once under one name, so the nodes identify them
        name = node.name.removeprefix("/network/").rpartition("/")[0].removesuffix("/bulk").replace("/", ".")
        if node.op_type == "LayerNormalization":
            state[f"{name}.weight"], state[f"{name}.bias"] = tensors[node.input[1]], tensors[node.input[2]]
        elif node.op_type == "Add" and (
            stored_names := [input_name for input_name in node.input if input_name in tensors]
        ):
            state.setdefault(f"{name}.bias", tensors[stored_names[0]])
        if node.op_type not in ("MatMul", "MatMulInteger") or node.input[1] not in tensors:
            continue
        path, weight = node.name.removeprefix("/network/"), tensors[node.input[1]].float()
        if node.op_type == "MatMulInteger":
            weight = weight * tensors[node.input[1].removesuffix("_quantized") + "_scale"]
        elif path.endswith(("intermediate/dense/MatMul", "output/dense/MatMul")):
            continue  # the large channels, which the bulk weight also contains
        name = path.removesuffix("_quant").removesuffix("/MatMul").removesuffix("/Gemm_MatMul").removesuffix("/bulk")
        state[f"{name.replace('/', '.')}.weight"] = weight.T.contiguous()
    return state


def restore(file: Path) -> Network:
    """The PyTorch network with the weights of an exported file, in float32.

    Serves to compare both, and to continue training from a shipped model. Raises `UserError` if `autoais train` did
    not write the file.
    """
    from transformers import BertConfig, BertModel

    state = weights_of(file)
    try:
        rows = state[f"{_EMBEDDING}.rows"].float() * state[f"{_EMBEDDING}.scale"]
        positions = state["embeddings.position_embeddings.weight"]
        config = BertConfig(
            vocab_size=rows.shape[0],
            hidden_size=rows.shape[1],
            num_hidden_layers=_layers(state, "lower.") + _layers(state, "apart."),
            num_attention_heads=_HEADS,
            intermediate_size=state["joint.0.intermediate.dense.weight"].shape[0],
            max_position_embeddings=positions.shape[0],
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
