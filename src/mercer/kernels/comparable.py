"""What makes kernels values: that two of them are equal exactly where their parameters are."""

from __future__ import annotations

from mercer.errors import InvalidInput, message

__all__ = ["require_value"]

DECORATE = "decorate it with @dataclass(frozen=True, repr=False), and give its parameters as annotated fields"


def require_value(kind: type, root: type) -> None:
    """Refuse a kernel's class, below `root`, with an `__init__` of its own whose parameters equality does not see.

    Copies by scikit-learn, searches and reports would take one of its kernels for another. Without parameters of its
    own a class needs no decorator.
    """
    for base in kind.__mro__[: kind.__mro__.index(root)]:
        own = vars(base)
        if "__init__" in own and not ("__dataclass_fields__" in own and "__eq__" in own):
            given = "its parameters are not fields of a dataclass that compares them, so that all its kernels are equal"
            raise InvalidInput(message(base.__name__, given, DECORATE))
