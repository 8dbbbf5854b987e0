// Online learning: the updates of one chunk, one after the other.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "bindings.hpp"

namespace mercer {
namespace {

using Doubles = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Counts = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, double>;

template <class A>
bool is_matrix(const A& a, int64_t rows, int64_t columns) {
    return a.ndim() == 2 && int64_t(a.shape(0)) == rows && int64_t(a.shape(1)) == columns;
}

Counts merge_pass(Input x, Input own, Output near, Output z, Doubles b, Doubles u, Index labels, int64_t used, int64_t t,
                  double alpha, double gamma, const std::string& isa) {
    const bool is_double = x.dtype() == nb::dtype<double>();
    require(x.ndim() == 2 && x.shape(0) >= 1 && x.shape(1) >= 1, "a chunk has at least one row and one column");
    const int64_t rows = int64_t(x.shape(0)), depth = int64_t(x.shape(1));
    const int64_t slots = int64_t(b.shape(0)), outputs = int64_t(b.shape(1));
    require(slots >= 2 && outputs >= 1 && used >= 0 && used < slots && t >= 0, "a dictionary has one slot more than its budget");
    require(has_type(x, is_double) && has_type(own, is_double) && has_type(near, is_double) && has_type(z, is_double),
            "rows and distances are of one type");
    require(is_matrix(own, rows, rows) && is_matrix(near, slots, rows) && is_matrix(z, slots, depth) && is_matrix(u, slots, outputs),
            "rows, distances and coefficients do not fit together");
    require(int64_t(labels.shape(0)) == rows, "one label per row");
    const int64_t most = outputs == 1 ? 2 : outputs;
    for (int64_t j = 0; j < rows; ++j) require(labels(size_t(j)) >= 0 && labels(size_t(j)) < most, "a label that is no class");
    require(alpha > 0 && gamma >= 0, "alpha is positive, gamma not negative");
    MergeTask task{is_double, rows, depth, outputs, slots - 1, slots, alpha, gamma, labels.data(), x.data(), own.data(), near.data(),
                   z.data(), b.data(), u.data(), used, t, 0, 0, 0, 0, 0.0};
    const InstructionSet& set = find_isa(isa);
    {
        nb::gil_scoped_release free;
        set.merge_pass(task);
    }
    return {task.used, task.t, task.mistakes, task.updates, task.merges, task.removals, task.loss};
}

// ---- the Forgetron: its definition is forget_pass of the NumPy twin --------------------------------------------------------

constexpr double kAllowed = 15.0 / 32;

// The largest shrinkage with which the damage stays within what the mistakes allow, and the damage after it.
double shrinkage(double size, double margin, double& damage, int64_t mistakes) {
    const double a = size * size - 2 * size * margin, b = 2 * size, c = damage - kAllowed * double(mistakes);
    const double root = b * b - 4 * a * c;
    double phi = 1;
    if (!(a + b + c <= 0)) phi = std::min(1.0, -2 * c / (b + std::sqrt(root > 0 ? root : 0.0)));
    damage += phi * (a * phi + b);
    return phi;
}

struct ForgetTask {
    const double* pool;
    double* F;
    int64_t *members, *labels, *rivals;
    double *sizes, *u;
    const int64_t* targets;
    int64_t m, n, p, classes, budget, steps;
    double damage;
    int64_t mistakes, count = m, gone = 0;

    int64_t width() const { return p + n; }

    void add(int64_t source, int64_t y, int64_t r, double amount) {
        const double* k = pool + source * width();
        double *fy = F + y * width(), *fr = F + r * width();
        for (int64_t l = 0; l < width(); ++l) fy[l] += amount * k[l];
        for (int64_t l = 0; l < width(); ++l) fr[l] -= amount * k[l];
    }

    void forget(int64_t when) {
        const int64_t old = members[gone], y = labels[gone], r = rivals[gone], place = old < m ? old : p + old - m;
        const double size = sizes[gone];
        const double phi = shrinkage(size, 0.5 * (F[y * width() + place] - F[r * width() + place]), damage, mistakes);
        for (int64_t l = 0; l < classes * width(); ++l) F[l] *= phi;
        for (int64_t i = gone; i < count; ++i) u[i] -= double(when) * (1 - phi) * sizes[i];
        for (int64_t i = gone; i < count; ++i) sizes[i] *= phi;
        add(old, y, r, -phi * size);
        ++gone;
    }

    void visit(int64_t j) {
        const int64_t y = targets[j];
        int64_t r = y ? 0 : 1;
        for (int64_t c = r + 1; c < classes; ++c)
            if (c != y && F[c * width() + p + j] > F[r * width() + p + j]) r = c;
        if (F[y * width() + p + j] > F[r * width() + p + j]) return;
        members[count] = m + j, sizes[count] = 1, u[count] = double(steps + j), labels[count] = y, rivals[count] = r;
        ++count, ++mistakes;
        add(m + j, y, r, 1);
        if (count - gone > budget) forget(steps + j);
    }
};

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

bool are_below(const int64_t* values, int64_t count, int64_t most) {
    return std::all_of(values, values + count, [most](int64_t v) { return 0 <= v && v < most; });
}

std::tuple<int64_t, int64_t, double, int64_t> forget_pass(Matrix pool, Doubles F, Integers members, Vector sizes, Vector u,
                                                          Integers labels, Integers rivals, Index targets, int64_t budget,
                                                          int64_t steps, double damage, int64_t mistakes) {
    const int64_t n = int64_t(targets.shape(0)), all = int64_t(pool.shape(0)), classes = int64_t(F.shape(0)), m = all - n;
    require(n >= 1 && m >= 0 && classes >= 2 && budget >= 1 && steps >= 0, "a chunk has rows, and there are two classes or more");
    const int64_t p = std::min(m, n);
    require(int64_t(pool.shape(1)) == p + n && int64_t(F.shape(1)) == p + n, "kernel values and f do not fit together");
    for (size_t size : {members.shape(0), sizes.shape(0), u.shape(0), labels.shape(0), rivals.shape(0)})
        require(int64_t(size) == all, "one of each for all that may be in the dictionary");
    require(are_below(targets.data(), n, classes) && are_below(labels.data(), m, classes) && are_below(rivals.data(), m, classes),
            "a label that is no class");
    for (int64_t i = 0; i < m; ++i) require(members(size_t(i)) == i, "the dictionary comes first, oldest first");
    ForgetTask task{pool.data(), F.data(), members.data(), labels.data(), rivals.data(), sizes.data(), u.data(), targets.data(),
                    m, n, p, classes, budget, steps, damage, mistakes};
    {
        nb::gil_scoped_release free;
        for (int64_t j = 0; j < n; ++j) task.visit(j);
    }
    return {task.count, task.gone, task.damage, task.mistakes};
}

}  // namespace

void bind_online(nb::module_& m) {
    // noconvert: what is written must be the caller's own arrays
    m.def("merge_pass", &merge_pass, "x"_a, "own"_a, "near"_a.noconvert(), "z"_a.noconvert(), "b"_a.noconvert(), "u"_a.noconvert(),
          "labels"_a.noconvert(), "used"_a, "t"_a, "alpha"_a, "gamma"_a, "isa"_a = "");
    m.def("forget_pass", &forget_pass, "pool"_a, "F"_a.noconvert(), "members"_a.noconvert(), "sizes"_a.noconvert(), "u"_a.noconvert(),
          "labels"_a.noconvert(), "rivals"_a.noconvert(), "targets"_a.noconvert(), "budget"_a, "steps"_a, "damage"_a, "mistakes"_a);
}

}  // namespace mercer
