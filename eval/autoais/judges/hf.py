"""`hf:<model>` judges with a transformers model: TRUE-style T5, NLI classifiers, MiniCheck and AttrScore."""

import hashlib
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.errors import UserError, first_line
from autoais.judges.templates import template as hypothesis_template
from autoais.judges.windows import Window, windows
from autoais.types import Attribution, Judgement, Verdict

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

DEFAULT_MODEL = "google/t5_xxl_true_nli_mixture"
_A, _N, _E, _C = Verdict.ATTRIBUTABLE, Verdict.NOT_ATTRIBUTABLE, Verdict.EXTRAPOLATORY, Verdict.CONTRADICTORY
_ATTRSCORE = (
    "As an Attribution Validator, your task is to verify whether a given reference can support the given claim. A "
    "claim can be either a plain sentence or a question followed by its answer. Specifically, your response should "
    "clearly indicate the relationship: Attributable, Contradictory or Extrapolatory. A contradictory error occurs "
    "when you can infer that the answer contradicts the fact presented in the context, while an extrapolatory error "
    "means that you cannot infer the correctness of the answer based on the information provided in the context. "
    "\n\nClaim: {hypothesis} \n Reference: {premise}"
)


@dataclass(frozen=True, slots=True)
class Family:
    """How a kind of model is asked, and what its answers mean.

    `words` are the answers of a text-to-text model; a classifier has labels instead (`label_verdicts`). `{eos}` in
    `prompt` is the tokenizer's end mark; a classifier without a prompt takes premise and hypothesis as a pair.
    """

    prompt: str | None
    words: Mapping[str, Verdict]
    template: str
    decision: str = "score"
    max_length: int = 512


FAMILIES = {
    "true": Family("premise: {premise} hypothesis: {hypothesis}", {"1": _A, "0": _N}, "aqa.v1"),
    "nli": Family(None, {}, "auto.v1"),
    "minicheck": Family("{premise}{eos}{hypothesis}", {}, "auto.v1"),
    "minicheck-t5": Family("predict: {premise}{eos}{hypothesis}", {"1": _A, "0": _N}, "auto.v1"),
    "attrscore": Family(
        _ATTRSCORE,
        {"Attributable": _A, "Contradictory": _C, "Extrapolatory": _E},
        "question-answer.v1",
        "decode",
        max_length=2048,
    ),
}
# Nothing in a T5's config says how it was trained; these public ones are known.
_KNOWN_T5 = {
    "google/t5_xxl_true_nli_mixture": "true",
    "lytang/MiniCheck-Flan-T5-Large": "minicheck-t5",
    "osunlp/attrscore-flan-t5-large": "attrscore",
    "osunlp/attrscore-flan-t5-xl": "attrscore",
    "osunlp/attrscore-flan-t5-xxl": "attrscore",
}
_SHORT = {"google/t5_xxl_true_nli_mixture": "true-t5"}
_LABELS = (
    (_N, ("not_entail", "non_entail", "no_entail", "unsupport", "not_support", "not_attribut")),
    (_A, ("entail", "support", "attribut")),
    (_E, ("neutral", "not_enough_info", "extrapol")),
    (_C, ("contradict", "refut")),
)
_WEIGHTS_AND_CONFIG = (".bin", ".jinja", ".json", ".model", ".safetensors", ".txt")
_SMALL_FILES = ["*.jinja", "*.json", "*.model", "*.txt"]
_ANSWER_TOKENS = 10  # ALCE's limit (spec F1); the answers are one to three tokens and an end mark
_LEAST_ROOM = 32  # tokens a claim must leave for the evidence
_WHOLE = 1 << 15  # tokens that no passage reaches: a T5 has no places to run out of
_PASSES = 64  # batches that are gathered to be sorted by length
_KEPT = 8  # batches in `at_once`
_DIGITS = 5  # a probability's digits that do not depend on the batch (fp32)


class HfJudge:
    """A transformers model as a judge: its best window over all evidence decides, and is reported as the evidence.

    `model` is a folder, or a name on the Hugging Face hub with `@revision` or without; empty for TRUE's T5.

    A pair is attributable if it is by any window, else undecided if any window is, else what the window with the
    highest probability says; the first of equals. With `decision` "score" the verdict is the likeliest answer at the
    first token (for "1" and "0": P("1") / (P("1") + P("0")) > 0.5, spec A4), with "decode" the text that greedy
    decoding gives, exactly, and any other text is undecided. Probabilities are those of the first token in both.
    Evidence beyond `max_length` tokens goes through `windows`; a claim that leaves no room for evidence is undecided,
    and nothing is ever truncated. With `compat` "google-2023" a TRUE-style T5 decodes and reads premises whole, as the
    script of Attributed QA has it (spec A4). On a GPU the model runs in bfloat16, which the name says.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        family: str | None = None,
        template: str | None = None,
        decision: str | None = None,
        max_length: int | None = None,
        batch_size: int = 16,
        compat: str | None = None,
    ) -> None:
        if family not in (None, *FAMILIES):
            raise UserError(f"no model family called {family!r}; there are: {', '.join(FAMILIES)}")
        if decision not in (None, "decode", "score"):
            raise UserError(f"no decision rule called {decision!r}; there are: decode, score")
        if compat not in (None, "google-2023"):
            raise UserError(f"no mode called {compat!r}; there is: google-2023")
        if batch_size < 1:
            raise UserError(f"batch size {batch_size}: must be at least 1")
        if template is not None:
            hypothesis_template(template)
        model = model or DEFAULT_MODEL
        loaded = _load(model, family)
        self._model, self._tokenizer, self._labels = loaded.model, loaded.tokenizer, loaded.labels
        self.family = FAMILIES[loaded.family]
        if compat and loaded.family == "true":
            decision, max_length = decision or "decode", max_length or _WHOLE
        self.decision = decision or self.family.decision
        if self.decision == "decode" and not self.family.words:
            raise UserError(f"{model}: a classifier has no text to decode; leave the decision rule out")
        self.max_length = _checked_length(model, max_length, self.family.max_length, loaded.positions)
        self.batch_size = batch_size
        self._template = template or self.family.template
        self._hypothesis = hypothesis_template(self._template)
        self._special = re.compile("|".join(map(re.escape, self._tokenizer.all_special_tokens)) or r"(?!)")
        parts = [self._template]
        if loaded.family not in ("true", "nli"):
            parts.append(loaded.family)
        if self.family.words:
            parts.append(self.decision)
        if loaded.half:
            parts.append("bf16")
        self._name = f"{loaded.short}@{loaded.revision}/{self.max_length}/{'+'.join(parts)}"

    @property
    def name(self) -> str:
        """`model@revision/max length/template`, then what else decides: prompt family, decision rule, precision."""
        return self._name

    @property
    def at_once(self) -> int:
        """How many pairs to ask for at a time where answers are kept: enough that sorting by length still pays."""
        return _KEPT * self.batch_size

    def judge(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge in batches sorted by length; memory holds one gathering of windows at a time."""
        best: list[Judgement | None] = [None] * len(attributions)
        stream = self._inputs(attributions, best)
        while gathered := list(islice(stream, _PASSES * self.batch_size)):
            order = sorted(range(len(gathered)), key=lambda i: len(gathered[i][2]["input_ids"]))
            for start in range(0, len(order), self.batch_size):
                batch = [gathered[i] for i in order[start : start + self.batch_size]]
                for (at, window, _), judgement in zip(batch, self._ask([ids for *_, ids in batch]), strict=True):
                    best[at] = _better(best[at], replace(judgement, evidence=window.spans))
        return [j or Judgement(Verdict.NOT_ATTRIBUTABLE, None, "nothing was cited") for j in best]

    def _inputs(
        self, attributions: Sequence[Attribution], best: list[Judgement | None]
    ) -> Iterator[tuple[int, Window, dict[str, list[int]]]]:
        """(index, window, tokens) of each window; what does not fit is set to undecided in `best`."""
        for at, attribution in enumerate(attributions):
            if not any(text.strip() for text in attribution.evidence):
                continue
            hypothesis = self._hypothesis(attribution)
            taken = len(self._encode("", hypothesis)["input_ids"])
            if taken + _LEAST_ROOM > self.max_length:
                reason = f"the claim takes {taken} of the judge's {self.max_length} tokens"
                best[at] = Judgement(Verdict.UNDECIDED, None, reason)
                continue
            for window in windows(attribution.evidence, self._counter(hypothesis), self.max_length):
                ids = self._encode(window.text, hypothesis)
                if len(ids["input_ids"]) > self.max_length:
                    reason = "one character of the evidence is longer than the room for it"
                    best[at] = _better(best[at], Judgement(Verdict.UNDECIDED, None, reason, window.spans))
                else:
                    yield at, window, ids

    def _counter(self, hypothesis: str) -> Callable[[str], int]:
        return lambda premise: len(self._encode(premise, hypothesis)["input_ids"])

    def _encode(self, premise: str, hypothesis: str) -> dict[str, list[int]]:
        """Token ids and, for models that have them, segment ids."""
        premise, hypothesis = self._plain(premise), self._plain(hypothesis)
        if self.family.prompt is None:
            encoded = self._tokenizer(premise, hypothesis)
        else:
            eos = self._tokenizer.eos_token or self._tokenizer.sep_token
            encoded = self._tokenizer(self.family.prompt.format(premise=premise, hypothesis=hypothesis, eos=eos))
        return {name: encoded[name] for name in ("input_ids", "token_type_ids") if name in encoded}

    def _plain(self, text: str) -> str:
        """Text with nothing in it that the tokenizer takes for its own marks, or cannot read."""
        text = text.encode("utf-8", "replace").decode("utf-8")
        return self._special.sub(lambda mark: f"{mark[0][:1]} {mark[0][1:]}", text)

    def _ask(self, batch: Sequence[Mapping[str, list[int]]]) -> list[Judgement]:
        import torch

        width = max(len(encoded["input_ids"]) for encoded in batch)
        fill = {"input_ids": self._tokenizer.pad_token_id, "token_type_ids": 0, "attention_mask": 0}
        rows = [{**encoded, "attention_mask": [1] * len(encoded["input_ids"])} for encoded in batch]
        inputs = {
            name: torch.tensor(
                [row[name] + [fill[name]] * (width - len(row[name])) for row in rows], device=self._model.device
            )
            for name in rows[0]
        }
        with torch.inference_mode():
            if not self.family.words:
                return [self._judgement(row) for row in self._model(**inputs).logits.float().softmax(-1).tolist()]
            logits, texts = self._generate(inputs)
        return [self._judgement(row, text) for row, text in zip(logits.softmax(-1).tolist(), texts, strict=True)]

    def _generate(self, inputs: Mapping[str, "torch.Tensor"]) -> tuple["torch.Tensor", list[str | None]]:
        """Logits of the answers' first tokens, and the decoded texts where the decision rule reads them."""
        decode = self.decision == "decode"
        output = self._model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            max_new_tokens=_ANSWER_TOKENS if decode else 1,
            do_sample=False,
            num_beams=1,
            output_logits=True,
            return_dict_in_generate=True,
        )
        first = [token for token, _ in self._labels]
        texts: list[str | None] = [None] * len(inputs["input_ids"])
        if decode:
            texts = self._tokenizer.batch_decode(output.sequences, skip_special_tokens=True)
        return output.logits[0][:, first].float(), texts

    def _judgement(self, probabilities: Sequence[float], text: str | None = None) -> Judgement:
        """The likeliest verdict, or the decoded one; `attributable` must be ahead, not equal."""
        shares: dict[Verdict, float] = {}
        for (_, verdict), share in zip(self._labels, probabilities, strict=True):
            shares[verdict] = shares.get(verdict, 0.0) + share
        if not all(math.isfinite(share) for share in shares.values()):
            return Judgement(Verdict.UNDECIDED, None, "the model's output is not a number")
        probability = round(min(shares[Verdict.ATTRIBUTABLE], 1.0), _DIGITS)
        if text is not None:
            if text not in self.family.words:
                return Judgement(Verdict.UNDECIDED, probability, f"the model wrote {text[:40]!r}")
            return Judgement(self.family.words[text], probability)
        verdict = max(shares, key=lambda verdict: (round(shares[verdict], _DIGITS), verdict is not _A))
        return Judgement(verdict, probability)


@dataclass(frozen=True, slots=True)
class _Loaded:
    model: Any
    tokenizer: Any
    family: str
    labels: list[tuple[int, Verdict]]  # output index (a class, or an answer's first token) and what it means
    positions: int | None  # tokens the model has places for; None where there is no limit
    short: str  # the model's name without its owner or path
    revision: str
    half: bool


def label_verdicts(model: str, id2label: Mapping[int, str]) -> list[tuple[int, Verdict]]:
    """What each class of an NLI model means; `UserError` lists the labels where one is unknown or none says yes."""
    found = []
    for index, label in sorted(id2label.items()):
        plain = re.sub(r"[\s-]+", "_", label.casefold())
        found += [(index, verdict) for verdict, parts in _LABELS if any(part in plain for part in parts)][:1]
    if len(found) < len(id2label) or all(verdict is not Verdict.ATTRIBUTABLE for _, verdict in found):
        labels = ", ".join(repr(label) for _, label in sorted(id2label.items()))
        raise UserError(
            f"{model}: the labels {labels} do not say which is entailment; name them entailment, neutral and "
            "contradiction in id2label of its config.json"
        )
    return found


def _better(one: Judgement | None, other: Judgement) -> Judgement:
    """Attributable before undecided before no, then by probability, then the earlier window."""

    def rank(judgement: Judgement) -> tuple[int, float, int, int]:
        decided = {Verdict.ATTRIBUTABLE: 2, Verdict.UNDECIDED: 1}.get(judgement.verdict, 0)
        first = judgement.evidence[0]
        return decided, judgement.probability or 0.0, -first.evidence, -first.start

    return other if one is None or rank(other) > rank(one) else one


def _checked_length(model: str, asked: int | None, default: int, positions: int | None) -> int:
    length = min(default, positions or default) if asked is None else asked
    if positions is not None and length > positions:
        raise UserError(f"{model}: max length {length} is above the {positions} tokens the model has places for")
    if length <= _LEAST_ROOM:
        raise UserError(f"{model}: max length {length} leaves no room for evidence; give more than {_LEAST_ROOM}")
    return length


def _load(model: str, family: str | None) -> _Loaded:
    try:
        import torch  # noqa: F401  (transformers runs without, but loads nothing)
        import transformers
        from safetensors import SafetensorError
    except ImportError as error:
        raise UserError(f'judge hf:{model} needs {error.name}: pip install "attributed-rag[models]"') from error
    with quiet(Path(model).expanduser().is_dir()):
        hub_name, folder, commit = model_files(model)
        try:
            config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
            kind = _kind(model, config.architectures or ())
            family = family or _family(hub_name, kind, config.id2label)
            if bool(FAMILIES[family].words) is not (kind == "t5"):
                raise UserError(f"{model}: is a {config.architectures[0]}, which the family {family!r} cannot ask")
            tokenizer = _padding(model, load_tokenizer(model, folder))
            labels = _labels(model, FAMILIES[family], family, config.id2label, tokenizer)
            classifier, t5 = transformers.AutoModelForSequenceClassification, transformers.AutoModelForSeq2SeqLM
            network, missing, half = load_network(t5 if kind == "t5" else classifier, hub_name, folder, commit)
        except (ImportError, LookupError, OSError, RuntimeError, SafetensorError, TypeError, ValueError) as error:
            raise UserError(f"{model}: cannot be loaded as a model: {first_line(error)}") from error
    if missing:
        raise UserError(f"{model}: its weights lack {', '.join(missing[:3])}; was it trained for this task?")
    short = _SHORT.get(hub_name, hub_name.split("/")[-1]) if commit else folder.resolve().name
    identity = commit[:12] if commit else local_revision(folder)
    return _Loaded(network, tokenizer, family, labels, _positions(network), short, identity, half)


def load_network(
    loader: Any,  # noqa: ANN401  (a class of transformers)
    name: str,
    folder: Path,
    commit: str | None,
) -> tuple[Any, list[str], bool]:
    """The network for use, the names of weights that it lacks, and whether it is in bfloat16, as it is on a GPU.

    `name`, `folder` and `commit` are what `model_files` gives. Raises what transformers raises.
    """
    import torch

    half = torch.cuda.is_available()
    network, info = loader.from_pretrained(
        name if commit else folder,
        revision=commit,
        dtype=torch.bfloat16 if half else torch.float32,
        device_map="auto" if half else None,
        trust_remote_code=False,
        output_loading_info=True,
    )
    return network.eval(), sorted(info["missing_keys"]), half


def model_files(model: str) -> tuple[str, Path, str | None]:
    """Name without revision, the folder with the small files, and the commit if it came from the hub.

    `UserError` where there is neither such a folder nor such a model.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UserError(f"{model}: no config.json in this folder; give the folder that a model was saved in")
        return model, folder, None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    name, _, revision = model.partition("@")
    try:
        found = Path(snapshot_download(name, revision=revision or None, allow_patterns=_SMALL_FILES))
    except HFValidationError as error:
        raise UserError(f"{model}: no such folder, and no name of a model on the Hugging Face hub") from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise UserError(
            f"{model}: no such folder, and the Hugging Face hub gave no model of that name ({first_line(error)}); "
            "download it where the hub can be reached and give the folder"
        ) from error
    return name, found, found.name


def _kind(model: str, architectures: Sequence[str]) -> str:
    for architecture in architectures:
        if architecture.endswith("ForSequenceClassification"):
            return "classifier"
        if architecture.endswith("T5ForConditionalGeneration"):
            return "t5"
    found = ", ".join(architectures) or "a model without architectures"
    raise UserError(f"{model}: found {found} in its config; a sequence classifier or a T5 is needed")


def _family(model: str, kind: str, id2label: Mapping[int, str]) -> str:
    if kind == "t5":
        return _KNOWN_T5.get(model, "true")
    return "minicheck" if _unnamed_pair(id2label) else "nli"


def _unnamed_pair(id2label: Mapping[int, str]) -> bool:
    return sorted(id2label.values()) == ["LABEL_0", "LABEL_1"]


def _labels(
    model: str, family: Family, name: str, id2label: Mapping[int, str], tokenizer: "PreTrainedTokenizerBase"
) -> list[tuple[int, Verdict]]:
    if not family.words:
        if name == "minicheck" and len(id2label) == 2:
            return [(0, Verdict.NOT_ATTRIBUTABLE), (1, Verdict.ATTRIBUTABLE)]
        return label_verdicts(model, id2label)
    # In T5's vocabulary "1" is one token and "0" two, of which the first stands for a word's beginning.
    first = [
        (tokenizer(word, add_special_tokens=False)["input_ids"][0], verdict) for word, verdict in family.words.items()
    ]
    if len({token for token, _ in first}) < len(first):
        raise UserError(f"{model}: its tokenizer does not tell {' from '.join(family.words)} by the first token")
    return first


def load_tokenizer(model: str, folder: Path) -> "PreTrainedTokenizerBase":
    """The tokenizer of the folder, without a limit of its own; `UserError` where there is none.

    Transformers makes an empty one up where there are no files for it.
    """
    import transformers

    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        known = tokenizer("0 1", add_special_tokens=False)["input_ids"]
    except (ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"{model}: its tokenizer cannot be loaded: {first_line(error)}") from error
    if tokenizer.unk_token_id in known or not known:
        raise UserError(f"{model}: has no tokenizer; save it to the same folder (tokenizer.save_pretrained)")
    tokenizer.model_max_length = int(1e30)  # the limit is ours to keep; its warning would be about the counting
    return tokenizer


def _padding(model: str, tokenizer: "PreTrainedTokenizerBase") -> "PreTrainedTokenizerBase":
    if tokenizer.pad_token_id is None:
        raise UserError(f"{model}: its tokenizer has no padding token; set pad_token in tokenizer_config.json")
    return tokenizer


def _positions(network: "torch.nn.Module") -> int | None:
    """Places in the model's table of positions, less those that stand for padding; None without a table."""
    import torch

    for name, module in network.named_modules():
        if name.endswith(("position_embeddings", "embed_positions")) and isinstance(module, torch.nn.Embedding):
            taken = getattr(module, "offset", 0) or (0 if module.padding_idx is None else module.padding_idx + 1)
            return int(module.num_embeddings - taken)
    return None


def local_revision(folder: Path) -> str:
    """`local-` and 8 hex digits of the SHA-256 over names and contents of the weights, config and tokenizer."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in _WEIGHTS_AND_CONFIG:
            with path.open("rb") as file:
                digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return f"local-{digest.hexdigest()[:8]}"


@contextmanager
def quiet(local: bool) -> Iterator[None]:
    """No log lines while loading, as every failure is one line of ours; a download keeps its progress bar."""
    import transformers.utils.logging

    chatter: Any = transformers.utils.logging  # not all of it is annotated
    hub = logging.getLogger("huggingface_hub")
    verbosity, level, bars = chatter.get_verbosity(), hub.level, chatter.is_progress_bar_enabled()
    chatter.set_verbosity_error()
    hub.setLevel(logging.CRITICAL)
    if local:
        chatter.disable_progress_bar()
    try:
        yield
    finally:
        chatter.set_verbosity(verbosity)
        hub.setLevel(level)
        if bars:
            chatter.enable_progress_bar()
