"""The two engines: the compiled module, and its NumPy reference."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

from numpy.typing import NDArray

from mercer.engine import reference
from mercer.engine.contract import Capabilities, Engine, TileProgram, TileRows, Tiles, parts

__all__ = ["NativeEngine", "ReferenceEngine"]

_BY_INSTRUCTION_SET = (
    "WindowComparison", "add_rows", "alignment_kernel", "band_factors", "band_norms", "band_step", "band_vectors",
    "coordinates", "match_lanes", "merge_pass", "nearest_means", "quantise", "quantised_product", "smo",
    "subsequence_kernel",
)  # fmt: skip


class ReferenceEngine(Engine):
    """The NumPy engine: it defines the results of the others, and runs if the compiled module was not built."""

    def __init__(self) -> None:
        super().__init__(reference)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities("numpy", ("numpy",), compiled=False)

    def plan(
        self, program: TileProgram, x: TileRows, z: TileRows, self_pairs: NDArray[Any] | None = None
    ) -> reference.Tiles:
        return reference.Tiles(**parts(program, x, z, self_pairs))


class NativeEngine(Engine):
    """The compiled module, with one of its instruction sets."""

    def __init__(self, core: ModuleType, instruction_set: str) -> None:
        super().__init__(core)
        self._core, self._isa = core, instruction_set
        for name in _BY_INSTRUCTION_SET:
            setattr(self, name, partial(getattr(core, name), isa=instruction_set))

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(self._isa, tuple(self._core.instruction_sets()), compiled=True)

    def plan(self, program: TileProgram, x: TileRows, z: TileRows, self_pairs: NDArray[Any] | None = None) -> Tiles:
        tiles: Tiles = self._core.Tiles(**parts(program, x, z, self_pairs), isa=self._isa)
        return tiles

    def makes_entries(self, tiles: object) -> bool:
        return isinstance(tiles, self._core.Tiles)
