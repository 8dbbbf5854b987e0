"""The native module in NumPy: the definition of what it does, and its stand-in where there is none.

Arrays in, arrays out; nothing here knows what a kernel is.
"""

from mercer._twin.online import forget_pass, merge_pass
from mercer._twin.tiles import PAIRINGS, BlockTiles, Tiles, instruction_sets, threads

__all__ = ["PAIRINGS", "BlockTiles", "Tiles", "forget_pass", "instruction_sets", "merge_pass", "threads"]
