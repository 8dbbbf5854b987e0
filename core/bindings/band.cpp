// Python bindings of the reduction of a symmetric matrix to a band.
#include <cstdint>
#include <string>

#include "bindings/bindings.hpp"

namespace mercer {
namespace {

template <int Dimensions>
using Doubles = Array<double, Dimensions>;
template <int Dimensions>
using Given = Array<const double, Dimensions>;

constexpr int64_t kMostBlocks = int64_t(1) << 24;  // so that no size overflows

template <class A>
void require_aligned(const A& a) {
    require(a.size() == 0 || reinterpret_cast<uintptr_t>(a.data()) % 64 == 0,
            "an array does not begin on a multiple of 64 bytes");
}

// (…, kBand, kBand), one tile for each of `count`
template <class A>
void require_tiles(const A& a, int64_t count) {
    require(int64_t(a.shape(a.ndim() - 3)) == count, "a tile for each block is needed");
    require(int64_t(a.shape(a.ndim() - 2)) == kBand && int64_t(a.shape(a.ndim() - 1)) == kBand,
            "tiles have another size");
    require_aligned(a);
}

int64_t blocks_of(int64_t tiles, int64_t entries) {
    const int64_t blocks = tiles + 1;
    require(blocks <= kMostBlocks && entries == blocks * (blocks + 1) / 2 * kBand * kBand,
            "the slabs do not fit the tiles");
    return blocks;
}

void band_step(Doubles<1> slabs, Doubles<3> upper, Doubles<3> factors, Doubles<1> pending, int64_t step,
               const std::string& isa) {
    const int64_t blocks = blocks_of(int64_t(upper.shape(0)), int64_t(slabs.shape(0)));
    require_tiles(upper, blocks - 1);
    require_tiles(factors, blocks - 1);
    require_aligned(slabs);
    require_aligned(pending);
    require(int64_t(pending.shape(0)) == 4 * blocks * kBand * kBand,
            "four tiles for each block are needed between the steps");
    require(0 <= step && step < blocks, "an impossible step");
    const int64_t tile = step + 1 < blocks ? step * kBand * kBand : 0;  // the last step has no tile below
    const BandSpec spec{.blocks = blocks,
                        .step = step,
                        .slabs = slabs.data(),
                        .upper = upper.data() + tile,
                        .factor = factors.data() + tile,
                        .pending = pending.data()};
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    set.band_step(spec);
}

void band_vectors(Given<1> slabs, Given<3> factors, Doubles<2> out, int64_t first, int64_t last,
                  const std::string& isa) {
    const int64_t blocks = blocks_of(int64_t(factors.shape(0)), int64_t(slabs.shape(0)));
    require_tiles(factors, blocks - 1);
    require_aligned(slabs);
    require(int64_t(out.shape(0)) == blocks * kBand && out.shape(0) == out.shape(1), "the output does not fit");
    require(0 <= first && first <= last && last <= blocks, "an impossible range");
    const VectorSpec spec{.blocks = blocks,
                          .first = first,
                          .last = last,
                          .slabs = slabs.data(),
                          .factors = factors.data(),
                          .out = out.data()};
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    set.band_vectors(spec);
}

void band_factors(Given<3> diagonal, Given<3> upper, Given<1> shifts, Doubles<4> below, Doubles<4> inverse,
                  Array<bool, 1> definite, const std::string& isa) {
    const int64_t blocks = int64_t(diagonal.shape(0)), count = int64_t(shifts.shape(0));
    require(1 <= blocks && blocks <= kMostBlocks && count <= kMostBlocks, "too many blocks or shifts, or none");
    require_tiles(diagonal, blocks);
    require_tiles(upper, blocks - 1);
    require_tiles(below, blocks);
    require_tiles(inverse, blocks);
    require(int64_t(below.shape(0)) == count && int64_t(inverse.shape(0)) == count, "one factor for each shift");
    require(int64_t(definite.shape(0)) == count, "one verdict for each shift");
    static_assert(sizeof(bool) == sizeof(uint8_t));
    const FactorSpec spec{.blocks = blocks,
                          .shifts = count,
                          .diagonal = diagonal.data(),
                          .upper = upper.data(),
                          .shift = shifts.data(),
                          .below = below.data(),
                          .inverse = inverse.data(),
                          .definite = reinterpret_cast<uint8_t*>(definite.data())};
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    set.band_factors(spec);
}

void band_norms(Given<2> vectors, Given<4> below, Given<4> inverse, Doubles<2> out, const std::string& isa) {
    const int64_t shifts = int64_t(below.shape(0)), blocks = int64_t(below.shape(1));
    require(blocks <= kMostBlocks && shifts <= kMostBlocks, "too many blocks or shifts");
    require(int64_t(vectors.shape(0)) == blocks * kBand && vectors.shape(0) == vectors.shape(1),
            "the vectors do not fit the blocks");
    require_tiles(below, blocks);
    require_tiles(inverse, blocks);
    require(int64_t(inverse.shape(0)) == shifts && int64_t(out.shape(0)) == shifts,
            "one factor and one output for each shift");
    require(out.shape(1) == vectors.shape(1), "the output does not fit");
    require_aligned(vectors);
    const NormSpec spec{.blocks = blocks,
                        .shifts = shifts,
                        .vectors = vectors.data(),
                        .below = below.data(),
                        .inverse = inverse.data(),
                        .out = out.data()};
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    set.band_norms(spec);
}

}  // namespace

void bind_band(nb::module_& m) {
    m.def("band_step", &band_step, nb::kw_only(), "slabs"_a.noconvert(), "upper"_a.noconvert(), "factors"_a.noconvert(),
          "pending"_a.noconvert(), "step"_a, "isa"_a = "");
    m.def("band_vectors", &band_vectors, nb::kw_only(), "slabs"_a.noconvert(), "factors"_a.noconvert(),
          "out"_a.noconvert(), "first"_a, "last"_a, "isa"_a = "");
    m.def("band_factors", &band_factors, nb::kw_only(), "diagonal"_a.noconvert(), "upper"_a.noconvert(),
          "shifts"_a.noconvert(), "below"_a.noconvert(), "inverse"_a.noconvert(), "definite"_a.noconvert(),
          "isa"_a = "");
    m.def("band_norms", &band_norms, nb::kw_only(), "vectors"_a.noconvert(), "below"_a.noconvert(),
          "inverse"_a.noconvert(), "out"_a.noconvert(), "isa"_a = "");
}

}  // namespace mercer
