"""Train induction and write model.safetensors beside this file.

    python models/induction/train.py

Needs PyTorch, which the service does not. One CPU thread, seeded: run again on the same
machine with the same versions, it writes the same bytes. Axis letters: b batch, n position
(query), m key position, d d_model, h head, g kv_head, k d_head, f d_ff, V vocabulary.
"""

import json
import math
import random
import time
from dataclasses import dataclass
from pathlib import Path

import sequences
import torch
from safetensors.torch import save
from torch import Tensor
from torch.nn import functional

FOLDER = Path(__file__).resolve().parent
SEED = 0
STEPS = 2000
BATCH = 48
WARMUP_STEPS = 100
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 0.01
INIT_STD = 0.1
BIAS_STD = 0.5
CARRIERS = (1, 2)
"""The head of each block that always speaks: in block 0 head 1, in block 1 head 2."""

SILENT_HEAD = 0.9
"""The probability that any other head is silent in a training sequence."""

SILENT_FFN = 0.5
"""The probability that a feed-forward network is silent in a training sequence."""

SCORE_NOISE = 1.0
"""The standard deviation of the noise on the scores, in the second half of the training."""

Weights = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Hindrance:
    """What training puts in the way of one block.

    heads (b, h) and ffn (b): 1 where it speaks, 0 where it is silent in that sequence.
    noise: the standard deviation of what is added to each score.
    """

    heads: Tensor
    ffn: Tensor
    noise: float


@dataclass(frozen=True, slots=True)
class Config:
    """What the equations need of config.json."""

    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    theta: float
    vocab: int
    scale: float
    eps: float


def read_config(path: Path) -> Config:
    """config.json as a Config."""
    document = json.loads(path.read_text())
    attention = document["attention"]
    return Config(
        d_model=document["d_model"],
        n_heads=attention["n_heads"],
        n_kv_heads=attention["n_kv_heads"],
        d_head=attention["d_head"],
        d_ff=document["ffn"]["d_ff"],
        theta=document["position"]["theta"],
        vocab=document["vocab"],
        scale=attention["scale"],
        eps=document["norm"]["eps"],
    )


def attention_shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """Heads first: W_Q (h, d, k), W_K, W_V (g, d, k), W_O (h, k, d), b_Q (h, k), b_K (g, k)."""
    h, g, d, k = c.n_heads, c.n_kv_heads, c.d_model, c.d_head
    matrices = {"W_Q": (h, d, k), "W_K": (g, d, k), "W_V": (g, d, k), "W_O": (h, k, d)}
    return {**matrices, "b_Q": (h, k), "b_K": (g, k)}


def ffn_shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """W_in, W_gate (d, f), W_out (f, d)."""
    d, f = c.d_model, c.d_ff
    return {"W_in": (d, f), "W_gate": (d, f), "W_out": (f, d)}


def block_shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """The tensors of one block, by name within the block."""
    attention_part = {f"attn.{name}": shape for name, shape in attention_shapes(c).items()}
    ffn_part = {f"ffn.{name}": shape for name, shape in ffn_shapes(c).items()}
    norms = {"norm1.weight": (c.d_model,), "norm2.weight": (c.d_model,)}
    return norms | attention_part | ffn_part


def weight_shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """Every stored tensor by name."""
    ends = {"embed.W_E": (c.vocab, c.d_model), "unembed.W_U": (c.d_model, c.vocab)}
    one_block = block_shapes(c).items()
    blocks = {f"blocks.{i}.{name}": s for i in range(len(CARRIERS)) for name, s in one_block}
    return ends | blocks | {"final_norm.weight": (c.d_model,)}


def initial(name: str, shape: tuple[int, ...]) -> Tensor:
    """Matrices from N(0, INIT_STD²), biases from N(0, BIAS_STD²), gains 1."""
    if name.endswith(".weight"):
        return torch.ones(shape)
    return torch.randn(shape) * (INIT_STD if is_matrix(name) else BIAS_STD)


def is_matrix(name: str) -> bool:
    """Whether a tensor is a matrix or a table: these alone decay."""
    return name.rpartition(".")[2].startswith("W_")


def rms_norm(x: Tensor, weight: Tensor, c: Config) -> Tensor:
    """x / sqrt(mean(x²) + eps) · weight.  (b, n, d), (d) -> (b, n, d)."""
    return functional.rms_norm(x, (c.d_model,), weight, c.eps)


def rotate(x: Tensor, c: Config) -> Tensor:
    """RoPE, coordinate i paired with i + k/2, by the angle n · theta^(-2i/k).  (b, h, n, k)."""
    frequencies = c.theta ** -(torch.arange(0, c.d_head, 2, dtype=torch.float64) / c.d_head)
    angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * frequencies  # (n, k/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], dim=-1)


def project(u: Tensor, matrix: Tensor) -> Tensor:
    """U W in each head.  (b, n, d), (h, d, k) -> (b, h, n, k)."""
    return torch.einsum("bnd,hdk->bhnk", u, matrix)


def causal_pattern(q: Tensor, k: Tensor, noise: float, c: Config) -> Tensor:
    """softmax(causal(Q K^T · scale + noise)).  (b, h, n, k), (b, h, m, k) -> (b, h, n, m)."""
    dots = q @ k.transpose(-1, -2)
    future = torch.ones(dots.shape[-2:], dtype=torch.bool).triu(1)
    scores = dots * c.scale + noise * torch.randn(dots.shape)
    return scores.masked_fill(future, -math.inf).softmax(-1)


def attention(u: Tensor, w: Weights, part: str, hindrance: Hindrance, c: Config) -> Tensor:
    """Σ_r A_r V W_O^(r) over the heads that speak; those in a group share K and V.

    (b, n, d) -> (b, n, d).
    """
    share = c.n_heads // c.n_kv_heads
    q = project(u, w[f"{part}.W_Q"]) + w[f"{part}.b_Q"][:, None, :]  # (b, h, n, k)
    k = project(u, w[f"{part}.W_K"]) + w[f"{part}.b_K"][:, None, :]  # (b, g, m, k)
    v = project(u, w[f"{part}.W_V"]).repeat_interleave(share, dim=1)  # (b, h, m, k)
    k_rot = rotate(k, c).repeat_interleave(share, dim=1)  # (b, h, m, k)
    pattern = causal_pattern(rotate(q, c), k_rot, hindrance.noise, c)  # (b, h, n, m)
    mixture = pattern @ v * hindrance.heads[:, :, None, None]  # (b, h, n, k)
    return torch.einsum("bhnk,hkd->bnd", mixture, w[f"{part}.W_O"])


def feed_forward(u: Tensor, w: Weights, part: str) -> Tensor:
    """(silu(F W_gate) · (F W_in)) W_out.  (b, n, d) -> (b, n, d)."""
    hidden = functional.silu(u @ w[f"{part}.W_gate"]) * (u @ w[f"{part}.W_in"])  # (b, n, f)
    return hidden @ w[f"{part}.W_out"]


def block(resid_pre: Tensor, w: Weights, name: str, hindrance: Hindrance, c: Config) -> Tensor:
    """Y = X + MHA(RMS1(X)), Z = Y + FFN(RMS2(Y)).  (b, n, d) -> (b, n, d)."""
    norm1 = rms_norm(resid_pre, w[f"{name}.norm1.weight"], c)
    resid_mid = resid_pre + attention(norm1, w, f"{name}.attn", hindrance, c)
    norm2 = rms_norm(resid_mid, w[f"{name}.norm2.weight"], c)
    return resid_mid + feed_forward(norm2, w, f"{name}.ffn") * hindrance.ffn[:, None, None]


def logits(token_ids: Tensor, w: Weights, hindrances: list[Hindrance], c: Config) -> Tensor:
    """The whole model, each block with its hindrance.  (b, n) -> (b, n, V)."""
    resid = w["embed.W_E"][token_ids]
    for i, hindrance in enumerate(hindrances):
        resid = block(resid, w, f"blocks.{i}", hindrance, c)
    return rms_norm(resid, w["final_norm.weight"], c) @ w["unembed.W_U"]


def hindrance_at(step: int, carrier: int, c: Config) -> Hindrance:
    """A block's hindrance at a step; the noise grows until half of the steps are done."""
    speaks = torch.rand(BATCH, c.n_heads) >= SILENT_HEAD
    always = torch.arange(c.n_heads) == carrier  # (h)
    return Hindrance(
        heads=(speaks | always).float(),
        ffn=(torch.rand(BATCH) >= SILENT_FFN).float(),
        noise=SCORE_NOISE * min(1.0, 2 * step / STEPS),
    )


def encode(texts: list[str]) -> Tensor:
    """Letters to ids.  (b) strings of length n -> (b, n)."""
    return torch.tensor([[sequences.LETTERS.index(letter) for letter in text] for text in texts])


def decided(lengths: Tensor, n: int) -> Tensor:
    """Whether position p has a next letter that the first half decides: L <= p <= 2 L - 2.

    (b) -> (b, n).
    """
    position = torch.arange(n)
    return (position >= lengths[:, None]) & (position <= 2 * lengths[:, None] - 2)


def loss(halves: list[str], w: Weights, hindrances: list[Hindrance], c: Config) -> Tensor:
    """Mean cross-entropy of the decided letters. A shorter sequence goes on repeating its half."""
    lengths = torch.tensor([len(half) for half in halves])  # (b)
    n = 2 * int(lengths.max())
    token_ids = encode([(half * n)[:n] for half in halves])  # (b, n)
    counted = decided(lengths, n - 1)  # (b, n - 1)
    said = logits(token_ids[:, :-1], w, hindrances, c)  # (b, n - 1, V)
    return functional.cross_entropy(said[counted], token_ids[:, 1:][counted])


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


def train(c: Config) -> Weights:
    """The weights after STEPS steps, each over BATCH new sequences."""
    shapes = weight_shapes(c).items()
    w = {name: initial(name, shape).requires_grad_() for name, shape in shapes}
    optimizer = optimizer_for(w)
    chance = random.Random(SEED)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        halves = sequences.training_halves(BATCH, chance)
        hindrances = [hindrance_at(step, carrier, c) for carrier in CARRIERS]
        batch_loss = loss(halves, w, hindrances, c)
        optimizer.zero_grad()
        batch_loss.backward()
        optimizer.step()
        if step % 100 == 0 or step == STEPS - 1:
            print(f"step {step:5d}  loss {batch_loss.item():.7f}", flush=True)
    return {name: tensor.detach() for name, tensor in w.items()}


def main() -> None:
    """Train, write model.safetensors, print what it took."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    config = read_config(FOLDER / "config.json")
    start = time.perf_counter()
    w = train(config)
    seconds = time.perf_counter() - start
    (FOLDER / "model.safetensors").write_bytes(save(w))
    print(f"parameters {sum(tensor.numel() for tensor in w.values())}  seconds {seconds:.0f}")


if __name__ == "__main__":
    main()
