// Sums of the rows of a matrix by group, and the nearest of the means that these sums give.

// Each thread takes blocks of columns whose sums fit into L2, so that each sum has the order of t for any number of
// threads. The sums are copied to cache lines, because a store across two lines costs twice as much.
template <class T>
void add_rows_between(const RowSums& s, int64_t j0, int64_t j1) {
    constexpr int64_t kLine = 64 / int64_t(sizeof(T));
    const int64_t size = j1 - j0, stride = round_up(size, 8);
    const T* matrix = static_cast<const T*>(s.matrix) + j0;
    const Buffer<double> sums(s.places * stride);
    for (int64_t p = 0; p < s.places; ++p)
        std::memcpy(&sums[p * stride], s.out + p * s.width + j0, size_t(size) * sizeof(double));
    for (int64_t t = 0; t < s.count; ++t) {
        const T *x = matrix + s.row[t] * s.width, *next = matrix + s.row[min64(t + 1, s.count - 1)] * s.width;
        if (next != x)
            for (int64_t j = 0; j < size; j += kLine) __builtin_prefetch(next + j);
        Along<T>::add(&sums[s.place[t] * stride], s.weight ? s.weight[t] : 1.0, x, size);
    }
    for (int64_t p = 0; p < s.places; ++p)
        std::memcpy(s.out + p * s.width + j0, &sums[p * stride], size_t(size) * sizeof(double));
}

void add_rows(const RowSums& s) {
    constexpr int64_t kLeast = 64, kMost = 512, kCached = (int64_t(1) << 17) / int64_t(sizeof(double));
    constexpr double kAlone = 1 << 20;  // additions, some tenths of a millisecond: for fewer a team does not pay
    const int64_t block = min64(max64(kCached / max64(s.places, 1) / kLeast * kLeast, kLeast), kMost);
    const auto add = [&](int64_t b) {
        const int64_t j0 = b * block, j1 = min64(j0 + block, s.width);
        if (s.is_double)
            add_rows_between<double>(s, j0, j1);
        else
            add_rows_between<float>(s, j0, j1);
    };
    const int64_t blocks = ceil_div(s.width, block);
    if (double(s.count) * double(s.width) < kAlone)
        for (int64_t b = 0; b < blocks; ++b) add(b);
    else
        parallel(blocks, add);
}

// Some rows with their smallest distances and nearest means, in arrays that do not overlap with the caller's.
struct NearestBlock {
    static constexpr int64_t kRows = 256;
    double diagonal[kRows], far[kRows], reach[kRows], own[kRows], left[kRows];
    int64_t label[kRows], nearest[kRows];

    void distances(const MeanDistances& d, int64_t c, int64_t i0, int64_t size) {
        const double *sums = d.sums + c * d.rows + i0, slope = d.slope[c], offset = d.offset[c];
        if (offset == __builtin_inf()) {
            for (int64_t i = 0; i < size; ++i) far[i] = offset;
            return;
        }
        for (int64_t i = 0; i < size; ++i) {
            const double x = sums[i] * slope + offset + diagonal[i];
            far[i] = x < 0 ? 0.0 : x;
        }
    }

    // If a distance of a row is NaN, it is the smallest one, no mean is within reach of it, and the row goes to the
    // first mean.
    void run(const MeanDistances& d, int64_t i0, int64_t size) {
        for (int64_t i = 0; i < size; ++i) diagonal[i] = d.diagonal[i0 + i], label[i] = d.labels[i0 + i];
        for (int64_t i = 0; i < size; ++i) reach[i] = __builtin_inf(), own[i] = left[i] = 0, nearest[i] = -1;
        for (int64_t c = 0; c < d.groups; ++c) {
            distances(d, c, i0, size);
            for (int64_t i = 0; i < size; ++i) reach[i] = far[i] < reach[i] || far[i] != far[i] ? far[i] : reach[i];
        }
        for (int64_t i = 0; i < size; ++i) reach[i] += d.rounding;
        for (int64_t c = d.groups - 1; c >= 0; --c) {
            distances(d, c, i0, size);
            for (int64_t i = 0; i < size; ++i) own[i] = label[i] == c ? far[i] : own[i];
            for (int64_t i = 0; i < size; ++i) left[i] = reach[i] >= far[i] ? far[i] : left[i];
            for (int64_t i = 0; i < size; ++i) nearest[i] = reach[i] >= far[i] ? c : nearest[i];
        }
        for (int64_t i = 0; i < size; ++i) {  // `far` is now the distance from the first mean
            d.own[i0 + i] = own[i];
            d.left[i0 + i] = nearest[i] < 0 ? far[i] : left[i];
            d.nearest[i0 + i] = nearest[i] < 0 ? 0 : nearest[i];
        }
    }
};

void nearest_means(const MeanDistances& d) {
    constexpr int64_t kTask = 16 * NearestBlock::kRows;
    parallel(ceil_div(d.rows, kTask), [&](int64_t task) {
        NearestBlock block;
        const int64_t last = min64((task + 1) * kTask, d.rows);
        for (int64_t i0 = task * kTask; i0 < last; i0 += NearestBlock::kRows)
            block.run(d, i0, min64(NearestBlock::kRows, last - i0));
    });
}
