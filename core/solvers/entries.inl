// Entries of K for sequential minimal optimisation: a given matrix, or the parts that tiles compute for each problem;
// and rows of these over the active variables.

// A symmetric matrix in memory: whole, or in the four parts that a border cuts.
template <class T>
struct View {
    const T* part[2][2] = {};
    int64_t stride[2] = {};  // from one row to the next, for columns before the border and from it on
    int64_t border = INT64_MAX;

    // The entry (i, j). The entries to its right follow it, up to the border or to the end.
    MERCER_INLINE const T* at(int64_t i, int64_t j) const {
        const int a = i >= border, b = j >= border;
        return part[a][b] + (i - (a ? border : 0)) * stride[b] + j - (b ? border : 0);
    }
};

// The end of the run of consecutive rows that begins at t; a run does not cross the border.
inline int64_t end_of_run(const int64_t* row, int64_t t, int64_t size, int64_t border = INT64_MAX) {
    int64_t end = t + 1;
    while (end < size && row[end] == row[end - 1] + 1 && row[end] != border) ++end;
    return end;
}

// A run of variables that stand for consecutive rows of K.
struct Run {
    int64_t variable, row, length;
};

// Rows of K over the active variables. Each is copied when it is first read; the least recently used ones make room.
template <class T>
class ActiveRows {
   public:
    ~ActiveRows() { clear(); }
    ActiveRows() = default;
    ActiveRows(const ActiveRows&) = delete;
    ActiveRows& operator=(const ActiveRows&) = delete;

    void reset(const View<T>& matrix, const int64_t* row, int64_t count, int64_t bytes) {
        clear();
        matrix_ = matrix, row_ = row, count_ = count;
        runs_ = 0;
        for (int64_t t = 0; t < count; t = end_of_run(row, t, count, matrix.border)) ++runs_;
        run_.reset(max64(1, runs_));
        for (int64_t t = 0, r = 0, end; t < count; t = end, ++r) {
            end = end_of_run(row, t, count, matrix.border);
            run_[r] = {t, row[t], end - t};
        }
        if (runs_ <= 1) return;
        capacity_ = min64(count, max64(4, bytes / (int64_t(sizeof(T)) * count)));
        slot_of_.reset(count), owner_.reset(capacity_), used_.reset(capacity_), slot_.reset(capacity_);
        for (int64_t t = 0; t < count; ++t) slot_of_[t] = -1;
    }

    // Adds the cost to `work`, in entries.
    const T* get(int64_t t, int64_t& work) {
        if (runs_ == 1) return matrix_.at(row_[t], row_[0]);
        int64_t s = slot_of_[t];
        if (s < 0) {
            s = place();
            slot_of_[t] = s, owner_[s] = t;
            copy(row_[t], slot_[s]);
            work += count_;
        }
        used_[s] = ++clock_;
        return slot_[s];
    }

   private:
    int64_t place() {
        if (filled_ < capacity_) {
            slot_[filled_] = static_cast<T*>(std::malloc(size_t(count_) * sizeof(T)));
            if (slot_[filled_]) return filled_++;
            if (filled_ < 4) throw std::bad_alloc();
            capacity_ = filled_;
        }
        int64_t oldest = 0;
        for (int64_t s = 1; s < filled_; ++s)
            if (used_[s] < used_[oldest]) oldest = s;
        slot_of_[owner_[oldest]] = -1;
        return oldest;
    }

    void copy(int64_t i, T* to) const {
        if (runs_ * 8 > count_) {
            for (int64_t t = 0; t < count_; ++t) to[t] = *matrix_.at(i, row_[t]);
            return;
        }
        for (int64_t r = 0; r < runs_; ++r)
            std::memcpy(to + run_[r].variable, matrix_.at(i, run_[r].row), size_t(run_[r].length) * sizeof(T));
    }

    void clear() {
        for (int64_t s = 0; s < filled_; ++s) std::free(slot_[s]);
        filled_ = 0;
    }

    View<T> matrix_;
    const int64_t* row_ = nullptr;
    int64_t count_ = 0, runs_ = 0, capacity_ = 0, filled_ = 0, clock_ = 0;
    Buffer<Run> run_;
    Buffer<int64_t> slot_of_, owner_, used_;
    Buffer<T*> slot_;
};

// Memory that is not initialised, so that no page is touched before it is used.
template <class T>
class Room {
   public:
    explicit Room(int64_t n) : at_(n ? static_cast<T*>(std::malloc(size_t(n) * sizeof(T))) : nullptr) {
        if (n && !at_) throw std::bad_alloc();
    }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    ~Room() { std::free(at_); }
    T* get() const { return at_; }

   private:
    T* at_;
};

// Calls f(first variable, row, length) for each run of a problem.
template <class F>
void for_runs(const DualBatch& f, int64_t p, F visit) {
    const int64_t* row = f.row + f.offset[p];
    const int64_t size = f.offset[p + 1] - f.offset[p];
    for (int64_t t = 0, end; t < size; t = end) {
        end = end_of_run(row, t, size);
        visit(t, row[t], end - t);
    }
}

// K between the rows of a problem, computed by tiles. A run that several problems have, such as a class in several
// pairs of classes, has its square computed once for all of them. Entries below the squares of two runs are those
// above, transposed.
template <class T>
class MadeEntries {
   public:
    explicit MadeEntries(const DualBatch& f)
        : f_(f), square_(max64(1, f.rows)), length_(max64(1, f.rows)), kept_(lay_out()) {
        parallel(f.rows, [&](int64_t r) {
            if (square_[r] > 0)
                f_.tiles->block(r, r + length_[r], r, r + length_[r], kept_.get() + square_[r] - 1, length_[r]);
        });
    }

    // `room` has as many entries as the square of the problem's rows.
    View<T> make(int64_t p, T* room) const {
        Run run[2] = {};
        int64_t runs = 0;
        for_runs(f_, p, [&](int64_t t, int64_t row, int64_t length) {
            if (runs < 2) run[runs] = {t, row, length};
            ++runs;
        });
        return runs == 2 ? in_parts(run, room) : whole(p, room);
    }

   private:
    View<T> in_parts(const Run* run, T* room) const {
        View<T> out;
        out.border = run[1].variable;
        for (int s = 0; s < 2; ++s) {
            const auto [variable, row, length] = run[s];
            out.stride[s] = length;
            if (square_[row] > 0 && length_[row] == length) {
                out.part[s][s] = kept_.get() + square_[row] - 1;
                continue;
            }
            f_.tiles->block(row, row + length, row, row + length, room, length);
            out.part[s][s] = room, room += length * length;
        }
        const int64_t height = run[0].length, width = run[1].length;
        f_.tiles->block(run[0].row, run[0].row + height, run[1].row, run[1].row + width, room, width);
        turn(room, height, width, room + height * width);
        out.part[0][1] = room, out.part[1][0] = room + height * width;
        return out;
    }

    View<T> whole(int64_t p, T* room) const {
        const int64_t size = f_.offset[p + 1] - f_.offset[p];
        for_runs(f_, p, [&](int64_t s, int64_t row, int64_t height) {
            for_runs(f_, p, [&](int64_t t, int64_t column, int64_t width) {
                f_.tiles->block(row, row + height, column, column + width, room + s * size + t, size);
            });
        });
        return {{{room, nullptr}, {nullptr, nullptr}}, {size, 0}};
    }

    // For each run's first row, the place of its square plus 1, or 0 if it is not kept; returns the number of entries.
    int64_t lay_out() {
        for (int64_t p = 0; p < f_.problems; ++p)
            if (f_.ended[p] == kRunning)
                for_runs(f_, p, [&](int64_t, int64_t row, int64_t length) {
                    square_[row] = length_[row] == length ? 1 : 0;  // only a run that occurs twice
                    length_[row] = length;
                });
        int64_t total = 0;
        for (int64_t r = 0; r < f_.rows; ++r) {
            const int64_t entries = length_[r] * length_[r];
            if (!square_[r] || (total + entries) * int64_t(sizeof(T)) > f_.cache)
                square_[r] = 0;
            else
                square_[r] = total + 1, total += entries;
        }
        return total;
    }

    static void turn(const T* from, int64_t height, int64_t width, T* to) {
        constexpr int64_t B = 16;
        for (int64_t i = 0; i < height; i += B)
            for (int64_t j = 0; j < width; j += B)
                for (int64_t c = j; c < min64(j + B, width); ++c)
                    for (int64_t r = i; r < min64(i + B, height); ++r) to[c * height + r] = from[r * width + c];
    }

    const DualBatch& f_;
    Buffer<int64_t> square_, length_;
    const Room<T> kept_;
};
