"""Dry runs, and the same requests answered in every form."""

from collections.abc import Mapping
from typing import Any

import httpx2 as httpx
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from schemas.plan_answers import PlanAnswer, TracePlanAnswer
from service.forms.form import JSON, LINES, SAFETENSORS

Json = dict[str, Any]

FORMS: Mapping[str, tuple[str, Json]] = {
    "json": (JSON, {}),
    "base64": (JSON, {"encoding": "base64"}),
    "safetensors": (SAFETENSORS, {}),
    "lines": (LINES, {}),
}


def post(client: TestClient, asked: Json, form: str, call: str = "trace") -> httpx.Response:
    media, said = FORMS[form]
    headers = {"Accept": media}
    response = client.post(f"/v1/{call}", json={**asked, "format": said}, headers=headers)
    assert response.status_code == 200, response.text[:500]
    return response


def plan_of(client: TestClient, asked: Json, call: str = "trace", **format: object) -> Json:
    body = {**asked, "format": format, "dry_run": True}
    response = client.post(f"/v1/{call}", json=body)
    assert response.status_code == 200, response.text[:500]
    kind: type = TracePlanAnswer if call == "trace" else PlanAnswer
    answer: Json = TypeAdapter(kind).validate_json(response.content, strict=True)
    return answer["plan"]


LONG: Json = {
    "model": {"config": {"d_model": 32, "n_layers": 3, "attention": {"n_heads": 4}, "vocab": 99}},
    "input": {"token_ids": list(range(90))},
}

CHANGED: Json = {
    **LONG,
    "select": ["attn.pattern", {"name": "resid_post", "summary": True}, "ffn.hidden"],
    "interventions": [
        {"stage": "blocks.0.attn.z", "op": "patch", "from": {"token_ids": list(range(90))[::-1]}}
    ],
    "measures": [{"logit": 3}],
}
