// The Python face of sequential minimal optimisation.
#include <cmath>
#include <string>

#include "bindings/bindings.hpp"

namespace mercer {
namespace {

using Doubles = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstDoubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check_problems(const Index& offset, const Index& split, int64_t variables) {
    const int64_t problems = int64_t(offset.shape(0)) - 1;
    require(problems >= 0 && int64_t(split.shape(0)) == problems, "one split for each problem");
    require(offset(0) == 0 && offset(size_t(problems)) == variables, "the problems do not cover the variables");
    for (size_t p = 0; p < size_t(problems); ++p)
        require(offset(p) <= split(p) && split(p) <= offset(p + 1), "a problem's variables are not in order");
}

// K as an array, or as tiles.
struct Entries {
    bool is_double;
    const void* matrix;
    int64_t n;
    Engine* tiles;
};

Entries of_array(const Input& matrix) {
    const bool is_double = has_type(matrix, true);
    require((is_double || has_type(matrix, false)) && matrix.ndim() == 2 && matrix.shape(0) == matrix.shape(1),
            "the matrix is not square");
    return {is_double, matrix.data(), int64_t(matrix.shape(0)), nullptr};
}

Entries of_tiles(const Planned& plan) {
    require(plan.rows() == plan.columns(), "the matrix is not square");
    return {plan.is_double(), nullptr, plan.rows(), &plan.engine()};
}

template <class K, Entries (*read)(const K&)>
void smo(const K& k, Index offset, Index split, Index row, ConstDoubles lower, ConstDoubles upper, double epsilon,
         Doubles beta, Doubles gradient, Doubles anchor, Doubles anchor_gradient, Flags active, double tol,
         int64_t limit, int64_t work, int64_t cache, Doubles gap, Integers steps, Integers ended,
         const std::string& isa) {
    const Entries entries = read(k);
    const int64_t n = entries.n, variables = int64_t(row.shape(0));
    check_problems(offset, split, variables);
    for (const auto& one : {lower, upper}) require(int64_t(one.shape(0)) == variables, "one bound for each variable");
    for (const auto& one : {beta, gradient, anchor, anchor_gradient})
        require(int64_t(one.shape(0)) == variables, "one value for each variable");
    require(int64_t(active.shape(0)) == variables, "one flag for each variable");
    for (int64_t t = 0; t < variables; ++t) require(row(size_t(t)) >= 0 && row(size_t(t)) < n, "a row does not exist");
    require(gap.shape(0) == split.shape(0) && steps.shape(0) == split.shape(0) && ended.shape(0) == split.shape(0),
            "one result for each problem");
    require(epsilon >= 0 && std::isfinite(epsilon) && tol >= 0 && limit >= 0 && work >= 0 && cache >= 0,
            "epsilon, tol, work and cache are not negative");
    const DualFamily family{.is_double = entries.is_double,
                            .matrix = entries.matrix,
                            .rows = n,
                            .stride = n,
                            .tiles = entries.tiles,
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
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    set.smo(family);
}

}  // namespace

void bind_dual(nb::module_& m) {
    const auto define = [&m](auto f, auto matrix) {
        m.def("smo", f, matrix, "offset"_a.noconvert(), "split"_a.noconvert(), "row"_a.noconvert(),
              "lower"_a.noconvert(), "upper"_a.noconvert(), "epsilon"_a, "beta"_a.noconvert(), "gradient"_a.noconvert(),
              "anchor"_a.noconvert(), "anchor_gradient"_a.noconvert(), "active"_a.noconvert(), "tol"_a, "limit"_a,
              "work"_a, "cache"_a, "gap"_a.noconvert(), "steps"_a.noconvert(), "ended"_a.noconvert(), "isa"_a = "");
    };
    define(&smo<Input, of_array>, "matrix"_a.noconvert());
    define(&smo<Planned, of_tiles>, "matrix"_a);
}

}  // namespace mercer
