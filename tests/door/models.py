"""Names of models there are not, what a named model does not take, and what does not suit it."""

from functools import partial

from door.case import LETTERS, MARK, NUMBER, Case, asked

_NAME = "/model/name"
_unknown = partial(asked, base=LETTERS, faults="unknown_model", problem="unknown-model",
                   says="There is no model of this name.")  # fmt: skip
NAMES = [
    _unknown(f"model {name[:40]!r}", {_NAME: name})
    for name in (
        MARK, "letter", "letter-sorted", "Letter-Sort", "letter_sort", "letter-sort ",
        " letter-sort", "letter-sort\0", "letter-sort\n", "letter-sort/", "letter-sort/config.json",
        "./letter-sort", ".", "..", "/", "\\", "../models/letter-sort", "../../etc/passwd",
        "/etc/passwd", "..\\..\\x", "C:\\x", "%2e%2e%2f", "\uff0e\uff0e/", "file:///etc/passwd",
        "~", "*", "?",
        "letter-sort;ls", "$(id)", "{0}", "%s", "None", "null", "0", "l\u0435tter-sort",
        "letter\u2010sort", "\u202eletter-sort", "\U0001f600", "x" * 128,
    )
]  # fmt: skip

_weights = partial(asked, base=LETTERS, faults={"/model": "init_with_name"},
                   says="A named model brings its weights: leave init and seed out.")  # fmt: skip
WEIGHTS = [
    *(_weights(f"name and init {word}", {"/model/weights/init": word})
      for word in ("seeded", "identity", "zeros")),
    *(_weights(f"name and seed {seed}", {"/model/weights/seed": seed}) for seed in (0, 7)),
    _weights("name, init and seed", {"/model/weights": {"init": "seeded", "seed": 1}}),
    *(asked(f"seed of init {word}", {"/model/weights": {"init": word, "seed": 0}},
            {"/model/weights": "seed_unused"}, says="seed belongs to init = seeded.")
      for word in ("identity", "zeros")),
    asked("config beside a name there is not", {"/model/name": MARK},
          {"/model/name": "unknown_model"}, "unknown-model"),
    asked("tensor a named model does not have", {"/model/weights/tensors": {MARK: [NUMBER]}},
          {f"/model/weights/tensors/{MARK}": "unknown_tensor"}, "shape-mismatch", base=LETTERS),
]  # fmt: skip

_CONFIG = "/model/config"


def _serve(
    name: str, config: dict[str, object], at: str, says: str = "", of: str = "letter-sort"
) -> Case:
    """A change of a stored model's config that its weights cannot serve."""
    faults = {f"{_CONFIG}{at}": "weights_cannot_serve"}
    changes = {"/model/name": of, _CONFIG: config}
    return asked(name, changes, faults, "config-rule", base=LETTERS, says=says)


def _changed(
    name: str, config: object, at: str, code: str, says: str = "", problem: str = "invalid-request"
) -> Case:
    return asked(
        name, {_CONFIG: config}, {f"{_CONFIG}{at}": code}, problem, base=LETTERS, says=says
    )


_EXPERTS = {"kind": "moe", "n_experts": 4, "top_k": 2}
CHANGES = [
    _serve("more blocks than are stored", {"n_layers": 4}, "/n_layers",
           "n_layers = 4 needs blocks.3.attn.W_Q (3, 48, 16), blocks.3.attn.W_K (3, 48, 16), "),
    _serve("another width", {"d_model": 24}, "/d_model",
           "d_model = 24 needs embed.W_E (3, 24), pos_embed.W_pos ("),
    _serve("another number of heads", {"attention": {"n_heads": 6}}, "/attention/n_heads",
           "in another shape than this model has"),
    _serve("fewer key heads", {"attention": {"n_kv_heads": 1}}, "/attention/n_kv_heads"),
    _serve("wider heads", {"attention": {"d_head": 32}}, "/attention/d_head"),
    _serve("sinks", {"attention": {"sinks": True}}, "/attention/sinks",
           "attention.sinks = true needs blocks.0-2.attn.sinks (3), which this model does not "
           "have; give each whole in weights.tensors."),
    _serve("gate", {"ffn": {"kind": "gated"}}, "/ffn/kind", "ffn.kind = gated needs"),
    _serve("wider ffn", {"ffn": {"d_ff": 100}}, "/ffn/d_ff"),
    _serve("more positions", {"position": {"n_positions": 12}}, "/position/n_positions",
           "position.n_positions = 12 needs pos_embed.W_pos (12, 48) in another shape"),
    _serve("buckets", {"position": {"kind": "t5_bias"}}, "/position/kind", "needs rel_bias.W_rel"),
    _serve("learned positions of the other model", {"position": {"kind": "learned",
           "n_positions": 8}}, "/position/kind",
           "position.kind = learned needs pos_embed.W_pos (8, 64), which this model does not have; "
           "give it whole in weights.tensors.", of="induction"),
    _serve("larger vocabulary", {"vocab": 4}, "/vocab", "vocab = 4 needs embed.W_E"),
    _serve("readout of its own", {"tied": False}, "/tied",
           "tied = false needs unembed.W_U (48, 3)"),
    _serve("types", {"token_types": 2}, "/token_types", "needs type_embed.W_type"),
    _serve("head of another task", {"mlm_head": True}, "/mlm_head", "needs mlm_head.W"),
    _serve("cross-attention", {"cross_attention": True}, "/cross_attention"),
    _serve("encoder", {"encoder": {"attention": {"n_heads": 3}}}, "/encoder"),
    asked("experts", {_CONFIG: {"ffn": _EXPERTS}},
          {f"{_CONFIG}/ffn/kind": "weights_cannot_serve"}, "config-rule", base=LETTERS, more=True),
    asked("tensor given in another shape than the new config's",
          {_CONFIG: {"tied": False}, "/model/weights/tensors": {"unembed.W_U": [NUMBER]}},
          {"/model/weights/tensors/unembed.W_U": "shape_mismatch"}, "shape-mismatch", base=LETTERS),
    asked("tensor that the changed config does not read",
          {_CONFIG: {"position": {"kind": "none"}},
           "/model/weights/tensors": {"pos_embed.W_pos": [[NUMBER] * 48] * 11}},
          {"/model/weights/tensors/pos_embed.W_pos": "unknown_tensor"}, "shape-mismatch",
          base=LETTERS, says="exists where position.kind is learned"),
    _changed("field of another kind", {"position": {"theta": 10}}, "/position/theta", "config_rule",
             "position.kind = learned has no theta", "config-rule"),
    _changed("field that the new kind does not have",
             {"position": {"kind": "rope", "n_positions": 11}}, "/position/n_positions",
             "config_rule", "position.kind = rope has no n_positions", "config-rule"),
    _changed("shared norm of a sequential block", {"norm": {"shared": True}}, "/norm/shared",
             "config_rule", "topology = parallel", "config-rule"),
    _changed("layers of another number", {"layers": [{}]}, "/layers", "config_rule", "",
             "config-rule"),
    _changed("no number of experts", {"ffn": {"kind": "moe", "top_k": 1}}, "/ffn/n_experts",
             "missing", "n_experts is needed", "config-rule"),
    _changed("unknown key of a change", {MARK: NUMBER}, f"/{MARK}", "extra_forbidden"),
    _changed("text for a change", MARK, "", "model_type", "An object is due here."),
    _changed("more blocks than are allowed", {"n_layers": 65}, "/n_layers", "beyond_limit", "",
             "beyond-limit"),
]  # fmt: skip
