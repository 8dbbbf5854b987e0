// K = Q B Qᵀ for a symmetric K, with B zero beyond kBand diagonals on each side: Householder's reduction, one panel of
// kBand columns in each step (C. Bischof, X. Sun (1992); W = A V T and the update by V Xᵀ + X Vᵀ as in LAPACK's sytrd).
// All work of order n³ is products of tiles of kBand x kBand entries in contiguous memory.
//
// The lower triangle of K is stored in slabs of kBand columns, row-major, each from its diagonal tile downwards. Step p
// makes the reflectors I - V T Vᵀ that zero the rows of slab p below the tile under its diagonal tile, and V replaces
// these rows. Y = A V reads the rest of the matrix once: each tile is updated with the reflectors of the previous step
// when it is multiplied. So memory is read and written once for 8 kBand operations on each entry.

constexpr int64_t kTile = kBand * kBand;

inline int64_t slab_start(int64_t blocks, int64_t j) { return (j * blocks - j * (j - 1) / 2) * kTile; }

// ---- products of tiles ----------------------------------------------------------------------------------------------

// Tiles that are needed next, one after the other in memory. They are fetched into L2 during a product, about a line in
// each turn of its innermost loop. On two cores this took an eighth to a quarter off the time of a step.
struct Ahead {
    const double* at = nullptr;
    int64_t tiles = 1;
};

struct Tile {
    static constexpr int W = Simd<double>::W, M = kPanelRows, N = 2 * W;
    static_assert(kBand % M == 0 && kBand % N == 0);

    // out[M x N] = in + sum over from <= k < to of left[r, k] right[k, :]; left[r, k] is left[k * ls + r] if
    // Transposed.
    template <bool Transposed>
    static MERCER_INLINE void part(const double* left, int64_t ls, const double* right, int64_t rs, int64_t from,
                                   int64_t to, const double* in, int64_t is, double* out, int64_t os,
                                   const double* ahead, int64_t pace) {
        Vec<double> s0[M], s1[M];
#pragma GCC unroll 16
        for (int r = 0; r < M; ++r) s0[r] = load(in + r * is), s1[r] = load(in + r * is + W);
        for (int64_t k = from; k < to; ++k) {
            __builtin_prefetch(ahead + k * pace, 0, 2);
            const Vec<double> v0 = load(right + k * rs), v1 = load(right + k * rs + W);
#pragma GCC unroll 16
            for (int r = 0; r < M; ++r) {
                const double e = Transposed ? left[k * ls + r] : left[r * ls + k];
                s0[r] += e * v0;
                s1[r] += e * v1;
            }
        }
#pragma GCC unroll 16
        for (int r = 0; r < M; ++r) store<double>(out + r * os, s0[r]), store<double>(out + r * os + W, s1[r]);
    }

    // out += left right, or leftᵀ right: kBand x depth times depth x kBand.
    template <bool Transposed>
    static MERCER_INLINE void product(const double* left, int64_t ls, int64_t depth, const double* right, double* out,
                                      Ahead next) {
        const double* ahead = next.at ? next.at : out;
        const int64_t share = next.at ? next.tiles * M * N : 0, pace = next.at ? max64(1, share / depth) : 0;
        for (int64_t c = 0; c < kBand; c += N)
            for (int64_t r = 0; r < kBand; r += M, ahead += share) {
                double* to = out + r * kBand + c;
                part<Transposed>(left + r * (Transposed ? 1 : ls), ls, right + c, kBand, 0, depth, to, kBand, to, kBand,
                                 ahead, pace);
            }
    }

    static void add(const double* left, const double* right, double* out, Ahead next = {}) {
        product<false>(left, kBand, kBand, right, out, next);
    }
    static void add_pair(const double* left, const double* right, double* out, Ahead next = {}) {
        product<false>(left, 2 * kBand, 2 * kBand, right, out, next);
    }
    static void add_transposed(const double* left, const double* right, double* out, Ahead next = {}) {
        product<true>(left, kBand, kBand, right, out, next);
    }

    static void clear(double* tile) { std::memset(tile, 0, kTile * sizeof(double)); }

    static void transpose(const double* tile, double sign, double* out, int64_t stride) {
        for (int64_t r = 0; r < kBand; ++r)
            for (int64_t c = 0; c < kBand; ++c) out[c * stride + r] = sign * tile[r * kBand + c];
    }
};

// ---- one panel ------------------------------------------------------------------------------------------------------

// The reflectors H = I - tau v vᵀ that make rows x kBand entries upper triangular. R goes to `upper`, and V replaces
// the panel, with its ones and zeros. One pass applies a reflector and sums what the next one needs:
//   vᵀP = P[c, :] + (xᵀP) / (alpha - beta).
inline void reflectors(double* panel, int64_t rows, double* tau, double* upper) {
    constexpr int W = Simd<double>::W;
    constexpr int64_t vectors = kBand / W;
    alignas(64) double sums[kBand] = {}, w[kBand];
    for (int64_t r = 1; r < rows; ++r)
        for (int64_t c = 0; c < kBand; ++c) sums[c] += panel[r * kBand] * panel[r * kBand + c];
    Tile::clear(upper);
    for (int64_t c = 0; c < kBand; ++c) {
        double* top = panel + c * kBand;
        const double alpha = top[c], length = __builtin_sqrt(alpha * alpha + sums[c]);
        const double beta = alpha > 0 ? -length : length;
        const bool any = sums[c] > 0;
        const double scale = any ? 1.0 / (alpha - beta) : 0.0;
        tau[c] = any ? (beta - alpha) / beta : 0.0;
        for (int64_t k = 0; k < kBand; ++k) w[k] = k > c ? tau[c] * (top[k] + sums[k] * scale) : 0.0;
        for (int64_t k = c; k < kBand; ++k) upper[c * kBand + k] = top[k] - w[k];
        if (any) upper[c * kBand + c] = beta;
        // Entries left of column c belong to other v.
        for (int64_t k = 0; k < kBand; ++k) top[k] = k < c ? top[k] : k == c;
        Vec<double> s[vectors] = {};
        for (int64_t r = c + 1; r < rows; ++r) {
            double* row = panel + r * kBand;
            const double v = row[c] * scale;
            for (int64_t q = c / W; q < vectors; ++q)
                store<double>(row + q * W, load(row + q * W) - v * load(w + q * W));
            row[c] = v;
            if (r == c + 1 || c + 1 == kBand) continue;
            const double x = row[c + 1];
            for (int64_t q = (c + 1) / W; q < vectors; ++q) s[q] += x * load(row + q * W);
        }
        for (int64_t q = 0; q < vectors; ++q) store<double>(sums + q * W, s[q]);
    }
}

// T, upper triangular, with H₁ H₂ … = I - V T Vᵀ, from VᵀV.
inline void triangular_factor(const double* gram, const double* tau, double* T) {
    Tile::clear(T);
    for (int64_t c = 0; c < kBand; ++c) {
        T[c * kBand + c] = tau[c];
        for (int64_t r = 0; r < c; ++r) {
            double s = 0;
            for (int64_t k = r; k < c; ++k) s += T[r * kBand + k] * gram[k * kBand + c];
            T[r * kBand + c] = -tau[c] * s;
        }
    }
}

// ---- one step -------------------------------------------------------------------------------------------------------

class BandStep {
   public:
    explicit BandStep(const BandSpec& p)
        : p_(p), q_(p.step), below_(p.blocks - p.step - 1), V_(p.slabs + slab_start(p.blocks, p.step) + kTile),
          teams_(max64(1, min64(threads(), below_))) {}

    void run() {
        if (q_ > 0) bring_up_to_date(slab(q_), 0);
        if (below_ == 0) return;
        alignas(64) double tau[kBand];
        reflectors(V_, below_ * kBand, tau, p_.upper);
        Buffer<double> gram(kTile);
        sum_over_blocks(gram.get(), [&](int64_t t, double* sum) { Tile::add_transposed(V(t), V(t), sum); });
        triangular_factor(gram.get(), tau, p_.factor);
        multiply();
        finish();
    }

   private:
    static constexpr int64_t kTogether = 4;  // their vectors and reflectors take 300 kB, which fit into L2

    double* slab(int64_t j) const { return p_.slabs + slab_start(p_.blocks, j); }
    double* tile_at(int64_t i, int64_t j) const { return slab(q_ + 1 + j) + (i - j) * kTile; }
    const double* V(int64_t t) const { return V_ + t * kTile; }
    const double* left(int64_t t) const { return p_.pending + t * 4 * kTile; }         // [V X], kBand x 2 kBand
    const double* right(int64_t t) const { return p_.pending + (t * 4 + 2) * kTile; }  // -[Xᵀ; Vᵀ], 2 kBand x kBand

    // Updates the tiles of a slab, from `first` blocks below the diagonal of the step.
    void bring_up_to_date(double* tiles, int64_t first) const {
        parallel(p_.blocks - q_ - first,
                 [&](int64_t t) { Tile::add_pair(left(first + t), right(first), tiles + t * kTile); });
    }

    // out = the sum over the blocks below of what `body` adds. The order of the sum depends on the size of the team
    // only.
    template <class Body>
    void sum_over_blocks(double* out, Body body) const {
        Buffer<double> sums(teams_ * kTile);
        parallel(teams_, [&](int64_t g) {
            for (int64_t t = g; t < below_; t += teams_) body(t, sums.get() + g * kTile);
        });
        add_up(sums.get(), kTile, kTile, out);
    }

    void add_up(const double* parts, int64_t stride, int64_t length, double* out) const {
        for (int64_t i = 0; i < length; ++i) {
            double s = 0;
            for (int64_t g = 0; g < teams_; ++g) s += parts[g * stride + i];
            out[i] = s;
        }
    }

    // Y = A V; the same visit brings each tile of A up to date. Several slabs go together, so that the vectors of a row
    // of tiles are read once for all of them.
    void multiply() {
        y_.reset(teams_ * below_ * kTile);
        const int64_t together = max64(1, min64(kTogether, below_ / (4 * teams_))), groups = ceil_div(below_, together);
        parallel(teams_, [&](int64_t team) {
            double* y = y_.get() + team * below_ * kTile;
            // The order of the teams alternates, because slabs become shorter.
            for (int64_t turn = 0; turn * teams_ < groups; ++turn) {
                const int64_t group = turn * teams_ + (turn % 2 ? teams_ - 1 - team : team), j = group * together;
                if (group < groups) multiply_slabs(j, min64(j + together, below_), y);
            }
        });
    }

    void multiply_slabs(int64_t first, int64_t last, double* y) const {
        for (int64_t i = first; i < below_; ++i)
            for (int64_t j = first; j < min64(last, i + 1); ++j) {
                const bool on_row = j + 1 < min64(last, i + 1);
                const int64_t below = min64(i + 1, below_ - 1);
                const bool once = j == first, twice = j == first + 1;  // in this row of tiles
                double* tile = tile_at(i, j);
                if (q_ > 0)
                    Tile::add_pair(left(i + 1), right(j + 1), tile,
                                   {on_row ? tile_at(i, j + 1) : tile_at(below, first)});
                Tile::add(tile, V(j), y + i * kTile,
                          once ? Ahead{left(below + 1), 2} : Ahead{twice ? y + below * kTile : nullptr});
                if (i > j) Tile::add_transposed(tile, V(i), y + j * kTile, {once ? V(below) : nullptr});
            }
    }

    // W = Y T, X = W - ½ V Tᵀ Vᵀ W, in the layout that the next step reads.
    void finish() {
        Buffer<double> inner(kTile), half(kTile), W(below_ * kTile);
        sum_over_blocks(inner.get(), [&](int64_t t, double* sum) {
            double* y = y_.get() + t * kTile;
            add_up(y, below_ * kTile, kTile, y);
            Tile::add(y, p_.factor, W.get() + t * kTile);
            Tile::add_transposed(V(t), W.get() + t * kTile, sum);
        });
        for (int64_t i = 0; i < kTile; ++i) inner[i] *= -0.5;
        Tile::add_transposed(p_.factor, inner.get(), half.get());
        parallel(below_, [&](int64_t t) {
            double *x = W.get() + t * kTile, *to = p_.pending + t * 4 * kTile;
            Tile::add(V(t), half.get(), x);
            for (int64_t r = 0; r < kBand; ++r) {
                std::memcpy(to + 2 * r * kBand, V(t) + r * kBand, kBand * sizeof(double));
                std::memcpy(to + (2 * r + 1) * kBand, x + r * kBand, kBand * sizeof(double));
            }
            Tile::transpose(x, -1.0, to + 2 * kTile, kBand);
            Tile::transpose(V(t), -1.0, to + 3 * kTile, kBand);
        });
    }

    const BandSpec& p_;
    const int64_t q_, below_;
    double* V_;
    const int64_t teams_;
    Buffer<double> y_;
};

void band_step(const BandSpec& p) { BandStep(p).run(); }

// ---- Qᵀ -------------------------------------------------------------------------------------------------------------

// A strip of kStrip blocks of columns of Q = Q₀ Q₁ …, from the last reflectors that change it to the first. One visit
// of a tile applies the reflectors of a step and multiplies by those of the next.
class BandStrip {
   public:
    static constexpr int64_t kStrip = 4;

    BandStrip(const VectorSpec& p, int64_t first)
        : p_(p), first_(first), width_(min64(kStrip, p.blocks - first)), z_(p.blocks * width_ * kTile),
          sums_(width_ * kTile), next_(width_ * kTile), turned_(width_ * kTile) {}

    void run() {
        for (int64_t g = 0; g < width_; ++g)
            for (int64_t r = 0; r < kBand; ++r) z(first_ + g, g)[r * (kBand + 1)] = 1.0;
        const int64_t last = first_ + width_ - 2;  // its reflectors change the rows from block last + 1 on
        for (int64_t i = last + 1; i < p_.blocks && last >= 0; ++i) gather(last, i, sums_.get());
        for (int64_t q = last; q >= 0; --q) reflect(q);
        for (int64_t i = 0; i < p_.blocks; ++i)
            for (int64_t g = 0; g < width_; ++g)
                Tile::transpose(z(i, g), 1.0, p_.out + (first_ + g) * kBand * p_.blocks * kBand + i * kBand,
                                p_.blocks * kBand);
    }

   private:
    double* z(int64_t i, int64_t g) const { return z_.get() + (i * width_ + g) * kTile; }
    const double* V(int64_t q, int64_t i) const { return p_.slabs + slab_start(p_.blocks, q) + (i - q) * kTile; }

    // sums += V_qᵀ Z, of block i
    void gather(int64_t q, int64_t i, double* sums) const {
        const int64_t below = min64(i + 1, p_.blocks - 1);
        for (int64_t g = 0; g < width_; ++g)
            Tile::add_transposed(V(q, i), z(i, g), sums + g * kTile,
                                 {g == 0                ? V(q, below)
                                  : g == 1 && i > q + 1 ? V(q + 1, below)
                                                        : nullptr});
    }

    // Z -= V_q T_q sums, and the sums of the previous step
    void reflect(int64_t q) {
        for (int64_t k = 0; k < width_ * kTile; ++k) sums_[k] = -sums_[k], next_[k] = turned_[k] = 0;
        for (int64_t g = 0; g < width_; ++g)
            Tile::add(p_.factors + q * kTile, sums_.get() + g * kTile, turned_.get() + g * kTile);
        if (q > 0) gather(q - 1, q, next_.get());
        for (int64_t i = q + 1; i < p_.blocks; ++i) {
            for (int64_t g = 0; g < width_; ++g)
                Tile::add(V(q, i), turned_.get() + g * kTile, z(i, g), {z(min64(i + 1, p_.blocks - 1), g)});
            if (q > 0) gather(q - 1, i, next_.get());
        }
        std::memcpy(sums_.get(), next_.get(), size_t(width_ * kTile) * sizeof(double));
    }

    const VectorSpec& p_;
    const int64_t first_, width_;
    Buffer<double> z_, sums_, next_, turned_;
};

void band_vectors(const VectorSpec& p) {
    const int64_t strips = ceil_div(p.last - p.first, BandStrip::kStrip);  // the last take longest: they come first
    parallel(strips, [&](int64_t s) { BandStrip(p, p.first + (strips - 1 - s) * BandStrip::kStrip).run(); });
}

// ---- L Lᵀ = B + λI --------------------------------------------------------------------------------------------------

// A = Uᵀ U in place, for a full symmetric tile; false if a pivot is not positive.
inline bool cholesky(double* a) {
    for (int64_t c = 0; c < kBand; ++c) {
        double* row = a + c * kBand;
        if (!(row[c] > 0)) return false;
        const double scale = 1.0 / __builtin_sqrt(row[c]);
        for (int64_t k = c; k < kBand; ++k) row[k] *= scale;
        for (int64_t r = c + 1; r < kBand; ++r)
            for (int64_t k = r; k < kBand; ++k) a[r * kBand + k] -= row[r] * row[k];
    }
    return true;
}

// out = U⁻ᵀ, lower triangular; `out` must be zero before.
inline void inverse_of_transpose(const double* U, double* out) {
    for (int64_t r = 0; r < kBand; ++r) {
        double* row = out + r * kBand;
        for (int64_t k = 0; k < r; ++k)
            for (int64_t c = 0; c <= k; ++c) row[c] -= U[k * kBand + r] * out[k * kBand + c];
        row[r] = 1.0;
        for (int64_t c = 0; c <= r; ++c) row[c] /= U[r * kBand + r];
    }
}

inline bool band_factor(const FactorSpec& p, int64_t a) {
    Buffer<double> corner(kTile), turned(kTile), own(kTile);
    double *below = p.below + a * p.blocks * kTile, *inverse = p.inverse + a * p.blocks * kTile;
    for (int64_t k = 0; k < p.blocks; ++k, below += kTile, inverse += kTile) {
        std::memcpy(corner.get(), p.diagonal + k * kTile, kTile * sizeof(double));
        for (int64_t r = 0; r < kBand; ++r) corner[r * (kBand + 1)] += p.shift[a];
        if (k > 0) {  // L[k, k - 1] = R L[k - 1, k - 1]⁻ᵀ
            Tile::transpose(inverse - kTile, 1.0, turned.get(), kBand);
            Tile::clear(own.get());
            Tile::add(p.upper + (k - 1) * kTile, turned.get(), own.get());
            for (int64_t i = 0; i < kTile; ++i) below[i] = -own[i];
            Tile::transpose(own.get(), 1.0, turned.get(), kBand);
            Tile::add(below, turned.get(), corner.get());
        }
        if (!cholesky(corner.get())) return false;
        inverse_of_transpose(corner.get(), inverse);
    }
    return true;
}

void band_factors(const FactorSpec& p) {
    parallel(p.shifts, [&](int64_t a) { p.definite[a] = band_factor(p, a); });
}

// ---- ‖L⁻¹ Qᵀ eᵢ‖² ---------------------------------------------------------------------------------------------------

// For L Lᵀ = B + λI with blocks L[k, k] and L[k, k - 1], and several λ at once:
//   x_k = L[k, k]⁻¹ (q_k - L[k, k - 1] x_{k-1})
// for a strip of columns of Qᵀ. The first factor is lower triangular and the second upper triangular, so each product
// skips half of its panels.
class BandNorms {
   public:
    static constexpr int64_t kWidth = 192, kShifts = 8;

    explicit BandNorms(const NormSpec& p) : p_(p), length_(p.blocks * kBand) {}

    void run(int64_t column, int64_t shift) const {
        const int64_t width = min64(kWidth, length_ - column), shifts = min64(kShifts, p_.shifts - shift);
        Buffer<double> x(shifts * kBand * kWidth), rest(kBand * kWidth);
        for (int64_t k = 0; k < p_.blocks; ++k)
            for (int64_t a = 0; a < shifts; ++a) {
                const int64_t at = tile_at(shift + a, k),
                              next = a + 1 < shifts ? tile_at(shift + a + 1, k) : tile_at(shift, k + 1);
                double* own = x.get() + a * kBand * kWidth;
                const double* q = p_.vectors + k * kBand * length_ + column;
                for (int64_t c = 0; c < width; c += Tile::N) {
                    const int64_t ahead = next + min64(c / Tile::N * kShare, kTile);
                    block(at, q + c, own + c, rest.get() + c, ahead);
                    add_squares(own + c, p_.out + (shift + a) * length_ + column + c);
                }
            }
    }

    int64_t strips() const { return ceil_div(length_, kWidth); }
    int64_t rounds() const { return ceil_div(p_.shifts, kShifts); }

   private:
    static constexpr int M = Tile::M, W = Tile::W;
    // Entries of the next tiles that are fetched with each of a strip's columns of vectors.
    static constexpr int64_t kShare = kTile * Tile::N / kWidth;

    int64_t tile_at(int64_t shift, int64_t k) const { return (shift * p_.blocks + min64(k, p_.blocks - 1)) * kTile; }

    void block(int64_t at, const double* q, double* x, double* rest, int64_t ahead) const {
        const double *below = p_.below + at, *inverse = p_.inverse + at;
        for (int64_t r = 0; r < kBand; r += M)
            Tile::part<false>(below + r * kBand, kBand, x, kWidth, r, kBand, q + r * length_, length_,
                              rest + r * kWidth, kWidth, p_.below + ahead, r ? 0 : kShare / kBand);
        for (int64_t r = 0; r < kBand; r += M)
            Tile::part<false>(inverse + r * kBand, kBand, rest, kWidth, 0, r + M, zeros(), kWidth, x + r * kWidth,
                              kWidth, p_.inverse + ahead, r + M < kBand ? 0 : kShare / kBand);
    }

    static void add_squares(const double* x, double* out) {
        Vec<double> s0 = load_unaligned(out), s1 = load_unaligned(out + W);
        for (int64_t r = 0; r < kBand; ++r) {
            const Vec<double> a = load(x + r * kWidth), b = load(x + r * kWidth + W);
            s0 += a * a;
            s1 += b * b;
        }
        store_unaligned<double>(out, s0);
        store_unaligned<double>(out + W, s1);
    }

    static const double* zeros() {
        alignas(64) static const double none[Tile::M * kWidth] = {};
        return none;
    }

    const NormSpec& p_;
    const int64_t length_;
};

void band_norms(const NormSpec& p) {
    const BandNorms norms(p);
    parallel(norms.strips(), [&](int64_t s) {
        for (int64_t a = 0; a < norms.rounds(); ++a) norms.run(s * BandNorms::kWidth, a * BandNorms::kShifts);
    });
}
