"""From the trained network to the file that ships: ONNX with int8 weights, run by onnxruntime alone."""

import copy
import tempfile
from pathlib import Path

import torch

from autoais.errors import UserError
from autoais.judges.encoding import TYPES
from autoais.training.model import Network
from autoais.training.quantization import quantized, stored

_WORDS = "network.bert.embeddings.word_embeddings"
_HEADS = 12  # MiniLM's; the file does not say


class _Probabilities(torch.nn.Module):
    """The network without its mask: the judge reads one pair at a time, so nothing is padded."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: torch.Tensor, types: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.network(ids, torch.ones_like(ids), types)


def export(network: Network, out: Path) -> None:
    """Write `out` (inputs `ids` and `types`, (1, length) int64; outputs `pair` (1,) and `tokens` (1, length)).

    Matrix products take int8 weights, one scale a column, and activations quantised as they come; the embeddings are
    int8, one scale a row. Weights use 7 of the 8 bits, so that processors without VNNI cannot overflow.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    network = stored(copy.deepcopy(network)).eval()
    ids = torch.tensor([[101, 2023, 102, 2003, 102]])
    types = torch.tensor([[0, 1, 0, 2, 2]]) % TYPES
    with tempfile.TemporaryDirectory() as folder:
        plain, ready = Path(folder) / "plain.onnx", Path(folder) / "ready.onnx"
        torch.onnx.export(
            _Probabilities(network), (ids, types), str(plain), input_names=["ids", "types"],
            output_names=["pair", "tokens"], opset_version=17, dynamo=False,
            dynamic_axes={"ids": {1: "length"}, "types": {1: "length"}, "tokens": {1: "length"}},
        )  # fmt: skip
        quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
        layers = [node.name for node in onnx.load(str(ready)).graph.node if node.name.startswith("/network/bert/")]
        quantize_dynamic(
            str(ready), str(out), op_types_to_quantize=["MatMul"], nodes_to_quantize=layers, per_channel=True, reduce_range=True,
            weight_type=QuantType.QInt8,
        )  # fmt: skip


def restore(file: Path) -> Network:
    """The PyTorch network with the weights of an exported file, computing as the file does (`quantized`).

    For comparing the two, and for training on from what shipped; `UserError` where the file is not one of ours.
    """
    import numpy as np
    import onnx
    from onnx import numpy_helper
    from transformers import BertConfig, BertModel

    graph = onnx.load(str(file)).graph
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    try:
        rows, scale = held[f"{_WORDS}.rows"], held[f"{_WORDS}.scale"]
        state = {name.removeprefix("network."): torch.tensor(value) for name, value in held.items()}
    except KeyError as error:
        raise UserError(f"{file}: no tensor {error}; it was not made by `autoais train`") from None
    state["bert.embeddings.word_embeddings.weight"] = torch.tensor(rows.astype(np.float32) * scale)
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in held:  # the heads, as they are
            name = node.name.removeprefix("/network/").split("/")[0]
            state[f"{name}.weight"] = torch.tensor(held[node.input[1]].T.copy())
        elif node.op_type == "MatMulInteger":
            weight, steps = held[node.input[1]], held[node.input[1].removesuffix("_quantized") + "_scale"]
            name = node.name.removeprefix("/network/").removesuffix("/MatMul_quant").replace("/", ".")
            state[f"{name}.weight"] = torch.tensor((weight.astype(np.float32) * steps).T.copy())
    layers = 1 + max(int(name.split(".")[3]) for name in state if name.startswith("bert.encoder.layer."))
    config = BertConfig(
        vocab_size=rows.shape[0], hidden_size=rows.shape[1], num_hidden_layers=layers, num_attention_heads=_HEADS,
        intermediate_size=state["bert.encoder.layer.0.intermediate.dense.weight"].shape[0], type_vocab_size=TYPES,
        attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0,
    )  # fmt: skip
    network = quantized(Network(BertModel(config, add_pooling_layer=False)))
    wanted = network.state_dict()
    network.load_state_dict({name: state[name] for name in wanted if name in state}, strict=True)
    return network.eval()
