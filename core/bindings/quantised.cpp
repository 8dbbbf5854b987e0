// Python bindings of a symmetric matrix in 16 bits an entry.
#include <string>
#include <tuple>

#include "bindings/bindings.hpp"

namespace mercer {
namespace {

using Floats = Array<const float, 2>;
using Seeds = Array<const uint32_t, 1>;
using Steps = Array<const double, 1>;
using Sums = Array<double, 2>;
using Entries = Array<const int16_t, 1>;
using NewEntries = Array<int16_t, 1>;

constexpr int64_t kMostSide = int64_t(1) << 30;  // so that no size overflows

int64_t padded(int64_t size, int64_t to) { return (size + to - 1) / to * to; }

int64_t padded_size(int64_t rows, int64_t columns) {
    return padded(rows, kQuantisedStrip) * padded(columns, kQuantisedGroup);
}

std::tuple<double, double> quantise(Floats x, Seeds seeds, NewEntries out, const std::string& isa) {
    const int64_t rows = int64_t(x.shape(0)), columns = int64_t(x.shape(1));
    require(rows >= 1 && rows <= kQuantisedRows && rows <= columns && columns < kMostSide,
            "a block has 1 to 192 rows, and no more than columns");
    require(rows == kQuantisedRows || rows == columns, "only the last block may be lower, and that is square");
    require(int64_t(seeds.shape(0)) == columns, "one seed for each column");
    require(int64_t(out.shape(0)) == padded_size(rows, columns), "the output does not fit the block");
    double centre = 0, step = 0;
    const InstructionSet& set = find_isa(isa);
    {
        nb::gil_scoped_release free;
        set.quantise(x.data(), rows, columns, seeds.data(), out.data(), &centre, &step);
    }
    return {centre, step};
}

void quantised_product(Entries entries, Index start, Steps step, int64_t first, int64_t last, Floats v, Sums out,
                       const std::string& isa) {
    const int64_t n = int64_t(v.shape(0)), r = int64_t(v.shape(1)), blocks = int64_t(step.shape(0));
    require(n >= 1 && n < kMostSide && r >= 1 && r < kMostSide, "the vectors do not fit");
    require(blocks == (n + kQuantisedRows - 1) / kQuantisedRows && int64_t(start.shape(0)) == blocks + 1,
            "the blocks do not cover the rows");
    require(out.shape(0) == v.shape(0) && out.shape(1) == v.shape(1), "the output does not fit");
    require(0 <= first && first <= last && last <= blocks, "an impossible range");
    require(0 <= start(size_t(first)) && start(size_t(first)) <= int64_t(entries.shape(0)) &&
                start(size_t(last)) <= int64_t(entries.shape(0)),
            "the blocks are not among the entries");
    for (int64_t b = first; b < last; ++b) {  // others are not read
        const int64_t begin = b * kQuantisedRows, rows = begin + kQuantisedRows < n ? kQuantisedRows : n - begin;
        require(start(size_t(b + 1)) == start(size_t(b)) + padded_size(rows, n - begin), "a block has another size");
    }
    const QuantisedSpec spec{.entries = entries.data(),
                             .start = start.data(),
                             .step = step.data(),
                             .n = n,
                             .r = r,
                             .first = first,
                             .last = last,
                             .v = v.data(),
                             .out = out.data()};
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    set.quantised_product(spec);
}

}  // namespace

void bind_quantised(nb::module_& m) {
    m.def("quantise", &quantise, "x"_a.noconvert(), "seeds"_a.noconvert(), "out"_a.noconvert(), "isa"_a = "");
    m.def("quantised_product", &quantised_product, nb::kw_only(), "entries"_a.noconvert(), "start"_a.noconvert(),
          "step"_a.noconvert(), "first"_a, "last"_a, "v"_a.noconvert(), "out"_a.noconvert(), "isa"_a = "");
}

}  // namespace mercer
