// Both stages together: the packed plan, and sweeps that evaluate it strip by strip.
//
// For each tile of columns, which stays in L2, and each panel of kPanelRows rows, pairings fill a strip that stays in
// L1, the program runs over it, and a consumer takes it. If the depth is too large for two panels of columns in L2,
// pairings of one block of features after the other go to a taller buffer first. Panels may be far larger than L1: the
// micro-kernel reads them as fast from L2.

constexpr int kTallRows = 96;  // rows of the buffer when the depth is blocked
constexpr int kStripBytes = 32 * 1024;
constexpr int kTileBytes = kVectorBytes == 64 ? 512 * 1024 : 192 * 1024;
constexpr int kMaxDepth = kVectorBytes == 64 ? 8192 : 4096;  // bytes of one packed row before the depth is blocked

struct Rows {
    int64_t begin, end;
};
struct Columns {
    int64_t begin, end;
};

template <class T>
struct PackedPairing {
    MicroKernel<T> kernel;
    int64_t depth;
    bool blocked;    // depth beyond kMaxDepth
    Buffer<T> a, b;  // [panel][k][row], [panel][k][column]
    bool by_norms = false;
    ByNorms<T> norms;
    int dots = -1;               // the pairing whose dot products are those of these rows; -1: none
    Buffer<T> given_a, given_b;  // rows for differences, where they are not a and b
};

// How many entries one thread packs faster than it wakes another, which takes milliseconds on a busy machine.
constexpr int64_t kPackAlone = 1 << 15;

template <class T, class From>
void pack(const From* x, const double* origin, int64_t n, int64_t depth, int width, int64_t panels, T* out) {
    constexpr int64_t kLine = 64 / int64_t(sizeof(From));
    const int64_t step = max64(64, kPackAlone / max64(1, width * depth));
    parallel(ceil_div(panels, step), [=](int64_t task) {
        for (int64_t p = task * step; p < min64(panels, (task + 1) * step); ++p)
            for (int64_t k0 = 0; k0 < depth; k0 += kLine)  // a line of each row at a time: what is written stays in L1
                for (int64_t i = 0; i < min64(width, n - p * width); ++i) {
                    const From* row = x + (p * width + i) * depth;
                    T* o = out + p * width * depth + i;
                    const int64_t end = min64(k0 + kLine, depth);
                    if (origin)  // in double, so that only the small remainder is rounded
                        for (int64_t k = k0; k < end; ++k) o[k * width] = T(double(row[k]) - origin[k]);
                    else
                        for (int64_t k = k0; k < end; ++k) o[k * width] = T(row[k]);
                }
    });
}

template <class T>
void pack(const RowsSpec& x, const double* origin, int64_t n, int64_t depth, int width, int64_t panels, T* out) {
    if (x.is_double)
        pack(static_cast<const double*>(x.at), origin, n, depth, width, panels, out);
    else
        pack(static_cast<const float*>(x.at), origin, n, depth, width, panels, out);
}

// Buffers of a thread that evaluates strips.
template <class T>
struct Scratch {
    Buffer<T> registers, tall, lanes;
    T* reg[kMaxRegisters];
    T* kept = nullptr;  // where strips go one after the other; null: each replaces the last one, in L1
};

template <class T>
class Strips {
   public:
    static constexpr int W = Simd<T>::W, M = kPanelRows, N = kPanelColumns<T>;
    static_assert(kRowBlock % M == 0 && kRowBlock % N == 0 && kTallRows % M == 0);

    explicit Strips(const Plan& p)
        : n_(p.rows), m_(p.columns), rows_padded_(round_up(n_, M)), columns_padded_(round_up(m_, N)),
          pairings_(p.pairings), registers_(p.registers), row_values_(p.row_values), instructions_(p.instructions),
          result_(p.result), pairing_(p.pairings), program_(p.instructions) {
        const int64_t depth = pack_pairings(p);
        copy_values(p.row_value, p.row_values, n_, rows_padded_, row_value_);
        copy_values(p.column_value, p.column_values, m_, columns_padded_, column_value_);
        copy_program(p);
        const int64_t by_strip = kStripBytes / (int64_t(sizeof(T)) * M * registers_);
        const int64_t by_tile = kTileBytes / (int64_t(sizeof(T)) * max64(depth, 1));
        tile_ = max64(2 * N, min64(kMaxColumns, min64(by_strip, by_tile)) / N * N);
        stride_ = tile_ + W;  // not a power of two: rows a page apart would alias in the cache
    }

    int64_t rows() const { return n_; }
    int64_t columns() const { return m_; }
    int64_t depth() const { return depth_; }  // features of all pairings together
    int64_t tile() const { return tile_; }
    int64_t stride() const { return stride_; }  // from one row of a strip to the next

    void prepare(Scratch<T>& s) const {
        s.registers.reset(registers_ * M * stride_);
        for (int r = 0; r < registers_; ++r) s.reg[r] = s.registers.get() + r * M * stride_;
        s.lanes.reset(max64(1, row_values_ * M * W));
        if (any_blocked_) s.tall.reset(pairings_ * kTallRows * stride_);
    }

    // How many entries the strips of so many rows against all columns have, for Scratch::kept.
    int64_t kept_size(int64_t rows) const { return ceil_div(columns_padded_, tile_) * round_up(rows, M) * stride_; }

    // One of several slices of the columns [j0, j1), cut on borders of panels.
    Columns cut(int64_t j0, int64_t j1, int64_t slice, int64_t slices) const {
        const int64_t first = j0 / N, panels = ceil_div(j1, N) - first;
        const int64_t a = first + panels * slice / slices, b = first + panels * (slice + 1) / slices;
        return {a * N, min64(b * N, j1)};
    }

    // Calls strip(i, j, columns, values) for every strip of rows x columns, and end_of_tile(j, columns) after each
    // tile. Strips begin on borders of panels, and `columns` is a multiple of their width: the first strip may begin
    // before the range, and the last one may end beyond it. Entries beyond the matrix are zero. If `upper`, a panel of
    // rows begins at the panel of columns that contains the diagonal entry of its first row, if that is further to the
    // right.
    template <bool upper = false, class Strip, class End>
    void sweep(Scratch<T>& s, Rows r, Columns c, Strip strip, End end_of_tile) const {
        if (c.begin >= c.end) return;  // rounded to panels, an empty range would not be empty
        const int64_t first = r.begin / M * M;
        for (int64_t j = c.begin / N * N; j < c.end; j += tile_) {
            const int columns = int(min64(tile_, round_up(c.end - j, N)));
            for (int64_t top = first; top < r.end; top += kTallRows) {
                const int64_t bottom = min64(top + kTallRows, round_up(r.end, M));
                if (any_blocked_) pair_blocked<upper>(s, top, bottom, j, columns);
                for (int64_t i = top; i < bottom; i += M) {
                    const int from = first_column<upper>(i, j, columns);
                    if (from < columns) strip(i, j + from, columns - from, evaluate(s, i, i - top, j, from, columns));
                }
            }
            end_of_tile(j, columns);
        }
    }
    template <bool upper = false, class Strip>
    void sweep(Scratch<T>& s, Rows r, Columns c, Strip strip) const {
        sweep<upper>(s, r, c, strip, [](int64_t, int) {});
    }

   private:
    // ---- the plan ---------------------------------------------------------------------------------------------------

    // Returns how many features of all pairings are in the cache at once.
    int64_t pack_pairings(const Plan& p) {
        int64_t depth = 0;
        for (int i = 0; i < pairings_; ++i) {
            const PairingSpec& s = p.pairing[i];
            PackedPairing<T>& q = pairing_[i];
            q.kernel = micro_kernel_for<T>(s.kind);
            q.depth = s.depth;
            depth_ += s.depth;
            q.blocked = s.depth * int64_t(sizeof(T)) > kMaxDepth;
            if (!s.norms || !pack_by_norms(s, q)) pack_sides(s, s.origin, q.a, q.b);
            any_blocked_ |= q.blocked;
            depth += q.blocked ? kMaxDepth / int64_t(sizeof(T)) : s.depth;
        }
        for (int i = 0; i < pairings_; ++i)
            for (int k = 0; k < pairings_; ++k)
                if (has_dots(p.pairing[k], p.pairing[i]) && pairing_[i].by_norms && !pairing_[i].blocked)
                    pairing_[i].dots = k;
        return depth;
    }

    // Whether the dot products d are of the same rows as the distances s.
    static bool has_dots(const PairingSpec& d, const PairingSpec& s) {
        return d.kind == kDot && s.norms && !s.norms->origin && d.a.at == s.a.at && d.b.at == s.b.at;
    }

    void pack_sides(const PairingSpec& s, const double* origin, Buffer<T>& a, Buffer<T>& b) const {
        a.reset(rows_padded_ * s.depth);
        b.reset(columns_padded_ * s.depth);
        pack(s.a, origin, n_, s.depth, M, rows_padded_ / M, a.get());
        pack(s.b, origin, m_, s.depth, N, columns_padded_ / N, b.get());
    }

    // False if all distances are to be taken by differences.
    bool pack_by_norms(const PairingSpec& s, PackedPairing<T>& q) const {
        q.norms.reset(*s.norms, n_, m_);
        pack_sides(s, s.norms->origin, q.a, q.b);
        if (q.norms.checked() && mostly_close(q)) return false;
        if (q.norms.checked() && s.origin != s.norms->origin) pack_sides(s, s.origin, q.given_a, q.given_b);
        q.kernel = micro_kernel_for<T>(kDot);
        return q.by_norms = true;
    }

    // Whether more than a third of sampled pairs of panels needs differences, which cost up to twice the work.
    bool mostly_close(const PackedPairing<T>& q) const {
        const int64_t across = rows_padded_ / M, along = columns_padded_ / N,
                      samples = max64(4, min64(64, across * along / 32));
        Buffer<T> out(M * N);
        uint64_t state = 1;
        auto next = [&](int64_t below) {
            return int64_t((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % below;
        };
        int64_t close = 0;
        for (int64_t t = 0; t < samples; ++t) {
            const int64_t i = next(across) * M, j = next(along) * N;
            q.norms.finish(q.a.get() + i * q.depth, q.b.get() + j * q.depth, int(q.depth), q.depth, i, j, N, nullptr,
                           out.get(), N, false, [&](int) { close += !q.norms.enough(out.get(), N, i, j); });
        }
        return 3 * close > samples;
    }

    static void copy_values(const void* const* from, int count, int64_t length, int64_t padded, Buffer<T>& to) {
        to.reset(max64(1, count * padded));
        for (int i = 0; i < count; ++i) std::memcpy(to.get() + i * padded, from[i], size_t(length) * sizeof(T));
    }

    void copy_program(const Plan& p) {
        constant_.reset(max64(1, int64_t(p.constants) * W));
        for (int i = 0; i < p.constants; ++i)
            for (int w = 0; w < W; ++w) constant_[i * W + w] = T(p.constant[i]);
        for (int i = 0; i < instructions_; ++i) program_[i] = p.instruction[i];
        if (!p.self_pairs) return;
        self_pairs_.reset(rows_padded_);
        for (int64_t i = 0; i < rows_padded_; ++i) self_pairs_[i] = i < n_ ? p.self_pairs[i] : -1;
        has_self_pairs_ = true;
    }

    // ---- one strip --------------------------------------------------------------------------------------------------

    // Adds the features [k, k + length) of a panel of rows against panels of columns; after the last ones, finishes the
    // pairing. A pairing with dots takes these for the sums over its features.
    void pair(const PackedPairing<T>& q, int64_t i, int64_t j, int columns, int64_t k, int64_t length, T* out,
              const T* dots = nullptr) const {
        const T *a = q.a.get() + i * q.depth + k * M, *b = q.b.get() + j * q.depth + k * N;
        if (!q.by_norms || k + length < q.depth) {
            for (int c = 0; c < columns; c += N)
                q.kernel(a, b + c * q.depth, int(length), out + c, int(stride_), k > 0);
            return;
        }
        q.norms.finish(a, b, int(length), q.depth, i, j, columns, dots, out, int(stride_), k > 0, [&](int c) {
            if (has_self_pairs_) set_self_pairs(out + c, i, j + c, N, ByNorms<T>::kHuge);  // 0 in the end, in any case
            if (!q.norms.enough(out + c, int(stride_), i, j + c)) differences(q, i, j + c, out + c);
        });
    }

    void differences(const PackedPairing<T>& q, int64_t i, int64_t j, T* out) const {
        const Buffer<T>&x = q.given_a.get() ? q.given_a : q.a, &z = q.given_b.get() ? q.given_b : q.b;
        micro_kernel<kSqdist, T>(x.get() + i * q.depth, z.get() + j * q.depth, int(q.depth), out, int(stride_), false);
    }

    // The first column of the tile at column j that a panel of rows needs.
    template <bool upper>
    static int first_column(int64_t i, int64_t j, int columns) {
        return upper ? int(min64(columns, max64(0, i / N * N - j))) : 0;
    }

    template <bool upper>
    void pair_blocked(Scratch<T>& s, int64_t top, int64_t bottom, int64_t j, int columns) const {
        constexpr int64_t most = kMaxDepth / int64_t(sizeof(T));
        for (int p = 0; p < pairings_; ++p) {
            const PackedPairing<T>& q = pairing_[p];
            if (!q.blocked) continue;
            const int64_t blocks = ceil_div(q.depth, most), step = ceil_div(q.depth, blocks);
            for (int64_t k = 0; k < q.depth; k += step)
                for (int64_t i = top; i < bottom; i += M) {
                    const int from = first_column<upper>(i, j, columns);
                    if (from < columns)
                        pair(q, i, j + from, columns - from, k, min64(step, q.depth - k),
                             s.tall.get() + (p * kTallRows + i - top) * stride_ + from);
                }
        }
    }

    // Evaluates the panel of rows i, at `offset` in the tall buffer, against the columns [from, columns) of the tile at
    // j.
    const T* evaluate(Scratch<T>& s, int64_t i, int64_t offset, int64_t j, int from, int columns) const {
        j += from, columns -= from;
        T* const kept = s.kept;
        if (kept) s.reg[result_] = kept, s.kept += M * stride_;
        for (int p = 0; p < pairings_; ++p) {
            const PackedPairing<T>& q = pairing_[p];
            if (q.blocked)
                s.reg[p] = s.tall.get() + (p * kTallRows + offset) * stride_ + from;
            else if (q.dots < 0)
                pair(q, i, j, columns, 0, q.depth, s.reg[p]);
        }
        for (int p = 0; p < pairings_; ++p) {
            const PackedPairing<T>& q = pairing_[p];
            if (q.dots >= 0) pair(q, i, j, columns, 0, q.depth, s.reg[p], s.reg[q.dots]);
            // The distance of a row from itself is 0.
            if (q.by_norms && has_self_pairs_) set_self_pairs(s.reg[p], i, j, columns, T(0));
        }
        for (int v = 0; v < row_values_; ++v)
            for (int k = 0; k < M; ++k)
                store<T>(s.lanes.get() + (v * M + k) * W, splat<T>(row_value_[v * rows_padded_ + i + k]));
        for (int x = 0; x < instructions_; ++x) run(program_[x], s, j, columns);
        T* result = s.reg[result_];
        clear_padding(result, i, j, columns);
        if (!kept || result == kept) return result;
        std::memcpy(static_cast<void*>(kept), result, size_t(M * stride_) * sizeof(T));  // it was in the tall buffer
        return kept;
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

    void run(const Instruction& x, Scratch<T>& s, int64_t j, int columns) const {
        for (int k = 0; k < M; ++k)
            run_row<T>(x, s.reg[x.target] + k * stride_, columns, operand(x, 0, s, k, j), operand(x, 1, s, k, j),
                       operand(x, 2, s, k, j));
    }

    void set_self_pairs(T* distances, int64_t i, int64_t j, int columns, T value) const {
        for (int k = 0; k < M; ++k)
            if (self_pairs_[i + k] >= j && self_pairs_[i + k] < j + columns)
                distances[k * stride_ + self_pairs_[i + k] - j] = value;
    }

    // Entries beyond the matrix were computed from zeros and may be anything, even NaN.
    void clear_padding(T* strip, int64_t i, int64_t j, int columns) const {
        if (j + columns > m_)
            for (int k = 0; k < M; ++k)
                for (int64_t c = max64(0, m_ - j); c < columns; ++c) strip[k * stride_ + c] = T(0);
        for (int64_t k = max64(0, n_ - i); k < M; ++k)
            std::memset(static_cast<void*>(strip + k * stride_), 0, size_t(columns) * sizeof(T));
    }

    int64_t n_, m_, rows_padded_, columns_padded_, depth_ = 0, tile_ = 0, stride_ = 0;
    int pairings_, registers_, row_values_, instructions_, result_;
    bool any_blocked_ = false, has_self_pairs_ = false;
    Owned<PackedPairing<T>> pairing_;
    Owned<Instruction> program_;
    Buffer<T> row_value_, column_value_, constant_;
    Buffer<int64_t> self_pairs_;
};
