"""`hf:<name or folder>`: a transformers model, seq2seq or causal, with its chat template where it has one."""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from autoais.errors import first_line
from autoais.judges.hf import load_network, load_tokenizer, local_revision, model_files, quiet
from rag.errors import RagError, missing_extra
from rag.llms import CONTEXT, Completion, Message, ModelError, cut_at, in_pieces


class Hf:
    """A folder, or a name on the Hugging Face hub with `@revision` or without; temperature 0 and a seed.

    A causal model with a chat template is asked through it; any other model is given the messages' texts, a line
    each, and continues them. On a GPU it runs in bfloat16, which the name says. One reply at a time.
    """

    def __init__(self, model: str, *, context: int = CONTEXT, temperature: float = 0.0, seed: int = 0) -> None:
        self._called = f"hf:{model}"
        self._network, self._tokenizer, identity = _load(model)
        self._seq2seq = bool(self._network.config.is_encoder_decoder)
        self._special = re.compile("|".join(map(re.escape, self._tokenizer.all_special_tokens)) or r"(?!)")
        places = [getattr(self._network.config, name, None) for name in ("max_position_embeddings", "n_positions")]
        # A T5 has no table of places, and its `n_positions` is only what it was trained on.
        limits = [place for place in places if isinstance(place, int) and place > 0 and not self._seq2seq]
        self.context = min([context, *limits])
        self._temperature, self._seed = temperature, seed
        self._turn = threading.Lock()
        self.name = f"hf:{identity}/{self.context}/t{temperature:g}/seed{seed}"

    def count(self, messages: Sequence[Message]) -> int:
        """Exactly the tokens of the prompt."""
        return len(self._ids(messages))

    def complete(self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = ()) -> Completion:
        """The reply; `ModelError` where the messages leave no room for it."""
        return cut_at(self._write(messages, max_tokens, stop, lambda _: None), stop)

    def stream(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = ()
    ) -> Iterator[str | Completion]:
        """The reply, word by word."""
        return in_pieces(lambda tell: self._write(messages, max_tokens, stop, tell), stop)

    def _ids(self, messages: Sequence[Message]) -> list[int]:
        turns = [{"role": message.role, "content": self._plain(message.content)} for message in messages]
        if self._tokenizer.chat_template and not self._seq2seq:
            try:
                prompt = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            except Exception as error:  # a template is a program of the model's makers, and may raise anything
                raise ModelError(f"{self._called}: its chat template fails: {first_line(error)}") from error
            encoded = self._tokenizer(prompt, add_special_tokens=False)
        else:
            encoded = self._tokenizer("\n".join(turn["content"] for turn in turns))
        ids: list[int] = encoded["input_ids"]
        return ids

    def _plain(self, text: str) -> str:
        """Text with nothing in it that the tokenizer takes for its own marks, or cannot read."""
        text = text.encode("utf-8", "replace").decode("utf-8")
        return self._special.sub(lambda mark: f"{mark[0][:1]} {mark[0][1:]}", text)

    def _write(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str], tell: Callable[[str], None]
    ) -> Completion:
        import torch

        ids = self._ids(messages)
        room = self.context - (0 if self._seq2seq else len(ids))
        if len(ids) > self.context or room < 1:
            raise ModelError(f"{self._called}: the prompt takes {len(ids)} of the model's {self.context} tokens")
        most = min(max_tokens, room)
        sampled = self._temperature > 0
        streamer = _Pieces(self._tokenizer, tell, skip=0 if self._seq2seq else len(ids))
        inputs = torch.tensor([ids], device=self._network.device)
        with self._turn, torch.inference_mode():
            torch.manual_seed(self._seed)
            try:
                output = self._network.generate(
                    input_ids=inputs,
                    attention_mask=torch.ones_like(inputs),
                    max_new_tokens=most,
                    do_sample=sampled,
                    temperature=self._temperature if sampled else None,
                    top_p=None,
                    top_k=None,
                    num_beams=1,
                    pad_token_id=self._end(),
                    stopping_criteria=[lambda *_, **__: torch.tensor([streamer.holds(stop)], device=inputs.device)],
                    streamer=streamer,
                )
            except (RuntimeError, ValueError, IndexError) as error:
                raise ModelError(f"{self._called}: generation failed: {first_line(error)}") from error
        written = output[0].tolist()[1 if self._seq2seq else len(ids) :]
        ends = self._network.generation_config.eos_token_id
        ended = bool(written) and written[-1] in (ends if isinstance(ends, list) else [ends])
        return Completion(streamer.text, len(written) >= most and not ended, len(ids), len(written))

    def _end(self) -> int | None:
        """What stands behind the end of a reply: any token will do, as one reply has no neighbours."""
        pad: int | None = self._tokenizer.pad_token_id
        return self._tokenizer.eos_token_id if pad is None else pad


class _Pieces:
    """Tells the text of tokens as `generate` finds them, word by word; `generate` takes it for a streamer."""

    def __init__(self, tokenizer: Any, tell: Callable[[str], None], skip: int) -> None:  # noqa: ANN401
        self._tokenizer = tokenizer
        self._tell = tell
        self._skip = skip
        self._ids: list[int] = []
        self._whole = self.text = ""

    def put(self, ids: Any) -> None:  # noqa: ANN401  (a tensor)
        """The prompt first, then each token."""
        new = ids.flatten().tolist()
        taken = min(self._skip, len(new))
        self._skip -= taken
        self._ids += new[taken:]
        self._whole = text = self._decoded()
        # A character or a word may still grow; what was told must stay.
        end = len(text) if text.endswith("\n") else text.rfind(" ")
        self._show(text[: max(end, 0)])

    def end(self) -> None:
        """All that is left."""
        self._show(self._decoded())

    def holds(self, stop: Sequence[str]) -> bool:
        """Whether one of these texts has been written."""
        return any(mark in self._whole for mark in stop)

    def _decoded(self) -> str:
        text: str = self._tokenizer.decode(self._ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def _show(self, text: str) -> None:
        if len(text) > len(self.text) and text.startswith(self.text):
            piece, self.text = text[len(self.text) :], text
            self._tell(piece)


def model(name: str, context: int) -> Hf:
    """The model of that name or folder; `UserError` where it cannot be loaded or transformers is missing."""
    return Hf(name, context=context)


def _load(model: str) -> tuple[Any, Any, str]:
    """Network, tokenizer, and `name@revision` with the precision where it is not float32."""
    try:
        import torch  # noqa: F401  (transformers runs without, but loads nothing)
        import transformers
        from safetensors import SafetensorError
    except ImportError:
        raise missing_extra(f"hf:{model}", "models") from None
    with quiet(Path(model).expanduser().is_dir()):
        hub_name, folder, commit = model_files(model)
        try:
            config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
            kinds = (transformers.AutoModelForCausalLM, transformers.AutoModelForSeq2SeqLM)
            tokenizer = load_tokenizer(f"hf:{model}", folder)
            loader = kinds[bool(config.is_encoder_decoder)]
            network, missing, half = load_network(loader, hub_name, folder, commit)
        except (ImportError, LookupError, OSError, RuntimeError, SafetensorError, TypeError, ValueError) as error:
            raise RagError(f"hf:{model}: cannot be loaded as a language model: {first_line(error)}") from error
    if missing:
        raise RagError(f"hf:{model}: its weights lack {', '.join(missing[:3])}")
    short = hub_name.split("/")[-1] if commit else folder.resolve().name
    identity = f"{short}@{commit[:12] if commit else local_revision(folder)}"
    return network, tokenizer, identity + ("/bf16" if half else "")
