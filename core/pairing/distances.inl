// Squared distances by norms and a dot product, half the operations of differences, if this is accurate enough.
//
// Let A = |x|² + |z|² for rows less a common origin. Then s = A - 2<x, z> has an error of r A, some roundings of A. A
// panel of rows against a panel of columns is accepted if the error of each s is within the promise p, with the A of
// its own pair: if r A <= p s, or, for a kernel whose derivative is at most fast (1 + root slow s)^(-1/root), which is
// fast e^(-slow s) for root = 0, if this times r A is at most p. The latter holds for all s if fast r A <= p for the
// largest A. Otherwise we take differences of the original rows, because rows less a rounded origin are other rows. If
// many panels need differences, all use them.
//
// To test each s costs as much as to finish it. So first one test with the largest |x|² of a panel of rows serves all
// panels of columns, and it costs only a minimum.

template <class T>
class ByNorms {
    static constexpr int W = Simd<T>::W, M = kPanelRows, N = kPanelColumns<T>;

   public:
    void reset(const DistanceSpec& s, int64_t n, int64_t m) {
        const int64_t across = ceil_div(n, M), along = ceil_div(m, N);
        level_ = s.fast * s.rounding / s.promise;
        copy(s.row_norms, n, across * M, row_), copy(s.column_norms, m, along * N, column_);
        largest_of_each(row_, across, M, row_most_), largest_of_each(column_, along, N, column_most_);
        const double most = double(largest(row_most_.get(), across)) + double(largest(column_most_.get(), along));
        checked_ = !within(most), bounded_ = most < double(kHuge);
        if (checked_) set_bounds(s, across, mean(column_.get(), m));
    }

    // Whether some distances may need differences.
    bool checked() const { return checked_; }

    // Adds the last features, to `out` if `add`, or takes the sums over all features from `dots`, if that is not null,
    // and finishes the distances of a panel of rows from panels of columns, whose packed rows are `step` features
    // apart. Calls doubt(c) for each panel, at column j + c, that may not be `enough`.
    template <class Doubt>
    void finish(const T* a, const T* b, int depth, int64_t step, int64_t i, int64_t j, int columns, const T* dots,
                T* out, int stride, bool add, Doubt doubt) const {
        const T *row = row_.get() + i, *column = column_.get() + j, share = checked_ ? share_[i / M] : T(0);
        Vec<T> least[kMaxColumns / N], all = splat<T>(kHuge);
        for (int c = 0; c < columns; c += N) {
            Vec<T>& one = least[c / N];
            if (dots)
                distances_of<T>(dots + c, out + c, stride, row, column + c, share, one);
            else
                distance_kernel<T>(a, b + c * step, depth, out + c, stride, add, row, column + c, share, one);
            all = vmin(one, all);
        }
        if (!checked_ || far(all, i)) return;
        for (int c = 0; c < columns; c += N)
            if (!far(least[c / N], i)) doubt(c);
    }

    // Whether the distances s of a panel of rows from one panel of columns are accurate enough.
    bool enough(const T* s, int stride, int64_t i, int64_t j) const {
        const double size = double(row_most_[i / M]) + double(column_most_[j / N]);
        if (within(size)) return true;
        if (!(size < double(kHuge))) return false;  // an overflow has no error bound
        const T share = share_[i / M];
        Vec<T> least = splat<T>(kHuge);
        for (int k = 0; k < M; ++k)
            for (int c = 0; c < N; c += W)
                least = vmin(load(s + k * stride + c) - share * (load(column_.get() + j + c) + row_[i + k]), least);
        return lane_min<T>(least) >= bound_[i / M];
    }

    static constexpr T kHuge = sizeof(T) == 4 ? T(1e38) : T(1e308);

   private:
    bool within(double size) const { return level_ * size <= 1; }

    // Whether s - share A is large enough for the largest norm of a panel of rows, where all norms have a bound.
    bool far(Vec<T> least, int64_t i) const {
        return bounded_ && lane_min<T>(least) - share_[i / M] * row_most_[i / M] >= bound_[i / M];
    }

    // The least that s - share A must be in a panel of rows: 0 for r A <= p s. The condition of the derivative is
    // slow s >= ((level A)^root - 1) / root, the logarithm of level A for root = 0. Its tangent at a usual A is above
    // it for all A. We take the condition that asks for less. The second r A allows for the roundings of the
    // comparison.
    void set_bounds(const DistanceSpec& s, int64_t panels, double columns) {
        share_.reset(panels), bound_.reset(panels);
        for (int64_t p = 0; p < panels; ++p) {
            const double usual = double(row_most_[p]) + columns, always = s.rounding / (s.rounding + s.promise);
            const double grown = __builtin_pow(level_ * usual, s.root), slope = grown / (s.slow * usual);
            const double far = (s.root > 0 ? (grown - 1) / s.root : __builtin_log(level_ * usual)) / s.slow;
            const bool falls = s.slow > 0 && far < always * usual;  // false where something is infinite or no number
            share_[p] = T(falls ? 2 * s.rounding + slope : always);
            bound_[p] = T(falls ? far - slope * usual : 0.0);
        }
    }

    static double mean(const T* x, int64_t n) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += double(x[i]);
        return sum / double(n);
    }

    static void copy(const void* from, int64_t n, int64_t padded, Buffer<T>& to) {
        to.reset(padded);
        std::memcpy(to.get(), from, size_t(n) * sizeof(T));
    }

    static void largest_of_each(const Buffer<T>& x, int64_t panels, int width, Buffer<T>& to) {
        to.reset(panels);
        for (int64_t p = 0; p < panels; ++p) to[p] = largest(x.get() + p * width, width);
    }

    static T largest(const T* x, int64_t n) {
        T most = x[0];
        for (int64_t i = 1; i < n; ++i) most = x[i] <= most ? most : x[i];  // NaN stays
        return most;
    }

    double level_ = 0;  // fast r / p
    bool checked_ = false, bounded_ = false;
    Buffer<T> row_, column_, row_most_, column_most_, share_, bound_;
};
