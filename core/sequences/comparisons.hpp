// Kernels of windows, by comparing each window of one sequence with each window of another.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "sequences/kmers.hpp"

namespace mercer {

// Sequences with one byte for each symbol, kMatchPad bytes apart, so that vectors may read beyond both ends.
struct ByteCorpus {
    std::vector<uint8_t> symbols;
    std::vector<int8_t> unknown;  // -1 if no window begins there, or one with a symbol outside the alphabet
    std::vector<int64_t> at, windows;

    ByteCorpus(const Corpus& c, const Pattern& p) : at(size_t(c.count)), windows(size_t(c.count)) {
        const size_t size = size_t(c.starts[c.count] + (c.count + 1) * kMatchPad);
        symbols.assign(size, kNoSymbol), unknown.assign(size, -1);
        for (int64_t j = 0; j < c.count; ++j) {
            at[size_t(j)] = c.starts[j] + (j + 1) * kMatchPad;
            windows[size_t(j)] = std::max<int64_t>(0, c.starts[j + 1] - c.starts[j] - p.span + 1);
        }
        for (const Window& w : all_windows(c, p)) unknown[size_t(w.at + (w.row + 1) * kMatchPad)] = 0;
    }
    // code(symbol) of sequences [first, last), in `to`
    template <class Code>
    void write(const Corpus& c, int64_t first, int64_t last, const Code& code, std::vector<uint8_t>& to) const {
        for (int64_t j = first; j < last; ++j)
            for (int64_t p = c.starts[j]; p < c.starts[j + 1]; ++p)
                to[size_t(at[size_t(j)] + p - c.starts[j])] = code(c.symbols[p]);
    }
};

// The worth of each number of matches of two windows, in portions of 16 bits.
class MatchTable {
   public:
    MatchTable(const int64_t* worth, int span) : worth_(worth), span_(span) {
        while (least_ < span && worth[least_] == 0) ++least_;
        for (int m = 0; m <= span; ++m) most_ = std::max(most_, worth[m]);
    }
    bool fits() const { return span_ - least_ < kMatchLevels; }
    int passes() const { return most_ >> 48 ? 4 : most_ >> 32 ? 3 : most_ >> 16 ? 2 : 1; }
    void set(int pass, MatchTask& task, uint8_t (&tables)[2 * kMatchLevels]) const {
        task.least = least_, task.segments = span_ - least_ < 16 ? 1 : 2, task.planes = most_ >> 8 ? 2 : 1;
        std::fill(tables, tables + 2 * kMatchLevels, uint8_t(0));
        for (int m = least_; m <= span_; ++m)
            for (int p = 0; p < task.planes; ++p)
                tables[p * task.segments * 16 + m - least_] = uint8_t(worth_[m] >> (16 * pass + 8 * p));
        task.tables = tables;
    }

   private:
    const int64_t* worth_;
    int span_, least_ = 0;
    int64_t most_ = 0;
};

// Calls f(at, windows) for each piece of up to kMatchedRows consecutive known windows that begin at symbols [from, to).
template <class F>
void known_pieces(const Corpus& c, const Pattern& p, int64_t row, int64_t from, int64_t to, const F& f) {
    const int64_t end = c.starts[row + 1];
    int64_t known = 0, open = -1;  // known symbols up to here; where the piece begins
    to = std::min(to, end - p.span + 1);
    const auto close = [&](int64_t until) {
        if (open >= 0) f(open, until - open);
        open = -1;
    };
    for (int64_t at = from; at < std::min(to + p.span - 1, end); ++at) {
        const int32_t s = c.symbols[at];
        known = s >= 0 && s < p.alphabet ? known + 1 : 0;
        const int64_t window = at + 1 - p.span;
        if (known < p.span) {
            close(window);
            continue;
        }
        if (open >= 0 && window - open == kMatchedRows) close(window);
        if (open < 0) open = window;
    }
    close(to);
}

class Comparison {
   public:
    Comparison(const InstructionSet& set, const Corpus& x, const Corpus& z, const Pattern& p, const int64_t* worth,
               MatrixPart which)
        : set_(set), x_(x), z_(z), p_(p), table_(worth, int(p.span)), which_(which), columns_(z, p) {
        if (few())
            columns_.write(z, 0, z.count, [&](int32_t s) { return s >= 0 && s < p.alphabet ? uint8_t(s) : kNoSymbol; },
                           columns_.symbols);
    }

    // Adds the windows of x that begin at symbols [from, to) to out[i, j]; for kDiagonal to out[i].
    void add(int64_t from, int64_t to, double* out) const {
        const int64_t first = std::upper_bound(x_.starts, x_.starts + x_.count + 1, from) - x_.starts - 1;
        const int64_t last = std::lower_bound(x_.starts, x_.starts + x_.count + 1, to) - x_.starts;
        const int64_t wanted = 4 * threads(), rows = std::max<int64_t>(1, last - first);
        const int64_t slices =
            which_ == kDiagonal ? 1 : std::min(std::max<int64_t>(1, z_.count), (wanted + rows - 1) / rows);
        parallel(std::max<int64_t>(0, last - first) * slices, [&](int64_t task) {
            const int64_t i = first + task / slices, slice = task % slices;
            const auto [j0, j1] = columns_of(i, slice, slices);
            if (j0 < j1) row(i, std::max(from, x_.starts[i]), std::min(to, x_.starts[i + 1]), j0, j1, out);
        });
    }

   private:
    bool few() const { return p_.alphabet < kOtherSymbol; }

    std::pair<int64_t, int64_t> columns_of(int64_t i, int64_t slice, int64_t slices) const {
        if (which_ == kDiagonal) return {i, i + 1};
        const int64_t begin = which_ == kUpper ? i : 0, size = z_.count - begin;
        return {begin + size * slice / slices, begin + size * (slice + 1) / slices};
    }

    void row(int64_t i, int64_t from, int64_t to, int64_t j0, int64_t j1, double* out) const {
        std::vector<uint8_t> piece(kMatchedRows + kLongestComparedWindow), mine;
        std::vector<uint8_t> code;
        if (!few()) mine.assign(columns_.symbols.size(), kNoSymbol), code.assign(size_t(p_.alphabet), kOtherSymbol);
        std::vector<uint64_t> sums(size_t(j1 - j0) * table_.passes(), 0);
        known_pieces(x_, p_, i, from, to, [&](int64_t at, int64_t windows) {
            const int64_t size = windows + p_.span - 1;
            if (few()) {
                for (int64_t k = 0; k < size; ++k) piece[size_t(k)] = uint8_t(x_.symbols[at + k]);
            } else {
                numbered(at, size, j0, j1, code, piece, mine);
            }
            MatchTask task{.x = piece.data(),
                           .windows = windows,
                           .z = (few() ? columns_.symbols : mine).data(),
                           .unknown = columns_.unknown.data(),
                           .at = columns_.at.data(),
                           .count = columns_.windows.data(),
                           .first = j0,
                           .last = j1,
                           .span = int(p_.span),
                           .least = 0,
                           .planes = 1,
                           .segments = 1,
                           .tables = nullptr,
                           .sums = nullptr};
            uint8_t tables[2 * kMatchLevels];
            for (int pass = 0; pass < table_.passes(); ++pass) {
                table_.set(pass, task, tables);
                task.sums = sums.data() + pass * (j1 - j0) - j0;
                set_.matches(task);
            }
        });
        for (int64_t j = j0; j < j1; ++j) {
            double total = 0;
            for (int pass = table_.passes(); pass-- > 0;)
                total = total * 65536 + double(sums[size_t(pass * (j1 - j0) + j - j0)]);
            out[which_ == kDiagonal ? i : i * z_.count + j] += total;
        }
    }

    // For a large alphabet, numbers the symbols of the piece, of which there are no more than a byte can tell apart,
    // and writes the numbers into both.
    void numbered(int64_t at, int64_t size, int64_t j0, int64_t j1, std::vector<uint8_t>& code,
                  std::vector<uint8_t>& piece, std::vector<uint8_t>& mine) const {
        uint8_t next = 0;
        for (int64_t k = 0; k < size; ++k) {
            uint8_t& number = code[size_t(x_.symbols[at + k])];
            if (number == kOtherSymbol) number = next++;
            piece[size_t(k)] = number;
        }
        columns_.write(z_, j0, j1,
                       [&](int32_t s) { return s >= 0 && s < p_.alphabet ? code[size_t(s)] : kOtherSymbol; }, mine);
        for (int64_t k = 0; k < size; ++k) code[size_t(x_.symbols[at + k])] = kOtherSymbol;
    }

    const InstructionSet& set_;
    const Corpus x_, z_;
    const Pattern p_;
    const MatchTable table_;
    const MatrixPart which_;
    ByteCorpus columns_;
};

}  // namespace mercer
