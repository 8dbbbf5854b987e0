// Budgeted stochastic gradient descent with the Gaussian kernel: the updates of one chunk of rows, one after the other,
// by squared distances S = gamma |x - z|^2 that the tile engine made for the whole chunk. `merge_pass` of the NumPy
// reference defines it.
//
// Two vectors p, q merge to z = h p + (1 - h) q. Distances from z follow from those from p and q, without the rows:
//   S(x, z) = h S(x, p) + (1 - h) S(x, q) - h (1 - h) S(p, q).
// Only the search for a partner reads the vectors themselves.

// h of the best z for coefficients of sizes p <= q at distance D: h = 1 / (1 + e^s), s = log(q / p) + D tanh(s / 2).
// The largest root is the best one. Newton's steps from above never pass it, because the function is convex there.
inline double merge_share(double p, double q, double D) {
    const double L = __builtin_log(q / p);
    double s = L + D;
    for (int i = 0; i < 50; ++i) {
        const double t = __builtin_tanh(0.5 * s), slope = 1 - 0.5 * D * (1 - t * t);
        const double step = (s - L - D * t) / (slope > 1e-12 ? slope : 1e-12);
        s -= step;
        if (!(step > 1e-14 * (1 + s))) break;
    }
    return 1 / (1 + __builtin_exp(s));
}

// |p phi(a) + q phi(b) - r phi(z)|^2 with the best r, without cancellation of large terms.
inline double merge_loss(double p, double q, double D, double h) {
    const double g = 1 - h;
    return -p * p * __builtin_expm1(-2 * D * g * g) - q * q * __builtin_expm1(-2 * D * h * h) -
           2 * p * q * __builtin_exp(-D) * __builtin_expm1(2 * D * h * g);
}

template <class T>
class MergePass {
    static constexpr int W = Simd<T>::W;
    static constexpr int kGroup = 4 * W;  // slots whose distances are summed side by side, so that no sum waits
    using V = Vec<T>;

   public:
    explicit MergePass(MergeTask& task)
        : k_(task), n_(task.rows), stride_(round_up(task.slots, kGroup)), near_(static_cast<T*>(task.near)),
          z_(static_cast<T*>(task.z)), zt_(task.depth * stride_), tag_(stride_), size_(stride_), distance_(stride_),
          least_(stride_ / kGroup), F_(task.outputs * n_), kernel_(3 * round_up(n_, W) + 3 * W) {
        for (int64_t s = 0; s < k_.used; ++s) describe(s);
        for (int64_t s = k_.used; s < stride_; ++s) size_[s] = kInfinite, tag_[s] = T(-1);
        score();
    }

    void run() {
        for (int64_t j = 0; j < n_; ++j) visit(j);
    }

   private:
    static constexpr double kInfinite = __builtin_inf();

    T* row(int64_t slot) const { return near_ + slot * n_; }
    double* b(int64_t slot) const { return k_.b + slot * k_.outputs; }
    double* u(int64_t slot) const { return k_.u + slot * k_.outputs; }

    // The distances from the rows of the chunk from `from` on: nothing reads those from earlier rows again.
    void copy_later(const T* S, T* to, int64_t from) const {
        std::memcpy(to + from, S + from, size_t(n_ - from) * sizeof(T));
    }

    // e^-S for the rows of the chunk from `from` on.
    void evaluate(const T* S, int64_t from, T* out) const {
        int64_t l = from;
        for (; l + W <= n_; l += W) store_unaligned(out + l, vexp(-load_unaligned(S + l)));
        for (; l < n_; ++l) out[l] = vexp(splat<T>(-S[l]))[0];
    }

    void add(int64_t from, const double* coefficients, const T* kernel, double sign) {
        for (int64_t o = 0; o < k_.outputs; ++o) {
            double* f = F_.get() + o * n_;
            const double c = sign * coefficients[o];
            for (int64_t l = from; l < n_; ++l) f[l] += c * double(kernel[l]);
        }
    }

    // f of the rows of the chunk, with the present dictionary.
    void score() {
        const int64_t piece = 64;
        parallel(ceil_div(n_, piece), [&](int64_t task) {
            alignas(64) T value[64 + W];
            const int64_t first = task * piece, count = min64(piece, n_ - first);
            for (int64_t s = 0; s < k_.used; ++s) {
                const T* S = row(s) + first;
                int64_t l = 0;
                for (; l + W <= count; l += W) store(value + l, vexp(-load_unaligned(S + l)));
                for (; l < count; ++l) value[l] = vexp(splat<T>(-S[l]))[0];
                for (int64_t o = 0; o < k_.outputs; ++o) {
                    double* f = F_.get() + o * n_ + first;
                    const double c = b(s)[o];
                    for (l = 0; l < count; ++l) f[l] += c * double(value[l]);
                }
            }
        });
    }

    // Updates what belongs to a slot: its row in the transposed copy, the size of its coefficients, and their class.
    void describe(int64_t slot) {
        const T* z = z_ + slot * k_.depth;
        for (int64_t f = 0; f < k_.depth; ++f) zt_[f * stride_ + slot] = z[f];
        double square = 0;
        int64_t largest = 0;
        for (int64_t o = 0; o < k_.outputs; ++o) {
            square += b(slot)[o] * b(slot)[o];
            if (b(slot)[o] > b(slot)[largest]) largest = o;
        }
        size_[slot] = square;
        tag_[slot] = T(k_.outputs == 1 ? (b(slot)[0] > 0 ? 1 : 0) : largest);
    }

    // ---- one row ----------------------------------------------------------------------------------------------------

    void visit(int64_t j) {
        const int64_t y = k_.labels[j];
        int64_t rival = 0;
        double margin;
        if (k_.outputs == 1) {
            margin = y ? F_[j] : -F_[j];
        } else {
            double best = -kInfinite;
            for (int64_t o = 0; o < k_.outputs; ++o)
                if (o != y && F_[o * n_ + j] > best) best = F_[o * n_ + j], rival = o;
            margin = F_[y * n_ + j] - best;
        }
        const double bound = k_.alpha * double(max64(k_.t, 1));
        k_.mistakes += !(margin > 0);
        k_.loss += margin < bound ? 1 - margin / bound : 0;
        if (margin < bound) {
            insert(j, y, rival);
            if (k_.used > k_.budget) shrink(j + 1);
        }
        k_.t += 1;
    }

    void insert(int64_t j, int64_t y, int64_t rival) {
        const int64_t s = k_.used++;
        std::memcpy(z_ + s * k_.depth, static_cast<const T*>(k_.x) + j * k_.depth, size_t(k_.depth) * sizeof(T));
        copy_later(static_cast<const T*>(k_.own) + j * n_, row(s), j + 1);
        for (int64_t o = 0; o < k_.outputs; ++o) b(s)[o] = 0;
        if (k_.outputs == 1)
            b(s)[0] = y ? 1 : -1;
        else
            b(s)[y] = 1, b(s)[rival] = -1;
        for (int64_t o = 0; o < k_.outputs; ++o) u(s)[o] = double(k_.t) * b(s)[o];
        describe(s);
        evaluate(row(s), j + 1, kernel_.get());
        add(j + 1, b(s), kernel_.get(), 1);
        ++k_.updates;
    }

    // ---- the budget -------------------------------------------------------------------------------------------------

    void shrink(int64_t from) {
        const int64_t m = smallest(), q = partner(m);
        if (q < 0) {
            evaluate(row(m), from, kernel_.get());
            add(from, b(m), kernel_.get(), -1);
            ++k_.removals;
        } else {
            merge(m, q, from);
            ++k_.merges;
        }
        const int64_t last = --k_.used;
        if (m != last) move(last, m, from);
        size_[last] = kInfinite, tag_[last] = T(-1);
    }

    int64_t smallest() const {
        using D = Vec<double>;
        constexpr int w = Simd<double>::W;
        D best = splat<double>(kInfinite);
        int64_t s = 0;
        for (; s + w <= k_.used; s += w) best = vmin(load<double>(size_.get() + s), best);
        double least = kInfinite;
        for (int i = 0; i < w; ++i) least = best[i] < least ? best[i] : least;
        for (; s < k_.used; ++s) least = size_[s] < least ? size_[s] : least;
        for (s = 0; s < k_.used - 1 && size_[s] != least;) ++s;
        return s;
    }

    // The slot of the same class whose merger with m loses least, among those within kFarthestPartner; the nearest if
    // none is within it; -1 if the class has no other slot. Since p is the smallest size, a merger with a larger vector
    // at the same distance loses more. So a slot is skipped if two vectors of size p at its distance would lose more
    // than the best so far.
    int64_t partner(int64_t m) {
        measure(m);
        const int64_t groups = stride_ / kGroup;
        int64_t first = 0;
        for (int64_t g = 1; g < groups; ++g) first = least_[g] < least_[first] ? g : first;
        if (!(least_[first] < T(kInfinite))) return -1;
        int64_t nearest = first * kGroup;
        while (distance_[nearest] != least_[first]) ++nearest;
        if (!(double(least_[first]) <= kFarthestPartner)) return nearest;
        const double p = __builtin_sqrt(size_[m]);
        double best = kInfinite, most = kFarthestPartner;
        int64_t found = -1;
        consider(nearest, p, best, most, found);
        for (int64_t g = 0; g < groups; ++g)
            if (double(least_[g]) <= most)
                for (int64_t s = g * kGroup; s < (g + 1) * kGroup; ++s)
                    if (double(distance_[s]) <= most && s != nearest) consider(s, p, best, most, found);
        return found;
    }

    void consider(int64_t s, double p, double& best, double& most, int64_t& found) const {
        const double q = __builtin_sqrt(size_[s]), D = double(distance_[s]);
        const double loss = merge_loss(p, q, D, merge_share(p, q, D));
        if (loss < best || (loss == best && s < found)) {
            best = loss, found = s;
            // 1 - e^(-D / 2) at the largest distance that could still be better.
            const double share = __builtin_sqrt(0.5 * (loss > 0 ? loss : 0)) / p;
            if (share < 1) {
                const double limit = -2 * __builtin_log1p(-share) * (1 + 1e-9);
                most = limit < most ? limit : most;
            }
        }
    }

    // Distances of slot m from all slots of its class, and the least of each group. Those from other classes, free
    // slots and m itself are infinite.
    void measure(int64_t m) {
        const T* x = z_ + m * k_.depth;
        const V tag = splat<T>(tag_[m]), none = splat<T>(T(kInfinite));
        const T scale = T(k_.gamma), own = tag_[m];
        tag_[m] = T(-1);
        for (int64_t s = 0; s < stride_; s += kGroup) {
            V sum[4] = {}, least = none;
            const T* z = zt_.get() + s;
            for (int64_t f = 0; f < k_.depth; ++f)
#pragma GCC unroll 4
                for (int i = 0; i < 4; ++i) {
                    const V d = load<T>(z + f * stride_ + i * W) - x[f];
                    sum[i] += d * d;
                }
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                const int64_t at = s + i * W;
                const V found = load<T>(tag_.get() + at) == tag ? sum[i] * scale : none;
                store<T>(distance_.get() + at, found);
                least = vmin(found, least);
            }
            least_[s / kGroup] = lane_min<T>(least);
        }
        tag_[m] = own;
    }

    // Slot q becomes the merger, and slot m is free.
    void merge(int64_t m, int64_t q, int64_t from) {
        const double D = double(distance_[q]);
        const double h = merge_share(__builtin_sqrt(size_[m]), __builtin_sqrt(size_[q]), D), g = 1 - h;
        const double km = __builtin_exp(-D * g * g), kq = __builtin_exp(-D * h * h);
        const int64_t width = round_up(n_, W) + W;
        T *old_m = kernel_.get(), *old_q = old_m + width, *now = old_q + width;
        evaluate(row(m), from, old_m);
        evaluate(row(q), from, old_q);
        T *Sq = row(q), *zq = z_ + q * k_.depth;
        const T *Sm = row(m), *zm = z_ + m * k_.depth;
        const T shift = T(h * g * D), hT = T(h), gT = T(g);
        for (int64_t l = from; l < n_; ++l) {
            const T S = hT * Sm[l] + gT * Sq[l] - shift;
            Sq[l] = S > 0 ? S : T(0);
        }
        for (int64_t f = 0; f < k_.depth; ++f) zq[f] = hT * zm[f] + gT * zq[f];
        evaluate(Sq, from, now);
        for (int64_t o = 0; o < k_.outputs; ++o) {
            const double bm = b(m)[o], bq = b(q)[o], merged = km * bm + kq * bq;
            double* f = F_.get() + o * n_;
            for (int64_t l = from; l < n_; ++l)
                f[l] += merged * double(now[l]) - bm * double(old_m[l]) - bq * double(old_q[l]);
            b(q)[o] = merged;
            u(q)[o] = km * u(m)[o] + kq * u(q)[o];
        }
        describe(q);
    }

    void move(int64_t from, int64_t to, int64_t later) {
        std::memcpy(z_ + to * k_.depth, z_ + from * k_.depth, size_t(k_.depth) * sizeof(T));
        copy_later(row(from), row(to), later);
        std::memcpy(b(to), b(from), size_t(k_.outputs) * sizeof(double));
        std::memcpy(u(to), u(from), size_t(k_.outputs) * sizeof(double));
        describe(to);
    }

    MergeTask& k_;
    const int64_t n_, stride_;
    T *near_, *z_;
    Buffer<T> zt_, tag_;
    Buffer<double> size_;
    Buffer<T> distance_, least_;
    Buffer<double> F_;
    Buffer<T> kernel_;
};

inline void merge_pass(MergeTask& task) {
    if (task.is_double)
        MergePass<double>(task).run();
    else
        MergePass<float>(task).run();
}
