"""The native module in NumPy: the definition of what it does, and its stand-in where there is none.

Arrays in, arrays out; nothing here knows what a kernel is.
"""

from mercer._twin.sequences import (
    add_products,
    alignment_kernel,
    count_kmers,
    subsequence_kernel,
    substring_kernel,
    substring_product,
)
from mercer._twin.tiles import PAIRINGS, BlockTiles, Tiles, instruction_sets, threads

__all__ = [
    "PAIRINGS", "BlockTiles", "Tiles", "add_products", "alignment_kernel", "count_kmers", "instruction_sets",
    "subsequence_kernel", "substring_kernel", "substring_product", "threads",
]  # fmt: skip
from mercer._twin.coordinates import coordinates
from mercer._twin.dual import smo

__all__ = ["PAIRINGS", "BlockTiles", "Tiles", "coordinates", "instruction_sets", "smo", "threads"]
from mercer._twin.online import merge_pass

__all__ = ["PAIRINGS", "BlockTiles", "Tiles", "instruction_sets", "merge_pass", "threads"]
from mercer._twin.online import forget_pass

__all__ = ["PAIRINGS", "BlockTiles", "Tiles", "forget_pass", "instruction_sets", "merge_pass", "threads"]
from mercer._twin.quantised import QUANTISED_ROWS, quantise, quantised_product

__all__ = [
    "PAIRINGS", "QUANTISED_ROWS", "BlockTiles", "Tiles", "forget_pass", "instruction_sets", "merge_pass", "quantise",
    "quantised_product", "threads",
]  # fmt: skip
