// What is done with rows that lie on the device already: copies in the form that the other kernels read, and sums.
// `arrays.py` writes what stands before this text: FROM, the type of the given numbers, REAL, THREADS of a block, and more.
// Number k of row r is in[r s0 + k s1].

typedef long long Index;

struct alignas(16) Eight {
    unsigned of[4];
};

#ifdef __CUDACC__
// Two numbers in 16 bits each, x in the lower half; and what they leave of the numbers.
__device__ inline unsigned halves(float& x, float& y) {
    unsigned both;
    asm("{ .reg .b16 a, b; .reg .f32 c, d; cvt.rn.f16.f32 a, %1; cvt.rn.f16.f32 b, %2; mov.b32 %0, {a, b};"
        " cvt.f32.f16 c, a; cvt.f32.f16 d, b; sub.f32 %1, %1, c; sub.f32 %2, %2, d; }"
        : "=r"(both), "+f"(x), "+f"(y));
    return both;
}
#endif

// Rows less an origin as the tensor cores' kernels read them, in two parts of 16 bits, eight features at a time:
// out[(2 group + part) pitch + start + r]. They are scaled by 2^shift, or each row by a power of two that makes its
// largest number about 2^SCALED; what undoes the scale goes to scales[start + r].
extern "C" __global__ void split(const FROM* in, Index s0, Index s1, Index count, Index columns, const double* origin,
                                 Eight* out, float* scales, Index start, Index pitch, Index rows, Index groups,
                                 Index shift) {
    for (Index r = Index(blockIdx.x) * THREADS + threadIdx.x; r < rows; r += Index(gridDim.x) * THREADS) {
        auto number = [&](Index k) {
            if (r >= count || k >= columns) return 0.0f;
            return float(origin ? in[r * s0 + k * s1] - origin[k] : in[r * s0 + k * s1]);
        };
        int exponent = int(shift);
        if (shift == EACH) {
            float largest = 0;
            for (Index k = 0; k < columns; ++k) largest = fmaxf(largest, fabsf(number(k)));
            exponent = largest > 0 ? SCALED - ilogbf(largest) : 0;
        }
        exponent = exponent < 126 ? exponent : 126;
        const float scale = ldexpf(1.0f, exponent);
        for (Index group = blockIdx.y; group < groups; group += gridDim.y) {
            Eight high, low;
            for (int e = 0; e < 4; ++e) {
                float x = number(8 * group + 2 * e) * scale, y = number(8 * group + 2 * e + 1) * scale;
                high.of[e] = halves(x, y), low.of[e] = halves(x, y);
            }
            out[2 * group * pitch + start + r] = high, out[(2 * group + 1) * pitch + start + r] = low;
        }
        if (blockIdx.y == 0) scales[start + r] = ldexpf(1.0f, -exponent);
    }
}

// Row r, or row index[r], less the origin or times scale[r], to out[(start + r) p0 + k p1], with zeros for rows and
// features that are not there.
extern "C" __global__ void laid(const FROM* in, Index s0, Index s1, Index count, Index columns, const Index* index,
                                const double* origin, const double* scale, REAL* out, Index start, Index p0, Index p1,
                                Index rows, Index deep) {
    for (Index k = blockIdx.y; k < deep; k += gridDim.y)
        for (Index r = Index(blockIdx.x) * THREADS + threadIdx.x; r < rows; r += Index(gridDim.x) * THREADS) {
            REAL value = 0;
            if (r < count && k < columns) {
                const FROM x = in[(index ? index[r] : r) * s0 + k * s1];
                value = origin ? REAL(x - origin[k]) : scale ? REAL(scale[r] * x) : REAL(x);
            }
            out[(start + r) * p0 + k * p1] = value;
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

// out[r p0 + k p1] less number k of row r.
extern "C" __global__ void subtracted(const FROM* in, Index s0, Index s1, Index count, Index columns, REAL* out, Index p0,
                                      Index p1) {
    for (Index k = blockIdx.y; k < columns; k += gridDim.y)
        for (Index r = Index(blockIdx.x) * THREADS + threadIdx.x; r < count; r += Index(gridDim.x) * THREADS)
            out[r * p0 + k * p1] -= in[r * s0 + k * s1];
}

// The products of the rows with vectors, or what they leave of `from`: TOGETHER numbers of each row. So that neighbouring
// threads read neighbouring numbers, a block shares LINES rows whose numbers are neighbours; else each thread has a row.
extern "C" __global__ void multiplied(const FROM* in, Index s0, Index s1, Index count, Index columns, const REAL* v,
                                      const REAL* from, REAL* out) {
    constexpr int SUMS = LINES * TOGETHER, RUNS = THREADS / SUMS;
    __shared__ REAL parts[THREADS][SUMS], runs[RUNS][SUMS];
    auto write = [&](Index r, int c, REAL sum) {
        const Index place = r * TOGETHER + c;
        out[place] = from ? from[place] - sum : sum;
    };
    if (s1 != 1) {
        for (Index r = Index(blockIdx.x) * THREADS + threadIdx.x; r < count; r += Index(gridDim.x) * THREADS) {
            REAL sums[TOGETHER] = {};
            for (Index k = 0; k < columns; ++k)
                for (int c = 0; c < TOGETHER; ++c) sums[c] += REAL(in[r * s0 + k * s1]) * v[k * TOGETHER + c];
            for (int c = 0; c < TOGETHER; ++c) write(r, c, sums[c]);
        }
        return;
    }
    for (Index first = Index(blockIdx.x) * LINES; first < count; first += Index(gridDim.x) * LINES) {
        const int lines = count - first < LINES ? int(count - first) : LINES;
        REAL sums[LINES][TOGETHER] = {};
        for (Index k = threadIdx.x; k < columns; k += THREADS)
            for (int line = 0; line < lines; ++line)
                for (int c = 0; c < TOGETHER; ++c)
                    sums[line][c] += REAL(in[(first + line) * s0 + k]) * v[k * TOGETHER + c];
        for (int s = 0; s < SUMS; ++s) parts[threadIdx.x][s] = sums[s / TOGETHER][s % TOGETHER];
        __syncthreads();
        const int s = threadIdx.x % SUMS, run = threadIdx.x / SUMS;
        REAL sum = 0;
        for (int t = 0; t < SUMS; ++t) sum += parts[run * SUMS + t][s];
        runs[run][s] = sum;
        __syncthreads();
        if (run == 0 && s < lines * TOGETHER) {
            REAL total = 0;
            for (int t = 0; t < RUNS; ++t) total += runs[t][s];
            write(first + s / TOGETHER, s % TOGETHER, total);
        }
        __syncthreads();
    }
}
