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
    return {MERCER_ISA_NAME, make, evaluate, Simd<double>::W, subsequences, alignments, matches, kVectorBytes, coordinates, smo,
            merge_pass, quantise, quantised_product, add_rows, nearest_means, band_step, band_vectors, band_factors, band_norms};
}

}  // namespace mercer
