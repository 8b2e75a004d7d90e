"""What a Python source needs that an older Python lacks.

Syntax is what the parser says. Of what only fails when it runs: unions of types in places that are
evaluated, and the names and keyword arguments of the lists below, which are those that a client
library could be tempted to use.
"""

import ast

# The first version that has them.
_NAMES = {
    "BaseExceptionGroup": (3, 11),
    "ExceptionGroup": (3, 11),
    "ParamSpec": (3, 10),
    "Self": (3, 11),
    "StrEnum": (3, 11),
    "TaskGroup": (3, 11),
    "TypeAlias": (3, 10),
    "TypeGuard": (3, 10),
    "add_note": (3, 11),
    "aiter": (3, 10),
    "anext": (3, 10),
    "batched": (3, 12),
    "bit_count": (3, 10),
    "file_digest": (3, 11),
    "pairwise": (3, 10),
    "tomllib": (3, 11),
}
_KEYWORDS = {
    ("dataclass", "kw_only"): (3, 10),
    ("dataclass", "slots"): (3, 10),
    ("field", "kw_only"): (3, 10),
    ("zip", "strict"): (3, 10),
}
_UNIONS = (3, 10)


def _name(node):
    return getattr(node, "attr", None) or getattr(node, "id", None)


def _defers_annotations(tree):
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in tree.body
    )


def _annotations(node):
    found = (getattr(node, field, None) for field in ("annotation", "returns"))
    return [annotation for annotation in found if annotation is not None]


def _unions(node):
    """Every X | Y of an expression."""
    operations = (n for n in ast.walk(node) if isinstance(n, ast.BinOp))
    return [n for n in operations if isinstance(n.op, ast.BitOr)]


def _evaluated_unions(tree):
    deferred = _defers_annotations(tree)
    skipped = set()
    for node in ast.walk(tree):
        for annotation in _annotations(node):
            skipped.update(_unions(annotation))
            if not deferred:
                yield from _unions(annotation)
        if isinstance(node, ast.Call) and _name(node.func) in ("isinstance", "issubclass"):
            yield from (union for kind in node.args[1:] for union in _unions(kind))
    for union in set(_unions(tree)) - skipped:
        # Elsewhere it may be of numbers, but not with None.
        if any(isinstance(n, ast.Constant) and n.value is None for n in (union.left, union.right)):
            yield union


def _uses(tree):
    """(line, name or "function(keyword=)", first version) of what the lists above have."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            names = [_name(node)]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None)]
        else:
            names = []
        for name in names:
            if name in _NAMES:
                yield node.lineno, name, _NAMES[name]
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                use = (_name(node.func), keyword.arg)
                if use in _KEYWORDS:
                    yield node.lineno, "{}({}=)".format(*use), _KEYWORDS[use]


def newer_than(version, code):
    """[(line, what)] that Python `version`, a pair, does not have."""
    try:
        tree = ast.parse(code, feature_version=version)
    except SyntaxError as error:
        return [(error.lineno, error.msg)]
    found = {(line, what) for line, what, first in _uses(tree) if first > version}
    if version < _UNIONS:
        found |= {(n.lineno, "X | Y of types") for n in _evaluated_unions(tree)}
    return sorted(found)
