"""The native module in NumPy: the definition of what it does, and its stand-in where there is none.

Arrays in, arrays out; nothing here knows what a kernel is.
"""

from mercer._twin.band import BAND, band_factors, band_norms, band_step, band_vectors
from mercer._twin.coordinates import coordinates
from mercer._twin.dual import smo
from mercer._twin.groups import add_rows, nearest_means
from mercer._twin.online import forget_pass, merge_pass
from mercer._twin.quantised import QUANTISED_ROWS, quantise, quantised_product
from mercer._twin.sequences import (
    add_products,
    alignment_kernel,
    count_kmers,
    subsequence_kernel,
    substring_kernel,
    substring_product,
)
from mercer._twin.tiles import PAIRINGS, BlockTiles, Tiles, instruction_sets, threads
from mercer._twin.triangular import cholesky_solve
from mercer._twin.windows import WindowComparison, match_lanes

__all__ = [
    "BAND", "PAIRINGS", "QUANTISED_ROWS", "BlockTiles", "Tiles", "WindowComparison", "add_products", "add_rows",
    "alignment_kernel", "band_factors", "band_norms", "band_step", "band_vectors", "cholesky_solve", "coordinates",
    "count_kmers", "forget_pass", "instruction_sets", "match_lanes", "merge_pass", "nearest_means", "quantise",
    "quantised_product", "smo", "subsequence_kernel", "substring_kernel", "substring_product", "threads",
]  # fmt: skip
