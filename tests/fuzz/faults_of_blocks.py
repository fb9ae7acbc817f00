"""Faults of attention, ffn, norms, and of how they stand to one another and to a memory."""

from fuzz.breaking import OfConfig, is_parallel, part
from fuzz.parts import Drawn, has_gate
from fuzz.resolving import resolved


def heads_that_do_not_divide(config: Drawn) -> str | None:
    if config["attention"].get("kind") == "none":
        return None
    config["attention"].pop("d_head", None)
    part(config, "attention", n_heads=config["d_model"] + 1, n_kv_heads=1)
    config.pop("layers", None)
    if config.get("position", {}).get("kind") == "rope":
        config["position"] = {"kind": "none"}
    return "attention/n_heads"


def groups_that_do_not_divide(config: Drawn) -> str | None:
    if config["attention"].get("kind") == "none":
        return None
    part(config, "attention", n_kv_heads=config["attention"]["n_heads"] + 1)
    return "attention/n_kv_heads"


def field_of_another_kind_of_attention(config: Drawn) -> str | None:
    if config["attention"].get("kind") != "none":
        return None
    part(config, "attention", sinks=False)
    return "attention/sinks"


def nothing_in_a_block(config: Drawn) -> str | None:
    if is_parallel(config) or resolved(config)["cross_attention"]:
        return None
    config["attention"], config["ffn"] = {"kind": "none"}, {"kind": "none"}
    config.pop("layers", None)
    if config.get("position", {}).get("kind") in ("rope", "alibi", "t5_bias"):
        del config["position"]
    return "ffn/kind"


def gate_bias_without_a_gate(config: Drawn) -> str | None:
    if has_gate(config.get("ffn", {})) or resolved(config)["ffn"]["kind"] == "none":
        return None
    part(config, "ffn", bias={"gate": True})
    return "ffn/bias/gate"


def expert_of_no_mixture(config: Drawn) -> str | None:
    if resolved(config)["ffn"]["kind"] not in ("mlp", "gated"):
        return None
    part(config, "ffn", top_k=1)
    return "ffn/top_k"


def mixture_of_no_experts(config: Drawn) -> str | None:
    if resolved(config)["ffn"]["kind"] != "moe":
        return None
    del config["ffn"]["n_experts"]
    return "ffn/n_experts"


def more_chosen_than_there_are(config: Drawn) -> str | None:
    if resolved(config)["ffn"]["kind"] != "moe":
        return None
    config["ffn"]["top_k"] = config["ffn"]["n_experts"] + 1
    return "ffn/top_k"


def gate_of_no_shared_expert(config: Drawn) -> str | None:
    if resolved(config)["ffn"]["kind"] != "moe":
        return None
    part(config, "ffn", d_shared=0, shared_gate=True)
    return "ffn/shared_gate"


def without_norms(config: Drawn) -> None:
    config["norm"] = {"kind": "none"}
    config["attention"].pop("qk_norm", None)
    for name in ("final_norm", "embed_norm", "mlm_head"):
        config.pop(name, None)


def placement_of_no_norm(config: Drawn) -> str | None:
    without_norms(config)
    config["norm"]["placement"] = "post"
    return "norm/placement"


def final_norm_of_no_norm(config: Drawn) -> str | None:
    without_norms(config)
    config["final_norm"] = True
    return "final_norm"


def norm_of_an_embedding_without_norms(config: Drawn) -> str | None:
    without_norms(config)
    config["embed_norm"] = True
    return "embed_norm"


def norm_of_queries_without_norms(config: Drawn) -> str | None:
    if config["attention"].get("kind") == "none":
        return None
    without_norms(config)
    part(config, "attention", qk_norm="head")
    return "attention/qk_norm"


def shared_norm_of_parts_in_a_row(config: Drawn) -> str | None:
    if is_parallel(config) or resolved(config)["norm"]["kind"] == "none":
        return None
    part(config, "norm", shared=True)
    return "norm/shared"


def bias_of_a_norm_that_has_none(config: Drawn) -> str | None:
    if resolved(config)["norm"]["kind"] != "rmsnorm":
        return None
    part(config, "norm", bias=False)
    return "norm/bias"


def parallel_parts_with_norms_behind(config: Drawn) -> str | None:
    if not is_parallel(config) or resolved(config)["norm"]["kind"] == "none":
        return None
    part(config, "norm", placement="sandwich")
    return "topology"


def parallel_parts_of_one(config: Drawn) -> str | None:
    if resolved(config)["ffn"]["kind"] != "none" or config.get("norm", {}).get("placement"):
        return None
    config["topology"] = "parallel"
    return "topology"


def memory_beside_parallel_parts(config: Drawn) -> str | None:
    if not is_parallel(config):
        return None
    config["cross_attention"] = True
    return "cross_attention"


def memory_with_norms_behind(config: Drawn) -> str | None:
    whole = resolved(config)
    if not whole["cross_attention"] or whole["norm"]["kind"] == "none":
        return None
    part(config, "norm", placement="output")
    return "cross_attention"


def encoder_that_nothing_reads(config: Drawn) -> str | None:
    if config.get("encoder") is None:
        return None
    config["cross_attention"] = False
    return "encoder"


def encoder_of_another_width(config: Drawn) -> str | None:
    if config.get("encoder") is None:
        return None
    part(config, "encoder", d_model=2 * config["d_model"])
    attention = config["encoder"]["attention"]
    if attention.get("kind") != "none":
        attention.setdefault("d_head", config["d_model"] // attention["n_heads"])
    return "encoder/d_model"


def encoder_whose_groups_do_not_divide(config: Drawn) -> str | None:
    attention = config.get("encoder", {}).get("attention", {"kind": "none"})
    if attention.get("kind") == "none":
        return None
    attention["n_kv_heads"] = attention["n_heads"] + 1
    return "encoder/attention/n_kv_heads"


ALL: tuple[OfConfig, ...] = (
    heads_that_do_not_divide,
    groups_that_do_not_divide,
    field_of_another_kind_of_attention,
    nothing_in_a_block,
    gate_bias_without_a_gate,
    expert_of_no_mixture,
    mixture_of_no_experts,
    more_chosen_than_there_are,
    gate_of_no_shared_expert,
    placement_of_no_norm,
    final_norm_of_no_norm,
    norm_of_an_embedding_without_norms,
    norm_of_queries_without_norms,
    shared_norm_of_parts_in_a_row,
    bias_of_a_norm_that_has_none,
    parallel_parts_with_norms_behind,
    parallel_parts_of_one,
    memory_beside_parallel_parts,
    memory_with_norms_behind,
    encoder_that_nothing_reads,
    encoder_of_another_width,
    encoder_whose_groups_do_not_divide,
)
