"""ViT: BERT's blocks, pre-norm, over patches of an image."""

from schemas.presets.preset import Preset, Written


def _vit(d_model: int, n_layers: int, n_heads: int, patch_size: int, classes: int) -> Written:
    return {
        "d_model": d_model,
        "n_layers": n_layers,
        "attention": {"n_heads": n_heads, "mask": "full", "bias": True},
        "norm": {"eps": 1e-6},
        "position": {"kind": "learned", "n_positions": (224 // patch_size) ** 2 + 1},
        "final_norm": True,
        "patches": {"image_size": 224, "patch_size": patch_size},
        "classes": classes,
    }


def _preset(name: str, words: str, written: Written, count: int, counted: str) -> Preset:
    meaning = f"{words} of {written['patches']['patch_size']}² pixels."
    source = f"arXiv:2010.11929, Table 1; count: {counted}"
    return Preset(name, meaning, source, written, count)


_TORCH = "torchvision's num_params"

VIT = (
    _preset(
        "vit-b-16",
        "ViT base, 1000 classes: patches",
        _vit(768, 12, 12, 16, 1000),
        86_567_656,
        _TORCH,
    ),
    _preset(
        "vit-b-32",
        "ViT base, 1000 classes: patches",
        _vit(768, 12, 12, 32, 1000),
        88_224_232,
        _TORCH,
    ),
    _preset(
        "vit-h-14",
        "ViT huge, 1000 classes: patches",
        _vit(1280, 32, 16, 14, 1000),
        632_045_800,
        _TORCH,
    ),
    _preset(
        "vit-b-16-backbone",
        "ViT base, no classes: patches",
        _vit(768, 12, 12, 16, 0),
        85_798_656,
        "keras-hub",
    ),
)
