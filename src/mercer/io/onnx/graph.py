"""An ONNX graph under construction: nodes, constants, and the file that they become."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.version import __version__

__all__ = ["Graph", "require_room"]

OPSET, IR_VERSION = 17, 8
"""The operators of ONNX 1.12 (2022), which later runtimes read."""
LARGEST = (1 << 31) - (1 << 20)
"""Bytes of arrays in a file: a message of Protocol Buffers has at most 2 GiB."""
SMALL = 1024
"""Bytes of a constant that is looked for among the others."""


def require_room(size: int) -> None:
    """Refuse arrays that no file holds."""
    if size > LARGEST:
        given = f"a model with arrays of {size / 2**30:.1f} GiB, of which an ONNX file holds 2"
        raise InvalidInput(message("to_onnx", given, "fit on landmarks, or call compress() first"))


def _onnx() -> Any:
    """The package onnx; InvalidInput without it."""
    try:
        import onnx
    except ImportError:
        raise InvalidInput(message("to_onnx", "onnx is not installed", 'pip install "mercer[onnx]"')) from None
    return onnx


class Graph:
    """Nodes and constants; a value is known by its name.

    Parameters
    ----------
    prefix : str
        Begins all names. A graph within another needs its own.
    """

    def __init__(self, prefix: str = "") -> None:
        self.onnx, self.prefix = _onnx(), prefix
        self.nodes: list[Any] = []
        self.constants: dict[tuple[Any, ...], tuple[str, Any]] = {}
        self.bytes = 0

    def add(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """A node, and the name of its output."""
        name = name or f"{self.prefix}{op.lower()}{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def constant(self, values: Any) -> str:
        """An array in its dtype, text as text; small equal ones are kept once."""
        array, name = np.asarray(values), f"{self.prefix}constant{len(self.constants)}"
        self.bytes += array.nbytes
        require_room(self.bytes)
        numbers = array.dtype.kind in "biuf"
        key = (array.dtype.str, array.shape, array.tobytes()) if numbers and array.nbytes < SMALL else (name,)
        if key not in self.constants:
            written = array if numbers else array.astype(object)
            self.constants[key] = name, self.onnx.numpy_helper.from_array(written, name)
        return self.constants[key][0]

    def cast(self, value: str, dtype: Any, name: str = "") -> str:
        """The value as another type."""
        return self.add("Cast", value, name=name, to=self._type(dtype))

    def transposed(self, value: str) -> str:
        """A matrix with rows and columns exchanged."""
        return self.add("Transpose", value, perm=[1, 0])

    def over_columns(self, x: str, z: str, start: str, term: Any) -> str:
        """start + Σᵢ term(xᵢ, zᵢ) for all pairs of rows, column by column, so that no array is larger than the sum.

        `term` gets the graph of one step, and the names of xᵢ as an m × 1 and of zᵢ as a 1 × n array.
        """
        step = Graph(f"{self.prefix}{len(self.nodes)}_")
        column = step.add("Unsqueeze", f"{step.prefix}x", step.constant(np.array([1])))
        row = step.add("Unsqueeze", f"{step.prefix}z", step.constant(np.array([0])))
        total = step.add("Add", f"{step.prefix}total", term(step, column, row))
        inputs = [(f"{step.prefix}total", ("m", "n")), (f"{step.prefix}x", ("m",)), (f"{step.prefix}z", ("n",))]
        body = step._proto("step", [(n, np.float64, s) for n, s in inputs], [(total, np.float64, ("m", "n"))])
        # Transposed, because not every runtime scans along the second axis.
        return self.add("Scan", start, self.transposed(x), self.transposed(z), body=body, num_scan_inputs=2)

    def model(self, inputs: list[tuple[Any, ...]], outputs: list[tuple[Any, ...]], doc: str) -> Any:
        """The whole as a `ModelProto`; inputs and outputs are (name, dtype, shape)."""
        made = self.onnx.helper.make_model(
            self._proto("mercer", inputs, outputs),
            opset_imports=[self.onnx.helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="mercer",
            producer_version=__version__,
            doc_string=doc,
        )
        self.onnx.checker.check_model(made, full_check=True)
        return made

    def _proto(self, name: str, inputs: list[tuple[Any, ...]], outputs: list[tuple[Any, ...]]) -> Any:
        ends = [
            [self.onnx.helper.make_tensor_value_info(one, self._type(dtype), list(shape)) for one, dtype, shape in side]
            for side in (inputs, outputs)
        ]
        return self.onnx.helper.make_graph(self.nodes, name, *ends, [array for _, array in self.constants.values()])

    def _type(self, dtype: Any) -> int:
        kind = np.dtype(object) if np.dtype(dtype).kind == "U" else np.dtype(dtype)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(kind))
