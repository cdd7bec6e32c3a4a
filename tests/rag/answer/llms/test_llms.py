"""Language models behind a server, in a GGUF file and in transformers: real ones, as small as they come."""

import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from autoais.base.errors import UserError
from rag.answer.llms import (
    LANGUAGE_MODELS,
    Completion,
    LanguageModel,
    Message,
    ModelError,
    SchemaError,
    cut_at,
    in_pieces,
    open_model,
)
from rag.answer.llms.gbnf import schema_to_gbnf
from rag.answer.llms.gguf import Gguf
from rag.testing import ScriptedModel, check_language_model
from tests.chat_server import ChatServer
from tests.gguf import write_gguf

ASKED = [Message("user", "What is the capital of Poland?")]


def check_model(model: LanguageModel) -> Completion:
    """The contract, and a name that says what kind of model it is and its seed."""
    assert model.name.startswith(tuple(LANGUAGE_MODELS))
    assert "seed0" in model.name
    return check_language_model(model, ASKED)


def test_a_scripted_model_keeps_the_contract_and_says_what_it_was_told() -> None:
    for piece in (1, 3, 100):
        assert check_language_model(ScriptedModel("Warsaw is it.", piece=piece)).text == "Warsaw is it."
    assert check_language_model(ScriptedModel("It is " + "very " * 100 + "large.")).cut
    model = ScriptedModel("one", ModelError("gone"), "two")
    assert model.complete(ASKED, 8).text == "one"
    with pytest.raises(ModelError, match="gone"):
        model.complete(ASKED, 8)
    assert [model.complete(ASKED, 8).text for _ in range(2)] == ["two", "two"]
    assert model.asked == ["What is the capital of Poland?"] * 4


@pytest.mark.parametrize("name", ["", "openai", "openai: ", "gpt-4o", "nope:x"])
def test_a_name_that_is_none_lists_those_there_are(name: str) -> None:
    with pytest.raises(UserError, match="write anthropic:<model>, gguf:<file>, hf:<name or folder>, openai:<model>"):
        open_model(name)


def test_a_context_must_hold_something() -> None:
    with pytest.raises(UserError, match="a context of 0 tokens"):
        open_model("gguf:x", context=0)


def test_pieces_hold_back_what_may_be_a_stop_and_end_with_who_reads_them() -> None:
    def write(text: str, size: int) -> Iterator[str | Completion]:
        def tell_all(on_text: object) -> Completion:
            assert callable(on_text)
            for start in range(0, len(text), size):
                on_text(text[start : start + size])
            return Completion(text, True, 1, 1)

        return in_pieces(tell_all, ["\nQ:", "END"])

    for size in range(1, 9):
        for text, left in (("a\nQ: b", "a"), ("a\nQ", "a\nQ"), ("ENENDE", "EN"), ("E\nEN", "E\nEN"), ("END", "")):
            *pieces, last = write(text, size)
            assert "".join(map(str, pieces)) == left
            assert last == cut_at(Completion(text, True, 1, 1), ["\nQ:", "END"])
    ended = threading.Event()

    def endless(on_text: object) -> Completion:
        assert callable(on_text)
        try:
            while True:
                on_text("x")
        finally:
            ended.set()

    reading = in_pieces(endless)
    assert next(reading) == "x"
    reading.close()  # type: ignore[attr-defined]
    assert ended.wait(5)


@pytest.fixture
def served(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    return server


def open_at(base_url: str, monkeypatch: pytest.MonkeyPatch) -> LanguageModel:
    monkeypatch.setenv("OPENAI_BASE_URL", base_url)
    return open_model("openai:tiny")


def test_a_model_behind_a_server(served: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    base_url = served.script({"say": "Warsaw is it."})
    model = open_at(base_url, monkeypatch)
    assert check_model(model) == Completion("Warsaw is it.", False, 7, 2)
    assert model.name.startswith("openai:tiny@127.0.0.1:")
    assert model.name.endswith("/4096/t0/seed0")
    body = served.log(base_url)[0]["body"]
    assert body["messages"] == [{"role": "user", "content": "What is the capital of Poland?"}]
    assert (body["max_tokens"], body["temperature"], body["seed"]) == (8, 0.0, 0)
    assert served.log(base_url)[3]["body"]["stop"] == ["a"]


@pytest.mark.parametrize(
    ("forms", "structure"), [(["json_schema"], "json_schema"), (["json_object"], "json_object"), ([], "none")]
)
def test_a_model_behind_a_server_says_what_the_server_took_for_the_form_of_a_reply(
    served: ChatServer, monkeypatch: pytest.MonkeyPatch, forms: list[str], structure: str
) -> None:
    model = open_at(served.script({"say": "{}", "forms": forms}), monkeypatch)
    completion = model.complete(ASKED, 8, schema=SCHEMA)
    assert completion.structure == structure
    *_, last = model.stream(ASKED, 8, schema=SCHEMA)
    assert last == completion
    assert model.complete(ASKED, 8).structure == "none"


def test_a_schema_that_is_too_large_for_a_server_is_an_error_of_its_own(
    served: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_at(served.script({"say": "{}", "max_values": 2}), monkeypatch)
    with pytest.raises(SchemaError, match="at most 2 enum values"):
        model.complete(ASKED, 8, schema=SCHEMA)
    with pytest.raises(SchemaError, match="at most 2 enum values"):
        list(model.stream(ASKED, 8, schema=SCHEMA))
    assert model.complete(ASKED, 8).text == "{}"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"status": 400, "body": "too long"}, "openai:tiny: the server answered 400: too long"),
        (
            {"status": 400, "body": "This model's maximum context length is 2048 tokens"},
            "maximum context length is 2048 tokens; try a --context below 4096",
        ),
        ({"say": "Warsaw is it", "pieces": 2}, "openai:tiny: the stream ended before the reply did"),
        ({"say": None, "finish": "content_filter"}, "openai:tiny: the server filtered the reply"),
    ],
)
def test_a_server_that_gives_nothing_or_dies_is_a_model_error(
    served: ChatServer, monkeypatch: pytest.MonkeyPatch, bad: dict[str, object], reason: str
) -> None:
    model = open_at(served.script(bad), monkeypatch)
    with pytest.raises(ModelError, match=reason):
        list(model.stream(ASKED, 8))
    if "pieces" not in bad:
        with pytest.raises(ModelError, match=reason):
            model.complete(ASKED, 8)


def test_no_server_at_all_is_for_a_person_to_mend(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UserError, match="no model server: set OPENAI_BASE_URL"):
        open_model("openai:tiny")
    for ask in (lambda model: model.complete(ASKED, 8), lambda model: list(model.stream(ASKED, 8))):
        with pytest.raises(UserError, match="cannot connect to") as caught:
            ask(open_at("http://127.0.0.1:9/v1", monkeypatch))
        assert not isinstance(caught.value, ModelError)


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def test_a_gguf_file(gguf: Path) -> None:
    pytest.importorskip("xllamacpp", reason="needs the extra gguf")
    model = open_model(f"gguf:{gguf}")
    assert check_model(model).cut
    assert model.context == 512  # what the model was trained with
    assert model.name.startswith("gguf:tiny@")
    assert model.count(ASKED) == model.complete(ASKED, 1).prompt_tokens
    with pytest.raises(ModelError, match=r"tiny.gguf: request .* exceeds the available context size"):
        model.complete([Message("user", "word " * 200)], 8)
    with pytest.raises(ModelError, match=r"tiny.gguf: .*surrogate"):
        model.complete([Message("user", "\ud800")], 8)
    pieces = model.stream(ASKED, 400)
    assert isinstance(next(pieces), str)
    pieces.close()  # type: ignore[attr-defined]
    assert model.complete(ASKED, 2).completion_tokens == 2  # it was not left busy


def test_a_gguf_file_reads_the_constant_beginning_of_a_prompt_once(gguf: Path) -> None:
    pytest.importorskip("xllamacpp", reason="needs the extra gguf")
    prefix = "Answer from the sources, and from nothing else. "

    def question(text: str, length: int = len(prefix)) -> list[Message]:
        return [Message("user", prefix + text, length)]

    questions = [question("Who?"), question("Where was it, and when?"), question("Who?")]
    replies = [model.complete(asked, 30) for model in [open_model(f"gguf:{gguf}")] for asked in questions]
    assert replies[0] == replies[2] == open_model(f"gguf:{gguf}").complete(questions[0], 30)  # whatever came before
    model = Gguf(gguf)
    assert model._load_prefix(questions[0])
    assert not model._load_prefix(question("Who?", 0))
    assert not model._load_prefix([Message("user", "word " * 200, 900)])  # longer than the context
    with pytest.raises(ModelError, match="exceeds the available context size"):
        model.complete([Message("user", "word " * 200, 900)], 8)
    assert model.complete(questions[0], 30) == replies[0]


SCHEMA = {
    "type": "object",
    "properties": {
        "answerable": {"type": "boolean"},
        "sources": {"type": "array", "items": {"enum": [1, 2, 30]}, "minItems": 1, "maxItems": 2},
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"a": {"enum": ["x", '"{']}}},
            "maxItems": 1,
        },
        "words": {"type": "string", "minLength": 1, "maxLength": 3},
    },
}


def test_a_gguf_file_follows_a_schema_whatever_the_model(gguf: Path) -> None:
    pytest.importorskip("xllamacpp", reason="needs the extra gguf")
    for seed in range(3):
        model = open_model(f"gguf:{gguf}", temperature=1.5, seed=seed)
        completion = model.complete(ASKED, 200, schema=SCHEMA)
        row = json.loads(completion.text)
        assert list(row) == ["answerable", "sources", "rows", "words"]
        assert isinstance(row["answerable"], bool)
        assert set(row["sources"]) <= {1, 2, 30}
        assert 1 <= len(row["sources"]) <= 2
        assert row["rows"] in ([], [{"a": "x"}], [{"a": '"{'}])
        assert 1 <= len(row["words"]) <= 3 * 3  # each with a space and a bracket before it
        assert completion.text.partition('"words": "')[2][-3] not in " (["
        assert completion.text == json.dumps(row, ensure_ascii=False) or "\\" in completion.text
        assert completion.alternatives
        assert completion.structure == "json_schema"
        assert all(0 <= value <= 1 for alternatives in completion.alternatives for value in alternatives.values())
        *_, streamed = model.stream(ASKED, 200, schema=SCHEMA)
        assert streamed == completion
    with pytest.raises(ValueError, match="no grammar for the schema"):
        schema_to_gbnf({"type": "number"})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "cannot be read: No such file"),
        (b"", "not a GGUF file"),
        (b"\x89PNG\r\n", "not a GGUF file"),
        (b"GGUF\x03\0\0\0", "cannot load it"),
        (b"GGUF" + bytes(range(256)) * 40, "cannot load it"),
    ],
)
def test_a_file_that_is_no_gguf_model_is_one_line(tmp_path: Path, data: bytes | None, says: str) -> None:
    if says == "cannot load it":
        pytest.importorskip("xllamacpp", reason="needs the extra gguf")
    file = tmp_path / "bad.gguf"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(UserError, match=says) as caught:
        open_model(f"gguf:{file}")
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_gguf_file_that_was_cut_off_and_a_folder(gguf: Path, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="needs the extra gguf")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(gguf.read_bytes()[:200_000])
    with pytest.raises(UserError, match="check that the file is complete"):
        open_model(f"gguf:{cut}")
    with pytest.raises(UserError, match="cannot be read"):
        open_model(f"gguf:{tmp_path}")


@pytest.mark.parametrize(
    ("kind", "module", "extra"),
    [("gguf", "xllamacpp", "gguf"), ("hf", "transformers", "models")],
)
def test_a_missing_extra_is_one_line(
    gguf: Path, monkeypatch: pytest.MonkeyPatch, kind: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    with pytest.raises(UserError, match=rf'pip install -e "\.\[{extra}\]"'):
        open_model(f"{kind}:{gguf}")


WORDS = "What is the capital of Poland ? Warsaw lies on a river . user assistant".split()
MARKS = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}


def save_tokenizer(folder: Path, template: str | None) -> int:
    """Whole words; how many there are."""
    import tokenizers
    import transformers

    every = [*MARKS.values(), *WORDS, "0", "1"]
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(every)}, "<unk>"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast: Any = transformers.PreTrainedTokenizerFast(tokenizer_object=core, **MARKS)
    fast.chat_template = template
    fast.save_pretrained(folder)
    return len(every)


def clear(network: Any, size: int) -> Any:  # noqa: ANN401
    """Set all weights to 0 and those of the norms to 1; returns for each token the one that follows it, as a matrix.

    Words follow each other in a circle, so that what a model writes is certain on any processor and in any batch. A
    head of attention looks for padding, which only a wrong mask lets it see, and would change the reply.
    """
    import torch

    for name, parameter in network.named_parameters():
        parameter.data.fill_(float("norm" in name))
    words = list(range(len(MARKS), size))
    following = torch.zeros((size, 32))
    following[range(size), [words[(token + 1) % len(words)] for token in range(size)]] = 1
    return following


def save_causal(folder: Path, template: str | None = None) -> Path:
    """A llama that writes the words in a circle."""
    import torch
    import transformers

    size = save_tokenizer(folder, template)
    config = transformers.LlamaConfig(
        vocab_size=size, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64, bos_token_id=2, eos_token_id=3,
        pad_token_id=0,
    )  # fmt: skip
    network = transformers.LlamaForCausalLM(config)
    following = clear(network, size)
    network.model.embed_tokens.weight.data[:, :size] = torch.eye(size)
    network.model.embed_tokens.weight.data[:, 31] = 1
    network.lm_head.weight.data[:, :size] = following[:, :size].T
    attention = network.model.layers[0].self_attn
    attention.q_proj.weight.data[15, 31] = 1  # the input of a head that its position turns least
    attention.k_proj.weight.data[15, config.pad_token_id] = 5
    attention.v_proj.weight.data[0, config.pad_token_id] = 1
    attention.o_proj.weight.data[size - 1, 0] = 1
    network.save_pretrained(folder)
    return folder


def save_t5(folder: Path) -> Path:
    """A T5 that writes the words in a circle, whatever it reads."""
    import torch
    import transformers

    size = save_tokenizer(folder, None)
    config = transformers.T5Config(
        vocab_size=size, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0,
        eos_token_id=3, pad_token_id=0,
    )  # fmt: skip
    network = transformers.T5ForConditionalGeneration(config)
    following = clear(network, size)
    network.shared.weight.data[:, :size] = torch.eye(size)
    network.shared.weight.data[:, 31] = 1
    _, cross, last = network.decoder.block[0].layer
    cross.EncDecAttention.q.weight.data[0, 31] = 1
    cross.EncDecAttention.k.weight.data[0, config.pad_token_id] = 2
    cross.EncDecAttention.v.weight.data[0, config.pad_token_id] = 1
    cross.EncDecAttention.o.weight.data[size - 1, 0] = 9
    last.DenseReluDense.wi.weight.data[:size, :size] = torch.eye(size)
    last.DenseReluDense.wo.weight.data[:, :size] = 9 * following.T
    network.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="needs the extra models")
    pytest.importorskip("transformers", reason="needs the extra models")
    return save_causal(tmp_path_factory.mktemp("causal"))


TEMPLATE = "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}assistant"


def test_a_causal_model_with_and_without_a_chat_template(causal: Path, tmp_path: Path) -> None:
    model = open_model(f"hf:{causal}")
    bare = check_model(model)
    assert bare.cut
    assert bare.text
    assert bare.prompt_tokens == 7
    assert model.context == 64
    assert model.name.startswith(f"hf:{causal.name}@local-")
    chat = open_model(f"hf:{save_causal(tmp_path / 'chat', TEMPLATE)}")
    assert check_model(chat).prompt_tokens == 9  # user and assistant
    assert chat.name.split("@")[1] != model.name.split("@")[1]
    assert model.count([Message("user", "</s>")]) > 1  # a text's marks are no marks
    with pytest.raises(ModelError, match="the prompt takes 70 of the model's 64 tokens"):
        model.complete([Message("user", "river " * 70)], 8)
    assert model.complete([Message("user", "river " * 60)], 8).completion_tokens <= 4


def test_a_template_that_fails_is_a_model_error(tmp_path: Path, causal: Path) -> None:
    folder = save_causal(tmp_path, "{{ raise_exception('no system turns') }}")
    model = open_model(f"hf:{folder}")
    with pytest.raises(ModelError, match="its chat template fails: no system turns"):
        model.complete(ASKED, 8)


def test_a_seq2seq_model(causal: Path, tmp_path: Path) -> None:
    model = open_model(f"hf:{save_t5(tmp_path / 't5')}", context=100)
    check_model(model)
    assert model.context == 100
    with pytest.raises(ModelError, match="the prompt takes 101 of the model's 100 tokens"):
        model.complete([Message("user", "river " * 101)], 8)


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
@pytest.mark.parametrize("fault", ["", "too large together"])
def test_what_is_asked_at_once_is_written_together_and_is_the_same(
    causal: Path, tmp_path: Path, kind: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = open_model(f"hf:{causal if kind == 'causal' else save_t5(tmp_path / 't5')}")
    asked = [([Message("user", f"the river {'of Warsaw ' * n}")], 3 + n, WORDS[n : n + 1] * (n % 2)) for n in range(6)]
    alone = [model.complete(*one) for one in asked]
    generate, sizes = model._network.generate, []

    def counted(input_ids: Sequence[object], **options: object) -> object:
        sizes.append(len(input_ids))
        if fault and sizes[-1] > 1:
            raise RuntimeError("out of memory")
        return generate(input_ids=input_ids, **options)

    monkeypatch.setattr(model._network, "generate", counted)
    with ThreadPoolExecutor(len(asked)) as pool:
        with model._turn:  # as while it writes another reply
            begun = [pool.submit(partial(model.complete, *one)) for one in asked]
            while len(model._waiting) < len(asked):
                time.sleep(0.01)
        assert [one.result(60) for one in begun] == alone
    assert sizes == [6, *([1] * 6 if fault else [])]
    assert len({reply.completion_tokens for reply in alone}) > 1


def test_folders_that_hold_no_language_model_are_one_line(causal: Path, tmp_path: Path) -> None:
    broken = {
        "weights": ("model.safetensors", b"not weights", "cannot be loaded"),
        "config": ("config.json", b'{"model_type": "nope"}', "cannot be loaded"),
        "tokenizer": ("tokenizer.json", b"{}", "tokenizer"),
    }
    for name, (file, data, says) in broken.items():
        folder = shutil.copytree(causal, tmp_path / name)
        (folder / file).write_bytes(data)
        with pytest.raises(UserError, match=says) as caught:
            open_model(f"hf:{folder}")
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"no config\.json in this folder"):
        open_model(f"hf:{tmp_path}")
