// Products of the matrix with vectors, strip by strip; the matrix is never stored.
//
// A symmetric sweep visits each pair of rows once: an entry (i, j) with j beyond i's block contributes to rows i and j.
// Contributions to rows j go to buffers, one for each group of blocks. The division into groups and the order of all
// sums depend on the size of the team only.
//
// A normal product computes each entry once for K and for its transpose. It keeps the strips of a run of rows in L2
// while it adds up u = K v for these rows, and then reads them again for the transpose times u. Runs are grouped like
// blocks.

constexpr int64_t kMaxOthers = int64_t(256) << 20;  // bytes of all groups' buffers: beyond it, fewer groups
// Size of the strips of a run: they stay in L2, with the data from which the next ones are made.
constexpr int64_t kKeptBytes = 640 * 1024;

// A piece of a product: rows [i0, i1) against columns [j0, j1), with r vectors.
struct Piece {
    int64_t i0, i1, j0, j1, r;
    bool symmetric;
};

template <class T>
class Products {
    static constexpr int W = Strips<T>::W, M = Strips<T>::M, N = Strips<T>::N;
    // From so many vectors on, they are padded to whole panels and multiplied together. Fewer, up to half a panel, are
    // multiplied one at a time: each reads the strip from L1 again, but padding would waste half of the lanes and more.
    static constexpr int64_t kMany = max64(4, N / 2 + 1);

   public:
    explicit Products(const Strips<T>& strips) : strips_(strips), tile_(strips.tile()), stride_(strips.stride()) {}

    // out += K[i0:i1, j0:j1] v[j0:j1]; symmetric: out is whole, and out[j] += K[i, j] v[i] too for j beyond i's block.
    void multiply(const Piece& p, const T* v, double* out) const {
        if (p.r < kMany)
            multiply_few(p, v, out);
        else
            multiply_many(p, v, out);
    }

    // out (m x r) += transpose of K[i0:i1, :] times diag(w) K[i0:i1, :] v, with each entry computed once; no w is ones.
    // One vector at a time: for several, two products are as fast.
    void normal(int64_t i0, int64_t i1, const T* v, int64_t r, const double* w, double* out) const {
        const int64_t m = strips_.columns(), length = round_up(m, N);
        const int64_t bytes = r * length * int64_t(sizeof(double)) + strips_.kept_size(M) * int64_t(sizeof(T));
        const int64_t most = max64(1, min64(threads(), kMaxOthers / bytes));
        const int64_t height = run_height(i1 - i0, most), runs = ceil_div(i1 - i0, height), groups = min64(most, runs);
        Buffer<T> right;
        one_by_one(v, 0, m, r, right);
        Buffer<double> sums(groups * r * length);
        parallel(groups, [&](int64_t g) {
            Run run(strips_, height, r);
            for (int64_t b = g; b < runs; b += groups) {
                const int64_t begin = i0 + b * height;
                normal_run({begin, min64(begin + height, i1)}, right.get(), r, w, run, sums.get() + g * r * length);
            }
        });
        const int64_t step = 1 << 12;
        parallel(ceil_div(m, step), [&](int64_t task) {
            for (int64_t g = 0; g < groups; ++g)
                for (int64_t j = task * step; j < min64(m, (task + 1) * step); ++j)
                    for (int64_t q = 0; q < r; ++q) out[j * r + q] += sums[(g * r + q) * length + j];
        });
    }

   private:
    // ---- who does what ----------------------------------------------------------------------------------------------
    // Each calls body(rows, columns, mine, others): `mine` points to the first of the rows' outputs, `others` to that
    // of column j0, or is null.

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

    // Row blocks, and slices of the columns if there are too few blocks for the team.
    template <class Body>
    void rectangle(const Piece& p, double* out, Body body) const {
        const int64_t blocks = ceil_div(p.i1 - p.i0, kRowBlock), wanted = 4 * threads(), length = (p.i1 - p.i0) * p.r;
        const int64_t most =
            min64(ceil_div(p.j1 - p.j0, tile_), max64(1, kMaxOthers / (length * int64_t(sizeof(double)))));
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
                for (int64_t i = task * step; i < min64(length, (task + 1) * step); ++i)
                    out[i] += parts[p * length + i];
        });
    }

    // ---- one vector at a time over the strip, which is still in L1 --------------------------------------------------

    // The rows [begin, end) of v, one vector after the other, each padded to whole panels.
    static void one_by_one(const T* v, int64_t begin, int64_t end, int64_t r, Buffer<T>& out) {
        const int64_t length = round_up(end - begin, N);
        out.reset(r * length);
        for (int64_t j = begin; j < end; ++j)
            for (int64_t q = 0; q < r; ++q) out[q * length + j - begin] = v[j * r + q];
    }

    void multiply_few(const Piece& p, const T* v, double* out) const {
        const int64_t length = round_up(p.j1 - p.j0, N);
        Buffer<T> vectors;
        one_by_one(v, p.j0, p.j1, p.r, vectors);
        products(p, out, [&](Rows rows, Columns cols, double* mine, double* others) {
            Scratch<T> s;
            strips_.prepare(s);
            Buffer<T> carry(p.r * tile_);
            strips_.sweep(s, rows, cols, [&](int64_t i, int64_t j, int columns, const T* strip) {
                const int64_t valid = min64(M, rows.end - i);
                for (int64_t q = 0; q < p.r; ++q) {
                    const T* x = vectors.get() + q * length + j - p.j0;
                    double* to = mine + (i - rows.begin) * p.r + q;
                    if (!others) {
                        add_one(strip, x, columns, valid, to, p.r);
                        continue;
                    }
                    T own[M] = {};
                    for (int64_t k = 0; k < valid; ++k) own[k] = v[(i + k) * p.r + q];
                    double sums[M];
                    dot_both(strip, x, columns, own, carry.get() + q * tile_, sums);
                    for (int64_t k = 0; k < valid; ++k) to[k * p.r] += sums[k];
                }
            }, [&](int64_t j, int columns) {
                if (others) hand_over(carry.get(), 1, tile_, p, j, columns, others);
            });
        });
    }

    // others[j:] += carry, whose element (column c, vector q) is at c * by_column + q * by_vector; carry becomes zero
    void hand_over(T* carry, int64_t by_column, int64_t by_vector, const Piece& p, int64_t j, int columns,
                   double* others) const {
        for (int64_t c = 0; c < min64(columns, p.j1 - j); ++c)
            for (int64_t q = 0; q < p.r; ++q) {
                T& x = carry[c * by_column + q * by_vector];
                others[(j - p.j0 + c) * p.r + q] += double(x);
                x = T(0);
            }
    }

    // mine[k] += strip x for `valid` rows
    void add_one(const T* strip, const T* x, int columns, int64_t valid, double* mine, int64_t stride) const {
        double sums[M];
        dot_rows(strip, x, columns, sums);
        for (int64_t k = 0; k < valid; ++k) mine[k * stride] += sums[k];
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

    // ---- several vectors: a small matrix product per strip, two vectors of right-hand sides at a time ---------------

    // v[begin:end], each row padded to `rp`; whole panels of them.
    static void pad(const T* v, int64_t begin, int64_t end, int64_t r, int64_t rp, Buffer<T>& out) {
        out.reset(round_up(round_up(end - begin, N), M) * rp);
        for (int64_t j = begin; j < end; ++j)
            std::memcpy(out.get() + (j - begin) * rp, v + j * r, size_t(r) * sizeof(T));
    }

    void multiply_many(const Piece& p, const T* v, double* out) const {
        const int64_t r = p.r, rp = round_up(r, N);
        Buffer<T> right, left;
        pad(v, p.j0, p.j1, r, rp, right);
        if (p.symmetric) pad(v, p.i0, p.i1, r, rp, left);
        products(p, out, [&](Rows rows, Columns cols, double* mine, double* others) {
            Scratch<T> s;
            strips_.prepare(s);
            Buffer<T> carry(others ? rp * tile_ : 1);
            strips_.sweep(s, rows, cols, [&](int64_t i, int64_t j, int columns, const T* strip) {
                const int64_t valid = min64(M, rows.end - i);
                for (int64_t q = 0; q < rp; q += N) {
                    add_many(strip, right.get() + (j - p.j0) * rp + q, rp, columns, valid,
                             mine + (i - rows.begin) * r + q, r, min64(N, r - q));
                    if (others)
                        transposed_times_many(strip, left.get() + (i - p.i0) * rp + q, rp, columns, carry.get() + q);
                }
            }, [&](int64_t j, int columns) {
                if (others) hand_over(carry.get(), rp, 1, p, j, columns, others);
            });
        });
    }

    // mine[k, c] += strip v for `valid` rows and `count` of N vectors
    void add_many(const T* strip, const T* v, int64_t rp, int columns, int64_t valid, double* mine, int64_t stride,
                  int64_t count) const {
        alignas(64) T sums[M * N];
        times_many(strip, v, rp, columns, sums);
        for (int64_t k = 0; k < valid; ++k)
            for (int64_t c = 0; c < count; ++c) mine[k * stride + c] += double(sums[k * N + c]);
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

    // ---- both halves of a normal product, on the strips of one run of rows ------------------------------------------

    // What a thread needs for a run of rows. Vectors are stored one after the other.
    struct Run {
        Run(const Strips<T>& strips, int64_t rows, int64_t r)
            : height(rows), kept(strips.kept_size(rows)), own(r * rows), carry(r * strips.tile()), u(r * rows),
              unit(r) {
            strips.prepare(s);
        }
        int64_t height;  // a multiple of M
        Scratch<T> s;
        Buffer<T> kept, own, carry;  // own: w u, each vector divided by its unit
        Buffer<double> u, unit;
    };

    // As many rows as have their strips in L2; more if the columns, which each run reads again, are larger than the
    // strips.
    int64_t run_height(int64_t rows, int64_t groups) const {
        const int64_t across = round_up(strips_.columns(), N) * int64_t(sizeof(T));
        const int64_t wanted = max64(kKeptBytes / across, min64(kTallRows, strips_.depth() / 2));
        return min64(max64(M, min64(kRowBlock, wanted) / M * M), round_up(ceil_div(rows, groups), M));
    }

    void normal_run(Rows rows, const T* right, int64_t r, const double* w, Run& run, double* sums) const {
        const int64_t m = strips_.columns(), length = round_up(m, N), count = rows.end - rows.begin;
        std::memset(run.u.get(), 0, size_t(r * run.height) * sizeof(double));
        run.s.kept = run.kept.get();
        strips_.sweep(run.s, rows, {0, m}, [&](int64_t i, int64_t j, int columns, const T* strip) {
            for (int64_t q = 0; q < r; ++q)
                add_one(strip, right + q * length + j, columns, min64(M, rows.end - i),
                        run.u.get() + q * run.height + i - rows.begin, 1);
        });
        for (int64_t q = 0; q < r; ++q) weigh(run, count, q, w ? w + rows.begin : nullptr);
        const T* strip = run.kept.get();
        for (int64_t j = 0; j < m; j += tile_) {
            const int columns = int(min64(tile_, round_up(m - j, N)));
            for (int64_t i = 0; i < count; i += M, strip += M * stride_)
                for (int64_t q = 0; q < r; ++q)
                    transposed_times_one(strip, run.own.get() + q * run.height + i, columns,
                                         run.carry.get() + q * tile_);
            for (int64_t q = 0; q < r; ++q)
                for (int c = 0; c < columns; ++c) {
                    T& x = run.carry[q * tile_ + c];
                    sums[q * length + j + c] += run.unit[q] * double(x);
                    x = T(0);
                }
        }
    }

    // own = w u divided by a power of two that brings its largest element below 1, so that T neither overflows nor
    // underflows.
    static void weigh(Run& run, int64_t count, int64_t q, const double* w) {
        double *u = run.u.get() + q * run.height, largest = 0;
        for (int64_t i = 0; i < count; ++i) {
            if (w) u[i] *= w[i];
            const double size = __builtin_fabs(u[i]);
            if (size > largest && size < __builtin_inf()) largest = size;
        }
        int power = 0;
        if (sizeof(T) < sizeof(double)) __builtin_frexp(largest, &power);
        power = power < -1000 ? -1000 : power > 1000 ? 1000 : power;
        const double inverse = __builtin_ldexp(1.0, -power);
        run.unit[q] = __builtin_ldexp(1.0, power);
        for (int64_t i = 0; i < run.height; ++i) run.own[q * run.height + i] = T(u[i] * inverse);
    }

    // carry[c] += sum over the strip's rows of strip[k, c] v[k]
    void transposed_times_one(const T* strip, const T* v, int columns, T* carry) const {
        for (int c = 0; c < columns; c += W) {
            Vec<T> t = load(carry + c);
#pragma GCC unroll 16
            for (int k = 0; k < M; ++k) t += load(strip + k * stride_ + c) * v[k];
            store<T>(carry + c, t);
        }
    }

    const Strips<T>& strips_;
    int64_t tile_, stride_;
};
