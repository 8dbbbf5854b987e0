// Python bindings of online learning: the updates of one chunk of rows.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "bindings/bindings.hpp"

namespace mercer {
namespace {

using Doubles = Array<double, 2>;
using Counts = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, double>;

template <class A>
bool is_matrix(const A& a, int64_t rows, int64_t columns) {
    return a.ndim() == 2 && int64_t(a.shape(0)) == rows && int64_t(a.shape(1)) == columns;
}

Counts merge_pass(Input x, Input own, Output near, Output z, Doubles b, Doubles u, Index labels, int64_t used,
                  int64_t t, double alpha, double gamma, const std::string& isa) {
    const bool is_double = x.dtype() == nb::dtype<double>();
    require(x.ndim() == 2 && x.shape(0) >= 1 && x.shape(1) >= 1, "a chunk has at least one row and one column");
    const int64_t rows = int64_t(x.shape(0)), depth = int64_t(x.shape(1));
    const int64_t slots = int64_t(b.shape(0)), outputs = int64_t(b.shape(1));
    require(slots >= 2 && outputs >= 1 && used >= 0 && used < slots && t >= 0,
            "a dictionary has one slot more than its budget");
    require(has_type(x, is_double) && has_type(own, is_double) && has_type(near, is_double) && has_type(z, is_double),
            "rows and distances are of one type");
    require(is_matrix(own, rows, rows) && is_matrix(near, slots, rows) && is_matrix(z, slots, depth) &&
                is_matrix(u, slots, outputs),
            "rows, distances and coefficients do not fit together");
    require(int64_t(labels.shape(0)) == rows, "one label per row");
    const int64_t most = outputs == 1 ? 2 : outputs;
    for (int64_t j = 0; j < rows; ++j)
        require(labels(size_t(j)) >= 0 && labels(size_t(j)) < most, "a label is not a class");
    require(alpha > 0 && gamma >= 0, "alpha is positive, gamma not negative");
    MergeTask task{.is_double = is_double,
                   .rows = rows,
                   .depth = depth,
                   .outputs = outputs,
                   .budget = slots - 1,
                   .slots = slots,
                   .alpha = alpha,
                   .gamma = gamma,
                   .labels = labels.data(),
                   .x = x.data(),
                   .own = own.data(),
                   .near = near.data(),
                   .z = z.data(),
                   .b = b.data(),
                   .u = u.data(),
                   .used = used,
                   .t = t,
                   .mistakes = 0,
                   .updates = 0,
                   .merges = 0,
                   .removals = 0,
                   .loss = 0.0};
    const InstructionSet& set = find_isa(isa);
    {
        nb::gil_scoped_release free;
        set.merge_pass(task);
    }
    return {task.used, task.t, task.mistakes, task.updates, task.merges, task.removals, task.loss};
}

}  // namespace

void bind_online(nb::module_& m) {
    // noconvert: the function writes into the caller's own arrays
    m.def("merge_pass", &merge_pass, nb::kw_only(), "x"_a, "own"_a, "near"_a.noconvert(), "z"_a.noconvert(),
          "b"_a.noconvert(), "u"_a.noconvert(), "labels"_a.noconvert(), "used"_a, "t"_a, "alpha"_a, "gamma"_a,
          "isa"_a = "");
}

}  // namespace mercer
