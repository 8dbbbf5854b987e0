// UᵀU X = B by substitution, for few columns. U is read twice, once for all columns and on all threads: memory is the limit. Each entry
// of X is the same sum whatever the number of threads.

template <class T>
class Substitution {
   public:
    explicit Substitution(const TriangularSpec& p)
        : p_(p), upper_(static_cast<const T*>(p.upper)), strips_(ceil_div(p.columns, W)), x_(strips_ * p.n * W) {}

    void run() const {
        const int64_t n = p_.n;
        T* given = static_cast<T*>(p_.x);
        for (int64_t i = 0; i < n; ++i)
            for (int64_t c = 0; c < p_.columns; ++c) *at(i, c) = given[i * p_.columns + c];
        for (int64_t k = 0; k < n; k += kTile) {  // Uᵀ Y = B: what is solved is taken from the rows below
            const int64_t end = min64(k + kTile, n);
            for (int64_t i = k; i < end; ++i) divide(i), subtract<true>(i + 1, end, i, i + 1);
            share<true>(end, n, k, end);
        }
        for (int64_t k = (n - 1) / kTile * kTile; k >= 0; k -= kTile) {  // U X = Y: what is needed is the sum over the rows below
            const int64_t end = min64(k + kTile, n);
            share<false>(k, end, end, n);
            for (int64_t i = end - 1; i >= k; --i) divide(i), subtract<false>(k, i, i, i + 1);
        }
        for (int64_t i = 0; i < n; ++i)
            for (int64_t c = 0; c < p_.columns; ++c) given[i * p_.columns + c] = *at(i, c);
    }

   private:
    static constexpr int W = Simd<T>::W, kRows = 12;  // kRows accumulators: every register file has room for them
    static constexpr int64_t kTile = 48, kAlong = 256;

    // Columns in strips of a vector each, with zeros after the last.
    T* at(int64_t i, int64_t c) const { return x_.get() + (c / W * p_.n + i) * W + c % W; }

    void divide(int64_t i) const {
        for (int64_t s = 0; s < strips_; ++s) store<T>(at(i, s * W), load(at(i, s * W)) / upper_[i * (p_.n + 1)]);
    }

    // Rows [first, last) of X lose the sum over from <= k < to of U[r, k] X[k], or U[k, r] X[k] if Transposed. kRows rows of U are read
    // side by side: hardware that fetches ahead does not keep up with many more.
    template <bool Transposed>
    void subtract(int64_t first, int64_t last, int64_t from, int64_t to) const {
        const int64_t down = Transposed ? last - first : kRows, along = Transposed ? kRows : kAlong;
        for (int64_t r = first; r < last; r += down)
            for (int64_t k = from; k < to; k += along) panel<Transposed>(r, min64(r + down, last), k, min64(k + along, to));
    }

    template <bool Transposed>
    void panel(int64_t first, int64_t last, int64_t from, int64_t to) const {
        int64_t r = first;
        for (; r + kRows <= last; r += kRows) group<Transposed, kRows>(r, from, to);
        for (; r < last; ++r) group<Transposed, 1>(r, from, to);
    }

    template <bool Transposed, int R>
    void group(int64_t row, int64_t from, int64_t to) const {
        const int64_t n = p_.n;
        const T* u = Transposed ? upper_ + row : upper_ + row * n;
        for (int64_t s = 0; s < strips_; ++s) {
            T* out = at(row, s * W);
            const T* x = at(0, s * W);
            Vec<T> sum[R] = {};  // of its own: fewer roundings of the longer sum
            for (int64_t k = from; k < to; ++k) {
                const Vec<T> v = load(x + k * W);
#pragma GCC unroll 16
                for (int r = 0; r < R; ++r) sum[r] += (Transposed ? u[k * n + r] : u[r * n + k]) * v;
            }
#pragma GCC unroll 16
            for (int r = 0; r < R; ++r) store<T>(out + r * W, load(out + r * W) - sum[r]);
        }
    }

    // The same by the team, where there is enough to do for each thread.
    template <bool Transposed>
    void share(int64_t first, int64_t last, int64_t from, int64_t to) const {
        constexpr int64_t kEnough = int64_t(1) << 17;  // operations on vectors, some 50 microseconds
        const int64_t rows = round_up(ceil_div(kEnough, (to - from) * strips_ + 1), kRows);
        parallel(ceil_div(last - first, rows),
                 [&](int64_t t) { subtract<Transposed>(first + t * rows, min64(first + (t + 1) * rows, last), from, to); });
    }

    const TriangularSpec& p_;
    const T* upper_;
    const int64_t strips_;
    const Buffer<T> x_;
};

void cholesky_solve(const TriangularSpec& p) {
    if (p.is_double)
        Substitution<double>(p).run();
    else
        Substitution<float>(p).run();
}
