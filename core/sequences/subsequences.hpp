// Gap-weighted subsequences that two sequences share, for one sequence against as many others as a vector has lanes.
//
// Included once per instruction set, inside an anonymous namespace, after simd.hpp: see there.

// With M_q(i, j) the weight of the pairs of equal subsequences of q symbols that end at places i and j (without a factor
// decay^2 for each symbol), and D_q(i, j) the sum of decay^(i - i') decay^(j - j') M_q(i', j') over i' <= i, j' <= j:
//   M_1 = [x_i = z_j],  M_q+1 = [x_i = z_j] D_q(i - 1, j - 1),  D_q = decay D_q(i - 1, j) + R_q,  R_q = decay R_q(i, j - 1) + M_q.
// A level is one q; levels call each other by templates, so that their state is in registers.
template <int Q>
struct Level {
    Vec<double> sum{}, row{}, corner{};  // of M_q so far; R_q; D_q(i - 1, j - 1)
    Level<Q - 1> next;

    MERCER_INLINE void start() {
        row = corner = Vec<double>{};
        next.start();
    }
    template <class Mask>
    MERCER_INLINE void step(Mask match, Vec<double> m, double* above, double decay) {
        const Vec<double> d = load(above);
        sum += m;
        row = row * decay + m;
        store(above, d * decay + row);
        const Vec<double> on = match ? corner : Vec<double>{};
        corner = d;
        next.step(match, on, above + Simd<double>::W, decay);
    }
    MERCER_INLINE Vec<double> total(double decay) const { return (next.total(decay) + sum) * (decay * decay); }
};

template <>
struct Level<0> {  // the last, whose D is not wanted
    Vec<double> sum{};
    MERCER_INLINE void start() {}
    template <class Mask>
    MERCER_INLINE void step(Mask, Vec<double> m, double*, double) {
        sum += m;
    }
    MERCER_INLINE Vec<double> total(double decay) const { return sum * (decay * decay); }
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
    for (int64_t i = 0; i < nx; ++i) {
        const I symbol = I{} + int64_t(x[i]);
        levels.start();
        double* at = d;
        for (int64_t j = 0; j < nz; ++j, at += Q * W) {
            const auto match = *reinterpret_cast<const I*>(z + j * W) == symbol;
            levels.step(match, match ? one : V{}, at, decay);
        }
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
