"""A tiny llama in a GGUF file (version 3), small enough to write in a test, that goes round the alphabet."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, LAYERS, HEADS, INNER = 64, 2, 4, 128
_UINT32, _FLOAT32, _STRING, _ARRAY, _INT32 = 4, 6, 8, 9, 5
_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_gguf(path: Path, *, context: int = 512) -> Path:
    """A model with a tokenizer of one token a byte, whose next byte follows from the last one alone.

    Only the embeddings and the output layer are not zero, so that what it writes is certain on any processor: after a
    letter comes the next letter, after any other byte an `a`. The model goes on until it is stopped.
    """
    # A sentencepiece vocabulary of nothing but bytes, and marks: type 3 is control, 6 a byte.
    tokens = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [2, 3, 3, 3, 3, *[6] * 256]
    facts: dict[str, tuple[int, Any]] = {
        "general.architecture": (_STRING, "llama"),
        "general.name": (_STRING, "tiny"),
        "llama.context_length": (_UINT32, context),
        "llama.embedding_length": (_UINT32, WIDTH),
        "llama.block_count": (_UINT32, LAYERS),
        "llama.feed_forward_length": (_UINT32, INNER),
        "llama.attention.head_count": (_UINT32, HEADS),
        "llama.attention.layer_norm_rms_epsilon": (_FLOAT32, 1e-5),
        "llama.rope.dimension_count": (_UINT32, WIDTH // HEADS),
        "tokenizer.ggml.model": (_STRING, "llama"),
        "tokenizer.ggml.tokens": (_ARRAY, (_STRING, tokens)),
        "tokenizer.ggml.scores": (_ARRAY, (_FLOAT32, [0.0] * len(tokens))),
        "tokenizer.ggml.token_type": (_ARRAY, (_INT32, kinds)),
        "tokenizer.ggml.bos_token_id": (_UINT32, 1),
        "tokenizer.ggml.eos_token_id": (_UINT32, 4),
        "tokenizer.chat_template": (_STRING, _TEMPLATE),
    }
    shapes = {"token_embd.weight": (len(tokens), WIDTH), "output_norm.weight": (WIDTH,)}
    shapes["output.weight"] = (len(tokens), WIDTH)
    for layer in range(LAYERS):
        block = {f"attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
        block |= {"ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in block.items()}
        shapes |= {f"blk.{layer}.{name}_norm.weight": (WIDTH,) for name in ("attn", "ffn")}
    tensors = {name: np.full(shape, len(shape) == 1, "<f4") for name, shape in shapes.items()}
    first = tokens.index(f"<0x{ord('a'):02X}>")
    for token in range(len(tokens)):
        letter = min(max(token - first, -1), 26) % 27  # 26 for all that is no letter
        tensors["token_embd.weight"][token, letter] = 1
        if letter < 26:
            tensors["output.weight"][token, (letter - 1) % 27] = 4
    tensors["output.weight"][first, 25] = 4  # after z
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts))
    for key, (kind, value) in facts.items():
        head += _text(key) + struct.pack("<I", kind) + _value(kind, value)
    offset = 0
    for name, array in tensors.items():
        head += _text(name) + struct.pack("<I", array.ndim)
        head += struct.pack(f"<{array.ndim}Q", *reversed(array.shape)) + struct.pack("<IQ", 0, offset)
        offset += -(-array.nbytes // 32) * 32
    data = b"".join(array.tobytes() + b"\0" * (-array.nbytes % 32) for array in tensors.values())
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return path


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(kind: int, value: Any) -> bytes:  # noqa: ANN401
    if kind == _STRING:
        return _text(value)
    if kind == _ARRAY:
        inner, items = value
        return struct.pack("<IQ", inner, len(items)) + b"".join(_value(inner, item) for item in items)
    return struct.pack({_UINT32: "<I", _INT32: "<i", _FLOAT32: "<f"}[kind], value)
