"""Static embeddings: distilled from a sentence encoder, then trained to match sentences and questions to passages."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.provenance import provenance, sha256_file
from autoais.base.text.excerpt import pieces
from autoais.base.text.folding import questions_key
from autoais.formats.questions import read_questions
from autoais.training.loop import Tensors, train
from autoais.training.model import sentence_encoder
from autoais.training.prepare import held_out
from autoais.training.recipe import base_folder, find
from autoais.training.schedule import Schedule
from rag.base.types import Passage
from rag.index.index import Index
from rag.retrieval.encoders.static import Static
from rag.training import mining, read_recipe

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SHORT = 40
_KEPT = 0.1  # share of sentences that stay in their passage, so that exact matches still count
_TEMPERATURE = 0.05
_DEPTH = 24
_COUNTED = 20_000  # passages for word-piece frequencies


@dataclass(frozen=True, slots=True)
class StaticRecipe:
    """A recipe file (`eval/recipes/static.toml`): base weights, numbers of passages and questions, a schedule.

    `dimension` is that of the vectors, `sif` the constant of smooth inverse frequency weights (Arora et al. 2017).
    `passages` are sampled from the index and seen `times` each, questions `question_times` each. Questions that also
    occur in a file of `held_out` are dropped.
    """

    name: str
    kind: str
    base: str
    base_sha256: str
    seed: int
    dimension: int
    sif: float
    passages: int
    times: int
    questions: tuple[str, ...]
    question_times: int
    held_out: tuple[str, ...]
    schedule: Schedule


Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Taught:
    """Word pieces of a sentence or question, of its passage, and of a wrong passage (may be empty)."""

    left: Ids
    right: Ids
    wrong: Ids


class Bags(torch.nn.Module):
    """A table of word-piece vectors; a text's vector is their mean."""

    def __init__(self, table: NDArray[np.float32]) -> None:
        super().__init__()
        self.table = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(table), freeze=False, mode="mean")

    def forward(self, ids: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        """The vectors of texts, (texts, dimension), with length 1."""
        return torch.nn.functional.normalize(self.table(ids, starts), dim=1)


def loss_of(network: Bags, tensors: Tensors) -> tuple[torch.Tensor, float]:
    """The cross-entropy of each text's passage among all passages of the batch, and the accuracy."""
    left_starts, left, right_starts, right = tensors
    logits = network(left, left_starts) @ network(right, right_starts).T / _TEMPERATURE
    own = torch.arange(len(left_starts), device=left.device)
    return torch.nn.functional.cross_entropy(logits, own), float((logits.argmax(dim=1) == own).float().mean())


class Lessons:
    """Several lists of `Taught`, each with its number of passes; a batch comes from one list."""

    def __init__(self, lists: Sequence[tuple[Sequence[Taught], int]]) -> None:
        self._rows = [row for rows, _ in lists for row in rows]
        self._lists = []
        at = 0
        for rows, times in lists:
            self._lists.append((np.arange(at, at + len(rows)), times))
            at += len(rows)

    def order(self, batch: int, seed: int) -> list[NDArray[np.int64]]:
        """Batches of exactly `batch` rows, or of a whole shorter list, in a seeded random order."""
        rng = np.random.default_rng(seed)
        batches = []
        for rows, times in self._lists:
            for _ in range(times):
                shuffled = rng.permutation(rows)
                last = max(1, len(rows) - batch + 1) if len(rows) else 0
                batches += [shuffled[i : i + batch] for i in range(0, last, batch)]
        return [batches[i] for i in rng.permutation(len(batches))]

    def batch(self, numbers: NDArray[np.int64]) -> Tensors:
        """Offsets and word pieces of the texts, then of their passages followed by the wrong ones."""
        rows = [self._rows[number] for number in numbers]
        wrong = [row.wrong for row in rows if len(row.wrong)]
        return (*_laid([row.left for row in rows]), *_laid([*(row.right for row in rows), *wrong]))


def _laid(texts: Sequence[Ids]) -> tuple[torch.Tensor, torch.Tensor]:
    starts = np.concatenate([[0], np.cumsum([len(text) for text in texts])[:-1]])
    return torch.from_numpy(starts), torch.from_numpy(np.concatenate(texts))


def run(
    path: Path, index: Index, data: Sequence[Path], out: Path, *, short: bool = False, log: Callable[[str], None]
) -> None:
    """Train the static embeddings of a recipe in `out`, on the passages of an index; a stopped run resumes.

    `short` uses 40 passages, 40 questions and batches of 8, only to check that the recipe runs.
    """
    recipe: StaticRecipe = read_recipe(path, StaticRecipe)
    if short:
        recipe = replace(recipe, passages=_SHORT, times=1, question_times=1, schedule=replace(recipe.schedule, batch=8))
    base = base_folder(recipe.base, recipe.base_sha256)
    never = held_out(find(name, data) for name in recipe.held_out)
    files = [find(name, data) for name in recipe.questions]
    tokenizer = _tokenizer(base)
    drawn = _drawn(index, recipe.passages, recipe.seed)
    table = distilled(base, tokenizer, drawn[:_COUNTED], recipe.dimension, recipe.sif)
    rng = random.Random(recipe.seed)
    sentences = list(_sentences(drawn, tokenizer, rng))
    asked = list(_asked(files, never, index, tokenizer, rng, _SHORT if short else None))
    log(f"{len(sentences):,} sentences of passages, {len(asked):,} questions")
    lessons = Lessons([(sentences, recipe.times), (asked, recipe.question_times)])
    network = Bags(table)
    made_of = (recipe, index.manifest["checksum"], [sha256_file(file) for file in files], sorted(never))
    key = sha256(f"{made_of}".encode()).hexdigest()[:8]
    train(network, lessons, partial(loss_of, network), recipe.schedule, out / f"work-{key}", seed=recipe.seed, log=log)
    _write(network.table.weight.detach().numpy(), out / "table.npz")
    copyfile(base / "tokenizer.json", out / "tokenizer.json")
    record = {
        "recipe": {"file": path.name, "sha256": sha256_file(path)},
        "short": short,
        "base": {"from": recipe.base, "sha256": recipe.base_sha256},
        "index": {key: index.manifest[key] for key in ("checksum", "passages", "recipe")},
        "taught": {"sentences": len(sentences), "questions": len(asked)},
        "files": {name: sha256_file(out / name) for name in ("table.npz", "tokenizer.json")},
        "provenance": provenance({}),
    }
    write_atomic(out / "training.json", [dumps(record, indent=2)])
    log(f"{Static(out).name} in {out}")


def distilled(
    base: Path, tokenizer: "Tokenizer", passages: Iterable[Passage], dimension: int, sif: float
) -> NDArray[np.float32]:
    """The initial table, (word pieces, dimension): principal components of the encoder's vector of each word piece.

    Rows are weighted by smooth inverse frequency in the passages, as in model2vec.
    """
    encoder = sentence_encoder(base)
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    size = tokenizer.get_vocab_size()
    found = []
    with torch.inference_mode():
        for start in range(0, size, 1024):
            ids = torch.tensor([[first, piece, last] for piece in range(start, min(start + 1024, size))])
            hidden = encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
            found.append(hidden.mean(dim=1).numpy())
    vectors = np.concatenate(found)
    vectors -= vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(vectors, full_matrices=False)
    counts = np.ones(size)
    for pieces_of in _ids(tokenizer, (p.contents for p in passages)):
        np.add.at(counts, pieces_of, 1)
    weights = sif / (sif + counts / counts.sum())
    table = (vectors @ axes[:dimension].T) * weights[:, None]
    scaled: NDArray[np.float32] = (0.05 * table / table.std()).astype(np.float32)
    return scaled


def _tokenizer(base: Path) -> "Tokenizer":
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _ids(tokenizer: "Tokenizer", texts: Iterable[str]) -> Iterator[Ids]:
    stream = iter(texts)
    while batch := list(islice(stream, 500)):
        for encoded in tokenizer.encode_batch(batch, add_special_tokens=False):
            yield np.array(encoded.ids, dtype=np.int64)


def _drawn(index: Index, wanted: int, seed: int) -> list[Passage]:
    total = index.manifest["passages"]
    rows = random.Random(seed).sample(range(total), min(wanted, total))
    return index.store.rows(rows)


def _sentences(passages: Iterable[Passage], tokenizer: "Tokenizer", rng: random.Random) -> Iterator[Taught]:
    """Yield a sentence of each passage with the rest of it (inverse cloze task, Lee et al. 2019, Section 5.2)."""
    lefts, rights = [], []
    for passage in passages:
        places = list(pieces(passage.text))
        if len(places) < 2:
            continue
        start, end = rng.choice(places)
        lefts.append(passage.text[start:end])
        rest = passage.text if rng.random() < _KEPT else passage.text[:start] + passage.text[end:]
        rights.append(f"{passage.headings} {rest}")
    for left, right in zip(_ids(tokenizer, lefts), _ids(tokenizer, rights), strict=True):
        if len(left) and len(right):
            yield Taught(left, right, left[:0])


def _asked(
    files: Sequence[Path],
    never: set[str],
    index: Index,
    tokenizer: "Tokenizer",
    rng: random.Random,
    most: int | None,
) -> Iterator[Taught]:
    """Yield each question with its first BM25 hit that contains the answer and one of the first that do not."""
    for file in files:
        kept = (one for one in islice(read_questions(file), most) if questions_key(one.text) not in never)
        found = mining.groups(
            kept, index.bm25, lambda _, passages: [0.0] * len(passages), rng, depth=_DEPTH, others=1, each=1, least=0.0
        )
        for group in found:
            texts = (group.question, *(p.contents for p in (*group.passages, *group.others)))
            left, right, wrong = _ids(tokenizer, texts)
            if len(left) and len(right) and len(wrong):
                yield Taught(left, right, wrong)


def _write(table: NDArray[np.float32], path: Path) -> None:
    scale = np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-12) / 127
    np.savez_compressed(path, rows=np.round(table / scale).astype(np.int8), scale=scale.astype(np.float32))
