"""Model files: arrays in safetensors, everything else as JSON in the header. Nothing in a file is executed."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, MercerError, ModelFileError, message
from mercer.files import write_whole
from mercer.io import transformers
from mercer.io.codec import Decoder, Encoder, registry
from mercer.io.consistency import check_consistent
from mercer.io.outputs import refuse_other_kind
from mercer.kernels import Kernel
from mercer.version import __version__

__all__ = ["as_bytes", "is_model_file", "load", "save"]

FORMAT, FORMAT_VERSION = "mercer-model", 1
LONGEST_HEADER = 1 << 30
OURS = "give a file that mercer.save or mercer fit --out wrote"


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, a pipeline with one, or a `TableModel` to one file, without pickle.

    The file is in the safetensors format and holds each array in its dtype. The header holds the class, the parameters,
    kernels as text or by their parts, and all other values as JSON, with a digest that detects changed bytes. The file
    is written under a temporary name and then renamed, so that a reader never sees a part of it. For a kernel class
    that you wrote, the name and the parameters are saved, but not the code; `load` needs the class.

    A pipeline may contain these parts of scikit-learn: scalers, encoders, imputers, PCA, vectorizers of text, column
    transformers and `TransformedTargetRegressor`. They are saved by their parameters and fitted arrays.

    Parameters
    ----------
    model : estimator
        An estimator of mercer, or a scikit-learn pipeline with one.
    path : path-like
        An existing model file is replaced. Any other existing file is refused.

    Raises
    ------
    InvalidInput
        For a model of another library, a kernel that is a Python function or not a dataclass, a folder that does not
        exist, an existing file that is not a model, or without safetensors.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> model = KernelRidge("gaussian(gamma=0.1)").fit(X, [0.0, 1.0, 0.5])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ridge.mercer"
    >>> save(model, path)
    >>> bool((load(path).predict(X) == model.predict(X)).all())
    True
    """
    _safetensors("save")
    refuse_other_kind("save", Path(path), "a model of mercer", is_model_file)
    if hasattr(model, "best_estimator_"):
        raise InvalidInput(message("save", f"a {type(model).__name__}", "save its best_estimator_"))
    known = registry()
    if known.get(type(model).__name__) is not type(model):
        do = f"give one of mercer's own models: {', '.join(sorted(known))}"
        raise InvalidInput(message("save", f"a {type(model).__name__}", do))
    model = model.to_local() if hasattr(model, "to_local") else model
    _refuse_inconsistent(model)
    write_whole(Path(path), as_bytes(model), "save")


def as_bytes(model: Any) -> bytes:
    """The contents of a model file. The model is not checked, so that tests can write files that `load` must refuse."""
    encoder = Encoder()
    document = encoder.value(model, type(model).__name__)
    header = {"format": FORMAT, "version": str(FORMAT_VERSION), "mercer": __version__, "model": json.dumps(document)}
    header["scikit-learn"] = transformers.version()
    # safetensors requires at least one array.
    arrays = encoder.arrays or {"none": np.zeros(1)}
    header["sha256"] = _digest(header["model"], arrays)
    return bytes(_safetensors("save").save(arrays, metadata=header))


def load(path: str | os.PathLike[str], *, kernels: Iterable[type[Kernel]] = ()) -> Any:
    """Read a model that `save` wrote. Its predictions equal those of the saved model bit for bit.

    Parameters
    ----------
    path : path-like
    kernels : iterable of classes, default ()
        The kernel classes that you wrote and that the model uses, such as ``[MyCauchy]``. They must be given, because
        nothing in a file is executed or imported. A file has their names and parameters and not their code: what they
        compute must be what it was.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        For a file that is missing, not a model file, truncated, damaged, of a newer format, or inconsistent, and for a
        kernel of a class that was not given.
    InvalidInput
        Without safetensors, and for `kernels` that are not kernel classes.

    Examples
    --------
    >>> load("nowhere.mercer")
    Traceback (most recent call last):
        ...
    mercer.errors.ModelFileError: nowhere.mercer: there is no such file; check the name and the folder.
    """
    _safetensors("load")
    file, own = Path(path), _by_name(kernels)
    header, arrays = _read(file)
    _check_header(header, file.name)
    if header.get("sha256") != _digest(header["model"], arrays):
        given = "its contents are not those that were saved: some bytes have changed"
        raise ModelFileError(message(file.name, given, "copy it again, or save the model again"))
    try:
        model = Decoder(arrays, file.name, own).value(json.loads(header["model"]))
        check_consistent(model)
    except ModelFileError:
        raise
    except (MercerError, ValueError, TypeError, LookupError, AttributeError, RecursionError, SyntaxError) as error:
        given = f"its contents do not fit together ({_first_line(error)})"
        raise ModelFileError(message(file.name, given, "save the model again")) from error
    if other := _other_version(model, header.get("scikit-learn", "")):
        do = f"compare some predictions, and save it again with scikit-learn {transformers.version()}"
        warnings.warn(message(file.name, other, do), UserWarning, stacklevel=2)
    return model


def _refuse_inconsistent(model: Any) -> None:
    """Refuse a model that `load` would refuse, by the same check."""
    try:
        check_consistent(model)
    except (MercerError, ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        given = f"the model does not hold together ({_first_line(error)})"
        raise InvalidInput(message("save", given, "fit it again, and leave its attributes alone")) from error


def _other_version(model: Any, wrote: str) -> str | None:
    """A warning for a file with parts of scikit-learn that were saved with another version; None without need."""
    if wrote == transformers.version() or not transformers.is_peer(model):
        return None
    return f"was saved with scikit-learn {wrote or '?'}, whose transformers may keep other attributes"


def _by_name(kernels: Iterable[type[Kernel]]) -> dict[str, type[Kernel]]:
    given: list[Any] = [kernels] if isinstance(kernels, type) else list(kernels)
    for one in given:
        if not (isinstance(one, type) and issubclass(one, Kernel)):
            raise InvalidInput(message("load", f"kernels has {one!r:.60}", "give kernel classes, such as [MyCauchy]"))
    return {one.__name__: one for one in given}


def _read(file: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    from safetensors import SafetensorError, safe_open

    if file.is_dir():
        raise ModelFileError(message(file.name or str(file), "is a folder", "name a file in it"))
    if not file.exists():
        raise ModelFileError(message(file.name, "there is no such file", "check the name and the folder"))
    try:
        file.open("rb").close()  # safetensors says of a file without permission that there is none
    except OSError as error:
        given = f"may not be read ({error.strerror})"
        raise ModelFileError(message(file.name, given, "change its permissions")) from error
    try:
        with safe_open(file, framework="numpy") as opened:
            header = opened.metadata() or {}
            arrays = {name: opened.get_tensor(name) for name in list(opened.keys())} if _is_ours(header) else {}
    except (SafetensorError, OSError, ValueError, TypeError, KeyError) as error:
        given = f"is not a model file, or is damaged or cut short ({_first_line(error)})"
        raise ModelFileError(message(file.name, given, OURS)) from error
    return header, arrays


def _digest(model: str, arrays: dict[str, np.ndarray]) -> str:
    """SHA-256 of the model's text and of each array's name, dtype, shape and entries."""
    found = hashlib.sha256(model.encode())
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def _is_ours(header: dict[str, str]) -> bool:
    return header.get("format") == FORMAT and header.get("version") == str(FORMAT_VERSION)


def _check_header(header: dict[str, str], name: str) -> None:
    if header.get("format") != FORMAT:
        given = "is a safetensors file of something else"
        raise ModelFileError(message(name, given, OURS))
    version = header.get("version", "")
    if version.isdecimal() and int(version) > FORMAT_VERSION:
        wrote = f"format {version} (mercer {header.get('mercer', '?')})"
        given = f"is of {wrote}, and this version reads up to format {FORMAT_VERSION}"
        raise ModelFileError(message(name, given, "update mercer"))
    if version != str(FORMAT_VERSION) or "model" not in header:
        raise ModelFileError(message(name, f"has no readable format version ({version!r})", "save the model again"))


def is_model_file(path: Path) -> bool:
    """Whether a file begins like a model file, even a truncated one.

    >>> is_model_file(Path("nowhere.mercer"))
    False
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            start = file.read(min(length, LONGEST_HEADER))
    except OSError:
        return False
    return start[:1] == b"{" and FORMAT.encode() in start


def _safetensors(who: str) -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        given = "safetensors is not installed"
        raise InvalidInput(message(who, given, 'pip install "mercer[io]"')) from None
    return safetensors.numpy


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
