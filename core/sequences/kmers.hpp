// Windows of sequences, grouped by their symbols at some of their places.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine.hpp"

namespace mercer {

// Sequences one after the other: sequence i is symbols[starts[i], starts[i + 1]).
struct Corpus {
    const int32_t* symbols;
    const int64_t* starts;
    int64_t count;
};

// Which places of a window are compared, and how long it is.
struct Pattern {
    const int64_t* offsets;
    int size;
    int64_t span;
    int32_t alphabet;  // windows with a symbol outside it are left out
};

struct Window {
    uint64_t key;
    uint32_t at, row;
};

inline int bits_of(int32_t alphabet) {
    int bits = 1;
    while (bits < 31 && (int64_t(1) << bits) < alphabet) ++bits;
    return bits;
}

// The symbols at places [from, to) as one number.
inline uint64_t packed(const Corpus& c, const Pattern& p, uint32_t at, int from, int to, int bits) {
    uint64_t key = 0;
    for (int i = from; i < to; ++i) key = key << bits | uint64_t(uint32_t(c.symbols[at + p.offsets[i]]));
    return key;
}

inline std::vector<Window> all_windows(const Corpus& c, const Pattern& p) {
    std::vector<Window> found;
    found.reserve(size_t(c.starts[c.count]));
    for (int64_t row = 0; row < c.count; ++row) {
        int64_t run = 0;  // of known symbols up to here
        for (int64_t end = c.starts[row]; end < c.starts[row + 1]; ++end) {
            const int32_t s = c.symbols[end];
            run = s >= 0 && s < p.alphabet ? run + 1 : 0;
            if (run >= p.span) found.push_back({0, uint32_t(end + 1 - p.span), uint32_t(row)});
        }
    }
    return found;
}

// A stable sort by the low `bits` of the keys, least significant digit first.
inline void radix_sort(std::vector<Window>& windows, std::vector<Window>& spare, int bits) {
    constexpr int kDigit = 12;
    const int passes = (bits + kDigit - 1) / kDigit;
    for (int pass = 0; pass < passes; ++pass) {
        const int shift = bits * pass / passes, width = bits * (pass + 1) / passes - shift;
        const uint64_t mask = (uint64_t(1) << width) - 1;
        std::vector<int64_t> place(size_t(mask) + 2, 0);
        for (const Window& w : windows) ++place[size_t(w.key >> shift & mask) + 1];
        for (size_t i = 1; i < place.size(); ++i) place[i] += place[i - 1];
        for (const Window& w : windows) spare[size_t(place[size_t(w.key >> shift & mask)]++)] = w;
        windows.swap(spare);
    }
}

// Sorted by their symbols at the places of the pattern, then by row.
inline std::vector<Window> sorted_windows(const Corpus& c, const Pattern& p) {
    std::vector<Window> windows = all_windows(c, p), spare(windows.size());
    const int bits = bits_of(p.alphabet), each = 64 / bits;
    for (int from = (p.size + each - 1) / each * each - each; from >= 0; from -= each) {
        const int to = std::min(from + each, p.size);
        for (Window& w : windows) w.key = packed(c, p, w.at, from, to, bits);
        radix_sort(windows, spare, (to - from) * bits);
    }
    return windows;
}

inline bool same(const Corpus& c, const Pattern& p, const Window& a, const Window& b) {
    if (a.key != b.key) return false;  // the key has the first places
    for (int i = 64 / bits_of(p.alphabet); i < p.size; ++i)
        if (c.symbols[a.at + p.offsets[i]] != c.symbols[b.at + p.offsets[i]]) return false;
    return true;
}

// For each feature f, in order: the rows that have it, how often, and a place where it occurs. A feature is the symbols
// that a window has at the places of the pattern.
struct Counts {
    int64_t* start;  // of feature f, rows[start[f]] to rows[start[f + 1]]; one more than there are windows
    int32_t* rows;
    int32_t* counts;
    int64_t* first;
    int32_t* shown;  // the feature of the window that begins at a symbol, -1 for none; or null
    int64_t features, entries;
};

inline void count_kmers(const Corpus& c, const Pattern& p, Counts& out) {
    const std::vector<Window> windows = sorted_windows(c, p);
    out.features = out.entries = 0;
    if (out.shown) std::fill(out.shown, out.shown + c.starts[c.count], -1);
    out.start[0] = 0;
    for (size_t i = 0; i < windows.size(); ++i) {
        const bool fresh = i == 0 || !same(c, p, windows[i - 1], windows[i]);
        if (fresh) {
            out.first[out.features] = int64_t(windows[i].at);
            out.start[out.features++] = out.entries;
        }
        if (fresh || windows[i].row != windows[i - 1].row) {
            out.rows[out.entries] = int32_t(windows[i].row);
            out.counts[out.entries++] = 0;
        }
        ++out.counts[out.entries - 1];
        if (out.shown) out.shown[windows[i].at] = int32_t(out.features - 1);
    }
    out.start[out.features] = out.entries;
}

}  // namespace mercer
