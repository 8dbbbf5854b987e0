// The consumer that multiplies: strips against one or many vectors, the matrix itself never stored.
//
// A symmetric sweep takes each pair once: entry (i, j), j beyond i's block, adds to rows i and j. The second part goes to a
// buffer per group of blocks; which block is in which group, and the order of all sums, depends on the team's size only.

constexpr int64_t kMaxOthers = int64_t(256) << 20;  // bytes of all groups' buffers: beyond it, fewer groups

// A piece of a product: rows [i0, i1) against columns [j0, j1), with r vectors.
struct Piece {
    int64_t i0, i1, j0, j1, r;
    bool symmetric;
};

template <class T>
class Products {
    static constexpr int W = Strips<T>::W, M = Strips<T>::M, N = Strips<T>::N;

   public:
    explicit Products(const Strips<T>& strips) : strips_(strips), tile_(strips.tile()), stride_(strips.stride()) {}

    // out += K[i0:i1, j0:j1] v[j0:j1]; symmetric: out is whole, and out[j] += K[i, j] v[i] too for j beyond i's block.
    void multiply(const Piece& p, const T* v, double* out) const {
        // one vector at a time re-reads the strip from L1, r padded to a vector wastes lanes: the crossover is about 4
        if (p.r < 4)
            multiply_few(p, v, out);
        else
            multiply_many(p, v, out);
    }

   private:
    // ---- who does what --------------------------------------------------------------------------------------------------
    // body(rows, columns, mine, others): `mine` is the first of the rows' outputs, `others` that of column j0 or null.

    template <class Body>
    void products(const Piece& p, double* out, Body body) const {
        if (p.symmetric)
            once_per_pair(p, out, body);
        else
            rectangle(p, out, body);
    }

    template <class Body>
    void once_per_pair(const Piece& p, double* out, Body body) const {
        const int64_t blocks = ceil_div(p.i1 - p.i0, kRowBlock), length = (p.j1 - p.j0) * p.r;
        const int64_t affordable = kMaxOthers / (length * int64_t(sizeof(double)));
        const int64_t groups = max64(1, min64(min64(threads(), blocks), affordable));
        Buffer<double> other(groups * length);
        parallel(groups, [&](int64_t g) {
            for (int64_t b = g; b < blocks; b += groups) {
                const Rows rows = block_rows(p, b);
                double *mine = out + rows.begin * p.r, *others = other.get() + g * length;
                if (p.j0 <= rows.begin && rows.begin < p.j1) body(rows, Columns{rows.begin, rows.end}, mine, nullptr);
                const int64_t beyond = max64(rows.end, p.j0);
                if (beyond < p.j1) body(rows, Columns{beyond, p.j1}, mine, others);
            }
        });
        add_up(other.get(), groups, length, out + p.j0 * p.r);
    }

    // Row blocks, and slices of the columns too where the rows alone are too few to occupy the team.
    template <class Body>
    void rectangle(const Piece& p, double* out, Body body) const {
        const int64_t blocks = ceil_div(p.i1 - p.i0, kRowBlock), wanted = 4 * threads(), length = (p.i1 - p.i0) * p.r;
        const int64_t most = min64(ceil_div(p.j1 - p.j0, tile_), max64(1, kMaxOthers / (length * int64_t(sizeof(double)))));
        const int64_t slices = blocks >= wanted ? 1 : min64(most, ceil_div(wanted, blocks));
        Buffer<double> partial(slices > 1 ? slices * length : 1);
        parallel(blocks * slices, [&](int64_t task) {
            const Rows rows = block_rows(p, task / slices);
            double* base = slices > 1 ? partial.get() + task % slices * length : out;
            body(rows, strips_.cut(p.j0, p.j1, task % slices, slices), base + (rows.begin - p.i0) * p.r, nullptr);
        });
        if (slices > 1) add_up(partial.get(), slices, length, out);
    }

    static Rows block_rows(const Piece& p, int64_t b) {
        return {p.i0 + b * kRowBlock, min64(p.i0 + (b + 1) * kRowBlock, p.i1)};
    }

    static void add_up(const double* parts, int64_t count, int64_t length, double* out) {
        const int64_t step = 1 << 14;
        parallel(ceil_div(length, step), [=](int64_t task) {
            for (int64_t p = 0; p < count; ++p)
                for (int64_t i = task * step; i < min64(length, (task + 1) * step); ++i) out[i] += parts[p * length + i];
        });
    }

    // ---- one vector at a time over the strip, which is still in L1 ----------------------------------------------------------

    void multiply_few(const Piece& p, const T* v, double* out) const {
        const int64_t length = round_up(p.j1 - p.j0, N);
        Buffer<T> vectors(p.r * length);
        for (int64_t j = p.j0; j < p.j1; ++j)
            for (int64_t q = 0; q < p.r; ++q) vectors[q * length + j - p.j0] = v[j * p.r + q];
        products(p, out, [&](Rows rows, Columns cols, double* mine, double* others) {
            Scratch<T> s;
            strips_.prepare(s);
            Buffer<T> carry(p.r * tile_);
            strips_.sweep(s, rows, cols, [&](int64_t i, int64_t j, int columns, const T* strip) {
                const int64_t valid = min64(M, rows.end - i);
                for (int64_t q = 0; q < p.r; ++q) {
                    const T* x = vectors.get() + q * length + j - p.j0;
                    double sums[M];
                    if (others) {
                        T own[M] = {};
                        for (int64_t k = 0; k < valid; ++k) own[k] = v[(i + k) * p.r + q];
                        dot_both(strip, x, columns, own, carry.get() + q * tile_, sums);
                    } else {
                        dot_rows(strip, x, columns, sums);
                    }
                    for (int64_t k = 0; k < valid; ++k) mine[(i - rows.begin + k) * p.r + q] += sums[k];
                }
            }, [&](int64_t j, int columns) {
                if (others) hand_over(carry.get(), 1, tile_, p, j, columns, others);
            });
        });
    }

    // others[j:] += carry, whose element (column c, vector q) is at c * by_column + q * by_vector; carry becomes zero
    void hand_over(T* carry, int64_t by_column, int64_t by_vector, const Piece& p, int64_t j, int columns, double* others) const {
        for (int64_t c = 0; c < min64(columns, p.j1 - j); ++c)
            for (int64_t q = 0; q < p.r; ++q) {
                T& x = carry[c * by_column + q * by_vector];
                others[(j - p.j0 + c) * p.r + q] += double(x);
                x = T(0);
            }
    }

    void dot_rows(const T* strip, const T* x, int columns, double* sums) const {
        Vec<T> s[M];
#pragma GCC unroll 16
        for (int k = 0; k < M; ++k) s[k] = Vec<T>{};
        for (int c = 0; c < columns; c += W) {
            const Vec<T> xc = load(x + c);
#pragma GCC unroll 16
            for (int k = 0; k < M; ++k) s[k] += load(strip + k * stride_ + c) * xc;
        }
#pragma GCC unroll 16
        for (int k = 0; k < M; ++k) sums[k] = lane_sum<T>(s[k]);
    }

    // sums = strip x, and carry += stripᵀ own, in one pass
    void dot_both(const T* strip, const T* x, int columns, const T* own, T* carry, double* sums) const {
        Vec<T> s[M];
#pragma GCC unroll 16
        for (int k = 0; k < M; ++k) s[k] = Vec<T>{};
        for (int c = 0; c < columns; c += W) {
            const Vec<T> xc = load(x + c);
            Vec<T> t = load(carry + c);
#pragma GCC unroll 16
            for (int k = 0; k < M; ++k) {
                const Vec<T> e = load(strip + k * stride_ + c);
                s[k] += e * xc;
                t += e * own[k];
            }
            store<T>(carry + c, t);
        }
#pragma GCC unroll 16
        for (int k = 0; k < M; ++k) sums[k] = lane_sum<T>(s[k]);
    }

    // ---- several vectors: a small matrix product per strip, two vectors of right-hand sides at a time ------------------------

    // v[begin:end], each row padded to `rp`; whole panels of them.
    static void pad(const T* v, int64_t begin, int64_t end, int64_t r, int64_t rp, Buffer<T>& out) {
        out.reset(round_up(round_up(end - begin, N), M) * rp);
        for (int64_t j = begin; j < end; ++j) std::memcpy(out.get() + (j - begin) * rp, v + j * r, size_t(r) * sizeof(T));
    }

    void multiply_many(const Piece& p, const T* v, double* out) const {
        const int64_t r = p.r, rp = round_up(r, N);
        Buffer<T> right, left;
        pad(v, p.j0, p.j1, r, rp, right);
        if (p.symmetric) pad(v, p.i0, p.i1, r, rp, left);
        products(p, out, [&](Rows rows, Columns cols, double* mine, double* others) {
            Scratch<T> s;
            strips_.prepare(s);
            Buffer<T> carry(others ? rp * tile_ : 1), sums(M * N);
            strips_.sweep(s, rows, cols, [&](int64_t i, int64_t j, int columns, const T* strip) {
                const int64_t valid = min64(M, rows.end - i);
                for (int64_t q = 0; q < rp; q += N) {
                    times_many(strip, right.get() + (j - p.j0) * rp + q, rp, columns, sums.get());
                    for (int64_t k = 0; k < valid; ++k)
                        for (int64_t c = 0; c < min64(N, r - q); ++c)
                            mine[(i - rows.begin + k) * r + q + c] += double(sums[k * N + c]);
                    if (others) transposed_times_many(strip, left.get() + (i - p.i0) * rp + q, rp, columns, carry.get() + q);
                }
            }, [&](int64_t j, int columns) {
                if (others) hand_over(carry.get(), rp, 1, p, j, columns, others);
            });
        });
    }

    void times_many(const T* strip, const T* v, int64_t rp, int columns, T* sums) const {
        Vec<T> s0[M], s1[M];
#pragma GCC unroll 16
        for (int k = 0; k < M; ++k) s0[k] = s1[k] = Vec<T>{};
        for (int c = 0; c < columns; ++c) {
            const Vec<T> v0 = load(v + c * rp), v1 = load(v + c * rp + W);
#pragma GCC unroll 16
            for (int k = 0; k < M; ++k) {
                const T e = strip[k * stride_ + c];
                s0[k] += e * v0;
                s1[k] += e * v1;
            }
        }
#pragma GCC unroll 16
        for (int k = 0; k < M; ++k) store<T>(sums + k * N, s0[k]), store<T>(sums + k * N + W, s1[k]);
    }

    // carry[c, :] += sum over the strip's rows of strip[k, c] v[k, :]; only for strips of whole row blocks
    void transposed_times_many(const T* strip, const T* v, int64_t rp, int columns, T* carry) const {
        Vec<T> v0[M], v1[M];
#pragma GCC unroll 16
        for (int k = 0; k < M; ++k) v0[k] = load(v + k * rp), v1[k] = load(v + k * rp + W);
        for (int c = 0; c < columns; ++c) {
            Vec<T> t0 = load(carry + c * rp), t1 = load(carry + c * rp + W);
#pragma GCC unroll 16
            for (int k = 0; k < M; ++k) {
                const T e = strip[k * stride_ + c];
                t0 += e * v0[k];
                t1 += e * v1[k];
            }
            store<T>(carry + c * rp, t0);
            store<T>(carry + c * rp + W, t1);
        }
    }

    const Strips<T>& strips_;
    int64_t tile_, stride_;
};
