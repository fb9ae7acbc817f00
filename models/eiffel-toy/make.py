"""Write the weights and the tokenizer of the article's three-token example.

    python models/eiffel-toy/make.py

Nothing is trained and nothing is random: every number below is the article's. The sizes
stand in config.json beside this file.
"""

from pathlib import Path

import numpy as np
from safetensors.numpy import save
from tokenizers import Tokenizer, models, pre_tokenizers

FOLDER = Path(__file__).resolve().parent
VOCABULARY = {"the": 0, "Eiffel": 1, "tower": 2}

# Coordinates: structure, Paris identity.
EMBEDDING = [[0, 0], [0, 1], [1, 0]]
SWAP = [[0, 1], [1, 0]]
IDENTITY = [[1, 0], [0, 1]]


def weights() -> dict[str, np.ndarray]:
    """The five tensors in float32: W_E (V, d); W_Q, W_K (h, d, k); W_V (h, d, v); W_O (h, v, d)."""
    one_head = {"W_Q": SWAP, "W_K": IDENTITY, "W_V": IDENTITY, "W_O": IDENTITY}
    attention = {
        f"blocks.0.attn.{name}": np.array([matrix], dtype=np.float32)
        for name, matrix in one_head.items()
    }
    return {"embed.W_E": np.array(EMBEDDING, dtype=np.float32), **attention}


def tokenizer() -> Tokenizer:
    """One token a word, split at white space; a word outside the vocabulary is an error."""
    words = Tokenizer(models.WordLevel(VOCABULARY))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return words


def main() -> None:
    """Write model.safetensors and tokenizer.json beside this file."""
    (FOLDER / "model.safetensors").write_bytes(save(weights()))
    tokenizer().save(str(FOLDER / "tokenizer.json"))


if __name__ == "__main__":
    main()
