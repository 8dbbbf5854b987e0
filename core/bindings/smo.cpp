// Python bindings of sequential minimal optimisation.
#include <cmath>
#include <string>

#include "bindings/tiles.hpp"

namespace mercer {
namespace {

using Doubles = Array<double, 1>;
using ConstDoubles = Array<const double, 1>;
using Integers = Array<int64_t, 1>;
using Flags = Array<uint8_t, 1>;

void check_problems(const Index& offset, const Index& split, int64_t variables) {
    const int64_t problems = int64_t(offset.shape(0)) - 1;
    require(problems >= 0 && int64_t(split.shape(0)) == problems, "one split for each problem");
    require(offset(0) == 0 && offset(size_t(problems)) == variables, "the problems do not cover the variables");
    for (size_t p = 0; p < size_t(problems); ++p)
        require(offset(p) <= split(p) && split(p) <= offset(p + 1), "a problem's variables are not in order");
}

// K as an array, or as tiles that make its entries.
void set_entries(const Input& matrix, DualBatch& batch) {
    batch.is_double = has_type(matrix, true);
    require((batch.is_double || has_type(matrix, false)) && matrix.ndim() == 2 && matrix.shape(0) == matrix.shape(1),
            "the matrix is not square");
    batch.matrix = matrix.data(), batch.rows = int64_t(matrix.shape(0));
}

void set_entries(const Tiles& tiles, DualBatch& batch) {
    require(tiles.rows() == tiles.columns(), "the matrix is not square");
    batch.is_double = tiles.is_double(), batch.tiles = &tiles.engine(), batch.rows = tiles.rows();
}

template <class K>
void smo(const K& matrix, Index offset, Index split, Index row, ConstDoubles lower, ConstDoubles upper, double epsilon,
         Doubles beta, Doubles gradient, Doubles anchor, Doubles anchor_gradient, Flags active, double tol,
         int64_t limit, int64_t work, int64_t cache, Doubles gap, Integers steps, Integers ended,
         const std::string& isa) {
    const int64_t variables = int64_t(row.shape(0));
    DualBatch batch{.is_double = false,
                    .matrix = nullptr,
                    .rows = 0,
                    .tiles = nullptr,
                    .problems = int64_t(split.shape(0)),
                    .offset = offset.data(),
                    .split = split.data(),
                    .row = row.data(),
                    .lower = lower.data(),
                    .upper = upper.data(),
                    .epsilon = epsilon,
                    .beta = beta.data(),
                    .gradient = gradient.data(),
                    .anchor = anchor.data(),
                    .anchor_gradient = anchor_gradient.data(),
                    .active = active.data(),
                    .tol = tol,
                    .limit = limit,
                    .work = work,
                    .cache = cache,
                    .gap = gap.data(),
                    .steps = steps.data(),
                    .ended = ended.data()};
    set_entries(matrix, batch);
    check_problems(offset, split, variables);
    for (const auto& one : {lower, upper}) require(int64_t(one.shape(0)) == variables, "one bound for each variable");
    for (const auto& one : {beta, gradient, anchor, anchor_gradient})
        require(int64_t(one.shape(0)) == variables, "one value for each variable");
    require(int64_t(active.shape(0)) == variables, "one flag for each variable");
    for (int64_t t = 0; t < variables; ++t)
        require(row(size_t(t)) >= 0 && row(size_t(t)) < batch.rows, "a row does not exist");
    require(gap.shape(0) == split.shape(0) && steps.shape(0) == split.shape(0) && ended.shape(0) == split.shape(0),
            "one result for each problem");
    require(epsilon >= 0 && std::isfinite(epsilon) && tol >= 0 && limit >= 0 && work >= 0 && cache >= 0,
            "epsilon, tol, work and cache are not negative");
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    set.smo(batch);
}

}  // namespace

void bind_smo(nb::module_& m) {
    const auto define = [&m](auto f, auto matrix) {
        m.def("smo", f, nb::kw_only(), matrix, "offset"_a.noconvert(), "split"_a.noconvert(), "row"_a.noconvert(),
              "lower"_a.noconvert(), "upper"_a.noconvert(), "epsilon"_a, "beta"_a.noconvert(), "gradient"_a.noconvert(),
              "anchor"_a.noconvert(), "anchor_gradient"_a.noconvert(), "active"_a.noconvert(), "tol"_a, "limit"_a,
              "work"_a, "cache"_a, "gap"_a.noconvert(), "steps"_a.noconvert(), "ended"_a.noconvert(), "isa"_a = "");
    };
    define(&smo<Input>, "matrix"_a.noconvert());
    define(&smo<Tiles>, "matrix"_a);
}

}  // namespace mercer
