// One instruction set's copy of the engine. Everything but the factory has internal linkage: see base/simd.inl.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#if defined(__SSE2__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>  // without the sanitizer its macros do nothing
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

#include "engine.hpp"

namespace mercer {
namespace {
// Vectors and memory.
#include "base/simd.inl"
#include "base/memory.inl"
// The first stage of a tile: a number for each pair of rows, reduced over their features.
#include "pairing/pairing.inl"
#include "pairing/distances.inl"
// The second stage: the operations of a kernel's formula on these numbers, and sweeps over all tiles.
#include "program/program.inl"
#include "program/strips.inl"
// What is done with the entries of a tile: they are stored, multiplied, summed, compared.
#include "consumers/mirror.inl"
#include "consumers/products.inl"
#include "consumers/engine.inl"
// Pairs of sequences.
#include "sequences/subsequences.inl"
#include "sequences/alignments.inl"
#include "sequences/matches.inl"
// Loops of solvers over entries or features that are there already.
#include "solvers/coordinates.inl"
#include "solvers/groups.inl"
#include "solvers/entries.inl"
#include "solvers/smo.inl"
#include "solvers/online.inl"
#include "solvers/quantised.inl"
#include "solvers/band.inl"
}  // namespace

InstructionSet MERCER_ISA() {
    return {.name = MERCER_ISA_NAME,
            .make = make,
            .evaluate = evaluate,
            .lanes = Simd<double>::W,
            .subsequences = subsequences,
            .alignments = alignments,
            .matches = matches,
            .match_lanes = kVectorBytes,
            .coordinates = coordinates,
            .smo = smo,
            .merge_pass = merge_pass,
            .quantise = quantise,
            .quantised_product = quantised_product,
            .add_rows = add_rows,
            .nearest_means = nearest_means,
            .band_step = band_step,
            .band_vectors = band_vectors,
            .band_factors = band_factors,
            .band_norms = band_norms};
}

}  // namespace mercer
