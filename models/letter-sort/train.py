"""Train letter-sort and write model.safetensors beside this file.

    python models/letter-sort/train.py

Needs PyTorch, which the service does not. One CPU thread, seeded: run again on the same
machine with the same versions, it writes the same bytes. Axis letters: b batch, n position
(query), m key position, d d_model, h head, k d_head, f d_ff, V vocabulary.
"""

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

import letters
import torch
from safetensors.torch import save
from torch import Tensor
from torch.nn import functional

FOLDER = Path(__file__).resolve().parent
SEED = 0
STEPS = 1500
WARMUP_STEPS = 50
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 0.1
INIT_STD = 0.1

Weights = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Config:
    """What the equations need of config.json."""

    n_layers: int
    d_model: int
    n_heads: int
    d_head: int
    d_ff: int
    n_positions: int
    vocab: int
    scale: float
    eps: float


def read_config(path: Path) -> Config:
    """config.json as a Config."""
    document = json.loads(path.read_text())
    attention = document["attention"]
    return Config(
        n_layers=document["n_layers"],
        d_model=document["d_model"],
        n_heads=attention["n_heads"],
        d_head=attention["d_head"],
        d_ff=document["ffn"]["d_ff"],
        n_positions=document["position"]["n_positions"],
        vocab=document["vocab"],
        scale=attention["scale"],
        eps=document["norm"]["eps"],
    )


def norm_shapes(name: str, c: Config) -> dict[str, tuple[int, ...]]:
    """Gain (d) and bias (d)."""
    return {f"{name}.weight": (c.d_model,), f"{name}.bias": (c.d_model,)}


def attention_shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """Heads first: W_Q, W_K, W_V (h, d, k), W_O (h, k, d), their biases (h, k) and (d)."""
    read, write = (c.n_heads, c.d_model, c.d_head), (c.n_heads, c.d_head, c.d_model)
    bias = (c.n_heads, c.d_head)
    matrices = {"W_Q": read, "W_K": read, "W_V": read, "W_O": write}
    return {**matrices, "b_Q": bias, "b_K": bias, "b_V": bias, "b_O": (c.d_model,)}


def ffn_shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """W_in (d, f), b_in (f), W_out (f, d), b_out (d)."""
    d, f = c.d_model, c.d_ff
    return {"W_in": (d, f), "b_in": (f,), "W_out": (f, d), "b_out": (d,)}


def block_shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """The tensors of one block, by name within the block."""
    attention_part = {f"attn.{name}": shape for name, shape in attention_shapes(c).items()}
    ffn_part = {f"ffn.{name}": shape for name, shape in ffn_shapes(c).items()}
    return norm_shapes("norm1", c) | attention_part | norm_shapes("norm2", c) | ffn_part


def weight_shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """Every stored tensor by name. The readout is W_E transposed, so it has none of its own."""
    tables = {"embed.W_E": (c.vocab, c.d_model), "pos_embed.W_pos": (c.n_positions, c.d_model)}
    one_block = block_shapes(c).items()
    blocks = {f"blocks.{i}.{name}": s for i in range(c.n_layers) for name, s in one_block}
    return tables | blocks | norm_shapes("final_norm", c)


def initial(name: str, shape: tuple[int, ...]) -> Tensor:
    """Matrices and tables from N(0, INIT_STD²), gains 1, biases 0."""
    if is_matrix(name):
        return torch.randn(shape) * INIT_STD
    return torch.ones(shape) if name.endswith(".weight") else torch.zeros(shape)


def is_matrix(name: str) -> bool:
    """Whether a tensor is a matrix or a table: these alone start random and decay."""
    return name.rpartition(".")[2].startswith("W_")


def layer_norm(x: Tensor, w: Weights, name: str, c: Config) -> Tensor:
    """(x - mean) / sqrt(var + eps) · weight + bias.  (b, n, d) -> (b, n, d)."""
    return functional.layer_norm(x, (c.d_model,), w[f"{name}.weight"], w[f"{name}.bias"], c.eps)


def project(u: Tensor, w: Weights, part: str, letter: str) -> Tensor:
    """U W + b in each head.  (b, n, d), (h, d, k), (h, k) -> (b, h, n, k)."""
    projected = torch.einsum("bnd,hdk->bhnk", u, w[f"{part}.W_{letter}"])
    return projected + w[f"{part}.b_{letter}"][:, None, :]


def attention(u: Tensor, w: Weights, part: str, c: Config) -> Tensor:
    """Σ_r softmax(causal(Q K^T · scale)) V W_O^(r) + b_O.  (b, n, d) -> (b, n, d)."""
    q, k, v = (project(u, w, part, letter) for letter in "QKV")
    dots = q @ k.transpose(-1, -2)  # (b, h, n, m)
    future = torch.ones(dots.shape[-2:], dtype=torch.bool).triu(1)
    pattern = (dots * c.scale).masked_fill(future, -math.inf).softmax(-1)
    mixture = pattern @ v  # (b, h, n, k)
    return torch.einsum("bhnk,hkd->bnd", mixture, w[f"{part}.W_O"]) + w[f"{part}.b_O"]


def feed_forward(u: Tensor, w: Weights, part: str) -> Tensor:
    """gelu_tanh(F W_in + b_in) W_out + b_out.  (b, n, d) -> (b, n, d)."""
    up = u @ w[f"{part}.W_in"] + w[f"{part}.b_in"]  # (b, n, f)
    hidden = functional.gelu(up, approximate="tanh")
    return hidden @ w[f"{part}.W_out"] + w[f"{part}.b_out"]


def block(resid_pre: Tensor, w: Weights, name: str, c: Config) -> Tensor:
    """Y = X + MHA(LN1(X)), Z = Y + FFN(LN2(Y)).  (b, n, d) -> (b, n, d)."""
    norm1 = layer_norm(resid_pre, w, f"{name}.norm1", c)
    resid_mid = resid_pre + attention(norm1, w, f"{name}.attn", c)
    norm2 = layer_norm(resid_mid, w, f"{name}.norm2", c)
    return resid_mid + feed_forward(norm2, w, f"{name}.ffn")


def logits(token_ids: Tensor, w: Weights, c: Config) -> Tensor:
    """The whole model, read out through W_E transposed.  (b, n) -> (b, n, V)."""
    resid = w["embed.W_E"][token_ids] + w["pos_embed.W_pos"][: token_ids.shape[-1]]
    for i in range(c.n_layers):
        resid = block(resid, w, f"blocks.{i}", c)
    return layer_norm(resid, w, "final_norm", c) @ w["embed.W_E"].T


def encode(texts: list[str]) -> Tensor:
    """Letters to ids.  (b) strings of length n -> (b, n)."""
    return torch.tensor([[letters.LETTERS.index(letter) for letter in text] for text in texts])


def answer_logits(texts: list[str], w: Weights, c: Config) -> tuple[Tensor, Tensor]:
    """The six decisions of each text and their right ids.  (b) -> (b, 6, V), (b, 6).

    Each decision reads the text and the right letters before it; the last letter is not read.
    """
    answers = [letters.sorted_letters(text) for text in texts]
    token_ids = encode([text + answer for text, answer in zip(texts, answers, strict=True)])
    decisions = logits(token_ids[:, :-1], w, c)[:, letters.INPUT_LENGTH - 1 :]
    return decisions, encode(answers)


def loss(texts: list[str], w: Weights, c: Config) -> Tensor:
    """Mean cross-entropy of the six decisions."""
    decisions, right_ids = answer_logits(texts, w, c)
    return functional.cross_entropy(decisions.flatten(0, 1), right_ids.flatten())


def least_margin(texts: list[str], w: Weights, c: Config) -> float:
    """The least, over all decisions, of the right letter's logit minus the best other one's."""
    decisions, right_ids = answer_logits(texts, w, c)
    right = decisions.gather(-1, right_ids[..., None])  # (b, 6, 1)
    others = decisions.scatter(-1, right_ids[..., None], -math.inf)
    return (right - others.max(-1, keepdim=True).values).min().item()


def learning_rate(step: int) -> float:
    """A linear warm-up, then half a cosine down to zero."""
    warmup = min(1.0, (step + 1) / WARMUP_STEPS)
    return LEARNING_RATE * warmup * (1 + math.cos(math.pi * step / STEPS)) / 2


def optimizer_for(w: Weights) -> torch.optim.Optimizer:
    """AdamW with weight decay on the matrices and tables only."""
    decayed = [tensor for name, tensor in w.items() if is_matrix(name)]
    others = [tensor for name, tensor in w.items() if not is_matrix(name)]
    groups = [
        {"params": decayed, "weight_decay": WEIGHT_DECAY},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.99))


def train(texts: list[str], c: Config) -> Weights:
    """The weights after STEPS steps, each over all the texts at once."""
    shapes = weight_shapes(c).items()
    w = {name: initial(name, shape).requires_grad_() for name, shape in shapes}
    optimizer = optimizer_for(w)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        batch_loss = loss(texts, w, c)
        optimizer.zero_grad()
        batch_loss.backward()
        optimizer.step()
        if step % 100 == 0 or step == STEPS - 1:
            print(f"step {step:5d}  loss {batch_loss.item():.7f}", flush=True)
    return {name: tensor.detach() for name, tensor in w.items()}


def greedy(texts: list[str], w: Weights, c: Config) -> list[str]:
    """The six letters the model writes after each text, the likeliest one at a time."""
    token_ids = encode(texts)
    for _ in range(letters.INPUT_LENGTH):
        following = logits(token_ids, w, c)[:, -1:].argmax(-1)
        token_ids = torch.cat([token_ids, following], dim=1)
    written = token_ids[:, letters.INPUT_LENGTH :].tolist()
    return ["".join(letters.LETTERS[i] for i in row) for row in written]


def count_right(texts: list[str], w: Weights, c: Config) -> int:
    """How many of the texts greedy decoding sorts right."""
    written = greedy(texts, w, c)
    return sum(a == letters.sorted_letters(text) for a, text in zip(written, texts, strict=True))


def main() -> None:
    """Train, write model.safetensors, print what was measured."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    config = read_config(FOLDER / "config.json")
    trained_on, held_out = letters.split()
    start = time.perf_counter()
    w = train(trained_on, config)
    seconds = time.perf_counter() - start
    (FOLDER / "model.safetensors").write_bytes(save(w))
    print(f"parameters {sum(tensor.numel() for tensor in w.values())}  seconds {seconds:.0f}")
    for name, texts in (("train", trained_on), ("held out", held_out)):
        right, margin = count_right(texts, w, config), least_margin(texts, w, config)
        print(f"{name}: {right} of {len(texts)} sorted right, least margin {margin:.3f}")


if __name__ == "__main__":
    main()
