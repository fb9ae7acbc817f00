"""Activations as members of an answer."""

from compute.config import ModelConfig
from compute.sizing import architecture
from compute.sizing.formats import ActivationFormat
from compute.sizing.memory import activations
from compute.sizing.memory.activations import Peak, Training
from compute.sizing.vocabulary import Workload
from service.sizing import ledgers

View = dict[str, object]

NOTES = (
    "Totals are estimates of what an engine takes: exact for the tensors listed, and engines "
    "hold some longer, fuse some away, and add workspaces.",
    "Inference: the stream stands throughout; all tensors of a sublayer stand until it ends; an "
    "update is written over the sublayer's input, a pattern over its scores, hidden numbers over "
    "what they are made of.",
    "A materialised kernel writes all n · (past + n) pairs of each of h heads, masked ones and "
    "those outside windows too; flash writes none, and in training 4 bytes a head and row.",
    "A row of a mixture holds what its c chosen experts and the shared one hold.",
    "Latent attention makes keys and values of all positions from the latent ones.",
    "Training keeps up and hidden of an mlp, up, gate and hidden of a gated ffn; the logits in "
    "float32; no cache: cached and new_tokens play no part.",
    "selective leaves out the core of attention, from scores to mixture, full all but each "
    "block's input; live parts are made again for one block, the one that has most of them.",
)
EXCLUDED = (
    "Weights, gradients and cache.",
    "What is read, token ids and pixels, and position biases of scores.",
    "Means and scales of norms, indices of chosen experts.",
    "act(gate) of a gated ffn, which some frameworks keep as well: B·n·f·a more.",
    "pooler and classes, one row of each sequence.",
)


def view(config: ModelConfig, workload: Workload, form: ActivationFormat) -> View:
    """The member `activations`."""
    cached = architecture.caches(config)
    step = activations.decode_step(config, workload, form) if cached else None
    return {
        "bytes_per_number": form.bytes,
        "kernel": form.kernel,
        "dropout": form.dropout,
        "recompute": form.recompute,
        "inference": _peak(activations.inference_peak(config, workload, form)),
        "decode": None if step is None else _peak(step),
        "training": _training(activations.training(config, workload, form)),
        "symbols": _symbols(workload, form),
        "notes": list(NOTES),
        "excluded": list(EXCLUDED),
    }


def _peak(found: Peak) -> View:
    return {
        **ledgers.ledger(found.ledger),
        "moment": found.moment.id,
        "moments": [{"id": each.id, **ledgers.ledger(each.ledger)} for each in found.moments],
    }


def _training(found: Training) -> View:
    total = found.ledger
    return {
        **ledgers.ledger(total),
        "live": ledgers.amount(total.view("live"), "bytes", total.kind),
        "per_block": [
            {"id": block.id, "count": block.count, **ledgers.ledger(block.ledger)}
            for block in found.per_block
        ],
    }


def _symbols(workload: Workload, form: ActivationFormat) -> list[View]:
    behind = workload.cached + workload.tokens + workload.new
    return [
        {"letter": "a", "meaning": "bytes of a number", "value": form.bytes},
        {"letter": "T", "meaning": "cached + tokens + new_tokens", "value": behind},
    ]
