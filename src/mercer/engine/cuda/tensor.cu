// Dot products of float32 rows on tensor cores. Each number is the exact sum of three bfloat16 parts of 8 bits, and a
// product of two numbers has six products of parts; the three others are below 2^-24 of it. Tensor cores add 16 products,
// cut off after the bits of the largest; their sums are added on FP32 units, which round. The smallest come first.

#ifdef __CUDACC__
// Two numbers as bfloat16, x in the lower half.
__device__ inline unsigned bfloat16_pair(float x, float y) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
}
__device__ inline float from_bits(unsigned bits) { return __uint_as_float(bits); }

// c += a b for 16 rows, 8 columns and 16 features of a warp.
__device__ inline void add_products(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// The parts of two features of all rows of a tile.
template <int PITCH>
__device__ void split(const REAL* rows, Index padded, unsigned (&parts)[3][DEEP / 2][PITCH]) {
    for (int e = threadIdx.x; e < DEEP / 2 * TILE; e += SIDE * SIDE) {
        const int k = e / TILE, x = e % TILE;
        float first = rows[2 * k * padded + x], second = rows[(2 * k + 1) * padded + x];
#pragma unroll
        for (int part = 0; part < 3; ++part) {
            const unsigned both = parts[part][k][x] = bfloat16_pair(first, second);
            first -= from_bits(both << 16), second -= from_bits(both & 0xffff0000u);
        }
    }
}

// The dot products over all features. In a warp, row r of the product of tensor cores is row (r % 8) of the threads, at
// step r / 8, and column n is column (n / 2) of the threads, at step n % 2: so that each thread gets its own pairs.
template <bool deep>
__device__ void tensor_dots(const Plan& plan, Slice& shared, int p, int at, Index i, Index j,
                            REAL (&sums)[WIDE][WIDE]) {
    const REAL *a = plan.array(FIELDS * p + at) + i, *b = plan.array(FIELDS * p + at + 1) + j;
    const int slices = int(plan.at[FIELDS * p + 2]), q = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int row = own_row(), column = own_column() - t + q / 2 + SIDE * (q % 2);
    auto& own = shared.parts;
    REAL part[WIDE][WIDE];
    for (int m = 0; m < WIDE; ++m)
        for (int c = 0; c < WIDE; ++c) sums[m][c] = part[m][c] = 0;
    for (int slice = 0; slice < slices; ++slice) {
        __syncthreads();
        split(a + Index(slice) * DEEP * plan.rows, plan.rows, own.left);
        split(b + Index(slice) * DEEP * plan.columns, plan.columns, own.right);
        __syncthreads();
        unsigned right[WIDE / 2][3][2];
#pragma unroll
        for (int g = 0; g < WIDE / 2; ++g)
#pragma unroll
            for (int s = 0; s < 3; ++s)
#pragma unroll
                for (int half = 0; half < 2; ++half) right[g][s][half] = own.right[s][t + 4 * half][column + 2 * SIDE * g];
#pragma unroll
        for (int f = 0; f < WIDE / 2; ++f) {
            unsigned left[3][4];
#pragma unroll
            for (int s = 0; s < 3; ++s)
#pragma unroll
                for (int e = 0; e < 4; ++e) left[s][e] = own.left[s][t + 4 * (e / 2)][row + SIDE * (2 * f + e % 2)];
#pragma unroll
            for (int g = 0; g < WIDE / 2; ++g) {
                float c[4] = {};
                add_products(c, left[0], right[g][2]), add_products(c, left[2], right[g][0]);
                add_products(c, left[1], right[g][1]);
                add_products(c, left[0], right[g][1]), add_products(c, left[1], right[g][0]);
                add_products(c, left[0], right[g][0]);
#pragma unroll
                for (int e = 0; e < 4; ++e) part[2 * f + e / 2][2 * g + e % 2] += c[e];
            }
        }
        if (deep && (slice + 1) % TENSOR_SLICES == 0) {
#pragma unroll
            for (int m = 0; m < WIDE; ++m)
#pragma unroll
                for (int c = 0; c < WIDE; ++c) sums[m][c] += part[m][c], part[m][c] = 0;
        }
    }
#pragma unroll
    for (int m = 0; m < WIDE; ++m)
#pragma unroll
        for (int c = 0; c < WIDE; ++c) sums[m][c] += part[m][c];
}

