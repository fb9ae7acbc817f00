"""BERT and its kind: post-norm encoders in which every position sees all."""

from schemas.presets.preset import Preset, Written

_MASKED = "With its masked-token head, without pooler and sentence head."
_POOLED = "The stack and its pooler."
_BUFFER = ", less its position_ids"


def _stack(d_model: int, n_layers: int, n_heads: int, vocab: int, **others: object) -> Written:
    """BERT's stack, no readout."""
    return {
        "d_model": d_model,
        "n_layers": n_layers,
        "attention": {"n_heads": n_heads, "mask": "full", "bias": True},
        "norm": {"placement": "post", "eps": 1e-12},
        "position": {"kind": "learned", "n_positions": 512},
        "token_types": 2,
        "embed_norm": True,
        "vocab": vocab,
        "readout": False,
        **others,
    }


def _bert(d_model: int, n_layers: int, n_heads: int, vocab: int, **others: object) -> Written:
    """With the head that reads masked tokens out."""
    head = {"tied": True, "mlm_head": True, "unembed_bias": True}
    stack = _stack(d_model, n_layers, n_heads, vocab, **others)
    return {**{name: said for name, said in stack.items() if name != "readout"}, **head}


def _pooled(
    name: str, words: str, source: str, shape: tuple[int, int, int], vocab: int, count: int
) -> Preset:
    written = _stack(*shape, vocab, pooler=True)
    return Preset(name, f"{words} {_POOLED}", f"config.json of {source}", written, count)


_KERAS = "; count: keras-hub"
_BASE = (768, 12, 12)

BERT = (
    Preset(
        "bert-base",
        f"BERT base, uncased: post-norm, every position sees all. {_MASKED}",
        "config.json of google-bert/bert-base-uncased",
        _bert(*_BASE, 30522),
        109_514_298,
    ),
    Preset(
        "bert-tiny",
        f"BERT of 2 blocks of 2 heads. {_MASKED}",
        "google/bert_uncased_L-2_H-128_A-2",
        _bert(128, 2, 2, 30522),
    ),
    _pooled(
        "bert-base-uncased",
        "BERT base, uncased, 12 blocks.",
        f"google-bert/bert-base-uncased{_KERAS}",
        _BASE,
        30522,
        109_482_240,
    ),
    _pooled(
        "bert-base-cased",
        "BERT base, cased, 12 blocks.",
        f"google-bert/bert-base-cased{_KERAS}",
        _BASE,
        28996,
        108_310_272,
    ),
    _pooled(
        "bert-large-uncased",
        "BERT large, uncased, 24 blocks.",
        f"google-bert/bert-large-uncased{_KERAS}",
        (1024, 24, 16),
        30522,
        335_141_888,
    ),
    _pooled(
        "bert-tiny-uncased",
        "BERT of 2 blocks of 2 heads.",
        f"google/bert_uncased_L-2_H-128_A-2{_KERAS}",
        (128, 2, 2),
        30522,
        4_385_920,
    ),
    _pooled(
        "bert-base-multilingual-cased",
        "BERT base of 104 languages, cased.",
        f"google-bert/bert-base-multilingual-cased{_KERAS}",
        _BASE,
        119547,
        177_853_440,
    ),
    Preset(
        "bert-multilingual-heads",
        "BERT base of 104 languages, cased, with its heads. Pooler, masked tokens and sentences.",
        "config.json of google-bert/bert-base-multilingual-cased; count: the hub's safetensors",
        _bert(*_BASE, 119547, pooler=True, classes=2),
        178_566_653,
    ),
    Preset(
        "distilbert-base-uncased",
        "DistilBERT: half of BERT base, no token types. The stack, no head.",
        f"config.json of distilbert/distilbert-base-uncased{_KERAS}",
        _stack(768, 6, 12, 30522, token_types=0),
        66_362_880,
    ),
    Preset(
        "xlm-roberta-base",
        f"XLM-R base: BERT's stack. {_POOLED} Two rows of its position table belong to none.",
        "config.json of FacebookAI/xlm-roberta-base; count: intfloat/multilingual-e5-base",
        _stack(
            *_BASE,
            250002,
            norm={"placement": "post", "eps": 1e-5},
            position={"kind": "learned", "n_positions": 514},
            token_types=1,
            pooler=True,
        ),
        278_043_648,
    ),
    _pooled(
        "minilm-l6",
        "all-MiniLM-L6-v2: BERT's stack, 6 blocks.",
        f"sentence-transformers/all-MiniLM-L6-v2; count: the hub's safetensors{_BUFFER}",
        (384, 6, 12),
        30522,
        22_713_216,
    ),
    _pooled(
        "bge-small-en-v1.5",
        "bge-small: MiniLM's stack, 12 blocks.",
        f"BAAI/bge-small-en-v1.5; count: the hub's safetensors{_BUFFER}",
        (384, 12, 12),
        30522,
        33_360_000,
    ),
    Preset(
        "albert-base-v2",
        f"ALBERT base: one block gone through 12 times. A narrow embedding. {_POOLED}",
        f"config.json of albert/albert-base-v2{_KERAS}",
        _stack(
            *_BASE,
            30000,
            ffn={"activation": "gelu_tanh"},
            d_embed=128,
            distinct_blocks=1,
            pooler=True,
        ),
        11_683_584,
    ),
    Preset(
        "electra-small",
        "ELECTRA small, the discriminator: a narrow embedding. The stack, no head.",
        "config.json of google/electra-small-discriminator",
        _stack(256, 12, 4, 30522, d_embed=128),
    ),
)
