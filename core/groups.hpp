// Sums of the rows of a matrix by group, and the nearest of the means that follow from such sums.

// The columns are shared out among the threads, in blocks whose sums stay in the second-level cache: each sum has the order of t,
// whatever the number of threads.
template <class T>
void add_rows_between(const RowSums& s, int64_t j0, int64_t j1) {
    constexpr int64_t kLine = 64 / int64_t(sizeof(T));
    const T* matrix = static_cast<const T*>(s.matrix);
    for (int64_t t = 0; t < s.count; ++t) {
        if (t + 1 < s.count && s.row[t + 1] != s.row[t]) {
            const T* next = matrix + s.row[t + 1] * s.width;
            for (int64_t j = j0; j < j1; j += kLine) __builtin_prefetch(next + j);
        }
        Along<T>::add(s.out + s.place[t] * s.width + j0, s.weight ? s.weight[t] : 1.0, matrix + s.row[t] * s.width + j0, j1 - j0);
    }
}

void add_rows(const RowSums& s) {
    constexpr int64_t kLeast = 64, kMost = 512, kCached = (int64_t(1) << 17) / int64_t(sizeof(double));
    const int64_t block = min64(max64(kCached / max64(s.places, 1) / kLeast * kLeast, kLeast), kMost);
    parallel(ceil_div(s.width, block), [&](int64_t b) {
        const int64_t j0 = b * block, j1 = min64(j0 + block, s.width);
        if (s.is_double)
            add_rows_between<double>(s, j0, j1);
        else
            add_rows_between<float>(s, j0, j1);
    });
}

// A NaN among the distances of a row is its least one, is within reach of nothing, and leaves the row to the first mean.
void nearest_means(const MeanDistances& d) {
    constexpr int64_t kBlock = 256, kTask = 16;  // rows whose least distances are kept, and how many such blocks are a task
    parallel(ceil_div(d.rows, kBlock * kTask), [&](int64_t task) {
        const int64_t last = min64((task + 1) * kBlock * kTask, d.rows);
        for (int64_t i0 = task * kBlock * kTask; i0 < last; i0 += kBlock) {
            const int64_t size = min64(kBlock, last - i0);
            const double* diagonal = d.diagonal + i0;
            const int64_t* label = d.labels + i0;
            double *own = d.own + i0, *left = d.left + i0, reach[kBlock];
            int64_t* nearest = d.nearest + i0;
            for (int64_t i = 0; i < size; ++i) reach[i] = __builtin_inf(), own[i] = left[i] = 0, nearest[i] = -1;
            const auto each = [&](int64_t c, auto use) {
                const double *sums = d.sums + c * d.rows + i0, slope = d.slope[c], offset = d.offset[c];
                const bool empty = offset == __builtin_inf();
                for (int64_t i = 0; i < size; ++i) {
                    const double far = empty ? offset : sums[i] * slope + offset + diagonal[i];
                    use(i, far < 0 ? 0.0 : far);
                }
            };
            for (int64_t c = 0; c < d.groups; ++c)
                each(c, [&](int64_t i, double far) { reach[i] = far < reach[i] || far != far ? far : reach[i]; });
            for (int64_t i = 0; i < size; ++i) reach[i] += d.rounding;
            for (int64_t c = d.groups - 1; c >= 0; --c) {
                each(c, [&](int64_t i, double far) {
                    const bool taken = reach[i] >= far || (c == 0 && nearest[i] < 0);
                    nearest[i] = taken ? c : nearest[i];
                    left[i] = taken ? far : left[i];
                    own[i] = label[i] == c ? far : own[i];
                });
            }
        }
    });
}
