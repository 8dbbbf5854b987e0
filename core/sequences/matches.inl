// Sums over pairs of windows, one of a piece of a sequence and one of another sequence, of the worth of the number of
// places at which they match.
//
// Included once per instruction set: see base/simd.inl.

// Lanes are neighbouring diagonals of the table of all pairs of windows. One step down a diagonal, a pair of windows
// loses a place and gains one, so that two comparisons update its number of matches. Tables of 16 bytes give the worth
// of that number.

typedef int8_t Bytes __attribute__((vector_size(kVectorBytes), may_alias));
typedef int8_t LooseBytes __attribute__((vector_size(kVectorBytes), may_alias, aligned(1)));

MERCER_INLINE Bytes load_bytes(const void* p) { return *reinterpret_cast<const LooseBytes*>(p); }

// The byte of the table at the index in each lane, from 0 to 15; 0 for a negative index. Each quarter of the table is
// the same.
MERCER_INLINE Bytes looked_up(Bytes table, Bytes index) {
#if defined(__AVX512BW__)
    return (Bytes)_mm512_shuffle_epi8((__m512i)table, (__m512i)index);
#elif defined(__AVX2__)
    return (Bytes)_mm256_shuffle_epi8((__m256i)table, (__m256i)index);
#elif defined(__SSSE3__)
    return (Bytes)_mm_shuffle_epi8((__m128i)table, (__m128i)index);
#else
    Bytes out{};
    for (int i = 0; i < kVectorBytes; ++i) out[i] = index[i] < 0 ? int8_t(0) : table[index[i] & 15];
    return out;
#endif
}

// Sums of eight neighbouring unsigned bytes.
MERCER_INLINE Unsigned64 sums_of_bytes(Bytes x) {
#if defined(__AVX512BW__)
    return (Unsigned64)_mm512_sad_epu8((__m512i)x, _mm512_setzero_si512());
#elif defined(__AVX2__)
    return (Unsigned64)_mm256_sad_epu8((__m256i)x, _mm256_setzero_si256());
#elif defined(__SSE2__)
    return (Unsigned64)_mm_sad_epu8((__m128i)x, _mm_setzero_si128());
#else
    Unsigned64 out{};
    for (int i = 0; i < kVectorBytes; ++i) out[i / 8] += uint8_t(x[i]);
    return out;
#endif
}

template <int Planes, int Segments>
struct WorthOfMatches {
    Bytes table[Planes][Segments];
    Unsigned64 sum[Planes] = {};

    explicit WorthOfMatches(const uint8_t* tables) {
        for (int p = 0; p < Planes; ++p)
            for (int s = 0; s < Segments; ++s)
                for (int i = 0; i < kVectorBytes; ++i)
                    table[p][s][i] = int8_t(tables[(p * Segments + s) * 16 + i % 16]);
    }
    MERCER_INLINE void add(Bytes index) {
        for (int p = 0; p < Planes; ++p) {
            Bytes worth = looked_up(table[p][Segments - 1], Segments == 1 ? index : index - int8_t(16));
            if constexpr (Segments == 2) worth |= looked_up(table[p][0], index | (index > 15));
            sum[p] += sums_of_bytes(worth);
        }
    }
    uint64_t total() const {
        uint64_t out = 0;
        for (int p = 0; p < Planes; ++p)
            for (int i = 0; i < kVectorBytes / 8; ++i) out += sum[p][i] << 8 * p;
        return out;
    }
};

template <int Planes, int Segments>
void matches_of(const MatchTask& t) {
    constexpr int64_t L = kVectorBytes;
    alignas(64) Bytes x[kMatchedRows + kLongestComparedWindow];
    for (int64_t i = 0; i < t.windows + t.span - 1; ++i) x[i] = Bytes{} + int8_t(t.x[i]);
    const WorthOfMatches<Planes, Segments> none(t.tables);
    const int64_t last = t.span - 1;
    for (int64_t c = t.first; c < t.last; ++c) {
        const int64_t windows = t.count[c];
        // A sequence without windows may be so short that a vector would read beyond the space between sequences.
        if (windows == 0) continue;
        WorthOfMatches<Planes, Segments> worth = none;
        for (int64_t diagonal = 1 - t.windows; diagonal < windows; diagonal += L) {
            int64_t i = diagonal < 1 - L ? 1 - L - diagonal : 0;
            const int64_t end = t.windows < windows - diagonal ? t.windows : windows - diagonal;
            const uint8_t* z = t.z + t.at[c] + diagonal + i;
            const int8_t* unknown = t.unknown + t.at[c] + diagonal + i;
            Bytes matches = Bytes{} - int8_t(t.least);
            for (int64_t k = 0; k < last; ++k) matches -= load_bytes(z + k) == x[i + k];
            for (; i < end; ++i, ++z, ++unknown) {
                matches -= load_bytes(z + last) == x[i + last];
                worth.add(matches | load_bytes(unknown));
                matches += load_bytes(z) == x[i];
            }
        }
        t.sums[c] += worth.total();
    }
}

void matches(const MatchTask& t) {
    if (t.planes == 1) return t.segments == 1 ? matches_of<1, 1>(t) : matches_of<1, 2>(t);
    return t.segments == 1 ? matches_of<2, 1>(t) : matches_of<2, 2>(t);
}
