// Dual coordinate descent: min 1/2 |w|^2 - c'b + epsilon |b| over lower <= b <= upper with w = sum of b_t x_t, one
// variable at a time.
//
// A variable's slope is w'x - c, plus the slope of epsilon |b| upwards and downwards. A step moves the variable to the
// minimum along itself, between its bounds. Each pass visits the variables in a new random order. A variable at a bound
// or at 0 is set aside until the others are done, if its slopes keep it there by more than the largest violation of the
// last pass.

constexpr double kNever = __builtin_inf();

// The next of a fixed sequence of 64 random bits (splitmix64).
MERCER_INLINE uint64_t next_random(uint64_t& state) {
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

template <class T>
struct Along {
    using S = Simd<T>;
    using D = typename S::D;
    typedef double DU __attribute__((vector_size(sizeof(D)), may_alias, aligned(8)));
    static constexpr int W = S::W;
    static MERCER_INLINE D wide(const double* p) { return (D) * reinterpret_cast<const DU*>(p); }
    static MERCER_INLINE D wide(const T* p, int) { return __builtin_convertvector(load_unaligned<T>(p), D); }

    static double dot(const double* w, const T* x, int64_t m) {
        D sums[4] = {};
        int64_t j = 0;
        for (; j + 4 * W <= m; j += 4 * W)
            for (int k = 0; k < 4; ++k) sums[k] += wide(w + j + k * W) * wide(x + j + k * W, 0);
        for (; j + W <= m; j += W) sums[0] += wide(w + j) * wide(x + j, 0);
        const D all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        double sum = 0;
        for (int k = 0; k < W; ++k) sum += all[k];
        for (; j < m; ++j) sum += w[j] * double(x[j]);
        return sum;
    }

    static void add(double* w, double a, const T* x, int64_t m) {
        int64_t j = 0;
        const D scale = D{} + a;
        for (; j + W <= m; j += W) *reinterpret_cast<DU*>(w + j) = (DU)(wide(w + j) + scale * wide(x + j, 0));
        for (; j < m; ++j) w[j] += a * double(x[j]);
    }
};

template <class T>
void descend(const LinearDualBatch& f, int64_t p) {
    const int64_t first = f.offset[p], size = f.offset[p + 1] - first, m = f.width;
    int64_t* order = f.order + first;
    double *beta = f.beta + first, *w = f.w + p * m, &top = f.level[2 * p], &bound = f.level[2 * p + 1];
    int64_t &active = f.place[3 * p], &at = f.place[3 * p + 1], &passes = f.place[3 * p + 2];
    uint64_t random = uint64_t(f.random[p]);
    for (int64_t left = f.work; left > 0 && !f.ended[p]; --left) {
        if (at >= active) {  // a pass is over
            ++passes, at = 0;
            if (top <= f.tol[p]) {
                f.ended[p] = active == size;
                active = size, bound = kNever;
            } else {
                bound = top;
            }
            top = 0;
            continue;
        }
        std::swap(order[at], order[at + int64_t((next_random(random) >> 11) % uint64_t(active - at))]);
        const int64_t t = order[at];
        const T* x = static_cast<const T*>(f.features) + f.row[first + t] * m;
        const double b = beta[t], lo = f.lower[first + t], hi = f.upper[first + t];
        const double slope = Along<T>::dot(w, x, m) - f.linear[first + t];
        const double rise = slope + (b < 0 ? -f.epsilon : f.epsilon), fall = slope + (b > 0 ? f.epsilon : -f.epsilon);
        const bool stays_low = b >= hi || rise > bound, stays_high = b <= lo || fall < -bound;
        if (stays_low && stays_high) {  // set aside
            std::swap(order[at], order[--active]);
            continue;
        }
        const double violation = std::max(b < hi ? -rise : 0.0, b > lo ? fall : 0.0);
        top = std::max(top, violation), ++at;
        if (!(violation > 0)) continue;
        const double square = f.square[f.row[first + t]], pull = square * b - slope;
        double to = pull > f.epsilon ? pull - f.epsilon : pull < -f.epsilon ? pull + f.epsilon : 0.0;
        to = square > 0 ? to / square : to > 0 ? hi : to < 0 ? lo : b;
        to = std::min(std::max(to, lo), hi);
        if (to == b) continue;
        Along<T>::add(w, to - b, x, m);
        beta[t] = to;
    }
    f.random[p] = int64_t(random);
}

void coordinates(const LinearDualBatch& f) {
    parallel(f.problems, [&](int64_t p) {
        if (f.ended[p]) return;
        if (f.is_double)
            descend<double>(f, p);
        else
            descend<float>(f, p);
    });
}
