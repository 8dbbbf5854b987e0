// One instruction set's copy of the engine. Everything but the factory has internal linkage: see simd.hpp.
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

#include "engine.hpp"

namespace mercer {
namespace {
#include "simd.hpp"
#include "pairing.hpp"
#include "program.hpp"
#include "memory.hpp"
#include "distances.hpp"
#include "strips.hpp"
#include "mirror.hpp"
#include "products.hpp"
#include "engine.inl"
#include "sequences/subsequences.hpp"
#include "sequences/alignments.hpp"
#include "sequences/matches.hpp"
#include "coordinates.hpp"
#include "groups.hpp"
#include "entries.hpp"
#include "smo.hpp"
#include "online.hpp"
#include "quantised.hpp"
#include "band.hpp"
}  // namespace

InstructionSet MERCER_ISA() {
    return {.name = MERCER_ISA_NAME, .make = make, .evaluate = evaluate, .lanes = Simd<double>::W, .subsequences = subsequences,
            .alignments = alignments, .matches = matches, .match_lanes = kVectorBytes, .coordinates = coordinates, .smo = smo,
            .merge_pass = merge_pass, .quantise = quantise, .quantised_product = quantised_product, .add_rows = add_rows,
            .nearest_means = nearest_means, .band_step = band_step, .band_vectors = band_vectors, .band_factors = band_factors,
            .band_norms = band_norms};
}

}  // namespace mercer
