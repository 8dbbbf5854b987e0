// The first stage: reduce over features. A micro-kernel keeps kPanelRows x 2 vectors of partial sums in registers and
// walks down two packed panels, a[k][row] and b[k][column].

template <class T>
constexpr int kPanelColumns = 2 * Simd<T>::W;
constexpr int kMaxColumns = 512;  // of a strip: whole panels

template <int kind, class T>
MERCER_INLINE Vec<T> accumulate(Vec<T> sum, T a, Vec<T> b) {
    using V = Vec<T>;
    if constexpr (kind == kDot) {
        return sum + a * b;
    } else if constexpr (kind == kSqdist) {
        V t = a - b;
        return sum + t * t;
    } else if constexpr (kind == kL1) {
        return sum + vabs<T>(a - b);
    } else if constexpr (kind == kMinSum) {
        return sum + vmin(splat<T>(a), b);
    } else if constexpr (kind == kChi2) {
        V s = a + b, t = a - b;
        return sum + (s > T(0) ? t * (t / s) : V{});  // t * t could underflow
    } else {
        static_assert(kind == kMismatches);
        return sum + (splat<T>(a) != b ? splat<T>(T(1)) : V{});
    }
}

// How many features are added up in one sum: its rounding errors grow with its length, above all if all terms are
// alike. Longer sums are sums of such sums. A sum of n equal floats may err by n / 2 of its last digits, and 64 would
// be too many for a distance, whose error is that of the entry.
template <int kind, class T>
constexpr int kChunk = sizeof(T) == 8 ? kChunkOfDoubles
                       : kind == kDot ? kChunkOfFloats
                                      : kChunkOfFloats / 2;

// One sum over `depth` features. finish(s0, s1) may change the sums before they are stored.
template <int kind, class T, class Finish>
MERCER_INLINE void reduce(const T* __restrict a, const T* __restrict b, int depth, T* __restrict c, int stride,
                          bool add, Finish finish) {
    constexpr int W = Simd<T>::W, M = kPanelRows;
    Vec<T> s0[M], s1[M];
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) s0[i] = s1[i] = Vec<T>{};
    for (int k = 0; k < depth; ++k, a += M, b += 2 * W) {
        const Vec<T> b0 = load(b), b1 = load(b + W);
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i) {
            s0[i] = accumulate<kind, T>(s0[i], a[i], b0);
            s1[i] = accumulate<kind, T>(s1[i], a[i], b1);
        }
    }
    if (add) {
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i) s0[i] += load(c + i * stride), s1[i] += load(c + i * stride + W);
    }
    finish(s0, s1);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) store(c + i * stride, s0[i]), store(c + i * stride + W, s1[i]);
}

template <int kind, class T>
__attribute__((noinline, aligned(64))) void one_sum(const T* a, const T* b, int depth, T* c, int stride, bool add) {
    reduce<kind, T>(a, b, depth, c, stride, add, [](Vec<T>*, Vec<T>*) {});
}

// Adds up all features but the last chunk, and moves on to it. Calls, not a loop around the sum: with the loop,
// addresses of all rows were put on the stack before the first feature, an eighth of the time at d = 3.
template <int kind, class T>
MERCER_INLINE void all_but_last(const T*& a, const T*& b, int& depth, T* c, int stride, bool& add) {
    constexpr int most = kChunk<kind, T>;
    if (depth <= most) return;
    const int runs = (depth - 1) / most + 1, each = (depth + runs - 1) / runs;
    for (; depth > each; depth -= each, add = true, a += each * kPanelRows, b += each * kPanelColumns<T>)
        one_sum<kind, T>(a, b, each, c, stride, add);
}

template <int kind, class T>
void micro_kernel(const T* a, const T* b, int depth, T* c, int stride, bool add) {
    all_but_last<kind, T>(a, b, depth, c, stride, add);
    one_sum<kind, T>(a, b, depth, c, stride, add);
}

// Makes dot products <a, b> squared distances s = max(0, row + column - 2 <a, b>) by the squared norms of their rows.
// `least` becomes the smallest s - share column in each lane.
template <class T>
MERCER_INLINE void finish_distances(Vec<T>* s0, Vec<T>* s1, const T* row, const T* column, T share, Vec<T>& least) {
    const Vec<T> zero{}, n0 = load(column), n1 = load(column + Simd<T>::W);
    Vec<T> least0, least1;
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i) {
        s0[i] = vmax(zero, n0 + row[i] - T(2) * s0[i]), s1[i] = vmax(zero, n1 + row[i] - T(2) * s1[i]);
        least0 = i > 0 ? vmin(s0[i], least0) : s0[i], least1 = i > 0 ? vmin(s1[i], least1) : s1[i];
    }
    least = vmin(least0 - share * n0, least1 - share * n1);
}

template <class T>
__attribute__((noinline, aligned(64))) void last_distance_sum(const T* a, const T* b, int depth, T* c, int stride,
                                                              bool add, const T* row, const T* column, T share,
                                                              Vec<T>& least) {
    reduce<kDot, T>(a, b, depth, c, stride, add,
                    [&](Vec<T>* s0, Vec<T>* s1) { finish_distances<T>(s0, s1, row, column, share, least); });
}

template <class T>
void distance_kernel(const T* a, const T* b, int depth, T* c, int stride, bool add, const T* row, const T* column,
                     T share, Vec<T>& least) {
    all_but_last<kDot, T>(a, b, depth, c, stride, add);
    last_distance_sum<T>(a, b, depth, c, stride, add, row, column, share, least);
}

// The same of dot products that are known.
template <class T>
__attribute__((noinline)) void distances_of(const T* dots, T* c, int stride, const T* row, const T* column, T share,
                                            Vec<T>& least) {
    constexpr int W = Simd<T>::W, M = kPanelRows;
    Vec<T> s0[M], s1[M];
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) s0[i] = load(dots + i * stride), s1[i] = load(dots + i * stride + W);
    finish_distances<T>(s0, s1, row, column, share, least);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) store(c + i * stride, s0[i]), store(c + i * stride + W, s1[i]);
}

template <class T>
using MicroKernel = void (*)(const T*, const T*, int, T*, int, bool);

template <class T>
MicroKernel<T> micro_kernel_for(int kind) {
    switch (Pairing(kind)) {
        case kDot: return micro_kernel<kDot, T>;
        case kSqdist: return micro_kernel<kSqdist, T>;
        case kL1: return micro_kernel<kL1, T>;
        case kMinSum: return micro_kernel<kMinSum, T>;
        case kChi2: return micro_kernel<kChi2, T>;
        case kMismatches: return micro_kernel<kMismatches, T>;
    }
    __builtin_unreachable();
}
