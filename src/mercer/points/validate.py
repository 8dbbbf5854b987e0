"""Checks of rows: every kind of table of numbers becomes an array or a CSR matrix, or is refused with advice."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from numbers import Number
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse

from mercer.engine import backend
from mercer.errors import InvalidInput, message
from mercer.numerals import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = [
    "as_rows", "columns_without_numbers", "given_back", "is_away", "is_torch", "on_host", "require_collection",
    "require_table", "same_columns", "same_names", "squarable",
]  # fmt: skip

LARGEST = 1e150
"""The largest target: the sum of a few million squares of it is a number."""

KeepFloat = Literal["keep-float"]


def as_rows(
    X: ArrayLike | Any, *, dtype: KeepFloat | DTypeLike = "keep-float", accept_sparse: bool = True, who: str = "X"
) -> Any:
    """X as rows of finite numbers: a C-contiguous 2-D array or a CSR matrix, float32 or float64.

    A PyTorch tensor is returned unchanged, and so are rows that already have this form.

    Parameters
    ----------
    X : list, array, sparse matrix, pandas or polars data frame, PyTorch tensor
        float16 becomes float32; integers, booleans and long doubles float64.
    dtype : "keep-float", float32 or float64
        The dtype of the result; by default float32 stays float32 and all else becomes float64.
    accept_sparse : bool
        Whether to accept sparse matrices. Those of other formats become CSR.
    who : str
        The name in error messages.

    Raises
    ------
    InvalidInput
        For text, objects, dates, complex numbers, missing or infinite values, rows whose squared norms overflow, and
        anything that is not two-dimensional with at least one row and one column.

    Examples
    --------
    >>> as_rows([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    >>> as_rows([1.0, 2.0])
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: X: has 1 dimension, shape (2,); reshape it, to (-1, 1) if it is one column or (1, -1) \
if it is one row.
    """
    if is_torch(X):
        _check_tensor(X, who)
        return X
    if scipy.sparse.issparse(X):
        if not accept_sparse:
            raise InvalidInput(message(who, "is sparse, which this kernel cannot read", "give X.toarray()"))
        given = _csr(X, who)
        rows = _converted(given, dtype, who)
        _check_values(given.data, rows, who)
        return rows
    given = _dense(X, who)
    rows = _converted(given, dtype, who)
    _check_values(given, rows, who)
    return rows


def same_columns(X: Any, Z: Any, who: str = "kernel") -> None:
    """Raise InvalidInput if two tables have different numbers of columns.

    Parameters
    ----------
    X : array of shape (n, d)
    Z : array of shape (m, d)
    who : str
        The caller, which the message names.

    Raises
    ------
    InvalidInput
        If the numbers of columns differ.

    Examples
    --------
    >>> same_columns(np.ones((3, 2)), np.ones((4, 2)))
    >>> same_columns(np.ones((3, 2)), np.ones((4, 1)))
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: kernel: X has 2 columns and Z has 1; give both the same columns, in the same order.
    """
    if X.shape[1] != Z.shape[1]:
        given = f"X has {counted(X.shape[1], 'column')} and Z has {Z.shape[1]}"
        raise InvalidInput(message(who, given, "give both the same columns, in the same order"))


def same_names(first: Sequence[str] | None, second: Sequence[str] | None, who: str = "kernel") -> None:
    """Raise InvalidInput if two tables have columns of the same names in different orders.

    Columns of other names are taken as they come: x₁ of one table may well be compared with x₂ of another.

    Parameters
    ----------
    first, second : sequence of str, or None for a table without names
    who : str
        The caller, which the message names.

    Raises
    ------
    InvalidInput
        If the orders differ.

    Examples
    --------
    >>> same_names(["a", "b"], ["a", "b"]), same_names(["a", "b"], ["c", "d"]), same_names(["a", "b"], None)
    (None, None, None)
    >>> same_names(["a", "b"], ["b", "a"])
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: kernel: two tables with the column 'a' in different places; give both in one order.
    """
    one, other = list(first or ()), list(second or ())
    if one != other and sorted(one) == sorted(other):
        moved = next(name for name, there in zip(one, other, strict=True) if name != there)
        given = f"two tables with the column {moved!r} in different places"
        raise InvalidInput(message(who, given, "give both in one order"))


def is_torch(X: object) -> bool:
    """Whether X is a PyTorch tensor. The check does not import PyTorch.

    Parameters
    ----------
    X : object

    Examples
    --------
    >>> is_torch(np.ones(3))
    False
    """
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


HOST = (1, 3)
"""DLPack's numbers of memory that the processor reads: its own, and that which CUDA has pinned."""


def is_away(X: Any) -> bool:
    """Whether X is an array of another library that the processor cannot read."""
    if isinstance(X, np.ndarray | np.generic) or not (is_torch(X) or hasattr(X, "__dlpack_device__")):
        return False
    return bool(X.device.type != "cpu" if is_torch(X) else X.__dlpack_device__()[0] not in HOST)


def given_back(values: Any, like: Any) -> Any:
    """Numbers as an array of the library of `like`, on the device where the engine computes.

    Parameters
    ----------
    values : array
    like : array of another library

    Examples
    --------
    >>> given_back(np.ones(2), np.zeros(1))
    array([1., 1.])
    """
    own = getattr(like, "__array_namespace__", None)
    library = own() if own is not None else sys.modules[type(like).__module__.partition(".")[0]]
    return library.from_dlpack(backend.engine().exported(np.asarray(values)))


def on_host(X: Any, who: str) -> Any:
    """X as an array of NumPy if it is one of another library's, by DLPack or the tensor's own way; else X unchanged.

    An array in the memory of the processor is not copied. One on a device is copied if `mercer.use("cuda")` says that
    the device computes, and refused otherwise.

    Parameters
    ----------
    X : object
    who : str
        The caller, which messages name.

    Raises
    ------
    InvalidInput
        For an array on a device that is not in use, and for one whose numbers NumPy does not have.

    Examples
    --------
    >>> on_host([1.0, 2.0], "SVC")
    [1.0, 2.0]
    """
    if isinstance(X, np.ndarray | np.generic) or not (is_torch(X) or hasattr(X, "__dlpack_device__")):
        return X
    if type(X).__module__.partition(".")[0] == "pyarrow":  # its DLPack is an old one, and carries no texts
        return np.asarray(X)
    away = is_away(X)
    if away and not backend.device_in_use():
        given = f"an array on the device {getattr(X, 'device', 'of its library')}"
        raise InvalidInput(
            message(who, given, 'copy it to the host first, or let the device compute: mercer.use("cuda")')
        )
    try:
        if is_torch(X):
            X = X.detach().cpu().resolve_conj().resolve_neg()
            return (X.float() if X.dtype.is_floating_point and X.dtype.itemsize < 4 else X).numpy()
        return np.from_dlpack(X, device="cpu") if away else np.from_dlpack(X)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        if hasattr(X, "__array__") and not is_torch(X):
            return np.asarray(X)  # of Arrow's texts and missing values, for one
        given = f"a {type(X).__name__} that NumPy cannot read ({str(error).splitlines()[0]})"
        raise InvalidInput(message(who, given, "give a dense array of numbers of up to 64 bits")) from error


ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__dlpack__", "__dataframe__", "__arrow_c_stream__", "to_numpy")
"""Arrays, tensors, series and data frames of all libraries have at least one of these attributes."""


def is_array_like(X: object) -> bool:
    """Whether X is an array, a tensor or a data frame of some library.

    >>> is_array_like(np.ones(3)), is_array_like([1.0]), is_array_like({1.0})
    (True, False, False)
    """
    if scipy.sparse.issparse(X) or isinstance(X, memoryview):
        return True
    return any(hasattr(X, name) for name in ARRAY_PROTOCOLS)


def require_collection(X: object, who: str) -> None:
    """Raise InvalidInput unless X is an array, a list or another sequence.

    Dicts and sets have no order that matches the targets, and an iterator can be read only once.

    Parameters
    ----------
    X : object
    who : str
        The caller, which messages name.

    Raises
    ------
    InvalidInput
        For dicts, sets, iterators, and anything else that has no order, and for masked entries.

    Examples
    --------
    >>> require_collection({"a": 1}, "SVC")
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: SVC: rows of type dict; give its values as a list, in the order of the targets.
    """
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise InvalidInput(message(who, "has masked entries", "fill them in, X.filled(...), or leave those rows out"))
    if is_array_like(X) or (isinstance(X, Sequence) and not isinstance(X, str | bytes)):
        return
    given = f"rows of type {type(X).__name__}"
    if isinstance(X, Mapping):
        raise InvalidInput(message(who, given, "give its values as a list, in the order of the targets"))
    if isinstance(X, Set | Iterator | ValuesView):
        raise InvalidInput(message(who, given, "give a list or an array, whose order is that of the targets"))
    raise InvalidInput(message(who, given, "give a list, an array or a data frame of one row or object each"))


def require_table(X: object, who: str) -> None:
    """Raise InvalidInput for graphs, dicts, sets and other objects, also in a list: NumPy reads some as numbers.

    Parameters
    ----------
    X : object
    who : str
        The caller, which messages name.

    Raises
    ------
    InvalidInput
        For rows that are objects.

    Examples
    --------
    >>> require_table([{"a": 1.0}], "SVC")
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: SVC: a list of objects of type dict; give rows of numbers, or a kernel of such objects.
    """
    require_collection(X, who)
    if is_array_like(X):
        return
    assert isinstance(X, Sequence)
    kinds = {type(row): row for row in X}
    for kind, row in kinds.items():
        if row is None or isinstance(row, Number | Sequence) or is_array_like(row) or hasattr(kind, "__float__"):
            continue
        do = "give rows of numbers, or a kernel of such objects"
        if isinstance(row, Set):
            do = "give rows of 0 and 1, as scikit-learn's MultiLabelBinarizer().fit_transform(X) makes of sets"
        raise InvalidInput(message(who, f"a {type(X).__name__} of objects of type {kind.__name__}", do))


def _dense(X: Any, who: str) -> NDArray[Any]:
    array = _from_frame(X, who)
    if array is None:
        array = _from_anything(X, who)
    _check_kind(array, X, who)
    _check_shape(array.shape, who)
    return array


def _csr(X: Any, who: str) -> Any:
    """CSR with sorted indices and no duplicates; the caller's matrix is not changed."""
    _check_kind(X, X, who)
    _check_shape(X.shape, who)
    rows = X.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is X else rows
        rows.sum_duplicates()
    return rows


def _converted(given: Any, dtype: KeepFloat | DTypeLike, who: str) -> Any:
    target = _target(given.dtype, dtype, who)
    with np.errstate(over="ignore"):
        if scipy.sparse.issparse(given):
            return given.astype(target, copy=False)
        return np.ascontiguousarray(given, dtype=target)


def _target(given: np.dtype[Any], dtype: KeepFloat | DTypeLike, who: str) -> np.dtype[Any]:
    """The dtype to convert to: the given one, or by default float32 for floats of up to 32 bits, else float64."""
    if isinstance(dtype, str) and dtype == "keep-float":
        return np.dtype(np.float32 if given.kind == "f" and given.itemsize <= 4 else np.float64)
    wanted = np.dtype(dtype)
    if wanted not in (np.float32, np.float64):
        raise InvalidInput(message(who, f"dtype {wanted} was requested", "ask for float32 or float64"))
    return wanted


def _from_anything(X: Any, who: str) -> NDArray[Any]:
    require_table(X, who)
    X = on_host(X, who)
    try:
        return np.asarray(X)
    except (ValueError, TypeError) as error:
        given = f"a {type(X).__name__} that cannot be read as a table ({error})"
        raise InvalidInput(message(who, given, "give rows of equal length, all of numbers")) from error


def _from_frame(X: Any, who: str) -> NDArray[Any] | None:
    """The values of a pandas or polars data frame, missing values as NaN; None for anything else."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if odd := columns_without_numbers(X):
        raise InvalidInput(message(who, odd, "encode them (scikit-learn's OneHotEncoder) or leave them out"))
    if pandas is not None and isinstance(X, pandas.DataFrame):
        kinds = [np.dtype(getattr(kind, "numpy_dtype", getattr(kind, "subtype", kind))) for kind in X.dtypes]
        if not kinds:
            return np.empty(X.shape)
        kind = np.result_type(*kinds)
        kind = kind if kind.kind in "fc" else np.dtype(np.float64)
        return np.asarray(X.to_numpy(dtype=kind, na_value=np.nan))
    if polars is not None and isinstance(X, polars.DataFrame):
        plain = [name for name, kind in X.schema.items() if kind.is_decimal() or kind == polars.Boolean]
        return np.asarray(X.with_columns(polars.col(plain).cast(polars.Float64)).to_numpy())
    if polars is not None and isinstance(X, polars.LazyFrame):
        raise InvalidInput(message(who, "a LazyFrame has no rows yet", "give X.collect()"))
    return None


def squarable(who: str, y: Any, *, whole: bool = False) -> NDArray[np.float64]:
    """Targets in float64, if it holds the sum of their squares; if they are the `whole` of a fit, not as 0.

    >>> squarable("KernelLMS", [1, 2])
    array([1., 2.])
    """
    y = np.asarray(y, np.float64)
    if (largest := float(np.max(np.abs(y), initial=0.0))) > LARGEST:
        given = f"a target of {largest:.1e}, whose square float64 does not hold"
        raise InvalidInput(message(who, given, "give y in another unit"))
    if whole and 0 < largest < 1 / LARGEST:
        given = f"targets of at most {largest:.1e}, whose squares are 0 in float64"
        raise InvalidInput(message(who, given, "give y in another unit"))
    return y


def columns_without_numbers(X: object) -> str:
    """The columns of a pandas or polars data frame that hold no numbers, in words; "" if there is none.

    >>> import pandas as pd
    >>> columns_without_numbers(pd.DataFrame({"a": [1.0], "day": [pd.Timestamp(2026, 1, 1)]}))
    "1 column holds no numbers: 'day'"
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    numeric = {}
    if pandas is not None and isinstance(X, pandas.DataFrame):
        is_numeric = pandas.api.types.is_numeric_dtype
        numeric = {str(name): is_numeric(kind) for name, kind in zip(X.columns, X.dtypes, strict=True)}
    elif polars is not None and isinstance(X, polars.DataFrame):
        numeric = {name: kind.is_numeric() or kind == polars.Boolean for name, kind in X.schema.items()}
    others = [name for name, good in numeric.items() if not good]
    named = ", ".join(repr(name) for name in others[:5]) + (", ..." if len(others) > 5 else "")
    return f"{counted(len(others), 'column')} hold{'s' * (len(others) == 1)} no numbers: {named}" if others else ""


def _check_kind(array: Any, X: Any, who: str) -> None:
    kind = array.dtype.kind
    if kind in "fbiu":
        return
    given, advice = {
        "c": ("holds complex numbers", "give the real and the imaginary parts as columns of their own"),
        "O": (
            f"an array of Python objects (of a {type(X).__name__})",
            "give numbers, X.astype(float), or encode what is not a number",
        ),
        "M": ("holds dates", "give numbers, such as days since a date of your choice"),
        "m": ("holds lengths of time", "give numbers, such as X / np.timedelta64(1, 's')"),
        "V": ("is a structured array", "give its fields as columns"),
    }.get(
        kind,
        ("holds text", "encode it as numbers (scikit-learn's OneHotEncoder), or X.astype(float) if it spells them"),
    )
    raise InvalidInput(message(who, given, advice))


def _check_shape(shape: tuple[int, ...], who: str) -> None:
    if len(shape) == 1:
        advice = "reshape it, to (-1, 1) if it is one column or (1, -1) if it is one row"
        raise InvalidInput(message(who, f"has 1 dimension, shape {shape}", advice))
    if len(shape) != 2:
        advice = "give one row per object, such as X.reshape(len(X), -1)" if shape else "give a table of rows"
        raise InvalidInput(message(who, f"has {len(shape)} dimensions, shape {shape}", advice))
    if 0 in shape:
        given = f"is empty, {counted(shape[0], 'row')} of {counted(shape[1], 'column')}"
        raise InvalidInput(message(who, given, "give at least one row and one column"))


def _check_tensor(X: Any, who: str) -> None:
    """Raise InvalidInput unless X is two-dimensional and floating; its values may be on a device, and are not read."""
    if not X.dtype.is_floating_point:
        raise InvalidInput(message(who, f"a tensor of {X.dtype}", "give a floating one, X.double()"))
    _check_shape(tuple(X.shape), who)


def _check_values(given: NDArray[Any], rows: Any, who: str) -> None:
    """Raise InvalidInput unless x and 4‖x‖² ≥ ‖x − z‖² are finite; valid rows take one pass and no copy."""
    sparse = scipy.sparse.issparse(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = rows.multiply(rows).sum(axis=1) if sparse else np.einsum("ij,ij->i", rows, rows)
        good = np.isfinite(4 * np.asarray(norms).ravel())
    if good.all():
        return
    _refuse_missing(given, rows, who)
    row = int(np.argmin(good))
    what = f"row {row} has entries so large that its squared norm overflows {rows.dtype}"
    advice = "standardise the columns (scikit-learn's StandardScaler)"
    advice += ", or use float64" if rows.dtype == np.float32 else ""
    raise InvalidInput(message(who, what, advice))


def _refuse_missing(given: NDArray[Any], rows: Any, who: str) -> None:
    """Name the first entry that was not finite before conversion; `given` is an array, or a sparse matrix's data."""
    bad = ~np.isfinite(given)
    if not bad.any():
        return
    first = np.unravel_index(int(np.argmax(bad)), bad.shape)
    value, more = given[first], int(bad.sum()) - 1
    if scipy.sparse.issparse(rows):
        row, column = np.searchsorted(rows.indptr, first[0], side="right") - 1, rows.indices[first[0]]
    else:
        row, column = first
    what = f"row {row}, column {column} is {value}" + (f", and {more} more are not finite" if more else "")
    missing = "fill it in (scikit-learn's SimpleImputer) or leave those rows out"
    raise InvalidInput(
        message(who, what, missing if np.isnan(value) else "replace it by a finite number, or leave it out")
    )
