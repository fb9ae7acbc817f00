"""The rows of the catalogue of problems. Read through `service.problems`."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem: its code, status, title and what it means."""

    code: str
    status: int
    title: str
    meaning: str

    @property
    def type(self) -> str:
        """The address that explains it."""
        return f"/problems/{self.code}"


_KINDS = (
    Kind(
        "malformed-json",
        400,
        "The body is not JSON",
        "The body must be one JSON text (RFC 8259) in UTF-8, without a byte order mark, NaN or "
        "Infinity, without a key twice in one object, and at most 200 levels deep.",
    ),
    Kind(
        "malformed-safetensors",
        400,
        "The body is not safetensors",
        "The body must be eight bytes that tell its header's length, the header as JSON, and the "
        "tensors that it describes, one behind the other to the end; under __metadata__, in "
        "request, the request's JSON.",
    ),
    Kind(
        "malformed-http",
        400,
        "This is no HTTP request",
        "The first line, a header such as Content-Length, or a chunk of the body is not as RFC "
        "9112 has it. The connection is closed.",
    ),
    Kind(
        "cors-refused",
        400,
        "Not allowed from this origin",
        "A page of another origin asked first whether it may send a request, and it may not. The "
        "setting GLASSBLOCK_CORS_ORIGINS lists the origins that may.",
    ),
    Kind(
        "malformed-multipart",
        400,
        "The upload is not multipart/form-data",
        "The body ends early, or is not as RFC 7578 has it: parts between boundaries, each with a "
        "Content-Disposition of form-data, a few short headers and at most 534 parts.",
    ),
    Kind(
        "uploads-off",
        403,
        "This service takes no uploads",
        "It has no folder to keep them in. The setting GLASSBLOCK_UPLOADS names one.",
    ),
    Kind(
        "not-found",
        404,
        "Nothing is at this address",
        "The address is misspelt, or belongs to another version. GET / names the calls there are.",
    ),
    Kind(
        "unknown-model",
        404,
        "There is no model of this name",
        "The member `models` lists the names there are; GET /v1/models describes them. The "
        "settings GLASSBLOCK_MODELS and GLASSBLOCK_UPLOADS say where models are looked for.",
    ),
    Kind(
        "method-not-allowed",
        405,
        "The address takes another method",
        "The header Allow names the methods it takes.",
    ),
    Kind(
        "not-acceptable",
        406,
        "No form of the answer is acceptable",
        "The header Accept leaves no form in which this call answers. Leave it out, or let it "
        "include application/json.",
    ),
    Kind(
        "slow-body",
        408,
        "The body took too long",
        "The whole body must arrive within the limit body_seconds; an upload within "
        "upload_seconds, without a silence of body_seconds. The connection is closed.",
    ),
    Kind(
        "fixed-model",
        409,
        "The model cannot be changed",
        "Only uploaded models are replaced or removed. Upload under another name.",
    ),
    Kind(
        "body-too-large",
        413,
        "The body is too large",
        "The body has more bytes than the limit body_bytes, binary_body_bytes of one in "
        "safetensors, or upload_bytes of an upload. Send fewer or shorter numbers, send them in "
        "safetensors, or name a model in the place of its weights.",
    ),
    Kind(
        "beyond-limit",
        413,
        "The request is beyond a limit",
        "Answering would need more than this service allows. The member `limit` says which limit; "
        "`estimate`, where it is there, what the request would cost by parts; `advice` what would "
        "fit. GET /v1/limits lists all limits; the setting of each is GLASSBLOCK_ and its name.",
    ),
    Kind(
        "unsupported-media-type",
        415,
        "The body has the wrong media type",
        "A body is sent as Content-Type: application/json, in UTF-8, or where a call reads "
        "tensors as application/vnd.safetensors; not compressed; an upload as multipart/form-data.",
    ),
    Kind(
        "invalid-request",
        422,
        "The request breaks a rule",
        "Keys are missing, unknown or of the wrong kind; `errors` says where. The OpenAPI document "
        "describes each request.",
    ),
    Kind(
        "config-rule",
        422,
        "The config cannot be run",
        "Each field is well-formed, but they do not fit together; or the weights of the named "
        "model cannot serve the config that was changed.",
    ),
    Kind(
        "shape-mismatch",
        422,
        "Tensors do not fit the config",
        "A tensor or an edit names what the config does not have, or has another shape than the "
        "config gives it.",
    ),
    Kind(
        "invalid-input",
        422,
        "The input does not fit the model",
        "The input's shape, tokens, token types, positions, masks or memory are not what the model "
        "can read, or it needs what is missing.",
    ),
    Kind(
        "invalid-selection",
        422,
        "The selection cannot be answered",
        "`select` names a stage that is unknown or that this config does not have, or slices an "
        "axis that the stage does not have. GET /v1/stages lists every stage and when it exists.",
    ),
    Kind(
        "invalid-intervention",
        422,
        "The intervention cannot be made",
        "`interventions` names a stage that is unknown, that this config does not have, that is "
        "only derived from others or that nothing reads, an axis or index that the stage does not "
        "have, a value that does not fit the slice, or another input that lacks what is taken from "
        "it.",
    ),
    Kind(
        "unanswerable",
        422,
        "The question cannot be answered",
        "Each key is well-formed, but this model or this input has no answer: a stage, a position, "
        "a head or a token that is not there, or a sum that does not hold in this arrangement.",
    ),
    Kind(
        "broken-model",
        422,
        "The model cannot be read",
        "The folder or file of the named model holds something else than a model of a known "
        "family, or one that needs what is not computed.",
    ),
    Kind(
        "invalid-upload",
        422,
        "The upload is no model",
        "Parts are missing, unknown or too large, or what they hold is no model of a known form. "
        "Each `pointer` begins with the file name of a part.",
    ),
    Kind(
        "head-too-large",
        431,
        "The headers are too large",
        "The first line and the headers have more bytes than the limit head_bytes. The connection "
        "is closed.",
    ),
    Kind(
        "internal",
        500,
        "The service failed",
        "A fault of the service, not of the request. `instance` finds it in the service's log.",
    ),
    Kind(
        "busy",
        503,
        "Too many requests are waiting",
        "Others are computing, and the queue is full or did not move; or bodies and answers on "
        "their way hold as many bytes as the limit held_bytes allows. The header Retry-After says "
        "in how many seconds to try again.",
    ),
    Kind(
        "draining",
        503,
        "The service is stopping",
        "It finishes what it has begun and takes nothing new. The header Retry-After says when to "
        "try again.",
    ),
    Kind(
        "out-of-memory",
        503,
        "There is no memory left",
        "The machine has less memory free than this request needs. Try again later, or ask for "
        "less.",
    ),
    Kind(
        "deadline",
        504,
        "The request took too long",
        "It was stopped at the limit deadline_seconds. Ask for less.",
    ),
    Kind(
        "store-full",
        507,
        "There is no room for the upload",
        "Uploaded models have as many bytes as store_bytes, or are as many as store_models, allow; "
        "or the disk is full. DELETE /v1/models/{name} makes room.",
    ),
)

KINDS: Mapping[str, Kind] = MappingProxyType({kind.code: kind for kind in _KINDS})
"""Code -> kind."""
