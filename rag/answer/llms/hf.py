"""`hf:<name or folder>`: a transformers model, seq2seq or causal, with its chat template if it has one."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from autoais.base.errors import first_line
from autoais.base.io.paths import user_path
from autoais.base.models.transformers import (
    load_network,
    load_tokenizer,
    local_revision,
    model_files,
    plain_text,
    quiet_logging,
)
from rag.answer.llms import CONTEXT, Completion, Message, ModelError, Schema, cut_at, in_pieces
from rag.base.errors import RagError, missing_extra


class Hf:
    """A folder, or a name on the Hugging Face hub with an optional `@revision`; temperature 0 and a seed by default.

    A causal model with a chat template gets the messages through it; any other model continues the messages' texts, one
    per line. On a GPU the model runs in bfloat16, and its name ends with `/bf16`. Requests that arrive from other
    threads during a generation form the next batch; a batch changes the last digits of logits and so, rarely, a word.
    Above temperature 0, where the seed must decide each reply, and when streaming, replies are generated one at a time.
    """

    def __init__(self, model: str, *, context: int = CONTEXT, temperature: float = 0.0, seed: int = 0) -> None:
        self._called = f"hf:{model}"
        self._network, self._tokenizer, identity = _load(model)
        self._seq2seq = bool(self._network.config.is_encoder_decoder)
        self._plain = plain_text(self._tokenizer)
        position_limits = [
            getattr(self._network.config, name, None) for name in ("max_position_embeddings", "n_positions")
        ]
        # T5 has relative positions; its `n_positions` is only its training length, not a limit.
        limits = [limit for limit in position_limits if isinstance(limit, int) and limit > 0 and not self._seq2seq]
        self.context = min([context, *limits])
        self._temperature, self._seed = temperature, seed
        self._turn, self._guard = threading.Lock(), threading.Lock()
        self._waiting: list[_Reply] = []
        self.name = f"hf:{identity}/{self.context}/t{temperature:g}/seed{seed}"

    def count(self, messages: Sequence[Message]) -> int:
        """The exact number of tokens of the prompt."""
        return len(self._ids(messages))

    def complete(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Completion:
        """The reply, whatever the schema; raises `ModelError` if the messages leave no room for it."""
        reply = self._reply(messages, max_tokens, stop)
        with self._guard:
            self._waiting.append(reply)
        with self._turn:
            if not reply.ended:
                self._write(self._next_batch(reply))
        return cut_at(reply.completion(), stop)

    def stream(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Iterator[str | Completion]:
        """Yield the reply, word by word."""

        def write(on_text: Callable[[str], None]) -> Completion:
            reply = self._reply(messages, max_tokens, stop, on_text)
            with self._turn:
                self._write([reply])
            return reply.completion()

        return in_pieces(write, stop)

    def _ids(self, messages: Sequence[Message]) -> list[int]:
        turns = [{"role": message.role, "content": self._plain(message.content)} for message in messages]
        if self._tokenizer.chat_template and not self._seq2seq:
            try:
                prompt = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            except Exception as error:  # a template is a program and may raise anything
                raise ModelError(f"{self._called}: its chat template fails: {first_line(error)}") from error
            encoded = self._tokenizer(prompt, add_special_tokens=False)
        else:
            encoded = self._tokenizer("\n".join(turn["content"] for turn in turns))
        ids: list[int] = encoded["input_ids"]
        return ids

    def _reply(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        stop: Sequence[str],
        on_text: Callable[[str], None] | None = None,
    ) -> "_Reply":
        ids = self._ids(messages)
        room = self.context - (0 if self._seq2seq else len(ids))
        if len(ids) > self.context or room < 1:
            raise ModelError(f"{self._called}: the prompt takes {len(ids)} of the model's {self.context} tokens")
        ends = self._network.generation_config.eos_token_id
        return _Reply(
            self._tokenizer, ids, min(max_tokens, room), stop, ends if isinstance(ends, list) else [ends], on_text
        )

    def _next_batch(self, reply: "_Reply") -> list["_Reply"]:
        """The next batch: all waiting replies, or this one alone above temperature 0."""
        with self._guard:
            batch = [reply] if self._temperature > 0 else self._waiting
            self._waiting = [waiting_reply for waiting_reply in self._waiting if waiting_reply not in batch]
        return batch

    def _write(self, replies: Sequence["_Reply"]) -> None:
        """Generate the replies as a batch; if that fails, for example out of memory, one by one."""
        try:
            self._generate(replies)
        except (RuntimeError, ValueError, IndexError) as error:
            if len(replies) > 1:
                for reply in replies:
                    self._write([reply.restart()])
            else:
                replies[0].fail(ModelError(f"{self._called}: generation failed: {first_line(error)}"))
        except BaseException:
            for reply in replies:
                reply.fail(ModelError(f"{self._called}: generation was stopped"))
            raise

    def _generate(self, replies: Sequence["_Reply"]) -> None:
        import torch

        longest = max(len(reply.prompt) for reply in replies)
        pads = [longest - len(reply.prompt) for reply in replies]
        filler = self._filler()
        rows = [[filler] * pad + reply.prompt for pad, reply in zip(pads, replies, strict=True)]
        mask = [[0] * pad + [1] * len(reply.prompt) for pad, reply in zip(pads, replies, strict=True)]
        is_sampling = self._temperature > 0
        device = self._network.device

        def take(ids: Any, _scores: Any, **_: Any) -> Any:  # noqa: ANN401  (tensors)
            """Stopping criterion: add each row's new token; returns which rows are done."""
            ended = [reply.put(token) for reply, token in zip(replies, ids[:, -1].tolist(), strict=True)]
            return torch.tensor(ended, device=device)

        with torch.inference_mode():
            torch.manual_seed(self._seed)
            self._network.generate(
                input_ids=torch.tensor(rows, device=device),
                attention_mask=torch.tensor(mask, device=device),
                max_new_tokens=max(reply.most for reply in replies),
                do_sample=is_sampling,
                temperature=self._temperature if is_sampling else None,
                top_p=None,
                top_k=None,
                num_beams=1,
                pad_token_id=filler,
                stopping_criteria=[take],
            )
        for reply in replies:
            reply.end()

    def _filler(self) -> int:
        """The padding token; models without one use the end token, or 0. It is masked."""
        pad, end = self._tokenizer.pad_token_id, self._tokenizer.eos_token_id
        return int(next((token for token in (pad, end) if token is not None), 0))


class _Reply:
    """A reply during generation, token by token; its text is passed to `on_text` word by word."""

    def __init__(
        self,
        tokenizer: Any,  # noqa: ANN401
        prompt: list[int],
        max_tokens: int,
        stop: Sequence[str],
        ends: Sequence[int],
        on_text: Callable[[str], None] | None,
    ) -> None:
        self.prompt, self.most = prompt, max_tokens
        self.ended = False
        self._tokenizer, self._stop, self._ends, self._on_text = tokenizer, stop, ends, on_text
        self._ids: list[int] = []
        self._text = ""
        self._failed: ModelError | None = None

    def put(self, token: int) -> bool:
        """Add the next token; returns whether the reply has ended."""
        if self.ended:
            return True
        self._ids.append(token)
        if self._stop or self._on_text:
            text = self._decode()
            # The last word may still change; text that was passed on must not.
            end = len(text) if text.endswith("\n") else text.rfind(" ")
            self._show(text[: max(end, 0)])
            self.ended = any(mark in text for mark in self._stop)
        self.ended = self.ended or len(self._ids) == self.most or token in self._ends
        return self.ended

    def end(self) -> None:
        """End the reply and pass on the rest of its text."""
        self.ended = True
        self._show(self._decode())

    def fail(self, error: ModelError) -> None:
        """End the reply with an error."""
        self.ended, self._failed = True, error

    def restart(self) -> "_Reply":
        """Discard the text so far; returns the reply itself."""
        self.ended, self._ids, self._text = False, [], ""
        return self

    def completion(self) -> Completion:
        """The completed reply; raises `ModelError` if it failed."""
        if self._failed:
            raise self._failed
        cut = len(self._ids) >= self.most and self._ids[-1] not in self._ends
        return Completion(self._text, cut, len(self.prompt), len(self._ids))

    def _decode(self) -> str:
        text: str = self._tokenizer.decode(self._ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def _show(self, text: str) -> None:
        if len(text) > len(self._text) and text.startswith(self._text):
            piece, self._text = text[len(self._text) :], text
            if self._on_text:
                self._on_text(piece)


def _load(model: str) -> tuple[Any, Any, str]:
    """Load the model: network, tokenizer, and `name@revision` with the precision if it is not float32."""
    try:
        import torch  # noqa: F401  (transformers imports without torch, but cannot load models)
        import transformers
        from safetensors import SafetensorError
    except ImportError:
        raise missing_extra(f"hf:{model}", "models") from None
    with quiet_logging(user_path(model).is_dir()):
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
