"""A formula with the numbers in it, worked out by Python's own arithmetic on fractions."""

import ast
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil

_POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_STEPS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a ** int(b),
}
_CALLS: Mapping[str, Callable[..., int | Fraction]] = {"min": min, "max": max, "ceil": ceil}


def evaluated(formula: str, letters: Mapping[str, int | Fraction] | None = None) -> Fraction:
    """The value of a formula, letters replaced by their numbers."""
    plain = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda m: "**" + m[0].translate(_POWERS), formula)
    tree = ast.parse(plain.replace("·", "*").replace("−", "-").strip(), mode="eval")
    return _value(tree.body, letters or {})


def _value(node: ast.AST, letters: Mapping[str, int | Fraction]) -> Fraction:
    if isinstance(node, ast.Constant):
        return Fraction(str(node.value))
    if isinstance(node, ast.Name):
        return Fraction(letters[node.id])
    if isinstance(node, ast.UnaryOp):
        return -_value(node.operand, letters)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, letters), _value(node.right, letters)
        return _STEPS[type(node.op)](left, right)
    assert isinstance(node, ast.Call), ast.dump(node)
    assert isinstance(node.func, ast.Name)
    return Fraction(_CALLS[node.func.id](*(_value(x, letters) for x in node.args)))
