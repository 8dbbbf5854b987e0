"""The NumPy reference of the compiled module: it defines the results, and replaces the module if it was not built.

The functions take and return arrays, and know nothing of kernels.
"""

from mercer.engine.reference.band import band_factors, band_norms, band_step, band_vectors
from mercer.engine.reference.coordinates import coordinates
from mercer.engine.reference.dual import smo
from mercer.engine.reference.groups import add_rows, nearest_means
from mercer.engine.reference.online import merge_pass
from mercer.engine.reference.quantised import quantise, quantised_product
from mercer.engine.reference.sequences import (
    add_products,
    alignment_kernel,
    count_kmers,
    subsequence_kernel,
    substring_kernel,
    substring_product,
)
from mercer.engine.reference.tiles import PAIRINGS, BlockTiles, Tiles, instruction_sets, threads
from mercer.engine.reference.windows import WindowComparison, match_lanes

__all__ = [
    "PAIRINGS", "BlockTiles", "Tiles", "WindowComparison", "add_products", "add_rows",
    "alignment_kernel", "band_factors", "band_norms", "band_step", "band_vectors", "coordinates",
    "count_kmers", "instruction_sets", "match_lanes", "merge_pass", "nearest_means", "quantise",
    "quantised_product", "smo", "subsequence_kernel", "substring_kernel", "substring_product", "threads",
]  # fmt: skip
