// Entries of a program on pairs of rows, and their products with vectors. `source.py` writes what stands before this
// text: REAL, the sizes, the kinds of the pairings, and `evaluate`, the program itself.
//
// A block of SIDE × SIDE threads has a tile of TILE rows and TILE columns, and each thread WIDE × WIDE of its pairs. Rows
// lie feature by feature, padded with zeros, so that nothing is compared with the last row while features are summed.
// Slices of DEEP features go to shared memory, 16 bytes at a time, while the slice before is in use. Sums of more than
// CHUNK features are sums of such sums, as in the native engine.

typedef long long Index;
constexpr int GROUP = 16 / sizeof(REAL);

// Where the arrays of a plan lie: FIELDS numbers a pairing (rows and columns for norms, features, norms of both, rows and
// columns for terms, scales of both for tensor cores), then values of rows and columns, the columns that are the same
// points as rows, and the number of the program's first column.
struct Plan {
    const Index* at;
    const REAL* numbers;
    Index rows, columns;  // padded

    __device__ const REAL* array(int k) const { return (const REAL*)at[k]; }
    __device__ const REAL* row_values(int k) const { return array(FIELDS * PAIRINGS + k); }
    __device__ const REAL* column_values(int k) const { return array(FIELDS * PAIRINGS + ROW_VALUES + k); }
    __device__ const Index* same() const { return (const Index*)at[FIELDS * PAIRINGS + ROW_VALUES + COLUMN_VALUES]; }
    __device__ Index first() const { return at[FIELDS * PAIRINGS + ROW_VALUES + COLUMN_VALUES + 1]; }
};

// The place of a thread among SIDE × SIDE. A warp has 8 × 4 of them, if the block has as many, so that it reads few rows.
constexpr int ACROSS = 4, DOWN = 32 / ACROSS, WARPS = SIDE / ACROSS;
__device__ inline int own_row() {
    return SIDE < 8 ? threadIdx.x / SIDE : threadIdx.x / 32 / WARPS * DOWN + threadIdx.x % 32 / ACROSS;
}
__device__ inline int own_column() {
    return SIDE < 8 ? threadIdx.x % SIDE : threadIdx.x / 32 % WARPS * ACROSS + threadIdx.x % ACROSS;
}

// Row m and column c of a thread in its tile: GROUP of them are neighbours, or they lie as tensor cores give the pairs.
__device__ inline int row_of(int ty, int m) {
    return TENSOR ? ty / 8 * (8 * WIDE) + 8 * m + ty % 8 : m / GROUP * (GROUP * SIDE) + GROUP * ty + m % GROUP;
}
__device__ inline int column_of(int tx, int c) {
    return TENSOR ? tx / 4 * (4 * WIDE) + c / 2 * 8 + tx % 4 * 2 + c % 2
                  : c / GROUP * (GROUP * SIDE) + GROUP * tx + c % GROUP;
}

// Like the comparison of NumPy, both are NaN if one operand is.
__device__ inline REAL least(REAL a, REAL b) { return a <= b || a != a ? a : b; }
__device__ inline REAL most(REAL a, REAL b) { return a >= b || a != a ? a : b; }

struct alignas(16) Group {
    REAL of[GROUP];
};
// Eight numbers of 16 bits.
struct alignas(16) Eight {
    unsigned of[4];
};

#ifdef __CUDACC__
// A copy of 16 bytes into shared memory. Those before a `commit` are there when `arrived<N>` returns, but for the last N
// commits. Devices before the eighth generation wait for each.
#if __CUDA_ARCH__ >= 800
__device__ inline void copy(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}
__device__ inline void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ inline void arrived() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#else
__device__ inline void copy(void* to, const void* from) { *(Eight*)to = *(const Eight*)from; }
__device__ inline void commit() {}
template <int N>
__device__ inline void arrived() {}
#endif
// In a branch, so that it is one and not a choice of each value.
__device__ inline void rare() { asm volatile("membar.cta;" ::: "memory"); }
// 2^a to two units in the last place, in one instruction; below 2^-126 it is 0.
__device__ inline float power_of_two(float a) {
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(a));
    return a;
}
__device__ inline double power_of_two(double a) { return exp2(a); }
// The value that the thread with this bit of its number changed gives.
__device__ inline REAL from_neighbour(REAL value, int bit) { return __shfl_xor_sync(0xffffffffu, value, bit); }
#endif

template <int kind>
__device__ inline REAL with_term(REAL sum, REAL a, REAL b) {
    const REAL difference = a - b;
    if constexpr (kind == DOT) return sum + a * b;
    if constexpr (kind == SQDIST) return sum + difference * difference;
    if constexpr (kind == L1) return sum + fabs(difference);
    if constexpr (kind == MIN_SUM) return sum + least(a, b);
    if constexpr (kind == MISMATCHES) return sum + (a != b ? REAL(1) : REAL(0));
    const REAL both = a + b;  // CHI2
    return sum + (both > 0 ? difference / both * difference : REAL(0));
}

// STAGES slices of the features of a tile's rows (0) and columns (1). If one slice has all features, the rows' stay for all
// tiles, and there are two of the columns'. For tensor cores the numbers are split in two: there are two groups of eight
// features, each with the higher parts and the lower ones. In the end sums of threads take their place.
union Shared {
    REAL terms[ONE_SLICE ? STAGES + 1 : 2 * STAGES][DEEP][TILE];
    Eight parts[STAGES][2][4][TENSOR ? TILE : 1];
    double lanes[SIDE * SIDE];
};

// Where a slice of rows or columns is among `terms`.
__device__ constexpr int part_of(int stage, bool columns) {
    return !ONE_SLICE ? 2 * stage + columns : columns ? stage : STAGES;
}

// The numbers of a thread's rows from row `first` on, or of its columns, in a line of a slice.
template <bool columns, int COUNT>
__device__ inline void read(const REAL* line, int place, int first, REAL (&out)[COUNT]) {
    if constexpr (TENSOR) {
#pragma unroll
        for (int m = 0; m < COUNT; ++m) out[m] = line[columns ? column_of(place, first + m) : row_of(place, first + m)];
    } else {
#pragma unroll
        for (int g = 0; g < COUNT; g += GROUP) {
            const Group group = *(const Group*)(line + row_of(place, first + g));
#pragma unroll
            for (int m = 0; m < GROUP; ++m) out[g + m] = group.of[m];
        }
    }
}

// Where a block is in its tiles: the next slice goes to `stage` of shared memory, or, if the tile is `ready`, its first ones
// are there or on their way. The tile after it begins at column `next`. Of the thread's rows, the columns that are the
// same points are from `low` to `high`. The rows that stay are those of the plan's array `held`. Of long sums that are
// added where they are written, the next begins at slice `from`.
struct Flow {
    Index next;
    int stage, low, high, held, from;
    bool ready;

    __device__ int after(int slices) const { return stage + slices < STAGES ? stage + slices : stage + slices - STAGES; }
};

// What was read ahead may be overwritten.
__device__ inline void drop(Flow& flow) { arrived<0>(), __syncthreads(), flow.ready = false; }

// All slices of a tile, one after the other: `load(slice, column, stage)` copies one, and `use(slice, stage)` computes with
// it while the next ones are copied, those of the next tile if this looks `ahead`.
template <bool ahead, typename Load, typename Use>
__device__ inline void stream(Flow& flow, int slices, Index j, Load load, Use use) {
    const int reach = slices < 2 ? slices : 2;
    if (!flow.ready)
#pragma unroll 1
        for (int slice = 0; slice < reach; ++slice) load(slice, j, flow.after(slice)), commit();
    for (int slice = 0; slice < slices; ++slice) {
        if (reach > 1) arrived<1>();
        else arrived<0>();
        __syncthreads();
        const int coming = slice + reach;
        if (coming < slices) load(coming, j, flow.after(reach));
        else if (ahead && flow.next >= 0) load(coming - slices, flow.next, flow.after(reach));
        commit();
        use(slice, flow.stage);
        flow.stage = flow.after(1);
    }
    flow.ready = ahead && flow.next >= 0;
}

// The sums of one pairing over all features, and the first slice of the next tile if this looks `ahead`. Of sums of sums,
// four rows of a thread are summed at a time.
template <int kind, bool deep, bool ahead>
__device__ void paired(const Plan& plan, Shared& shared, Flow& flow, int p, int at, Index i, Index j,
                       REAL (&sums)[WIDE][WIDE]) {
    constexpr int ROWS = deep && WIDE > 4 ? 4 : WIDE, STEP = SIDE * GROUP / WIDE;  // lines that the block copies at a time
    const int features = (int(plan.at[FIELDS * p + 2]) + 3) / 4 * 4, slices = ONE_SLICE ? 1 : (features + DEEP - 1) / DEEP;
    const int tx = own_column(), ty = own_row(), line = threadIdx.x / (TILE / GROUP), x = threadIdx.x % (TILE / GROUP) * GROUP;
    const REAL* a = plan.array(FIELDS * p + at) + line * plan.rows + i + x;
    const REAL* b = plan.array(FIELDS * p + at + 1) + line * plan.columns + x;
    auto& own = shared.terms;
    auto load = [&](int slice, Index column, int stage) {
        const int first = slice * DEEP, count = ONE_SLICE || features - first > DEEP ? DEEP : features - first;
        if (!ONE_SLICE || flow.held != at) {
            if (ONE_SLICE) __syncthreads();  // other rows may be in use
            flow.held = at;
#pragma unroll
            for (int step = 0; step < DEEP && step + line < count; step += STEP)
                copy(&own[part_of(stage, false)][step + line][x], a + (first + step) * plan.rows);
        }
#pragma unroll
        for (int step = 0; step < DEEP && step + line < count; step += STEP)
            copy(&own[part_of(stage, true)][step + line][x], b + (first + step) * plan.columns + column);
    };
#pragma unroll
    for (int top = 0; top < WIDE; top += ROWS) {
        REAL part[ROWS][WIDE];
#pragma unroll
        for (int m = 0; m < ROWS; ++m)
#pragma unroll
            for (int c = 0; c < WIDE; ++c) {
                part[m][c] = 0;
                if constexpr (deep) sums[top + m][c] = 0;
            }
        stream<ahead>(flow, slices, j, load, [&](int slice, int stage) {
            const int left = features - slice * DEEP, count = ONE_SLICE || left > DEEP ? DEEP : left;
#pragma unroll(ONE_SLICE ? DEEP / 4 : 1)
            for (int first = 0; first < count; first += 4) {
#pragma unroll(kind == CHI2 ? 1 : 4)
                for (int k = first; k < first + 4; ++k) {
                    REAL row[ROWS], column[WIDE];
                    read<false>(own[part_of(stage, false)][k], ty, top, row);
                    read<true>(own[part_of(stage, true)][k], tx, 0, column);
#pragma unroll
                    for (int m = 0; m < ROWS; ++m)
#pragma unroll
                        for (int c = 0; c < WIDE; ++c) part[m][c] = with_term<kind>(part[m][c], row[m], column[c]);
                }
            }
            if (deep && (slice + 1) % (CHUNK / DEEP) == 0) {
#pragma unroll
                for (int m = 0; m < ROWS; ++m)
#pragma unroll
                    for (int c = 0; c < WIDE; ++c) sums[top + m][c] += part[m][c], part[m][c] = 0;
            }
        });
#pragma unroll
        for (int m = 0; m < ROWS; ++m)
#pragma unroll
            for (int c = 0; c < WIDE; ++c) sums[top + m][c] = deep ? sums[top + m][c] + part[m][c] : part[m][c];
    }
}

// At the first tile of a row of tiles.
__device__ inline Flow started(const Plan& plan, Index i) {
    Flow flow{-1, 0, 0, 0, -1, 0, false};
    if (!SAME || TRANSPOSED) return flow;
    flow.low = 0x7fffffff, flow.high = -1;
#pragma unroll
    for (int m = 0; m < WIDE; ++m) {
        const int place = int(plan.same()[i + row_of(own_row(), m)] - plan.first());
        if (place >= 0) flow.low = place < flow.low ? place : flow.low, flow.high = place > flow.high ? place : flow.high;
    }
    return flow;
}

// The pairs of a thread that are one point get this value. Of a transposed program, rows and columns change places.
__device__ inline void set_same(const Plan& plan, const Flow& flow, Index i, Index j, REAL value,
                                REAL (&sums)[WIDE][WIDE]) {
    if (!TRANSPOSED && (flow.high < j || flow.low >= j + TILE)) return;
    const Index* same = plan.same() + (TRANSPOSED ? j : i);
    const Index first = plan.first() + (TRANSPOSED ? i : j);
    const int tx = own_column(), ty = own_row();
#pragma unroll
    for (int m = 0; m < WIDE; ++m) {
        const Index place = same[TRANSPOSED ? column_of(tx, m) : row_of(ty, m)] - first;
        if (place < 0 || place >= TILE) continue;
        rare();
#pragma unroll
        for (int c = 0; c < WIDE; ++c)
            if ((TRANSPOSED ? row_of(ty, c) : column_of(tx, c)) == place)
                (TRANSPOSED ? sums[c][m] : sums[m][c]) = value;
    }
}

// The sums again of another pairing of the same numbers, which are still in the slice before `flow.stage`.
template <int kind>
__device__ inline void paired_again(const Shared& own, const Flow& flow, REAL (&sums)[WIDE][WIDE]) {
    const int stage = flow.after(STAGES - 1), tx = own_column(), ty = own_row();
#pragma unroll
    for (int m = 0; m < WIDE; ++m)
#pragma unroll
        for (int c = 0; c < WIDE; ++c) sums[m][c] = 0;
#pragma unroll 1
    for (int k = 0; k < DEEP; ++k) {
        REAL row[WIDE], column[WIDE];
        read<false>(own.terms[part_of(stage, false)][k], ty, 0, row);
        read<true>(own.terms[part_of(stage, true)][k], tx, 0, column);
#pragma unroll
        for (int m = 0; m < WIDE; ++m)
#pragma unroll
            for (int c = 0; c < WIDE; ++c) sums[m][c] = with_term<kind>(sums[m][c], row[m], column[c]);
    }
}

// Squared distances s by norms, in the place of dot products; and, if that is asked, whether all of the tile are accurate
// enough: s - share A >= bound with A = |x|^2 + |z|^2. If threads answer `together` they agree; else each tells of its own
// pairs. Norms and dot products are finite.
template <bool asked, bool together>
__device__ inline bool by_norms(const Plan& plan, int p, Index i, Index j, int number, REAL (&sums)[WIDE][WIDE]) {
    const REAL *rows = plan.array(FIELDS * p + 3) + i, *columns = plan.array(FIELDS * p + 4) + j;
    const REAL share = asked ? plan.numbers[number] : 0, bound = asked ? plan.numbers[number + 1] : 0;
    const int tx = own_column(), ty = own_row();
    REAL row[WIDE], column[WIDE], most_rows = 0, most_columns = 0, least = REAL(BEYOND);
    read<false>(rows, ty, 0, row), read<true>(columns, tx, 0, column);
#pragma unroll
    for (int m = 0; m < WIDE; ++m) {
        if (asked) most_rows = fmax(most_rows, row[m]), most_columns = fmax(most_columns, column[m]);
    }
#pragma unroll
    for (int m = 0; m < WIDE; ++m)
#pragma unroll
        for (int c = 0; c < WIDE; ++c) {
            sums[m][c] = fma(REAL(-2), sums[m][c], row[m] + column[c]);
            if (asked) least = fmin(least, sums[m][c]);
            else sums[m][c] = fmax(sums[m][c], REAL(0));
        }
    // First with the least distance and the largest norms of each thread, which mostly is enough.
    if (!asked) return true;
    const bool enough = least >= fmax(fma(share, most_rows + most_columns, bound), REAL(0));
    if (!together) return enough;
    if (!__syncthreads_or(!enough)) return true;
    REAL worst = REAL(BEYOND);
#pragma unroll
    for (int m = 0; m < WIDE; ++m)
#pragma unroll
        for (int c = 0; c < WIDE; ++c) {
            // Norms are read again, so that no registers keep them.
            worst = fmin(worst, fma(-share, rows[row_of(ty, m)] + columns[column_of(tx, c)], sums[m][c]));
            sums[m][c] = fmax(sums[m][c], REAL(0));
        }
    return !__syncthreads_or(!(worst >= bound));
}

// PAIR_ALL, EVALUATE and SAME come from the program: all pairings, and its value for a pair.
__device__ void tile(const Plan& plan, Shared& own, Flow& flow, Index i, Index j, REAL (&values)[WIDE][WIDE]) {
    const int tx = own_column(), ty = own_row();
    REAL sums[PAIRINGS ? PAIRINGS : 1][WIDE][WIDE];
    PAIR_ALL(plan, own, flow, i, j, sums);
#pragma unroll
    for (int m = 0; m < WIDE; ++m)
#pragma unroll
        for (int c = 0; c < WIDE; ++c) values[m][c] = EVALUATE(plan, i + row_of(ty, m), j + column_of(tx, c), m, c, sums);
}

// Tiles begin at whole groups, whose 16 bytes can be copied at once.
__device__ inline Index begin(Index first) { return first / 4 * 4; }
