// Entries of a program on pairs of rows, and their products with vectors. `source.py` writes what stands before this
// text: REAL, the sizes, the kinds of the pairings, and `evaluate`, the program itself.
//
// A block of SIDE × SIDE threads has a tile of TILE rows and TILE columns, and each thread WIDE × WIDE of its pairs:
// those of rows ty + SIDE m and columns tx + SIDE c. Features come in slices of DEEP through shared memory. Rows lie
// feature by feature, padded with zeros to whole tiles and slices, so that nothing is compared with the last row while
// features are summed. Sums of more than CHUNK features are sums of such sums, as in the native engine.

typedef long long Index;

// Where the arrays of a plan lie: FIELDS numbers a pairing (rows and columns for norms, slices, norms of both, rows and
// columns for terms), then values of rows and columns, the columns that are the same points as rows, and the number of
// the program's first column.
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

// The first row and the first column of a thread in its tile; the others come in steps of SIDE. A warp has 8 × 4 of them,
// as tensor cores give its threads, or 2 × 16.
__device__ inline int own_row() {
    return TENSOR ? threadIdx.x / 32 / (SIDE / 4) * 8 + threadIdx.x % 32 / 4 : threadIdx.x / SIDE;
}
__device__ inline int own_column() {
    return TENSOR ? threadIdx.x / 32 % (SIDE / 4) * 4 + threadIdx.x % 4 : threadIdx.x % SIDE;
}

// Like the comparison of NumPy, both are NaN if one operand is.
__device__ inline REAL least(REAL a, REAL b) { return a <= b || a != a ? a : b; }
__device__ inline REAL most(REAL a, REAL b) { return a >= b || a != a ? a : b; }
__device__ inline REAL positive(REAL a) { return a < 0 ? REAL(0) : a; }

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

// A slice of the features of a tile's rows and columns; for tensor cores three bfloat16 parts of each number, two features
// in a word. The paddings let the threads of a warp read from different banks.
union Slice {
    struct {
        REAL left[DEEP][TILE], right[DEEP][TILE];
    } terms;
    struct {
        unsigned left[3][DEEP / 2][TENSOR ? TILE + 8 : 1], right[3][DEEP / 2][TENSOR ? TILE + 4 : 1];
    } parts;
};

// The sums of one pairing over all features. Of sums of sums, four rows of a thread are summed at a time.
template <int kind, bool deep>
__device__ void paired(const Plan& plan, Slice& shared, int p, int at, Index i, Index j, REAL (&sums)[WIDE][WIDE]) {
    constexpr int ROWS = deep && WIDE > 4 ? 4 : WIDE;
    const REAL *a = plan.array(FIELDS * p + at) + i, *b = plan.array(FIELDS * p + at + 1) + j;
    const int slices = int(plan.at[FIELDS * p + 2]), tx = own_column(), ty = own_row();
    auto& own = shared.terms;
#pragma unroll
    for (int top = 0; top < WIDE; top += ROWS) {
        REAL part[ROWS][WIDE];
        for (int m = 0; m < ROWS; ++m)
            for (int c = 0; c < WIDE; ++c) sums[top + m][c] = part[m][c] = 0;
        for (int slice = 0; slice < slices; ++slice) {
            __syncthreads();
            for (int e = threadIdx.x; e < DEEP * TILE; e += SIDE * SIDE) {
                const int k = e / TILE, x = e % TILE;
                own.left[k][x] = a[(Index(slice) * DEEP + k) * plan.rows + x];
                own.right[k][x] = b[(Index(slice) * DEEP + k) * plan.columns + x];
            }
            __syncthreads();
#pragma unroll(kind == CHI2 ? 1 : 4)
            for (int k = 0; k < DEEP; ++k) {
                REAL row[ROWS], column[WIDE];
#pragma unroll
                for (int m = 0; m < ROWS; ++m) row[m] = own.left[k][ty + SIDE * (top + m)];
#pragma unroll
                for (int c = 0; c < WIDE; ++c) column[c] = own.right[k][tx + SIDE * c];
#pragma unroll
                for (int m = 0; m < ROWS; ++m)
#pragma unroll
                    for (int c = 0; c < WIDE; ++c) part[m][c] = with_term<kind>(part[m][c], row[m], column[c]);
            }
            if (deep && (slice + 1) % (CHUNK / DEEP) == 0) {
#pragma unroll
                for (int m = 0; m < ROWS; ++m)
#pragma unroll
                    for (int c = 0; c < WIDE; ++c) sums[top + m][c] += part[m][c], part[m][c] = 0;
            }
        }
#pragma unroll
        for (int m = 0; m < ROWS; ++m)
#pragma unroll
            for (int c = 0; c < WIDE; ++c) sums[top + m][c] += part[m][c];
    }
}

// Squared distances by norms, in the place of dot products.
__device__ inline void by_norms(const Plan& plan, int p, Index i, Index j, REAL (&sums)[WIDE][WIDE]) {
    const REAL *rows = plan.array(FIELDS * p + 3), *columns = plan.array(FIELDS * p + 4);
    for (int m = 0; m < WIDE; ++m)
        for (int c = 0; c < WIDE; ++c)
            sums[m][c] = positive(rows[i + SIDE * m] + columns[j + SIDE * c] - 2 * sums[m][c]);
}

// Whether all distances of the tile are accurate enough: s - share A >= bound with A = |x|^2 + |z|^2. All threads agree.
__device__ inline bool accurate(const Plan& plan, int p, Index i, Index j, int number, const REAL (&sums)[WIDE][WIDE]) {
    const REAL *rows = plan.array(FIELDS * p + 3), *columns = plan.array(FIELDS * p + 4);
    const REAL share = plan.numbers[number], bound = plan.numbers[number + 1];
    int bad = 0;
    for (int m = 0; m < WIDE; ++m)
        for (int c = 0; c < WIDE; ++c)
            bad |= !(sums[m][c] - share * (rows[i + SIDE * m] + columns[j + SIDE * c]) >= bound);
    return !__syncthreads_or(bad);
}

// PAIR_ALL, EVALUATE and SAME come from the program: all pairings, its value for a pair, and whether that is one point.
__device__ void tile(const Plan& plan, Index i, Index j, REAL (&values)[WIDE][WIDE]) {
    const Index own_i = i + own_row(), own_j = j + own_column();
    __shared__ Slice own;
    REAL sums[PAIRINGS ? PAIRINGS : 1][WIDE][WIDE];
    PAIR_ALL(plan, own, i, j, own_i, own_j, sums);
#pragma unroll
    for (int m = 0; m < WIDE; ++m)
#pragma unroll
        for (int c = 0; c < WIDE; ++c) values[m][c] = EVALUATE(plan, own_i + SIDE * m, own_j + SIDE * c, m, c, sums);
}

// Rows [i0, i1) × columns [j0, j1) into `out`.
extern "C" __global__ void __launch_bounds__(SIDE* SIDE, 2)
    entries(const Index* at, const REAL* numbers, Index rows, Index columns, Index i0, Index i1, Index j0, Index j1,
            REAL* out) {
    const Plan plan{at, numbers, rows, columns};
    const Index i = i0 + Index(blockIdx.y) * TILE, j = j0 + Index(blockIdx.x) * TILE;
    const int tx = own_column(), ty = own_row();
    REAL values[WIDE][WIDE];
    tile(plan, i, j, values);
    for (int m = 0; m < WIDE; ++m)
        for (int c = 0; c < WIDE; ++c) {
            const Index row = i + ty + SIDE * m, column = j + tx + SIDE * c;
            if (row < i1 && column < j1) out[(row - i0) * (j1 - j0) + column - j0] = values[m][c];
        }
}

// Rows [i0, i1) times v, over the columns from bounds[s] to bounds[s + 1], into row i - i0 of part s of `out`; the first
// entry of v belongs to column j0.
template <int R>
__device__ void multiply(const Plan& plan, Index i0, Index i1, Index j0, const Index* bounds, const REAL* v,
                         double* out) {
    __shared__ double lanes[SIDE * SIDE];
    const Index i = i0 + Index(blockIdx.x) * TILE, end = bounds[blockIdx.y + 1];
    const int tx = own_column(), ty = own_row();
    double sums[WIDE][R] = {};
    for (Index j = bounds[blockIdx.y]; j < end; j += TILE) {
        REAL values[WIDE][WIDE], weights[WIDE][R];
        tile(plan, i, j, values);
        for (int c = 0; c < WIDE; ++c)
            for (int r = 0; r < R; ++r) {
                const Index column = j + tx + SIDE * c;
                weights[c][r] = column < end ? v[(column - j0) * R + r] : REAL(0);
            }
        for (int m = 0; m < WIDE; ++m)
            for (int r = 0; r < R; ++r) {
                REAL sum = 0;
                // Beyond the last column an entry may be no number, which a weight of 0 does not hide.
                for (int c = 0; c < WIDE; ++c)
                    if (j + tx + SIDE * c < end) sum += values[m][c] * weights[c][r];
                sums[m][r] += sum;
            }
    }
    for (int m = 0; m < WIDE; ++m)
        for (int r = 0; r < R; ++r) {
            __syncthreads();
            lanes[ty * SIDE + tx] = sums[m][r];
            __syncthreads();
            const Index row = i + ty + SIDE * m;
            if (tx == 0 && row < i1) {
                double sum = 0;
                for (int lane = 0; lane < SIDE; ++lane) sum += lanes[ty * SIDE + lane];
                out[((i1 - i0) * blockIdx.y + row - i0) * R + r] = sum;
            }
        }
}

#define MULTIPLY(R)                                                                                                \
    extern "C" __global__ void __launch_bounds__(SIDE* SIDE, R == 1 ? 2 : 1)                                       \
        multiply##R(const Index* at, const REAL* numbers, Index rows, Index columns, Index i0, Index i1, Index j0, \
                    const Index* bounds, const REAL* v, double* out) {                                             \
        multiply<R>(Plan{at, numbers, rows, columns}, i0, i1, j0, bounds, v, out);                                 \
    }
MULTIPLY(1)
MULTIPLY(4)
