// Kernels of pairs of sequences: one row against many columns at a time, one column in each lane of a vector.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "sequences/kmers.hpp"

namespace mercer {

// An array on a cache line, as vector loads need it.
template <class T>
class Lanes {
   public:
    explicit Lanes(size_t size) : own_(size + 64 / sizeof(T)) {
        const uintptr_t at = reinterpret_cast<uintptr_t>(own_.data());
        at_ = reinterpret_cast<T*>((at + 63) & ~uintptr_t(63));
    }
    T* get() { return at_; }

   private:
    std::vector<T> own_;
    T* at_;
};

// The length of the longest of `lanes` sequences from `first` on.
inline int64_t longest(const int64_t* starts, int64_t count, int64_t first, int lanes) {
    int64_t most = 0;
    for (int64_t j = first; j < std::min(first + lanes, count); ++j) most = std::max(most, starts[j + 1] - starts[j]);
    return most;
}

// Calls f(i, j, group) for rows [i0, i1) and the first column j of each group; if `triangle`, only for groups that
// reach the diagonal. A thread has one group at a time, which make(j) interleaves once for all rows.
template <class Make, class F>
void by_groups(int64_t i0, int64_t i1, int64_t columns, int lanes, bool triangle, const Make& make, const F& f) {
    const int64_t first = triangle ? i0 / lanes : 0, last = (columns + lanes - 1) / lanes;
    parallel(last - first, [&](int64_t task) {
        const int64_t j = (first + task) * lanes, end = triangle ? std::min(i1, j + lanes) : i1;
        const auto group = make(j);
        for (int64_t i = i0; i < end; ++i) f(i, j, *group);
    });
}

struct SymbolGroup {
    Lanes<int64_t> symbols;
    int64_t length;
};

// out[i, j] for rows [i0, i1) of x and all sequences j of z. If `triangle`, z is x, and at least j >= i are computed.
inline void subsequence_kernel(const InstructionSet& set, const Corpus& x, const Corpus& z, int length, double decay,
                               bool exact, bool triangle, int64_t i0, int64_t i1, double* out) {
    const int W = set.lanes;
    const auto make = [&](int64_t first) {
        const int64_t most = longest(z.starts, z.count, first, W);
        auto group = std::make_unique<SymbolGroup>(SymbolGroup{Lanes<int64_t>(size_t(most) * W), most});
        int64_t* at = group->symbols.get();
        std::fill(at, at + most * W, int64_t(-1));  // equal to no symbol
        for (int64_t j = first; j < std::min(first + W, z.count); ++j)
            for (int64_t p = 0; p < z.starts[j + 1] - z.starts[j]; ++p)
                at[p * W + (j - first)] = z.symbols[z.starts[j] + p];
        return group;
    };
    by_groups(i0, i1, z.count, W, triangle, make, [&](int64_t i, int64_t j, SymbolGroup& group) {
        const int64_t size = x.starts[i + 1] - x.starts[i];
        Lanes<double> work(size_t(subsequence_work(size, length)) * W), found(W);
        set.subsequences(x.symbols + x.starts[i], size, group.symbols.get(), group.length, length, decay, exact,
                         work.get(), found.get());
        for (int64_t c = j; c < std::min(j + W, z.count); ++c) out[i * z.count + c] = found.get()[c - j];
    });
}

// Series one after the other: series i is rows [starts[i], starts[i + 1]) of `depth` numbers each.
struct Series {
    const double* rows;
    const int64_t* starts;
    int64_t count;
};

struct SeriesGroup {
    Lanes<double> rows;
    std::vector<int64_t> lengths;
    int64_t longest;
};

// The logarithms of the kernel, for the same pairs as subsequence_kernel.
inline void alignment_kernel(const InstructionSet& set, const Series& x, const Series& z, int64_t depth, double gamma,
                             bool triangle, int64_t i0, int64_t i1, double* out) {
    const int W = set.lanes;
    const auto make = [&](int64_t first) {
        const int64_t most = longest(z.starts, z.count, first, W);
        auto group = std::make_unique<SeriesGroup>(
            SeriesGroup{Lanes<double>(size_t(most * depth) * W), std::vector<int64_t>(size_t(W), 0), most});
        double* at = group->rows.get();
        for (int64_t j = first; j < std::min(first + W, z.count); ++j) {
            const int64_t size = z.starts[j + 1] - z.starts[j];
            group->lengths[size_t(j - first)] = size;
            for (int64_t p = 0; p < size * depth; ++p) at[p * W + (j - first)] = z.rows[z.starts[j] * depth + p];
        }
        return group;
    };
    by_groups(i0, i1, z.count, W, triangle, make, [&](int64_t i, int64_t j, SeriesGroup& group) {
        Lanes<double> work(size_t(group.longest + 1) * W), found(W);
        set.alignments(x.rows + x.starts[i] * depth, x.starts[i + 1] - x.starts[i], group.rows.get(), group.longest,
                       group.lengths.data(), depth, gamma, work.get(), found.get());
        for (int64_t c = j; c < std::min(j + W, z.count); ++c) out[i * z.count + c] = found.get()[c - j];
    });
}

}  // namespace mercer
