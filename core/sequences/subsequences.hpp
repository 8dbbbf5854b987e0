// Gap-weighted subsequences that two sequences share, for one sequence against as many others as a vector has lanes.
//
// Included once per instruction set, inside an anonymous namespace, after simd.hpp: see there.

// With M_q(i, j) the weight of the pairs of equal subsequences of q symbols that end at places i and j (without a factor
// decay^2 for each symbol), and D_q(i, j) the sum of decay^(i - i') decay^(j - j') M_q(i', j') over i' <= i, j' <= j:
//   M_1 = [x_i = z_j],  M_q+1 = [x_i = z_j] D_q(i - 1, j - 1),  D_q = decay D_q(i - 1, j) + R_q,  R_q = decay R_q(i, j - 1) + M_q.
// A level is one q; levels call each other by templates, so that their state is in registers. Rows go in pairs, i and i + 1:
// D_q of the first is not stored, and their chains of additions are done side by side.
template <int Q>
struct Level {
    using V = Vec<double>;
    V sum{}, row0{}, row1{}, corner0{}, corner1{};  // of M_q so far; R_q; D_q(i - 1, j - 1): of both rows
    Level<Q - 1> next;

    MERCER_INLINE void start() {
        row0 = row1 = corner0 = corner1 = V{};
        next.start();
    }
    template <class Mask>
    MERCER_INLINE void step(Mask match0, Mask match1, V m0, V m1, double* above, double decay) {
        const V d = load(above);
        sum += m0 + m1;
        row0 = row0 * decay + m0;
        row1 = row1 * decay + m1;
        const V d0 = d * decay + row0;
        store(above, d0 * decay + row1);
        const V on0 = match0 ? corner0 : V{}, on1 = match1 ? corner1 : V{};
        corner0 = d;
        corner1 = d0;
        next.step(match0, match1, on0, on1, above + Simd<double>::W, decay);
    }
    template <class Mask>
    MERCER_INLINE void last_step(Mask match, V m, double* above, double decay) {
        const V d = load(above);
        sum += m;
        row0 = row0 * decay + m;
        store(above, d * decay + row0);
        const V on = match ? corner0 : V{};
        corner0 = d;
        next.last_step(match, on, above + Simd<double>::W, decay);
    }
    MERCER_INLINE V total(double decay) const { return (next.total(decay) + sum) * (decay * decay); }
};

template <>
struct Level<0> {  // the last, whose D is not wanted
    using V = Vec<double>;
    V sum{};
    MERCER_INLINE void start() {}
    template <class Mask>
    MERCER_INLINE void step(Mask, Mask, V m0, V m1, double*, double) {
        sum += m0 + m1;
    }
    template <class Mask>
    MERCER_INLINE void last_step(Mask, V m, double*, double) {
        sum += m;
    }
    MERCER_INLINE V total(double decay) const { return sum * (decay * decay); }
};

// `d` holds D_q of the row before: nz x (P - 1) vectors. out: the sum over q <= P of decay^(2q) sum M_q, by lane.
template <int P>
void subsequences_of(const int32_t* x, int64_t nx, const int64_t* z, int64_t nz, double decay, double* d, double* out) {
    using V = Vec<double>;
    using I = IntVec<double>;
    constexpr int W = Simd<double>::W, Q = P - 1;
    for (int64_t i = 0; i < nz * Q; ++i) store(d + i * W, V{});
    const V one = splat<double>(1.0);
    Level<Q> levels;
    int64_t i = 0;
    for (; i + 1 < nx; i += 2) {
        const I first = I{} + int64_t(x[i]), second = I{} + int64_t(x[i + 1]);
        levels.start();
        for (int64_t j = 0; j < nz; ++j) {
            const I symbols = *reinterpret_cast<const I*>(z + j * W);
            const auto match0 = symbols == first, match1 = symbols == second;
            levels.step(match0, match1, match0 ? one : V{}, match1 ? one : V{}, d + j * Q * W, decay);
        }
    }
    levels.start();
    for (int64_t j = 0; i < nx && j < nz; ++j) {
        const auto match = *reinterpret_cast<const I*>(z + j * W) == I{} + int64_t(x[i]);
        levels.last_step(match, match ? one : V{}, d + j * Q * W, decay);
    }
    store_unaligned(out, levels.total(decay));
}

void subsequences(const int32_t* x, int64_t nx, const int64_t* z, int64_t nz, int length, double decay, double* work, double* out) {
    switch (length) {
        case 1: return subsequences_of<1>(x, nx, z, nz, decay, work, out);
        case 2: return subsequences_of<2>(x, nx, z, nz, decay, work, out);
        case 3: return subsequences_of<3>(x, nx, z, nz, decay, work, out);
        case 4: return subsequences_of<4>(x, nx, z, nz, decay, work, out);
        case 5: return subsequences_of<5>(x, nx, z, nz, decay, work, out);
        case 6: return subsequences_of<6>(x, nx, z, nz, decay, work, out);
        case 7: return subsequences_of<7>(x, nx, z, nz, decay, work, out);
        default: return subsequences_of<kMostSubsequence>(x, nx, z, nz, decay, work, out);
    }
}
