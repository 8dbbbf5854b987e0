// Python bindings of sums by group and of the nearest means.
#include <cmath>
#include <string>

#include "bindings/bindings.hpp"

namespace mercer {
namespace {

using Doubles = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using ConstDoubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = Array<int64_t, 1>;

void add_rows(Input matrix, Index row, Index place, std::optional<ConstDoubles> weight, Doubles out,
              const std::string& isa) {
    const bool is_double = has_type(matrix, true);
    require((is_double || has_type(matrix, false)) && matrix.ndim() == 2, "the matrix does not consist of floats");
    require(out.ndim() == 2 && out.shape(1) == matrix.shape(1), "the sums are not as wide as the matrix");
    const size_t count = row.shape(0);
    require(place.shape(0) == count, "one place for each row");
    require(!weight || (weight->ndim() == 1 && weight->shape(0) == count), "one weight for each row");
    const int64_t rows = int64_t(matrix.shape(0)), places = int64_t(out.shape(0));
    for (size_t t = 0; t < count; ++t) {
        require(row(t) >= 0 && row(t) < rows, "a row does not exist");
        require(place(t) >= 0 && place(t) < places, "a place does not exist");
    }
    const RowSums sums{.is_double = is_double,
                       .matrix = matrix.data(),
                       .width = int64_t(matrix.shape(1)),
                       .count = int64_t(count),
                       .places = places,
                       .row = row.data(),
                       .place = place.data(),
                       .weight = weight ? weight->data() : nullptr,
                       .out = out.data()};
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    set.add_rows(sums);
}

void nearest_means(ConstDoubles sums, ConstDoubles slope, ConstDoubles offset, ConstDoubles diagonal, Index labels,
                   double rounding, Doubles own, Integers nearest, Doubles left, const std::string& isa) {
    require(sums.ndim() == 2 && sums.shape(0) >= 1, "the sums need a row for each mean");
    const size_t groups = sums.shape(0), rows = sums.shape(1);
    for (const auto& one : {slope, offset})
        require(one.ndim() == 1 && one.shape(0) == groups, "one value for each mean");
    require(diagonal.ndim() == 1 && diagonal.shape(0) == rows && labels.shape(0) == rows, "one value for each row");
    for (const auto& one : {own, left}) require(one.ndim() == 1 && one.shape(0) == rows, "one result for each row");
    require(nearest.shape(0) == rows, "one result for each row");
    for (size_t i = 0; i < rows; ++i) require(labels(i) >= 0 && labels(i) < int64_t(groups), "a label without a mean");
    const MeanDistances distances{.rows = int64_t(rows),
                                  .groups = int64_t(groups),
                                  .sums = sums.data(),
                                  .slope = slope.data(),
                                  .offset = offset.data(),
                                  .diagonal = diagonal.data(),
                                  .labels = labels.data(),
                                  .rounding = rounding,
                                  .own = own.data(),
                                  .left = left.data(),
                                  .nearest = nearest.data()};
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    set.nearest_means(distances);
}

}  // namespace

void bind_groups(nb::module_& m) {
    m.def("add_rows", &add_rows, nb::kw_only(), "matrix"_a.noconvert(), "row"_a.noconvert(), "place"_a.noconvert(),
          "weight"_a.noconvert().none(), "out"_a.noconvert(), "isa"_a = "");
    m.def("nearest_means", &nearest_means, nb::kw_only(), "sums"_a.noconvert(), "slope"_a.noconvert(),
          "offset"_a.noconvert(), "diagonal"_a.noconvert(), "labels"_a.noconvert(), "rounding"_a, "own"_a.noconvert(),
          "nearest"_a.noconvert(), "left"_a.noconvert(), "isa"_a = "");
}

}  // namespace mercer
