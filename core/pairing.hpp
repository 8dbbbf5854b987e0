// Stage one: reduce over features. A micro-kernel keeps kPanelRows x 2 vectors of partial sums in registers and walks down
// two packed panels, a[k][row] and b[k][column].

enum PairingKind : int { kDot, kSqDist, kL1, kMinSum, kChi2, kMismatches };

template <int kind, class T>
MERCER_INLINE Vec<T> accumulate(Vec<T> sum, T a, Vec<T> b) {
    using V = Vec<T>;
    if constexpr (kind == kDot) {
        return sum + a * b;
    } else if constexpr (kind == kSqDist) {
        V t = a - b;
        return sum + t * t;
    } else if constexpr (kind == kL1) {
        return sum + vabs<T>(a - b);
    } else if constexpr (kind == kMinSum) {
        return sum + vmin(splat<T>(a), b);
    } else if constexpr (kind == kChi2) {
        V s = a + b, t = a - b;
        return sum + (s > T(0) ? t * (t / s) : V{});  // the square of a small difference would underflow
    } else {
        return sum + (splat<T>(a) != b ? splat<T>(T(1)) : V{});
    }
}

template <int kind, class T>
__attribute__((noinline)) void micro_kernel(const T* __restrict a, const T* __restrict b, int depth, T* __restrict c,
                                            int stride, bool add) {
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
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) store(c + i * stride, s0[i]), store(c + i * stride + W, s1[i]);
}

template <class T>
using MicroKernel = void (*)(const T*, const T*, int, T*, int, bool);

template <class T>
MicroKernel<T> micro_kernel_for(int kind) {
    switch (kind) {
        case kDot: return micro_kernel<kDot, T>;
        case kSqDist: return micro_kernel<kSqDist, T>;
        case kL1: return micro_kernel<kL1, T>;
        case kMinSum: return micro_kernel<kMinSum, T>;
        case kChi2: return micro_kernel<kChi2, T>;
        default: return micro_kernel<kMismatches, T>;
    }
}
