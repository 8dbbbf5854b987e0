// Python bindings of the loops over sequences.
#include "base/sparse.hpp"
#include "bindings/bindings.hpp"
#include "sequences/automaton.hpp"
#include "sequences/comparisons.hpp"
#include "sequences/kmers.hpp"
#include "sequences/pairs.hpp"

#include <memory>
#include <utility>

namespace mercer {

namespace {

using Symbols = Array<const int32_t, 1>;
using Ints = Array<int32_t, 1>;
using Longs = Array<int64_t, 1>;
using Rows = Array<const double, 2>;
using Matrix = Array<double, 2>;

void require_starts(const Index& starts, int64_t size) {
    require(starts.shape(0) >= 1 && starts(0) == 0 && starts(starts.shape(0) - 1) == size,
            "the parts do not cover the whole");
    for (size_t i = 1; i < starts.shape(0); ++i) require(starts(i - 1) <= starts(i), "the parts are not in order");
}

Corpus corpus(const Symbols& symbols, const Index& starts) {
    require(symbols.shape(0) < (size_t(1) << 31), "more than 2^31 symbols");
    require_starts(starts, int64_t(symbols.shape(0)));
    return {symbols.data(), starts.data(), int64_t(starts.shape(0)) - 1};
}

std::tuple<int64_t, int64_t> count_kmers_(Symbols symbols, Index starts, Index offsets, int64_t span, int32_t alphabet,
                                          Longs start, Ints rows, Ints counts, Longs first, std::optional<Ints> shown) {
    const Corpus c = corpus(symbols, starts);
    require(span >= 1 && alphabet >= 1 && offsets.shape(0) <= kLongestWindow, "an impossible pattern");
    for (size_t i = 0; i < offsets.shape(0); ++i)
        require(offsets(i) >= 0 && offsets(i) < span, "a place outside its window");
    size_t windows = 0;
    for (int64_t i = 0; i < c.count; ++i)
        windows += size_t(std::max<int64_t>(0, c.starts[i + 1] - c.starts[i] - span + 1));
    require(
        start.shape(0) > windows && rows.shape(0) >= windows && counts.shape(0) >= windows && first.shape(0) >= windows,
        "the output is too small");
    require(!shown || shown->shape(0) == symbols.shape(0), "the features of windows do not fit");
    Counts out{.start = start.data(),
               .rows = rows.data(),
               .counts = counts.data(),
               .first = first.data(),
               .shown = shown ? shown->data() : nullptr,
               .features = 0,
               .entries = 0};
    nb::gil_scoped_release free;
    count_kmers(c, {offsets.data(), int(offsets.shape(0)), span, alphabet}, out);
    return {out.features, out.entries};
}

// Constructed once for a matrix, and called for each of its pieces.
class WindowComparison {
   public:
    WindowComparison(Symbols x, Index x_starts, Symbols z, Index z_starts, Index worth, int32_t alphabet, int which,
                     const std::string& isa)
        : x_(x), z_(z), x_starts_(x_starts), z_starts_(z_starts), worth_(worth) {
        const Corpus rows = corpus(x_, x_starts_), columns = corpus(z_, z_starts_);
        const int64_t span = int64_t(worth_.shape(0)) - 1;
        require(span >= 1 && span <= kLongestComparedWindow && alphabet >= 1 && which >= kWhole && which <= kDiagonal,
                "impossible windows");
        for (int64_t m = 0; m <= span; ++m)
            require(worth_(size_t(m)) >= 0 && worth_(size_t(m)) <= (int64_t(1) << 53), "an impossible worth");
        require(MatchTable(worth_.data(), int(span)).fits(), "a table that is too long");
        require(which == 0 || rows.count == columns.count, "the sequences do not fit");
        const Pattern windows{nullptr, 0, span, alphabet};
        shape_ = {rows.count, MatrixPart(which) == kDiagonal ? 1 : columns.count};
        const InstructionSet& set = find_isa(isa);
        nb::gil_scoped_release free;
        comparison_ = std::make_unique<Comparison>(set, rows, columns, windows, worth_.data(), MatrixPart(which));
    }

    void add(int64_t from, int64_t to, Matrix out) const {
        require(0 <= from && from <= to && to <= int64_t(x_.shape(0)), "an impossible range");
        require(int64_t(out.shape(0)) == shape_.first && int64_t(out.shape(1)) == shape_.second,
                "the output does not fit");
        nb::gil_scoped_release free;
        comparison_->add(from, to, out.data());
    }

   private:
    Symbols x_, z_;
    Index x_starts_, z_starts_, worth_;
    std::pair<int64_t, int64_t> shape_;
    std::unique_ptr<Comparison> comparison_;
};

template <typename T>
Sparse<T> sparse(const Index& start, const Symbols& index, const Array<const T, 1>& value, int64_t below) {
    require(index.shape(0) == value.shape(0), "one value per index");
    require_starts(start, int64_t(index.shape(0)));
    for (size_t i = 0; i < index.shape(0); ++i) require(index(i) >= 0 && index(i) < below, "an index out of range");
    return {start.data(), index.data(), value.data()};
}

template <typename T>
void add_products_(Index row_start, Symbols features, Array<const T, 1> row_values, Index feature_start, Symbols rows,
                   Array<const T, 1> feature_values, double weight, bool triangle, int64_t i0, int64_t i1, Matrix out) {
    const int64_t n = int64_t(row_start.shape(0)) - 1;
    require(int64_t(out.shape(0)) == n && 0 <= i0 && i0 <= i1 && i1 <= n, "the output does not fit");
    const Sparse<T> x = sparse<T>(row_start, features, row_values, int64_t(feature_start.shape(0)) - 1);
    const Sparse<T> z = sparse<T>(feature_start, rows, feature_values, int64_t(out.shape(1)));
    nb::gil_scoped_release free;
    add_products(x, z, weight, triangle, i0, i1, out.data(), int64_t(out.shape(1)));
}

template <typename T>
void bind_products(nb::module_& m) {
    m.def("add_products", &add_products_<T>, nb::kw_only(), "row_start"_a.noconvert(), "features"_a.noconvert(),
          "row_values"_a.noconvert(), "feature_start"_a.noconvert(), "rows"_a.noconvert(),
          "feature_values"_a.noconvert(), "weight"_a, "triangle"_a, "i0"_a, "i1"_a, "out"_a.noconvert());
}

void require_rows(const Index& x, const Matrix& out, int64_t columns, bool triangle, int64_t i0, int64_t i1) {
    const int64_t n = int64_t(x.shape(0)) - 1;
    require(int64_t(out.shape(0)) == n && int64_t(out.shape(1)) == columns && (!triangle || n == columns),
            "the output does not fit");
    require(0 <= i0 && i0 <= i1 && i1 <= n, "an impossible range");
}

void subsequence_kernel_(Symbols x, Index x_starts, Symbols z, Index z_starts, int length, double decay, bool triangle,
                         int64_t i0, int64_t i1, Matrix out, const std::string& isa, bool exact) {
    const Corpus rows = corpus(x, x_starts), columns = corpus(z, z_starts);
    require_rows(x_starts, out, columns.count, triangle, i0, i1);
    require(length >= 1 && length <= kLongestSubsequence, "a length beyond what is compiled");
    for (size_t i = 0; i < x.shape(0); ++i) require(x(i) >= 0, "a negative symbol");
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    subsequence_kernel(set, rows, columns, length, decay, exact, triangle, i0, i1, out.data());
}

void alignment_kernel_(Rows x, Index x_starts, Rows z, Index z_starts, double gamma, bool triangle, int64_t i0,
                       int64_t i1, Matrix out, const std::string& isa) {
    require(x.shape(1) == z.shape(1) && x.shape(1) >= 1, "series of different numbers of columns");
    require_starts(x_starts, int64_t(x.shape(0)));
    require_starts(z_starts, int64_t(z.shape(0)));
    const int64_t columns = int64_t(z_starts.shape(0)) - 1;
    require_rows(x_starts, out, columns, triangle, i0, i1);
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    alignment_kernel(set, {x.data(), x_starts.data(), int64_t(x_starts.shape(0)) - 1},
                     {z.data(), z_starts.data(), columns}, int64_t(x.shape(1)), gamma, triangle, i0, i1, out.data());
}

void require_known(const Symbols& symbols, int32_t alphabet) {
    require(alphabet >= 1, "no alphabet");
    for (size_t i = 0; i < symbols.shape(0); ++i)
        require(symbols(i) >= 0 && symbols(i) < alphabet, "a symbol outside the alphabet");
}

void substring_kernel_(Symbols x, Index x_starts, Symbols z, Index z_starts, int32_t alphabet, double decay,
                       bool triangle, int64_t j0, int64_t j1, Matrix out) {
    const Corpus rows = corpus(x, x_starts), columns = corpus(z, z_starts);
    require(int64_t(out.shape(0)) == rows.count && int64_t(out.shape(1)) == columns.count, "the output does not fit");
    require(0 <= j0 && j0 <= j1 && j1 <= columns.count && (!triangle || rows.count == columns.count),
            "an impossible range");
    require(z.shape(0) < (size_t(1) << 30), "more than 2^30 symbols");
    require_known(x, alphabet);
    require_known(z, alphabet);
    nb::gil_scoped_release free;
    substring_kernel(rows, columns, alphabet, decay, triangle, j0, j1, out.data());
}

void substring_product_(Symbols x, Index x_starts, Symbols z, Index z_starts, int32_t alphabet, double decay, Rows v,
                        Matrix out) {
    const Corpus rows = corpus(x, x_starts), columns = corpus(z, z_starts);
    require(int64_t(out.shape(0)) == rows.count && int64_t(v.shape(0)) == columns.count && v.shape(1) == out.shape(1),
            "the output does not fit");
    require(z.shape(0) < (size_t(1) << 30) && v.shape(1) < (size_t(1) << 20),
            "more than 2^30 symbols, or too many vectors");
    require_known(x, alphabet);
    require_known(z, alphabet);
    nb::gil_scoped_release free;
    substring_product(rows, columns, alphabet, decay, v.data(), int(v.shape(1)), out.data());
}

}  // namespace

void bind_sequences(nb::module_& m) {
    m.def("count_kmers", &count_kmers_, nb::kw_only(), "symbols"_a.noconvert(), "starts"_a.noconvert(),
          "offsets"_a.noconvert(), "span"_a, "alphabet"_a, "start"_a.noconvert(), "rows"_a.noconvert(),
          "counts"_a.noconvert(), "first"_a.noconvert(), "shown"_a.noconvert() = nb::none());
    bind_products<int32_t>(m);  // of counts
    bind_products<double>(m);
    nb::class_<WindowComparison>(m, "WindowComparison")
        .def(nb::init<Symbols, Index, Symbols, Index, Index, int32_t, int, const std::string&>(), nb::kw_only(),
             "x"_a.noconvert(), "x_starts"_a.noconvert(), "z"_a.noconvert(), "z_starts"_a.noconvert(),
             "worth"_a.noconvert(), "alphabet"_a, "which"_a, "isa"_a = "")
        .def("add", &WindowComparison::add, "from"_a, "to"_a, "out"_a.noconvert());
    m.def("match_lanes", [](const std::string& isa) { return find_isa(isa).match_lanes; }, "isa"_a = "");
    m.def("subsequence_kernel", &subsequence_kernel_, nb::kw_only(), "x"_a.noconvert(), "x_starts"_a.noconvert(),
          "z"_a.noconvert(), "z_starts"_a.noconvert(), "length"_a, "decay"_a, "triangle"_a, "i0"_a, "i1"_a,
          "out"_a.noconvert(), "isa"_a = "", "exact"_a = false);
    m.def("substring_kernel", &substring_kernel_, nb::kw_only(), "x"_a.noconvert(), "x_starts"_a.noconvert(),
          "z"_a.noconvert(), "z_starts"_a.noconvert(), "alphabet"_a, "decay"_a, "triangle"_a, "j0"_a, "j1"_a,
          "out"_a.noconvert());
    m.def("substring_product", &substring_product_, nb::kw_only(), "x"_a.noconvert(), "x_starts"_a.noconvert(),
          "z"_a.noconvert(), "z_starts"_a.noconvert(), "alphabet"_a, "decay"_a, "v"_a.noconvert(), "out"_a.noconvert());
    m.def("alignment_kernel", &alignment_kernel_, nb::kw_only(), "x"_a.noconvert(), "x_starts"_a.noconvert(),
          "z"_a.noconvert(), "z_starts"_a.noconvert(), "gamma"_a, "triangle"_a, "i0"_a, "i1"_a, "out"_a.noconvert(),
          "isa"_a = "");
}

}  // namespace mercer
