// What is done with rows that lie on the device already: copies in the form that the other kernels read, and sums.
// `arrays.py` writes what stands before this text: FROM, the type of the given numbers, REAL, and THREADS of a block.
// Number k of row r is in[r s0 + k s1].

typedef long long Index;

// Row r, or row index[r], less the origin or times scale[r], to out[r p0 + k p1], with zeros for rows and features that
// are not there.
extern "C" __global__ void laid(const FROM* in, Index s0, Index s1, Index count, Index columns, const Index* index,
                                const double* origin, const double* scale, REAL* out, Index p0, Index p1, Index rows,
                                Index deep) {
    for (Index k = blockIdx.y; k < deep; k += gridDim.y)
        for (Index r = Index(blockIdx.x) * THREADS + threadIdx.x; r < rows; r += Index(gridDim.x) * THREADS) {
            REAL value = 0;
            if (r < count && k < columns) {
                const FROM x = in[(index ? index[r] : r) * s0 + k * s1];
                value = origin ? REAL(x - origin[k]) : scale ? REAL(scale[r] * x) : REAL(x);
            }
            out[r * p0 + k * p1] = value;
        }
}

// Of each row |x|^2 less the origin and rounded to REAL, the sum, and the largest |number|. Long sums of squares are sums
// of short sums, so that roundings of one sign stay few.
extern "C" __global__ void row_sums(const FROM* in, Index s0, Index s1, Index count, Index columns,
                                    const double* origin, double* out) {
    for (Index r = Index(blockIdx.x) * THREADS + threadIdx.x; r < count; r += Index(gridDim.x) * THREADS) {
        double square = 0, part = 0, sum = 0, largest = 0;
        for (Index k = 0; k < columns; ++k) {
            const double x = in[r * s0 + k * s1], moved = origin ? REAL(x - origin[k]) : REAL(x);
            part += moved * moved, sum += x;
            largest = fabs(x) > largest ? fabs(x) : largest;
            if (k % 64 == 63) square += part, part = 0;
        }
        out[r] = square + part, out[count + r] = sum, out[2 * count + r] = largest;
    }
}

// The sums of each column over runs of `height` rows.
extern "C" __global__ void column_sums(const FROM* in, Index s0, Index s1, Index count, Index columns, Index height,
                                       double* out) {
    const Index run = blockIdx.y, first = run * height, last = first + height < count ? first + height : count;
    for (Index k = Index(blockIdx.x) * THREADS + threadIdx.x; k < columns; k += Index(gridDim.x) * THREADS) {
        double sum = 0;
        for (Index r = first; r < last; ++r) sum += in[r * s0 + k * s1];
        out[run * columns + k] = sum;
    }
}
