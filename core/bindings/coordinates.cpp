// Python bindings of dual coordinate descent.
#include <cmath>
#include <string>
#include <vector>

#include "bindings/bindings.hpp"

namespace mercer {
namespace {

using Doubles = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using ConstDoubles = Array<const double, 1>;
using Integers = nb::ndarray<int64_t, nb::c_contig, nb::device::cpu>;

// Each problem needs a permutation of its variables, and counts that lie within it.
void check_state(const Index& offset, const Integers& order, const Integers& place) {
    for (size_t p = 0; p + 1 < offset.shape(0); ++p) {
        const int64_t first = offset(p), size = offset(p + 1) - first;
        require(size >= 0, "the problems are not in order");
        std::vector<bool> seen(size_t(size), false);
        for (int64_t t = 0; t < size; ++t) {
            const int64_t o = order.data()[first + t];
            require(o >= 0 && o < size && !seen[size_t(o)], "the order is not a permutation");
            seen[size_t(o)] = true;
        }
        const int64_t *active = place.data() + 3 * p, *at = active + 1;
        require(*active >= 0 && *active <= size && *at >= 0 && *at <= *active, "places beyond the variables");
    }
}

void coordinates(Input features, ConstDoubles square, Index offset, Index row, ConstDoubles linear, ConstDoubles lower,
                 ConstDoubles upper, double epsilon, Doubles beta, Doubles w, Integers order, Integers place,
                 Doubles level, Integers random, ConstDoubles tol, int64_t work, Integers ended,
                 const std::string& isa) {
    const bool is_double = has_type(features, true);
    require((is_double || has_type(features, false)) && features.ndim() == 2,
            "the features are not a matrix of floats");
    require(offset.shape(0) >= 1, "no offsets");
    const size_t problems = offset.shape(0) - 1, variables = row.shape(0), n = features.shape(0), m = features.shape(1);
    require(offset(0) == 0 && offset(problems) == int64_t(variables), "the problems do not cover the variables");
    require(square.shape(0) == n, "one square for each row");
    for (const auto& one : {linear, lower, upper}) require(one.shape(0) == variables, "one value for each variable");
    require(beta.ndim() == 1 && beta.shape(0) == variables && order.ndim() == 1 && order.shape(0) == variables,
            "one value for each variable");
    require(w.ndim() == 2 && w.shape(0) == problems && w.shape(1) == m, "one w for each problem");
    require(place.ndim() == 2 && place.shape(0) == problems && place.shape(1) == 3, "three places for each problem");
    require(level.ndim() == 2 && level.shape(0) == problems && level.shape(1) == 2, "two levels for each problem");
    for (const auto& one : {random, ended})
        require(one.ndim() == 1 && one.shape(0) == problems, "one value for each problem");
    require(tol.shape(0) == problems, "one tolerance for each problem");
    for (size_t t = 0; t < variables; ++t) require(row(t) >= 0 && row(t) < int64_t(n), "a row does not exist");
    require(epsilon >= 0 && std::isfinite(epsilon) && work >= 0, "epsilon and work are not negative");
    check_state(offset, order, place);
    const LinearDualBatch batch{.is_double = is_double,
                                .features = features.data(),
                                .width = int64_t(m),
                                .problems = int64_t(problems),
                                .offset = offset.data(),
                                .row = row.data(),
                                .square = square.data(),
                                .linear = linear.data(),
                                .lower = lower.data(),
                                .upper = upper.data(),
                                .epsilon = epsilon,
                                .beta = beta.data(),
                                .w = w.data(),
                                .order = order.data(),
                                .place = place.data(),
                                .level = level.data(),
                                .random = random.data(),
                                .tol = tol.data(),
                                .work = work,
                                .ended = ended.data()};
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    set.coordinates(batch);
}

}  // namespace

void bind_coordinates(nb::module_& m) {
    m.def("coordinates", &coordinates, nb::kw_only(), "features"_a.noconvert(), "square"_a.noconvert(),
          "offset"_a.noconvert(), "row"_a.noconvert(), "linear"_a.noconvert(), "lower"_a.noconvert(),
          "upper"_a.noconvert(), "epsilon"_a, "beta"_a.noconvert(), "w"_a.noconvert(), "order"_a.noconvert(),
          "place"_a.noconvert(), "level"_a.noconvert(), "random"_a.noconvert(), "tol"_a.noconvert(), "work"_a,
          "ended"_a.noconvert(), "isa"_a = "");
}

}  // namespace mercer
