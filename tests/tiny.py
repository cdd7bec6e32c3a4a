"""What training needs, in small: towns to write about and a BERT with random weights."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TOWNS = ["Arlen", "Bexley", "Corvo", "Dunmore", "Elstow", "Farrow", "Gilden", "Hartley", "Ilford", "Jarrow"]
SENTENCES = [
    "In 19{a}{b}, the town of {t} built a bridge over the river, which was designed by Nora Finch.",
    "{t} is known as a market town in the north, and about {a}0,{b}00 people live there.",
    "The school in {t} was founded by Edward Moss (a local teacher) on {b} May 18{a}{a}.",
    "The mayor of {t} opened the new museum before the railway was closed.",
]


def text(town: str, seed: int) -> str:
    return " ".join(s.format(t=town, a=1 + seed % 8, b=1 + seed % 7) for s in SENTENCES)


def labelled(passage: str, town: str) -> dict[str, Any]:
    """A labelled question about the passage of an index with that id, whose text is `text`."""
    question, name = f"who founded the school in {town}", "Edward Moss"
    return {"collection": "index", "question": question, "path": passage, "quotes": [name], "short": name}


def tiny_bert(folder: Path, texts: Sequence[str]) -> Path:
    """A BERT of five small layers with random weights, and a tokenizer that knows the words of the texts."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import BertConfig, BertModel

    # Words by themselves: a trained vocabulary is another one in each process.
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted(set("".join(texts).lower()) - {" "})
    words = sorted({word for text in texts for word in re.findall(r"\w+", text.lower())} - set(letters))
    pieces = [*marks, *letters, *(f"##{letter}" for letter in letters), *words]
    tokenizer = Tokenizer(models.WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(marks)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=48, num_hidden_layers=5, num_attention_heads=12,
        intermediate_size=96, max_position_embeddings=300,
    )  # fmt: skip
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def tiny_mpnet(folder: Path, bert: Path) -> Path:
    """An MPNet of two small layers with random weights, with the word pieces of `tiny_bert` under MPNet's numbers."""
    import json

    import torch
    from transformers import MPNetConfig, MPNetModel

    tokenizer = json.loads((bert / "tokenizer.json").read_text("utf-8"))
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *tokenizer["model"]["vocab"]]  # as all-mpnet-base-v2 has them
    tokenizer["model"]["vocab"] = {piece: number for number, piece in enumerate(pieces)}
    for token in tokenizer["added_tokens"]:
        token["id"] = pieces.index(token["content"])
    torch.manual_seed(0)
    config = MPNetConfig(
        vocab_size=len(pieces), hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=300,
    )  # fmt: skip
    MPNetModel(config, add_pooling_layer=False).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    return folder
