"""Requests to learn from, a module a call: shown in the OpenAPI document, run by the tests."""
