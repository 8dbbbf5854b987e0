// The tile engine for one instruction set. Included inside a namespace of its own by isa_*.cpp.
//
// A task is a block of kRowBlock rows against a run of columns. For each tile of columns, which stays in L2, and each panel
// of kPanelRows rows: pairing into a strip that stays in L1, program over the strip, consumer. Where the depth is too large for
// a panel to stay in cache, pairing goes depth block by depth block over a taller buffer first.

constexpr int kRowBlock = 192;   // a multiple of every panel height and width
constexpr int kTallRows = 96;    // rows of the buffer when the depth is blocked
constexpr int kStripBytes = 32 * 1024;
constexpr int kTileBytes = kVectorBytes == 64 ? 768 * 1024 : 192 * 1024;
constexpr int kMaxDepth = kVectorBytes == 64 ? 2048 : 1024;  // bytes of one packed row before the depth is blocked
constexpr int kMaxColumns = 512;

template <class T>
constexpr int kPanelColumns = 2 * Simd<T>::W;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

// Aligned, zeroed, owned. Not std::vector: see simd.hpp on shared symbols.
template <class T>
class Buffer {
   public:
    Buffer() = default;
    explicit Buffer(int64_t n) { reset(n); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(base_); }
    void reset(int64_t n) {
        std::free(base_);
        base_ = std::malloc(size_t(n) * sizeof(T) + 64);
        if (!base_) throw std::bad_alloc();
        at_ = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(base_) + 63) & ~uintptr_t(63));
        std::memset(static_cast<void*>(at_), 0, size_t(n) * sizeof(T));
    }
    T* get() const { return at_; }
    T& operator[](int64_t i) const { return at_[i]; }

   private:
    void* base_ = nullptr;
    T* at_ = nullptr;
};

// Runs f(task) for every task on the team; one thread runs them in place, so that a forked child never meets the lost pool.
// An exception must not cross the parallel region: memory is the only cause here.
template <class F>
void parallel(int64_t tasks, F f) {
    const int team = int(min64(threads(), tasks));
    if (team <= 1) {
        for (int64_t t = 0; t < tasks; ++t) f(t);
        return;
    }
    bool failed = false;
#pragma omp parallel for num_threads(team) schedule(dynamic, 1)
    for (int64_t t = 0; t < tasks; ++t) {
        try {
            f(t);
        } catch (...) {
#pragma omp atomic write
            failed = true;
        }
    }
    if (failed) throw std::bad_alloc();
}

template <class T>
struct PackedPairing {
    MicroKernel<T> kernel;
    int64_t depth;
    bool blocked;     // depth beyond kMaxDepth
    Buffer<T> a, b;   // [panel][k][row], [panel][k][column]
};

template <class T>
void pack(const T* x, int64_t n, int64_t depth, int width, int64_t panels, T* out) {
    const int64_t step = 64;
    parallel(ceil_div(panels, step), [=](int64_t task) {
        for (int64_t p = task * step; p < min64(panels, (task + 1) * step); ++p)
            for (int64_t i = 0; i < min64(width, n - p * width); ++i) {
                const T* row = x + (p * width + i) * depth;
                T* o = out + p * width * depth + i;
                for (int64_t k = 0; k < depth; ++k) o[k * width] = row[k];
            }
    });
}

// What one thread needs to evaluate strips.
template <class T>
struct Scratch {
    Buffer<T> registers, tall, lanes;
    T* reg[64];
};

template <class T>
class TileEngine final : public Engine {
    static constexpr int W = Simd<T>::W, M = kPanelRows, N = kPanelColumns<T>;
    static_assert(kRowBlock % M == 0 && kRowBlock % N == 0 && kTallRows % M == 0);

   public:
    explicit TileEngine(const Plan& p) : n_(p.rows), m_(p.columns), pairings_(p.pairings), result_(p.result) {
        registers_ = p.registers;
        row_panels_ = ceil_div(n_, M);
        column_panels_ = ceil_div(m_, N);
        rows_padded_ = row_panels_ * M;
        columns_padded_ = column_panels_ * N;
        pairing_ = new PackedPairing<T>[size_t(pairings_ > 0 ? pairings_ : 1)];
        int64_t depth = 0;
        for (int i = 0; i < pairings_; ++i) {
            const PairingSpec& s = p.pairing[i];
            PackedPairing<T>& q = pairing_[i];
            q.kernel = micro_kernel_for<T>(s.kind);
            q.depth = s.depth;
            q.blocked = s.depth * int64_t(sizeof(T)) > kMaxDepth;
            q.a.reset(rows_padded_ * s.depth);
            q.b.reset(columns_padded_ * s.depth);
            pack(static_cast<const T*>(s.a), n_, s.depth, M, row_panels_, q.a.get());
            pack(static_cast<const T*>(s.b), m_, s.depth, N, column_panels_, q.b.get());
            any_blocked_ |= q.blocked;
            depth += q.blocked ? kMaxDepth / int64_t(sizeof(T)) : s.depth;
        }
        row_values_ = p.row_values;
        row_value_.reset(max64(1, row_values_ * rows_padded_));
        for (int i = 0; i < row_values_; ++i)
            std::memcpy(row_value_.get() + i * rows_padded_, p.row_value[i], size_t(n_) * sizeof(T));
        column_value_.reset(max64(1, p.column_values * columns_padded_));
        for (int i = 0; i < p.column_values; ++i)
            std::memcpy(column_value_.get() + i * columns_padded_, p.column_value[i], size_t(m_) * sizeof(T));
        constants_ = p.constants;
        constant_.reset(max64(1, constants_ * W));
        for (int i = 0; i < constants_; ++i)
            for (int w = 0; w < W; ++w) constant_[i * W + w] = T(p.constant[i]);
        instructions_ = p.instructions;
        program_ = new Instruction[size_t(instructions_ > 0 ? instructions_ : 1)];
        for (int i = 0; i < instructions_; ++i) {
            const InstructionSpec& s = p.instruction[i];
            program_[i] = {s.op, s.target, {s.kind[0], s.kind[1], s.kind[2]}, {s.index[0], s.index[1], s.index[2]}, s.k0, s.k1};
        }
        if (p.pins) {
            pins_.reset(rows_padded_);
            for (int64_t i = 0; i < rows_padded_; ++i) pins_[i] = i < n_ ? p.pins[i] : -1;
            pinned_ = true;
        }
        const int64_t by_strip = kStripBytes / (int64_t(sizeof(T)) * M * registers_);
        const int64_t by_tile = kTileBytes / (int64_t(sizeof(T)) * max64(depth, 1));
        tile_ = max64(2 * N, min64(kMaxColumns, min64(by_strip, by_tile)) / N * N);
        stride_ = tile_ + W;  // not a power of two: rows a page apart would alias in the cache
    }
    ~TileEngine() override {
        delete[] pairing_;
        delete[] program_;
    }
    TileEngine(const TileEngine&) = delete;
    TileEngine& operator=(const TileEngine&) = delete;

    int64_t row_block() const override { return kRowBlock; }

    void block(int64_t i0, int64_t i1, int64_t j0, int64_t j1, void* out_, int64_t stride) override {
        T* out = static_cast<T*>(out_);
        for_tasks(i0, i1, ceil_div(j1 - j0, tile_), [&](Rows r, int64_t slice, int64_t slices) {
            const Columns c = cut(j0, j1, slice, slices);
            Scratch<T> s;
            prepare(s);
            sweep(s, r, c, [&](int64_t i, int64_t j, int columns, const T* strip) {
                const int64_t from = max64(j, j0), to = min64(j + columns, j1);
                for (int64_t k = 0; k < M; ++k)
                    if (i + k >= r.begin && i + k < r.end)
                        std::memcpy(out + (i + k - i0) * stride + from - j0, strip + k * stride_ + from - j,
                                    size_t(to - from) * sizeof(T));
            }, [](int64_t, int) {});
        });
    }

    void gram(int64_t i0, int64_t i1, void* out_, int64_t stride) override {
        T* out = static_cast<T*>(out_);
        for_tasks(i0, i1, 1, [&](Rows r, int64_t, int64_t) {
            Scratch<T> s;
            prepare(s);
            sweep(s, r, {r.begin, m_}, [&](int64_t i, int64_t j, int columns, const T* strip) {
                // only entries right of the diagonal are written, each to both of its places: exactly symmetric
                const int64_t rows = min64(M, r.end - i), valid = min64(columns, m_ - j);
                for (int64_t k = 0; k < rows; ++k)
                    for (int64_t c = max64(0, i + k - j); c < valid; ++c) out[(i + k) * stride + j + c] = strip[k * stride_ + c];
                for (int64_t c = max64(0, i + 1 - j); c < valid; ++c)
                    for (int64_t k = 0; k < min64(rows, j + c - i); ++k) out[(j + c) * stride + i + k] = strip[k * stride_ + c];
            }, [](int64_t, int) {});
        });
    }

    void multiply(int64_t i0, int64_t i1, const void* v_, int64_t r, double* out, bool symmetric) override {
        const T* v = static_cast<const T*>(v_);
        // one vector at a time re-reads the strip from L1, r padded to a vector wastes lanes: the crossover is about 4
        if (r < 4)
            multiply_few(i0, i1, v, r, out, symmetric);
        else
            multiply_many(i0, i1, v, r, out, symmetric);
    }

    void group_sums(int64_t i0, int64_t i1, const int64_t* start, int64_t groups, const void* w_, double* out) override {
        const T* w = static_cast<const T*>(w_);
        for_tasks(i0, i1, 1, [&](Rows r, int64_t, int64_t) {
            Scratch<T> s;
            prepare(s);
            int64_t group = 0, tile = -1;
            sweep(s, r, {0, m_}, [&](int64_t i, int64_t j, int columns, const T* strip) {
                if (j != tile) {
                    tile = j;
                    while (group + 1 < groups && start[group + 1] <= j) ++group;
                }
                const int64_t last = min64(j + columns, m_);
                for (int64_t k = 0; k < min64(M, r.end - i); ++k)
                    for (int64_t g = group; g < groups && start[g] < last; ++g) {
                        const int64_t from = max64(start[g], j), to = min64(start[g + 1], last);
                        if (from < to) out[(i + k) * groups + g] += segment(strip + k * stride_ - j, w, from, to);
                    }
            }, [](int64_t, int) {});
        });
    }

    void row_max(int64_t i0, int64_t i1, int64_t* index, double* value) override {
        for_tasks(i0, i1, 1, [&](Rows r, int64_t, int64_t) {
            Scratch<T> s;
            prepare(s);
            for (int64_t i = r.begin; i < r.end; ++i) index[i - i0] = -1, value[i - i0] = -__builtin_inf();
            sweep(s, r, {0, m_}, [&](int64_t i, int64_t j, int columns, const T* strip) {
                const int valid = int(min64(columns, m_ - j));
                for (int64_t k = 0; k < min64(M, r.end - i); ++k) {
                    const T* x = strip + k * stride_;
                    int64_t& best = index[i + k - i0];
                    double& top = value[i + k - i0];
                    for (int c = 0; c < valid; ++c)
                        if (double(x[c]) > top || best < 0) top = double(x[c]), best = j + c;
                }
            }, [](int64_t, int) {});
        });
    }

   private:
    struct Rows {
        int64_t begin, end;
    };
    struct Columns {
        int64_t begin, end;
    };

    // ---- tasks ------------------------------------------------------------------------------------------------------

    // Row blocks, and slices of the columns too where the rows alone are too few to occupy the team.
    int64_t slices_for(int64_t blocks, int64_t most) const {
        const int64_t wanted = 4 * threads();
        return blocks >= wanted ? 1 : max64(1, min64(most, ceil_div(wanted, blocks)));
    }
    template <class F>
    void for_tasks(int64_t i0, int64_t i1, int64_t most_slices, F f) const {
        const int64_t first = i0 / M * M, blocks = ceil_div(i1 - first, kRowBlock);
        const int64_t slices = slices_for(blocks, most_slices);
        parallel(blocks * slices, [&](int64_t task) {
            const int64_t b = first + task / slices * kRowBlock;
            f(Rows{max64(b, i0), min64(b + kRowBlock, i1)}, task % slices, slices);
        });
    }
    // The slice's run of columns, cut on panel borders.
    Columns cut(int64_t j0, int64_t j1, int64_t slice, int64_t slices) const {
        const int64_t first = j0 / N, panels = ceil_div(j1, N) - first;
        const int64_t a = first + panels * slice / slices, b = first + panels * (slice + 1) / slices;
        return {a * N, min64(b * N, m_)};
    }

    // ---- strips -----------------------------------------------------------------------------------------------------

    void prepare(Scratch<T>& s) const {
        s.registers.reset(registers_ * M * stride_);
        for (int r = 0; r < registers_; ++r) s.reg[r] = s.registers.get() + r * M * stride_;
        s.lanes.reset(max64(1, row_values_ * M * W));
        if (any_blocked_) s.tall.reset(pairings_ * kTallRows * stride_);
    }

    // Calls strip(i, j, columns, values) for every strip of rows x columns, and end_of_tile(j, columns) after each tile.
    // `columns` is padded to whole panels; entries beyond the matrix are zero.
    template <class Strip, class End>
    void sweep(Scratch<T>& s, Rows r, Columns c, Strip strip, End end_of_tile) const {
        const int64_t first = r.begin / M * M;
        for (int64_t j = c.begin / N * N; j < c.end; j += tile_) {
            const int columns = int(min64(tile_, round_up(c.end - j, N)));
            for (int64_t top = first; top < r.end; top += kTallRows) {
                const int64_t bottom = min64(top + kTallRows, round_up(r.end, M));
                if (any_blocked_) pair_blocked(s, top, bottom, j, columns);
                for (int64_t i = top; i < bottom; i += M) strip(i, j, columns, evaluate(s, i, i - top, j, columns));
            }
            end_of_tile(j, columns);
        }
    }

    void pair_blocked(Scratch<T>& s, int64_t top, int64_t bottom, int64_t j, int columns) const {
        constexpr int64_t most = kMaxDepth / int64_t(sizeof(T));
        for (int p = 0; p < pairings_; ++p) {
            const PackedPairing<T>& q = pairing_[p];
            if (!q.blocked) continue;
            const int64_t blocks = ceil_div(q.depth, most), step = ceil_div(q.depth, blocks);
            for (int64_t k = 0; k < q.depth; k += step)
                for (int64_t i = top; i < bottom; i += M)
                    for (int64_t c = 0; c < columns; c += N)
                        q.kernel(q.a.get() + i * q.depth + k * M, q.b.get() + (j + c) * q.depth + k * N,
                                 int(min64(step, q.depth - k)), s.tall.get() + (p * kTallRows + i - top) * stride_ + c, int(stride_),
                                 k > 0);
        }
    }

    const T* evaluate(Scratch<T>& s, int64_t i, int64_t offset, int64_t j, int columns) const {
        for (int p = 0; p < pairings_; ++p) {
            const PackedPairing<T>& q = pairing_[p];
            if (q.blocked) {
                s.reg[p] = s.tall.get() + (p * kTallRows + offset) * stride_;
                continue;
            }
            const T* a = q.a.get() + i * q.depth;
            for (int64_t c = 0; c < columns; c += N)
                q.kernel(a, q.b.get() + (j + c) * q.depth, int(q.depth), s.reg[p] + c, int(stride_), false);
        }
        for (int v = 0; v < row_values_; ++v)
            for (int k = 0; k < M; ++k)
                store<T>(s.lanes.get() + (v * M + k) * W, splat<T>(row_value_[v * rows_padded_ + i + k]));
        for (int x = 0; x < instructions_; ++x) run(program_[x], s, i, j, columns);
        T* result = s.reg[result_];
        clear_padding(result, i, j, columns);
        return result;
    }

    Operand<T> operand(const Instruction& x, int which, const Scratch<T>& s, int k, int64_t j) const {
        const int index = x.index[which];
        switch (x.kind[which]) {
            case kRegister: return {s.reg[index] + k * stride_, W};
            case kRow: return {s.lanes.get() + (index * M + k) * W, 0};
            case kColumn: return {column_value_.get() + index * columns_padded_ + j, W};
            default: return {constant_.get() + index * W, 0};
        }
    }

    void run(const Instruction& x, Scratch<T>& s, int64_t i, int64_t j, int columns) const {
        const bool pin = pinned_ && (x.op == kSqDistFromDot || x.op == kGaussFromDot);
        for (int k = 0; k < M; ++k) {
            T* out = s.reg[x.target] + k * stride_;
            run_row<T>(x, out, columns, operand(x, 0, s, k, j), operand(x, 1, s, k, j), operand(x, 2, s, k, j));
            if (pin && pins_[i + k] >= j && pins_[i + k] < j + columns) out[pins_[i + k] - j] = T(x.op == kGaussFromDot);
        }
    }

    // What lies beyond the matrix was computed from zeros and may be anything, NaN included.
    void clear_padding(T* strip, int64_t i, int64_t j, int columns) const {
        if (j + columns > m_)
            for (int k = 0; k < M; ++k)
                for (int64_t c = max64(0, m_ - j); c < columns; ++c) strip[k * stride_ + c] = T(0);
        for (int64_t k = max64(0, n_ - i); k < M; ++k)
            std::memset(static_cast<void*>(strip + k * stride_), 0, size_t(columns) * sizeof(T));
    }

    static double segment(const T* row, const T* w, int64_t from, int64_t to) {
        Vec<T> sum{};
        int64_t c = from;
        for (; c + W <= to; c += W) sum += w ? load_unaligned(row + c) * load_unaligned(w + c) : load_unaligned(row + c);
        double total = lane_sum<T>(sum);
        for (; c < to; ++c) total += double(w ? row[c] * w[c] : row[c]);
        return total;
    }

    // ---- products ---------------------------------------------------------------------------------------------------
    // A symmetric sweep takes each pair once: entry (i, j), j beyond i's block, adds to rows i and j. The second part goes to
    // a buffer per group of blocks; which block is in which group, and the order of all sums, depends on the team's size only.
    //
    // body(rows, columns, mine, others): `mine` is the first of the rows' outputs, `others` the outputs of all columns or null.

    template <class Body>
    void products(int64_t i0, int64_t i1, int64_t r, double* out, bool symmetric, Body body) {
        const int64_t blocks = ceil_div(i1 - i0, kRowBlock);
        if (symmetric) {
            const int64_t groups = max64(1, min64(threads(), blocks));
            Buffer<double> other(groups * m_ * r);
            parallel(groups, [&](int64_t g) {
                for (int64_t b = g; b < blocks; b += groups) {
                    const Rows rows = block_rows(i0, i1, b);
                    double *mine = out + rows.begin * r, *others = other.get() + g * m_ * r;
                    body(rows, Columns{rows.begin, rows.end}, mine, nullptr);
                    if (rows.end < m_) body(rows, Columns{rows.end, m_}, mine, others);
                }
            });
            add_up(other.get(), groups, m_ * r, out);
            return;
        }
        const int64_t slices = slices_for(blocks, ceil_div(m_, tile_)), length = (i1 - i0) * r;
        Buffer<double> partial(slices > 1 ? slices * length : 1);
        parallel(blocks * slices, [&](int64_t task) {
            const Rows rows = block_rows(i0, i1, task / slices);
            double* base = slices > 1 ? partial.get() + task % slices * length : out;
            body(rows, cut(0, m_, task % slices, slices), base + (rows.begin - i0) * r, nullptr);
        });
        if (slices > 1) add_up(partial.get(), slices, length, out);
    }

    static Rows block_rows(int64_t i0, int64_t i1, int64_t b) {
        return {i0 + b * kRowBlock, min64(i0 + (b + 1) * kRowBlock, i1)};
    }

    static void add_up(const double* parts, int64_t count, int64_t length, double* out) {
        const int64_t step = 1 << 14;
        parallel(ceil_div(length, step), [=](int64_t task) {
            for (int64_t p = 0; p < count; ++p)
                for (int64_t i = task * step; i < min64(length, (task + 1) * step); ++i) out[i] += parts[p * length + i];
        });
    }

    // One vector at a time over the strip, which is still in L1.
    void multiply_few(int64_t i0, int64_t i1, const T* v, int64_t r, double* out, bool symmetric) {
        Buffer<T> vectors(r * columns_padded_);
        for (int64_t j = 0; j < m_; ++j)
            for (int64_t q = 0; q < r; ++q) vectors[q * columns_padded_ + j] = v[j * r + q];
        products(i0, i1, r, out, symmetric, [&](Rows rows, Columns cols, double* mine, double* others) {
            Scratch<T> s;
            prepare(s);
            Buffer<T> carry(r * tile_);
            sweep(s, rows, cols, [&](int64_t i, int64_t j, int columns, const T* strip) {
                const int64_t valid = min64(M, rows.end - i);
                for (int64_t q = 0; q < r; ++q) {
                    const T* x = vectors.get() + q * columns_padded_;
                    double sums[M];
                    if (others) {
                        T own[M] = {};
                        for (int64_t k = 0; k < valid; ++k) own[k] = x[i + k];
                        dot_both(strip, x + j, columns, own, carry.get() + q * tile_, sums);
                    } else {
                        dot_rows(strip, x + j, columns, sums);
                    }
                    for (int64_t k = 0; k < valid; ++k) mine[(i - rows.begin + k) * r + q] += sums[k];
                }
            }, [&](int64_t j, int columns) {
                if (!others) return;
                const int64_t valid = min64(columns, m_ - j);
                for (int64_t q = 0; q < r; ++q) {
                    T* from = carry.get() + q * tile_;
                    for (int64_t c = 0; c < valid; ++c) others[(j + c) * r + q] += double(from[c]);
                    std::memset(static_cast<void*>(from), 0, size_t(tile_) * sizeof(T));
                }
            });
        });
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

    // Several vectors: a small matrix product per strip, two vectors of right-hand sides at a time.
    void multiply_many(int64_t i0, int64_t i1, const T* v, int64_t r, double* out, bool symmetric) {
        const int64_t rp = round_up(r, N);
        Buffer<T> packed(columns_padded_ * rp);
        for (int64_t j = 0; j < m_; ++j) std::memcpy(packed.get() + j * rp, v + j * r, size_t(r) * sizeof(T));
        products(i0, i1, r, out, symmetric, [&](Rows rows, Columns cols, double* mine, double* others) {
            Scratch<T> s;
            prepare(s);
            Buffer<T> carry(others ? rp * tile_ : 1), sums(M * N);
            sweep(s, rows, cols, [&](int64_t i, int64_t j, int columns, const T* strip) {
                const int64_t valid = min64(M, rows.end - i);
                for (int64_t q = 0; q < rp; q += N) {
                    times_many(strip, packed.get() + j * rp + q, rp, columns, sums.get());
                    for (int64_t k = 0; k < valid; ++k)
                        for (int64_t c = 0; c < min64(N, r - q); ++c)
                            mine[(i - rows.begin + k) * r + q + c] += double(sums[k * N + c]);
                    if (others) transposed_times_many(strip, packed.get() + i * rp + q, rp, columns, carry.get() + q);
                }
            }, [&](int64_t j, int columns) {
                if (!others) return;
                const int64_t valid = min64(columns, m_ - j);
                for (int64_t c = 0; c < valid; ++c)
                    for (int64_t q = 0; q < r; ++q) others[(j + c) * r + q] += double(carry[c * rp + q]);
                std::memset(static_cast<void*>(carry.get()), 0, size_t(tile_ * rp) * sizeof(T));
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

    // carry[c, :] += sum over the strip's rows of strip[k, c] v[k, :]; rows beyond the matrix are zero in the strip
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

    int64_t n_, m_, row_panels_ = 0, column_panels_ = 0, rows_padded_ = 0, columns_padded_ = 0, tile_ = 0, stride_ = 0;
    int pairings_, registers_ = 1, row_values_ = 0, constants_ = 0, instructions_ = 0, result_;
    bool any_blocked_ = false, pinned_ = false;
    PackedPairing<T>* pairing_ = nullptr;
    Instruction* program_ = nullptr;
    Buffer<T> row_value_, column_value_, constant_;
    Buffer<int64_t> pins_;
};

Engine* make(const Plan& p) {
    if (p.is_double) return new TileEngine<double>(p);
    return new TileEngine<float>(p);
}

template <class T>
void evaluate_as(int op, double k0, double k1, const T* in, T* out, int64_t n) {
    constexpr int W = Simd<T>::W;
    Buffer<T> lane(W), zeros(W);
    Instruction s{op, 0, {kRegister, kRegister, kRegister}, {0, 0, 0}, k0, k1};
    for (int64_t i = 0; i < n; i += W) {
        const int64_t count = min64(W, n - i);
        std::memcpy(lane.get(), in + i, size_t(count) * sizeof(T));
        run_row<T>(s, lane.get(), W, Operand<T>{lane.get(), W}, Operand<T>{zeros.get(), 0}, Operand<T>{zeros.get(), 0});
        std::memcpy(out + i, lane.get(), size_t(count) * sizeof(T));
    }
}

void evaluate(int op, bool is_double, double k0, double k1, const void* in, void* out, int64_t n) {
    if (is_double) return evaluate_as<double>(op, k0, k1, static_cast<const double*>(in), static_cast<double*>(out), n);
    evaluate_as<float>(op, k0, k1, static_cast<const float*>(in), static_cast<float*>(out), n);
}
