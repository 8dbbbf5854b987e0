// Gap-weighted subsequences that two sequences share, for one sequence against as many others as a vector has lanes.
//
// Included once per instruction set: see base/simd.inl.

// Let M_q(i, j) be the weight of the pairs of equal subsequences of q symbols that end at places i and j (without a
// factor decay^2 for each symbol), and D_q(i, j) the sum of decay^(i - i') decay^(j - j') M_q(i', j') over all i' <= i
// and j' <= j:
//   M_1 = [x_i = z_j],  M_q+1 = [x_i = z_j] D_q(i - 1, j - 1),
//   D_q = decay D_q(i - 1, j) + R_q,  R_q = decay R_q(i, j - 1) + M_q.
// If `exact`, only the sum of the last level is used. A level is one q. Levels call each other by templates, so that
// their state stays in registers. Rows go in pairs, i and i + 1: D_q of the first is not stored, and the additions of
// both overlap. Columns go in blocks whose D_q stay in L1; between blocks, each pair of rows keeps its state in memory.

// A level passes `reach` to the next one: D_q one place before in both sequences. For the first symbol it is 1.
template <int Q>
struct Level {
    using V = Vec<double>;
    static constexpr int W = Simd<double>::W;
    V sum{}, row0{}, row1{}, corner0{}, corner1{};  // of M_q so far; R_q; D_q(i - 1, j - 1): of both rows
    Level<Q - 1> next;

    MERCER_INLINE void load_state(const double* state) {
        row0 = load(state), row1 = load(state + W), corner0 = load(state + 2 * W), corner1 = load(state + 3 * W);
        next.load_state(state + 4 * W);
    }
    MERCER_INLINE void store_state(double* state) const {
        store(state, row0), store(state + W, row1), store(state + 2 * W, corner0), store(state + 3 * W, corner1);
        next.store_state(state + 4 * W);
    }
    template <class Mask>
    MERCER_INLINE void step(Mask match0, Mask match1, V reach0, V reach1, double* above, double decay) {
        const V d = load(above), m0 = match0 ? reach0 : V{}, m1 = match1 ? reach1 : V{};
        sum += m0 + m1;
        row0 = row0 * decay + m0;
        row1 = row1 * decay + m1;
        const V d0 = d * decay + row0;
        store(above, d0 * decay + row1);
        next.step(match0, match1, corner0, corner1, above + W, decay);
        corner0 = d;
        corner1 = d0;
    }
    template <class Mask>
    MERCER_INLINE void last_step(Mask match, V reach, double* above, double decay) {
        const V d = load(above), m = match ? reach : V{};
        sum += m;
        row0 = row0 * decay + m;
        next.last_step(match, corner0, above + W, decay);
        corner0 = d;
    }
    MERCER_INLINE V total(double decay, bool exact) const {
        const V longer = next.total(decay, exact);
        return (exact ? longer : longer + sum) * (decay * decay);
    }
};

template <>
struct Level<0> {  // the last one, whose D is not needed
    using V = Vec<double>;
    V sum{};
    MERCER_INLINE void load_state(const double*) {}
    MERCER_INLINE void store_state(double*) const {}
    template <class Mask>
    MERCER_INLINE void step(Mask match0, Mask match1, V reach0, V reach1, double*, double) {
        sum = match0 ? sum + reach0 : sum;
        sum = match1 ? sum + reach1 : sum;
    }
    template <class Mask>
    MERCER_INLINE void last_step(Mask match, V reach, double*, double) {
        sum = match ? sum + reach : sum;
    }
    MERCER_INLINE V total(double decay, bool) const { return sum * (decay * decay); }
};

// `work` has subsequence_work(nx, P) vectors: D_q of the previous row in a block of columns, and the states of all
// pairs of rows.
template <int P>
void subsequences_of(const int32_t* x, int64_t nx, const int64_t* z, int64_t nz, double decay, bool exact, double* work,
                     double* out) {
    using V = Vec<double>;
    using I = IntVec<double>;
    constexpr int W = Simd<double>::W, Q = P - 1;
    double *const d = work, *const states = work + kSubsequenceColumns * Q * W;
    for (int64_t i = 0; i < (nx + 1) / 2 * 4 * Q; ++i) store(states + i * W, V{});
    const V one = splat<double>(1.0);
    Level<Q> levels;
    for (int64_t block = 0; block < nz; block += kSubsequenceColumns) {
        const int64_t width = std::min(kSubsequenceColumns, nz - block);
        const int64_t* const symbols = z + block * W;
        for (int64_t i = 0; i < width * Q; ++i) store(d + i * W, V{});
        int64_t i = 0;
        double* state = states;
        for (; i + 1 < nx; i += 2, state += 4 * Q * W) {
            const I first = I{} + int64_t(x[i]), second = I{} + int64_t(x[i + 1]);
            levels.load_state(state);
            for (int64_t j = 0; j < width; ++j) {
                const I symbol = *reinterpret_cast<const I*>(symbols + j * W);
                levels.step(symbol == first, symbol == second, one, one, d + j * Q * W, decay);
            }
            levels.store_state(state);
        }
        if (i == nx) continue;
        levels.load_state(state);
        for (int64_t j = 0; j < width; ++j) {
            const auto match = *reinterpret_cast<const I*>(symbols + j * W) == I{} + int64_t(x[i]);
            levels.last_step(match, one, d + j * Q * W, decay);
        }
        levels.store_state(state);
    }
    store_unaligned(out, levels.total(decay, exact));
}

void subsequences(const int32_t* x, int64_t nx, const int64_t* z, int64_t nz, int length, double decay, bool exact,
                  double* work, double* out) {
    switch (length) {
        case 1: return subsequences_of<1>(x, nx, z, nz, decay, exact, work, out);
        case 2: return subsequences_of<2>(x, nx, z, nz, decay, exact, work, out);
        case 3: return subsequences_of<3>(x, nx, z, nz, decay, exact, work, out);
        case 4: return subsequences_of<4>(x, nx, z, nz, decay, exact, work, out);
        case 5: return subsequences_of<5>(x, nx, z, nz, decay, exact, work, out);
        case 6: return subsequences_of<6>(x, nx, z, nz, decay, exact, work, out);
        case 7: return subsequences_of<7>(x, nx, z, nz, decay, exact, work, out);
        default: return subsequences_of<kLongestSubsequence>(x, nx, z, nz, decay, exact, work, out);
    }
}
