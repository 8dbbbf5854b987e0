// A symmetric matrix of which only the entries right of the diagonal are computed. Each is written to both of its
// places, so that the matrix is exactly symmetric. Entries below the diagonal are transposed in registers, a square of
// vectors at a time, and written in whole cache lines. Measured on float32, n = 8192, d = 20, one thread: 133 ms if
// transposed entries are written one by one (each store reads a line first), 97 ms in whole lines, 58 ms if these
// bypass the cache.

// Stores that bypass the cache, for a matrix far larger than the cache: other stores read each line before they
// overwrite it.
template <class T>
MERCER_INLINE void stream(T* to, const T* from, int64_t n, bool bypass) {
#if defined(__SSE2__)
    constexpr int W = Simd<T>::W;
    if (bypass) {
        int64_t c = 0;
        for (; c < n && (reinterpret_cast<uintptr_t>(to + c) & (kVectorBytes - 1)); ++c) to[c] = from[c];
        for (; c + W <= n; c += W) {
#if defined(__AVX512F__)
            _mm512_stream_si512(reinterpret_cast<__m512i*>(to + c), (__m512i)load_unaligned(from + c));
#elif defined(__AVX__)
            _mm256_stream_si256(reinterpret_cast<__m256i*>(to + c), (__m256i)load_unaligned(from + c));
#else
            _mm_stream_si128(reinterpret_cast<__m128i*>(to + c), (__m128i)load_unaligned(from + c));
#endif
        }
        for (; c < n; ++c) to[c] = from[c];
        return;
    }
#else
    (void)bypass;
#endif
    std::memcpy(static_cast<void*>(to), from, size_t(n) * sizeof(T));
}

// Exchanges the off-diagonal h x h squares of a W x W square in W vectors; h = W/2, W/4, ... 1 transposes it.
template <class T, int h, int... q>
MERCER_INLINE void exchange_squares(Vec<T>* v, std::integer_sequence<int, q...>) {
    constexpr int W = Simd<T>::W;
#pragma GCC unroll 16
    for (int k = 0; k < W; ++k) {
        if (k & h) continue;
        const Vec<T> a = v[k], b = v[k + h];
        v[k] = __builtin_shufflevector(a, b, ((q & h) ? W + q - h : q)...);
        v[k + h] = __builtin_shufflevector(a, b, ((q & h) ? W + q : q + h)...);
    }
}

template <class T>
__attribute__((noinline)) void turn_square(const T* from, int64_t across, T* to, int64_t down) {
    constexpr int W = Simd<T>::W;
    using All = std::make_integer_sequence<int, W>;
    Vec<T> v[W];
#pragma GCC unroll 16
    for (int k = 0; k < W; ++k) v[k] = load(from + k * across);
    if constexpr (W > 8) exchange_squares<T, 8>(v, All{});
    if constexpr (W > 4) exchange_squares<T, 4>(v, All{});
    if constexpr (W > 2) exchange_squares<T, 2>(v, All{});
    exchange_squares<T, 1>(v, All{});
#pragma GCC unroll 16
    for (int k = 0; k < W; ++k) store<T>(to + k * down, v[k]);
}

template <class T>
class Mirror {
    static constexpr int W = Simd<T>::W, kDown = kRowBlock + W;

   public:
    Mirror(T* out, int64_t stride, int64_t n)
        : out_(out), stride_(stride), bypass_(n * n * int64_t(sizeof(T)) > kCacheBytes) {}

    // A strip that crosses the diagonal or lies left of it; only entries right of the diagonal are used.
    void corner(int64_t i, int64_t rows, int64_t j, int64_t columns, const T* strip, int64_t across) const {
        for (int64_t k = 0; k < rows; ++k)
            for (int64_t c = max64(0, i + k - j); c < columns; ++c)
                out_[(i + k) * stride_ + j + c] = strip[k * across + c];
        for (int64_t c = max64(0, i + 1 - j); c < columns; ++c)
            for (int64_t k = 0; k < min64(rows, j + c - i); ++k)
                out_[(j + c) * stride_ + i + k] = strip[k * across + c];
    }

    // A strip right of the diagonal.
    void rows(int64_t i, int64_t rows, int64_t j, int64_t columns, const T* strip, int64_t across) const {
        for (int64_t k = 0; k < rows; ++k) stream(out_ + (i + k) * stride_ + j, strip + k * across, columns, bypass_);
    }

    // Transposes the tile of rows from i and columns from j, without its first `skip` columns, into rows from j + skip
    // and columns from i. The tile is padded to whole vectors.
    void turned(int64_t i, int64_t rows, int64_t j, int64_t skip, int64_t columns, const T* tile,
                int64_t across) const {
        Buffer<T> lines(W * kDown);
        for (int64_t c = skip / W * W; c < columns; c += W) {
            for (int64_t k = 0; k < rows; k += W) turn_square(tile + k * across + c, across, lines.get() + k, kDown);
            for (int64_t q = max64(0, skip - c); q < min64(W, columns - c); ++q)
                stream(out_ + (j + c + q) * stride_ + i, lines.get() + q * kDown, rows, bypass_);
        }
    }

    // Makes stores that bypassed the cache visible to other threads.
    void done() const {
#if defined(__SSE2__)
        _mm_sfence();
#endif
    }

   private:
    static constexpr int64_t kCacheBytes = 32 * 1024 * 1024;

    T* out_;
    int64_t stride_;
    bool bypass_;
};
