// Sequential minimal optimisation: min 1/2 b'Kb - c'b + epsilon |b| with lower <= b <= upper and the sum of b fixed,
// two variables at a time.
//
// Variable t belongs to the row row[t] of K, and g = c - Kb. It may rise while it is below its upper bound, and fall
// while it is above its lower bound. `up` and `low` are g with the slope of epsilon |b| in that direction, or an
// infinity if the variable may not move. The largest `up` less the smallest `low` is LIBSVM's m - M. Variables at a
// bound that are unlikely to leave it are set aside. The others, the active ones, are contiguous, as are their rows of
// K.

constexpr int64_t kShrinkEvery = 1000;
constexpr double kWorthShrinking = 0.8;  // copying pays if at most this share stays active

// As many values as a register has lanes of double, from either type: comparing wider vectors works lane by lane.
template <class T>
MERCER_INLINE Vec<double> widen(const T* p) {
    typedef T Part __attribute__((vector_size(sizeof(T) * Simd<double>::W), may_alias, aligned(sizeof(T))));
    return __builtin_convertvector(*reinterpret_cast<const Part*>(p), Vec<double>);
}
MERCER_INLINE Vec<double> widen(const double* p) { return load_unaligned<double>(p); }

// g less the next values of `low`, one for each lane of T, rounded to T.
template <class T>
MERCER_INLINE Vec<T> differences(double g, const double* low) {
    typedef double Doubles __attribute__((vector_size(sizeof(double) * Simd<T>::W), may_alias, aligned(8)));
    return __builtin_convertvector(Doubles{} + g - *reinterpret_cast<const Doubles*>(low), Vec<T>);
}

// The largest `up` with its place, and the smallest `low`, of a range of variables.
struct Extremes {
    double top = -__builtin_inf(), bottom = __builtin_inf();
    int64_t at = -1, lowest = -1;
    double gap() const { return top - bottom; }

    MERCER_INLINE void see(double up, double low, int64_t t) {
        if (up > top) top = up, at = t;
        if (low < bottom) bottom = low, lowest = t;
    }
};

// up and low less delta (a - b), and their extremes, over [begin, end).
template <class T>
Extremes update(const T* a, const T* b, double delta, double* up, double* low, int64_t begin, int64_t end) {
    using V = Vec<double>;
    using I = IntVec<double>;
    constexpr int W = Simd<double>::W;
    V top = splat<double>(-__builtin_inf()), bottom = splat<double>(__builtin_inf());
    const V step = splat<double>(delta);
    I at = I{} - 1, lowest = I{} - 1, here{};
    for (int w = 0; w < W; ++w) here[w] = begin + w;
    int64_t t = begin;
    for (; t + W <= end; t += W, here += W) {
        const V change = step * (widen(a + t) - widen(b + t));
        const V u = load_unaligned(up + t) - change, l = load_unaligned(low + t) - change;
        store_unaligned<double>(up + t, u), store_unaligned<double>(low + t, l);
        at = u > top ? here : at, top = u > top ? u : top;
        lowest = l < bottom ? here : lowest, bottom = l < bottom ? l : bottom;
    }
    Extremes e;
    for (int w = 0; w < W; ++w) {
        if (top[w] > e.top || (top[w] == e.top && at[w] < e.at)) e.top = top[w], e.at = at[w];
        if (bottom[w] < e.bottom || (bottom[w] == e.bottom && lowest[w] < e.lowest))
            e.bottom = bottom[w], e.lowest = lowest[w];
    }
    for (; t < end; ++t) {
        const double change = delta * (double(a[t]) - double(b[t]));
        e.see(up[t] -= change, low[t] -= change, t);
    }
    return e;
}

// The j in [begin, end) with low < g whose step with i gains most, (g - low)^2 / (K_ii + K_jj - 2 K_ij), and that gain.
// The precision of K is enough, because any choice of j gives a correct step.
template <class T>
int64_t partner(const T* a, const T* diagonal, double g, double own, const double* low, int64_t begin, int64_t end,
                double& gain) {
    using V = Vec<T>;
    using I = IntVec<T>;
    constexpr int W = Simd<T>::W;
    using Int = typename Simd<T>::Int;
    V best{};
    I at = I{} - Int(1), here{};
    for (int w = 0; w < W; ++w) here[w] = Int(w);
    const V kii = splat<T>(T(own)), zero{}, tau = splat<T>(T(kLeastCurvature));
    int64_t t = begin;
    for (; t + W <= end; t += W, here += Int(W)) {
        const V d = vmax(differences<T>(g, low + t), zero);
        const V eta = vmax(kii + load_unaligned<T>(diagonal + t) - T(2) * load_unaligned<T>(a + t), tau);
        const V score = d * d / eta;
        at = score > best ? here : at, best = score > best ? score : best;
    }
    int64_t found = -1;
    gain = 0;
    for (int w = 0; w < W; ++w)
        if (double(best[w]) > gain || (at[w] >= 0 && double(best[w]) == gain && begin + at[w] < found))
            gain = double(best[w]), found = begin + at[w];
    for (; t < end; ++t) {
        const T d = T(g - low[t]), eta = T(own) + diagonal[t] - T(2) * a[t];
        const T score = d > T(0) ? d * d / (eta > T(kLeastCurvature) ? eta : T(kLeastCurvature)) : T(0);
        if (double(score) > gain) gain = double(score), found = t;
    }
    return found;
}

template <class T>
class Smo {
   public:
    // Uses the stored K, or `own`, computed for the rows of this problem, unless it is null.
    Smo(const DualBatch& batch, int64_t problem, const View<T>* own)
        : f_(batch), problem_(problem), first_(batch.offset[problem]), size_(batch.offset[problem + 1] - first_),
          split_(batch.split[problem] - first_), row_of_(max64(1, size_)) {
        if (own)
            matrix_ = *own;
        else
            matrix_.part[0][0] = static_cast<const T*>(batch.matrix), matrix_.stride[0] = batch.rows;
        for (int64_t t = 0; t < size_; ++t) row_of_[t] = own ? t : f_.row[first_ + t];
    }

    void run() {
        activate(false);
        for (int64_t until_shrink = min64(size_, kShrinkEvery);; --until_shrink) {
            if (gap() <= f_.tol) {
                if (active_ == size_) return finish(kSettled);
                reconstruct();
                activate(true);
                until_shrink = min64(size_, kShrinkEvery) + 1;
                continue;
            }
            if (f_.steps[problem_] + steps_ >= f_.limit) return finish(kCapped);
            if (work_ >= f_.work) return finish(kRunning);
            if (until_shrink <= 0) {
                shrink();
                until_shrink = min64(size_, kShrinkEvery);
            }
            if (!step()) {
                if (active_ == size_) return finish(kStuck);
                reconstruct();
                activate(true);
            }
        }
    }

   private:
    // ---- which variables are active ---------------------------------------------------------------------------------

    // Copies the active variables; with `all`, makes all variables active first.
    void activate(bool all) {
        variable_.reset(max64(1, size_));
        active_ = 0, boundary_ = 0;
        for (int64_t t = 0; t < size_; ++t) {
            if (all) f_.active[first_ + t] = 1;
            if (!f_.active[first_ + t]) continue;
            boundary_ += t < split_;
            variable_[active_++] = t;
        }
        load();
    }

    void load() {
        const int64_t room = max64(1, active_);
        row_.reset(room), up_.reset(room), low_.reset(room), diagonal_.reset(room);
        for (int64_t k = 0; k < active_; ++k) {
            const int64_t t = first_ + variable_[k], r = row_of_[variable_[k]];
            row_[k] = r, diagonal_[k] = *matrix_.at(r, r);
            set(k, f_.gradient[t]);
        }
        rows_.reset(matrix_, row_.get(), active_, f_.cache);
        group_[0] = look(0, boundary_), group_[1] = look(boundary_, active_);
    }

    Extremes look(int64_t begin, int64_t end) const {
        Extremes e;
        for (int64_t k = begin; k < end; ++k) e.see(up_[k], low_[k], k);
        return e;
    }

    // Sets the slopes upwards and downwards of an active variable with the gradient g.
    void set(int64_t k, double g) {
        const int64_t t = first_ + variable_[k];
        const double b = f_.beta[t];
        up_[k] = b < f_.upper[t] ? g + (b < 0 ? f_.epsilon : -f_.epsilon) : -__builtin_inf();
        low_[k] = b > f_.lower[t] ? g + (b > 0 ? -f_.epsilon : f_.epsilon) : __builtin_inf();
    }

    double gradient(int64_t k) const {
        const double b = f_.beta[first_ + variable_[k]];
        return up_[k] > -__builtin_inf() ? up_[k] - (b < 0 ? f_.epsilon : -f_.epsilon)
                                         : low_[k] - (b > 0 ? -f_.epsilon : f_.epsilon);
    }

    void save() {
        for (int64_t k = 0; k < active_; ++k) f_.gradient[first_ + variable_[k]] = gradient(k);
    }

    // Sets aside variables at a bound or at 0 that no active variable could form a step with.
    void shrink() {
        int64_t stay = 0;
        for (int64_t k = 0; k < active_; ++k) stay += !idle(k);
        if (double(stay) > kWorthShrinking * double(active_)) return;
        save();
        if (active_ == size_)
            for (int64_t t = first_; t < first_ + size_; ++t)
                f_.anchor[t] = f_.beta[t], f_.anchor_gradient[t] = f_.gradient[t];
        for (int64_t k = 0; k < active_; ++k)
            if (idle(k)) f_.active[first_ + variable_[k]] = 0;
        activate(false);
    }

    bool idle(int64_t k) const {
        const Extremes& e = group_[k >= boundary_];
        return up_[k] < e.bottom && low_[k] > e.top;
    }

    // Gradients of variables that were set aside: that at the anchor less K (beta - anchor).
    void reconstruct() {
        save();
        Buffer<double> change(max64(1, size_));
        const int64_t* row = row_of_.get();
        for (int64_t u = 0; u < size_; ++u) {
            const double d = f_.beta[first_ + u] - f_.anchor[first_ + u];
            if (d != 0) add_row(row[u], row, d, change.get());
        }
        for (int64_t t = 0; t < size_; ++t)
            if (!f_.active[first_ + t]) f_.gradient[first_ + t] = f_.anchor_gradient[first_ + t] - change[t];
    }

    void add_row(int64_t k, const int64_t* row, double d, double* to) {
        work_ += size_;
        for (int64_t t = 0; t < size_;) {
            const int64_t end = end_of_run(row, t, size_, matrix_.border);
            const T* from = matrix_.at(k, row[t]);
            for (int64_t i = t; i < end; ++i) to[i] += d * double(from[i - t]);
            t = end;
        }
    }

    // ---- one step ---------------------------------------------------------------------------------------------------

    double gap() const {
        const double a = group_[0].gap(), b = group_[1].gap();
        return a > b ? a : b;
    }

    // False if no step changes anything.
    bool step() {
        int64_t i = -1, j = -1;
        double best = -1;
        for (int h = 0; h < 2; ++h) {
            const Extremes& e = group_[h];
            if (!(e.gap() > 0)) continue;
            double gain;
            const int64_t begin = h ? boundary_ : 0, end = h ? active_ : boundary_;
            int64_t other = partner(rows_.get(e.at, work_), diagonal_.get(), e.top, double(diagonal_[e.at]), low_.get(),
                                    begin, end, gain);
            if (other < 0) other = e.lowest;
            if (gain > best) best = gain, i = e.at, j = other;
        }
        if (i < 0 || j < 0 || i == j) return false;
        const T* a = rows_.get(i, work_);
        const T* b = rows_.get(j, work_);
        const double delta = move(i, j, double(a[j]));
        if (delta == 0) return false;
        group_[0] = update(a, b, delta, up_.get(), low_.get(), 0, boundary_);
        group_[1] = update(a, b, delta, up_.get(), low_.get(), boundary_, active_);
        work_ += 2 * active_;
        ++steps_;
        return true;
    }

    // Raises beta_i and lowers beta_j by the best amount, up to a bound or 0. Returns the amount, or 0 if it is below
    // rounding.
    double move(int64_t i, int64_t j, double kij) {
        const int64_t s = first_ + variable_[i], t = first_ + variable_[j];
        const double gi = gradient(i), gj = gradient(j), bi = f_.beta[s], bj = f_.beta[t];
        double eta = double(diagonal_[i]) + double(diagonal_[j]) - 2 * kij;
        if (!(eta > 0)) eta = kLeastCurvature;
        const double end_i = f_.epsilon > 0 && bi < 0 ? 0 : f_.upper[s],
                     end_j = f_.epsilon > 0 && bj > 0 ? 0 : f_.lower[t];
        const double room_i = end_i - bi, room_j = bj - end_j;
        double delta = (up_[i] - low_[j]) / eta;
        if (delta > room_i) delta = room_i;
        if (delta > room_j) delta = room_j;
        f_.beta[s] = delta == room_i || bi + delta > end_i ? end_i : bi + delta;
        f_.beta[t] = delta == room_j || bj - delta < end_j ? end_j : bj - delta;
        set(i, gi), set(j, gj);
        return f_.beta[s] == bi && f_.beta[t] == bj ? 0 : delta;
    }

    void finish(int64_t how) {
        save();
        f_.gap[problem_] = gap(), f_.steps[problem_] += steps_, f_.ended[problem_] = how;
    }

    const DualBatch& f_;
    const int64_t problem_, first_, size_, split_;
    View<T> matrix_;
    Buffer<int64_t> row_of_;  // of matrix_, for each variable of the problem
    int64_t active_ = 0, boundary_ = 0, work_ = 0, steps_ = 0;
    Extremes group_[2];
    Buffer<int64_t> variable_, row_;
    Buffer<double> up_, low_;
    Buffer<T> diagonal_;
    ActiveRows<T> rows_;
};

// Each thread takes the next problem that still runs. Results do not depend on which thread takes it.
template <class T>
void smo_as(const DualBatch& batch, const MadeEntries<T>* made) {
    int64_t largest = 0, next = 0;
    for (int64_t p = 0; p < batch.problems; ++p)
        if (batch.ended[p] == kRunning) largest = max64(largest, batch.offset[p + 1] - batch.offset[p]);
    parallel(min64(threads(), batch.problems), [&](int64_t) {
        const Room<T> room(made ? largest * largest : 0);
        for (int64_t p; (p = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < batch.problems;) {
            if (batch.ended[p] != kRunning) continue;
            const View<T> own = made ? made->make(p, room.get()) : View<T>{};
            Smo<T>(batch, p, made ? &own : nullptr).run();
        }
    });
}

template <class T>
void smo_from(const DualBatch& batch) {
    if (!batch.tiles) return smo_as<T>(batch, nullptr);
    const MadeEntries<T> made(batch);
    smo_as<T>(batch, &made);
}

inline void smo(const DualBatch& batch) {
    if (batch.is_double)
        smo_from<double>(batch);
    else
        smo_from<float>(batch);
}
