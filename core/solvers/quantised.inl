// A symmetric matrix in 16 bits an entry, K[i, j] = centre + step q for each block of rows, and products with it.
//
// A block of kQuantisedRows rows keeps only the columns from its first row on: each pair once, but the whole square on
// the diagonal. Entries are stored in the order in which a product reads them, so that memory is one stream: strips of
// kQuantisedStrip rows, and in each strip groups of kQuantisedGroup columns. Padding is zero.

constexpr int64_t kQuantTile = 1024;  // columns: a strip of them, 16 KB, stays in L1 for all vectors
// How many entries ahead memory is fetched. At n = 20 000 on one core a product takes 42 ms, and 61 ms without.
constexpr int64_t kAhead = 4096;
constexpr float kLargest = kQuantisedMost;

class QuantisedBlock {
    using F = Vec<float>;
    using I = IntVec<float>;
    static constexpr int W = Simd<float>::W;
    typedef int16_t Short __attribute__((vector_size(kVectorBytes / 2), may_alias, aligned(2)));
    typedef uint32_t Seeds __attribute__((vector_size(kVectorBytes), may_alias, aligned(4)));
    static_assert(kQuantisedGroup % W == 0 && kQuantisedRows % kQuantisedGroup == 0 &&
                  kQuantisedRows % kQuantisedStrip == 0);

   public:
    QuantisedBlock(int64_t rows, int64_t columns)
        : rows_(rows), columns_(columns), groups_(ceil_div(columns, kQuantisedGroup)) {}

    int64_t strips() const { return ceil_div(rows_, kQuantisedStrip); }
    int64_t strip_size() const { return groups_ * kQuantisedStrip * kQuantisedGroup; }

    // ---- rounding ---------------------------------------------------------------------------------------------------

    // The smallest and the largest entry off the diagonal, which begins in the corner; NaN if an entry is not finite.
    void range(const float* x, float* low, float* high) const {
        Buffer<float> lows(rows_), highs(rows_);
        parallel(rows_, [&](int64_t i) { row_range(x + i * columns_, i, lows[i], highs[i]); });
        *low = __builtin_inff(), *high = -__builtin_inff();
        for (int64_t i = 0; i < rows_; ++i) {
            if (lows[i] != lows[i]) *low = *high = lows[i];
            if (lows[i] < *low) *low = lows[i];
            if (highs[i] > *high) *high = highs[i];
        }
    }

    // q = floor((x - centre) / step + u) with a u in [0, 1) drawn for each pair. So the rounding error has mean zero
    // and is independent between pairs, whatever the entries. Entries on the diagonal become 0.
    void round(const float* x, const uint32_t* seeds, float centre, float scale, int16_t* out) const {
        parallel(strips(), [&](int64_t s) {
            for (int64_t k = 0; k < kQuantisedStrip; ++k) {
                const int64_t i = s * kQuantisedStrip + k;
                int16_t* row = out + s * strip_size() + k * kQuantisedGroup;
                if (i < rows_)
                    round_row(x + i * columns_, i, seeds, centre, scale, row);
                else
                    for (int64_t g = 0; g < groups_; ++g)
                        std::memset(row + g * kQuantisedStrip * kQuantisedGroup, 0, kQuantisedGroup * sizeof(int16_t));
            }
        });
    }

    // ---- one strip against one vector -------------------------------------------------------------------------------

    // sums[k] += q[k, :] x over the columns [from, to); carry[c] += sum over k of own[k] q[k, c], unless carry is null.
    static void dot_both(const int16_t* strip, const float* x, int64_t from, int64_t to, const float* own, float* carry,
                         double* sums) {
        F s[kQuantisedStrip];
#pragma GCC unroll 8
        for (int k = 0; k < kQuantisedStrip; ++k) s[k] = F{};
        for (int64_t c = from; c < to; c += W) {
            const int16_t* q = strip + c / kQuantisedGroup * (kQuantisedStrip * kQuantisedGroup) + c % kQuantisedGroup;
            __builtin_prefetch(q + kAhead);
            if constexpr (W == kQuantisedGroup) {  // a turn reads a whole group, four lines
                __builtin_prefetch(q + kAhead + 32);
                __builtin_prefetch(q + kAhead + 64);
                __builtin_prefetch(q + kAhead + 96);
            }
            const F xc = load(x + c);
            F t = carry ? load(carry + c) : F{};
#pragma GCC unroll 8
            for (int k = 0; k < kQuantisedStrip; ++k) {
                const F e = widened(q + k * kQuantisedGroup);
                s[k] += e * xc;
                t += e * own[k];
            }
            if (carry) store<float>(carry + c, t);
        }
#pragma GCC unroll 8
        for (int k = 0; k < kQuantisedStrip; ++k) sums[k] += lane_sum<float>(s[k]);
    }

   private:
    static F widened(const int16_t* q) {
        return __builtin_convertvector(__builtin_convertvector(*reinterpret_cast<const Short*>(q), I), F);
    }

    void row_range(const float* x, int64_t diagonal, float& low, float& high) const {
        F a = splat<float>(__builtin_inff()), b = -a, bad{};
        const int64_t ends[2] = {min64(diagonal, columns_), columns_};
        for (int part = 0; part < 2; ++part) {
            int64_t j = part ? diagonal + 1 : 0;
            for (; j + W <= ends[part]; j += W) take(load_unaligned(x + j), a, b, bad);
            for (; j < ends[part]; ++j) take(splat<float>(x[j]), a, b, bad);
        }
        low = a[0], high = b[0];
        float none = bad[0];
        for (int k = 1; k < W; ++k) low = a[k] < low ? a[k] : low, high = b[k] > high ? b[k] : high, none += bad[k];
        if (none != 0) low = high = __builtin_nanf("");
    }

    static void take(F x, F& low, F& high, F& bad) {
        low = vmin(x, low), high = vmax(x, high);
        bad += x * 0.0f;
    }

    void round_row(const float* x, int64_t i, const uint32_t* seeds, float centre, float scale, int16_t* out) const {
        const uint32_t own = seeds[i];
        for (int64_t g = 0; g < groups_; ++g, out += kQuantisedStrip * kQuantisedGroup) {
            const int64_t first = g * kQuantisedGroup, count = min64(kQuantisedGroup, columns_ - first);
            if (count == kQuantisedGroup) {
                round_group(x + first, seeds + first, own, centre, scale, out);
            } else {
                float entries[kQuantisedGroup] = {};
                uint32_t theirs[kQuantisedGroup] = {};
                std::memcpy(entries, x + first, size_t(count) * sizeof(float));
                std::memcpy(theirs, seeds + first, size_t(count) * sizeof(uint32_t));
                round_group(entries, theirs, own, centre, scale, out);
                std::memset(out + count, 0, size_t(kQuantisedGroup - count) * sizeof(int16_t));
            }
            if (first <= i && i < first + count) out[i - first] = 0;
        }
    }

    static void round_group(const float* x, const uint32_t* seeds, uint32_t own, float centre, float scale,
                            int16_t* out) {
#pragma GCC unroll 4
        for (int c = 0; c < kQuantisedGroup; c += W) {
            Seeds z = *reinterpret_cast<const Seeds*>(seeds + c) + own;
            z = (z ^ (z >> 15)) * 0x2c1b3c6du;
            z = (z ^ (z >> 12)) * 0x297a2d39u;
            const F u = __builtin_convertvector((I)(z >> 8), F) * 0x1p-24f;
            const F y = vmin(vmax((load_unaligned(x + c) - centre) * scale + u, splat<float>(-kLargest)),
                             splat<float>(kLargest));
            const I whole = __builtin_convertvector(y, I);
            *reinterpret_cast<Short*>(out + c) =
                __builtin_convertvector(whole + (__builtin_convertvector(whole, F) > y), Short);
        }
    }

    int64_t rows_, columns_, groups_;
};

void quantise(const float* x, int64_t rows, int64_t columns, const uint32_t* seeds, int16_t* out, double* centre,
              double* step) {
    const QuantisedBlock block(rows, columns);
    float low, high;
    block.range(x, &low, &high);
    const bool any = !(low > high);  // a single entry lies on the diagonal
    *centre = any ? 0.5 * (double(low) + double(high)) : 0.0;
    *step = any ? (double(high) - double(low)) / (2.0 * double(kLargest)) : 0.0;
    if (*step != *step) return;
    const float scale = *step > 0 ? float(1.0 / *step) : 0.0f;
    block.round(x, seeds, float(*centre), scale <= 3e38f ? scale : 0.0f, out);
}

// out += Q v for the blocks [first, last) of Q, whose entries are step[block] q.
void quantised_product(const QuantisedSpec& p) {
    const int64_t length = round_up(p.n, kQuantisedGroup), groups = max64(1, min64(threads(), p.last - p.first));
    Buffer<float> vectors(p.r * (length + kQuantTile));
    for (int64_t j = 0; j < p.n; ++j)
        for (int64_t q = 0; q < p.r; ++q) vectors[q * length + j] = p.v[j * p.r + q];
    Buffer<double> others(groups * p.n * p.r);
    parallel(groups, [&](int64_t g) {
        Buffer<float> carry(p.r * length);
        double* mine = others.get() + g * p.n * p.r;
        for (int64_t b = p.first + g; b < p.last; b += groups) {
            const int64_t begin = b * kQuantisedRows, rows = min64(kQuantisedRows, p.n - begin), columns = p.n - begin;
            const QuantisedBlock block(rows, columns);
            const float step = float(p.step[b]);
            for (int64_t s = 0; s < block.strips(); ++s) {
                const int16_t* strip = p.entries + p.start[b] + s * block.strip_size();
                const int64_t row = begin + s * kQuantisedStrip, valid = min64(kQuantisedStrip, p.n - row);
                for (int64_t c = 0; c < columns;) {
                    // First the square on the diagonal, then tiles.
                    const int64_t end =
                        min64(round_up(columns, kQuantisedGroup), c < kQuantisedRows ? kQuantisedRows : c + kQuantTile);
                    for (int64_t q = 0; q < p.r; ++q) {
                        float own[kQuantisedStrip] = {};
                        double sums[kQuantisedStrip] = {};
                        for (int64_t k = 0; k < valid; ++k) own[k] = step * vectors[q * length + row + k];
                        QuantisedBlock::dot_both(strip, vectors.get() + q * length + begin, c, end, own,
                                                 c < kQuantisedRows ? nullptr : carry.get() + q * length, sums);
                        for (int64_t k = 0; k < valid; ++k) mine[(row + k) * p.r + q] += p.step[b] * sums[k];
                    }
                    c = end;
                }
            }
            for (int64_t q = 0; q < p.r; ++q)
                for (int64_t c = kQuantisedRows; c < columns; ++c) {
                    mine[(begin + c) * p.r + q] += double(carry[q * length + c]);
                    carry[q * length + c] = 0;
                }
        }
    });
    for (int64_t g = 0; g < groups; ++g)
        for (int64_t i = 0; i < p.n * p.r; ++i) p.out[i] += others[g * p.n * p.r + i];
}
