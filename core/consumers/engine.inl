// The tile engine for one instruction set: it evaluates a plan strip by strip, and stores, multiplies, sums or compares
// the entries. A task is a run of rows against a run of columns.

template <class T>
class TileEngine final : public Engine {
    static constexpr int M = Strips<T>::M;

   public:
    explicit TileEngine(const Plan& p) : strips_(p), products_(strips_) {}

    int64_t row_block() const override { return kRowBlock; }

    void block(int64_t i0, int64_t i1, int64_t j0, int64_t j1, void* out_, int64_t stride) override {
        T* out = static_cast<T*>(out_);
        for_tasks(i0, i1, j1 - j0, [&](Scratch<T>& s, Rows r, int64_t slice, int64_t slices) {
            strips_.sweep(s, r, strips_.cut(j0, j1, slice, slices),
                          [&](int64_t i, int64_t j, int columns, const T* strip) {
                const int64_t from = max64(j, j0), to = min64(j + columns, j1);
                for (int64_t k = max64(i, r.begin); k < min64(i + M, r.end); ++k)
                    std::memcpy(out + (k - i0) * stride + from - j0, strip + (k - i) * strips_.stride() + from - j,
                                size_t(to - from) * sizeof(T));
            });
        });
    }

    void gram(int64_t i0, int64_t i1, void* out, int64_t stride) override {
        const Mirror<T> mirror(static_cast<T*>(out), stride, strips_.columns());
        const int64_t m = strips_.columns(), across = strips_.stride();
        for_tasks(i0, i1, m - i0, [&](Scratch<T>& s, Rows r, int64_t slice, int64_t slices) {
            const Parts part = parts(r, r.end, slice, slices);
            const Columns square = part.square, right = part.right;
            strips_.template sweep<true>(s, r, square, [&](int64_t i, int64_t j, int columns, const T* strip) {
                mirror.corner(i, min64(M, r.end - i), j, min64(columns, square.end - j), strip, across);
            });
            // Right of the square on the diagonal, we keep each tile whole and write it a second time, transposed. The
            // first tile begins on the border of a panel, which may lie left of the end of the square.
            Buffer<T> kept(right.begin < right.end ? round_up(kRowBlock, M) * across : 0);
            strips_.sweep(s, r, right, [&](int64_t i, int64_t j, int columns, const T* strip) {
                const int64_t from = max64(j, right.begin), to = min64(j + columns, right.end);
                mirror.rows(i, min64(M, r.end - i), from, to - from, strip + from - j, across);
                std::memcpy(static_cast<void*>(kept.get() + (i - r.begin) * across), strip,
                            size_t(M * across) * sizeof(T));
            }, [&](int64_t j, int columns) {
                mirror.turned(r.begin, r.end - r.begin, j, max64(0, right.begin - j), min64(columns, right.end - j),
                              kept.get(), across);
            });
            mirror.done();
        });
    }

    void upper(int64_t i0, int64_t i1, void* out) override {
        const int64_t m = strips_.columns(), across = strips_.stride();
        for_tasks(i0, i1, m - i0, [&](Scratch<T>& s, Rows r, int64_t slice, int64_t slices) {
            const int64_t first = r.begin / kRowBlock * kRowBlock;  // of the block row that contains the rows
            const Parts part = parts(r, min64(first + kRowBlock, m), slice, slices);
            const Columns square = part.square, right = part.right;
            const Mirror<T> block(static_cast<T*>(out) + upper_start(first, m, kRowBlock), m - first, m);
            strips_.template sweep<true>(s, r, square, [&](int64_t i, int64_t j, int columns, const T* strip) {
                block.corner(i - first, min64(M, r.end - i), j - first, min64(columns, square.end - j), strip, across);
            });
            strips_.sweep(s, r, right, [&](int64_t i, int64_t j, int columns, const T* strip) {
                block.rows(i - first, min64(M, r.end - i), j - first, min64(columns, right.end - j), strip, across);
            });
            block.done();
        });
    }

    void multiply(int64_t i0, int64_t i1, int64_t j0, int64_t j1, const void* v, int64_t r, double* out,
                  bool symmetric) override {
        products_.multiply({i0, i1, j0, j1, r, symmetric}, static_cast<const T*>(v), out);
    }

    void normal_product(int64_t i0, int64_t i1, const void* v, int64_t r, const double* w, double* out) override {
        products_.normal(i0, i1, static_cast<const T*>(v), r, w, out);
    }

    void group_sums(int64_t i0, int64_t i1, const int64_t* start, int64_t groups, const void* w_,
                    double* out) override {
        const T* w = static_cast<const T*>(w_);
        const int64_t m = strips_.columns();
        for_tasks(i0, i1, 0, [&](Scratch<T>& s, Rows r, int64_t, int64_t) {
            int64_t first = 0;  // the group of the tile's first column
            strips_.sweep(s, r, {0, m}, [&](int64_t i, int64_t j, int columns, const T* strip) {
                while (first + 1 < groups && start[first + 1] <= j) ++first;
                const int64_t last = min64(j + columns, m);
                for (int64_t k = max64(i, r.begin); k < min64(i + M, r.end); ++k)
                    for (int64_t g = first; g < groups && start[g] < last; ++g) {
                        const int64_t from = max64(start[g], j), to = min64(start[g + 1], last);
                        const T* row = strip + (k - i) * strips_.stride() + from - j;
                        if (from < to) out[(k - i0) * groups + g] += segment(row, w ? w + from : nullptr, to - from);
                    }
            });
        });
    }

   private:
    struct Parts {
        Columns square, right;
    };

    // A slice of the columns from the diagonal on: those before `end`, and those from `end` on.
    Parts parts(Rows r, int64_t end, int64_t slice, int64_t slices) const {
        const Columns c = strips_.cut(r.begin, strips_.columns(), slice, slices);
        return {{c.begin, min64(c.end, end)}, {max64(c.begin, end), c.end}};
    }

    // Calls f(scratch, rows, slice, slices) for runs of rows. If there are too few runs for the team, it also divides
    // `columns` into slices, if they may be divided. Shorter runs come last: each run reads all packed columns, which
    // are too many for a cache in high dimension. No entry depends on the partition.
    template <class F>
    void for_tasks(int64_t i0, int64_t i1, int64_t columns, F f) const {
        const int64_t first = i0 / M * M, wanted = 4 * threads(), most = max64(1, ceil_div(columns, strips_.tile()));
        int64_t height = kRowBlock, runs = ceil_div(i1 - first, height);
        const int64_t slices = min64(most, ceil_div(wanted, runs));
        for (; runs * slices < wanted && height % (2 * M) == 0; runs = ceil_div(i1 - first, height)) height /= 2;
        parallel(runs * slices, [&](int64_t task) {
            Scratch<T> s;
            strips_.prepare(s);
            const int64_t begin = first + task / slices * height;
            f(s, Rows{max64(begin, i0), min64(begin + height, i1)}, task % slices, slices);
        });
    }

    static double segment(const T* x, const T* w, int64_t length) {
        constexpr int W = Simd<T>::W;
        Vec<T> sum{};
        int64_t c = 0;
        for (; c + W <= length; c += W)
            sum += w ? load_unaligned(x + c) * load_unaligned(w + c) : load_unaligned(x + c);
        double total = lane_sum<T>(sum);
        for (; c < length; ++c) total += double(w ? x[c] * w[c] : x[c]);
        return total;
    }

    const Strips<T> strips_;
    const Products<T> products_;
};

Engine* make(const Plan& p) {
    if (p.is_double) return new TileEngine<double>(p);
    return new TileEngine<float>(p);
}

template <class T>
void evaluate_as(int op, double k0, double k1, const T* in, T* out, int64_t n) {
    constexpr int W = Simd<T>::W;
    Buffer<T> lane(W), zeros(W);
    const Instruction s{op, 0, {kRegister, kRegister, kRegister}, {0, 0, 0}, k0, k1};
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
