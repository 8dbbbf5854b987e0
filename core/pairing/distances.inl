// Squared distances by norms and a dot product, half the operations of differences, if this is accurate enough.
//
// Let A = |x|² + |z|² for rows less a common origin. Then s = A - 2<x, z> has an error of r A, some roundings of A. For
// a panel of rows against a panel of columns, let A be the largest there. The result is accepted if its error is within
// the promise p for every s: if r A <= p s, or, for a kernel e^(-rate s), if rate e^(-rate s) r A <= p. The latter
// holds for all s if rate r A <= p. Otherwise we take differences of the original rows, because rows less a rounded
// origin are other rows. If many panels need differences, all use them.

template <class T>
class ByNorms {
    static constexpr int M = kPanelRows, N = kPanelColumns<T>;

   public:
    void reset(const DistanceSpec& s, int64_t n, int64_t m) {
        const int64_t across = ceil_div(n, M), along = ceil_div(m, N);
        rounding_ = s.rounding, share_ = s.rounding / (s.rounding + s.promise), slow_ = s.slow,
        level_ = s.fast * s.rounding / s.promise;
        copy(s.row_norms, n, across * M, row_), copy(s.column_norms, m, along * N, column_);
        largest_of_each(row_, across, M, row_most_), largest_of_each(column_, along, N, column_most_);
        const double columns = double(largest(column_most_.get(), along));
        checked_ = !within(double(largest(row_most_.get(), across)) + columns);
        bound_.reset(across);
        for (int64_t p = 0; p < across; ++p) bound_[p] = far_enough(double(row_most_[p]) + columns);
    }

    // Whether some distances may need differences.
    bool checked() const { return checked_; }

    // Adds the last features, to `out` if `add`, and finishes the distances. Returns whether they are accurate enough.
    bool pair(const T* a, const T* b, int depth, int64_t i, int64_t j, T* out, int stride, bool add) const {
        const T *row = row_.get() + i, *column = column_.get() + j;
        const double size = double(row_most_[i / M]) + double(column_most_[j / N]);
        if (!checked_ || within(size)) {
            distance_kernel<false, T>(a, b, depth, out, stride, add, row, column);
            return true;
        }
        if (!(size < double(kHuge))) return false;  // an overflow has no error bound
        const double least = double(distance_kernel<true, T>(a, b, depth, out, stride, add, row, column));
        return least >= share_ * size || least - rounding_ * size >= bound_[i / M];
    }

   private:
    static constexpr T kHuge = sizeof(T) == 4 ? T(1e38) : T(1e308);

    bool within(double size) const { return level_ * size <= 1; }

    // The distance from which on e^(-rate s) is small enough.
    double far_enough(double size) const {
        return slow_ > 0 && level_ * size < __builtin_inf() ? __builtin_log(level_ * size) / slow_ : __builtin_inf();
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

    double rounding_ = 0, share_ = 0, slow_ = 0, level_ = 0;  // share: of A, what s has to be; level: rate r / p
    bool checked_ = false;
    Buffer<T> row_, column_, row_most_, column_most_;
    Buffer<double> bound_;
};
