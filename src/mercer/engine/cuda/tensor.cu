// Dot products of float32 rows on tensor cores. Each number, times a power of two of its row, is split into two of 11 bits,
// a higher and a lower one (`split` in rows.cu). Of a product of two numbers three products of parts are added, the
// smaller ones first; the product of the lower parts is below 2^-22 of it. Tensor cores add 16 products, cut off after the
// bits of the largest; their sums are added on FP32 units, which round.

#ifdef __CUDACC__
// c += a b for 16 rows, 8 columns and 16 features of a warp.
__device__ inline void add_products(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four 8 × 8 matrices, of which row r of matrix e is lines[e / 2 * far + e % 2 * near + r]; a thread gets two neighbours
// of a row of each.
__device__ inline void read_matrices(unsigned (&out)[4], const Eight* lines, int near, int far) {
    const int lane = threadIdx.x % 32;
    const unsigned place = (unsigned)__cvta_generic_to_shared(lines + lane / 16 * far + lane / 8 % 2 * near + lane % 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(place)
                 : "memory");
}
#endif

// The dot products over all features. In a warp, row r of the product of tensor cores is row (r % 8) of the threads, at
// step r / 8, and columns 2 n and 2 n + 1 are those of thread n: so that each thread gets its own pairs.
template <bool deep, bool ahead>
__device__ void tensor_dots(const Plan& plan, Shared& shared, Flow& flow, int p, int at, Index i, Index j,
                            REAL (&sums)[WIDE][WIDE]) {
    const int left_over = (int(plan.at[FIELDS * p + 2]) + DEEP - 1) / DEEP - flow.from;
    const int slices = APART && left_over > TENSOR_SLICES ? TENSOR_SLICES : left_over, tx = own_column(), ty = own_row();
    const int left = row_of(ty / 8 * 8, 0), right = column_of(tx / 4 * 4, 0);  // the first of the warp
    const int first = threadIdx.x / TILE, x = threadIdx.x % TILE;              // what the thread copies
    const Eight* a = (const Eight*)plan.array(FIELDS * p + at) + (4 * flow.from + first) * plan.rows + i + x;
    const Eight* b = (const Eight*)plan.array(FIELDS * p + at + 1) + (4 * flow.from + first) * plan.columns + x;
    auto& own = shared.parts;
    auto load = [&](int slice, Index column, int stage) {
        constexpr int STEP = SIDE * SIDE / TILE;  // parts of all rows that the block copies at a time
#pragma unroll
        for (int part = 0; part < 4; part += STEP) {
            copy(&own[stage][0][first + part][x], a + (4 * slice + part) * plan.rows);
            copy(&own[stage][1][first + part][x], b + (4 * slice + part) * plan.columns + column);
        }
    };
    REAL part[deep ? WIDE : 1][deep ? WIDE : 1];
#pragma unroll
    for (int m = 0; m < WIDE; ++m)
#pragma unroll
        for (int c = 0; c < WIDE; ++c) {
            sums[m][c] = 0;
            if constexpr (deep) part[m][c] = 0;
        }
    stream<ahead>(flow, slices, j, load, [&](int slice, int stage) {
        unsigned columns[2][WIDE / 4][2][2];
#pragma unroll
        for (int s = 0; s < 2; ++s)
#pragma unroll
            for (int g = 0; g < WIDE / 4; ++g)
                read_matrices((unsigned(&)[4])columns[s][g], &own[stage][1][s][right + 16 * g], 2 * TILE, 8);
#pragma unroll
        for (int f = 0; f < WIDE / 2; ++f) {
            unsigned rows[2][4];
#pragma unroll
            for (int s = 0; s < 2; ++s) read_matrices(rows[s], &own[stage][0][s][left + 16 * f], 8, 2 * TILE);
            float found[WIDE / 2][4] = {};
#pragma unroll
            for (int g = 0; g < WIDE / 2; ++g) add_products(found[g], rows[0], columns[1][g / 2][g % 2]);
#pragma unroll
            for (int g = 0; g < WIDE / 2; ++g) add_products(found[g], rows[1], columns[0][g / 2][g % 2]);
#pragma unroll
            for (int g = 0; g < WIDE / 2; ++g) add_products(found[g], rows[0], columns[0][g / 2][g % 2]);
#pragma unroll
            for (int g = 0; g < WIDE / 2; ++g)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    if constexpr (deep) part[2 * f + e / 2][2 * g + e % 2] += found[g][e];
                    else sums[2 * f + e / 2][2 * g + e % 2] += found[g][e];
                }
        }
        if constexpr (deep)
            if ((slice + 1) % TENSOR_SLICES == 0 || slice + 1 == slices) {
#pragma unroll
                for (int m = 0; m < WIDE; ++m)
#pragma unroll
                    for (int c = 0; c < WIDE; ++c) sums[m][c] += part[m][c], part[m][c] = 0;
            }
    });
    const REAL *rows = plan.array(FIELDS * p + 7) + i, *columns = plan.array(FIELDS * p + 8) + j;
    REAL row[WIDE], column[WIDE];
#pragma unroll
    for (int m = 0; m < WIDE; ++m) row[m] = rows[row_of(ty, m)], column[m] = columns[column_of(tx, m)];
#pragma unroll
    for (int m = 0; m < WIDE; ++m)
#pragma unroll
        for (int c = 0; c < WIDE; ++c) sums[m][c] = sums[m][c] * row[m] * column[c];
}

