// The sums of each row over the ACROSS = 4 neighbours that have it, of which each gets a quarter of the rows.
__device__ inline void sum_across(REAL (&rows)[WIDE]) {
#pragma unroll
    for (int half = WIDE / 2, bit = 2; bit; half /= 2, bit /= 2)
#pragma unroll
        for (int m = 0; m < half; ++m) {
            const bool upper = threadIdx.x & bit;
            const REAL given = upper ? rows[m] : rows[m + half];
            rows[m] = (upper ? rows[m + half] : rows[m]) + from_neighbour(given, bit);
        }
}

// Rows [i0, i1) times the R columns of v, over the columns from bounds[s] to bounds[s + 1], into row i - i0 of part s of
// `out`; the first row of v belongs to column j0.
extern "C" __global__ void __launch_bounds__(SIDE* SIDE, 2)
    multiply(const Index* at, const REAL* numbers, Index rows, Index columns, Index i0, Index i1, Index j0,
             const Index* bounds, const REAL* v, double* out) {
    const Plan plan{at, numbers, rows, columns};
    __shared__ Shared own;
    const Index i = begin(i0) + Index(blockIdx.x) * TILE, first = bounds[blockIdx.y], end = bounds[blockIdx.y + 1];
    const int tx = own_column(), ty = own_row();
    Flow flow = started(plan, i);
    double sums[WIDE / ACROSS][R] = {};
    for (Index j = begin(first); j < end; j += TILE) {
        REAL values[WIDE][WIDE];
        flow.next = j + TILE < end ? j + TILE : -1;
        tile(plan, own, flow, i, j, values);
        REAL weights[WIDE][R];
        const REAL* own_v = v + (j - j0) * R;
        if (j >= first && j + TILE <= end) {
#pragma unroll
            for (int c = 0; c < WIDE; ++c)
#pragma unroll
                for (int r = 0; r < R; ++r) weights[c][r] = own_v[column_of(tx, c) * R + r];
        } else {
            rare();
#pragma unroll
            for (int c = 0; c < WIDE; ++c) {
                const int column = column_of(tx, c);
                const bool inside = j + column >= first && j + column < end;
#pragma unroll
                for (int r = 0; r < R; ++r) weights[c][r] = inside ? own_v[column * R + r] : REAL(0);
                // Beyond the last column an entry may be no number, which a weight of 0 does not hide.
                if (!inside)
#pragma unroll
                    for (int m = 0; m < WIDE; ++m) values[m][c] = 0;
            }
        }
#pragma unroll
        for (int r = 0; r < R; ++r) {
            REAL found[WIDE];
#pragma unroll
            for (int m = 0; m < WIDE; ++m) {
                found[m] = 0;
#pragma unroll
                for (int c = 0; c < WIDE; ++c) found[m] += values[m][c] * weights[c][r];
            }
            sum_across(found);
#pragma unroll
            for (int m = 0; m < WIDE / ACROSS; ++m) sums[m][r] += found[m];
        }
    }
#pragma unroll
    for (int m = 0; m < WIDE / ACROSS; ++m)
#pragma unroll
        for (int r = 0; r < R; ++r) {
            __syncthreads();
            own.lanes[ty * SIDE + tx] = sums[m][r];
            __syncthreads();
            const Index row = i + row_of(ty, tx % ACROSS * (WIDE / ACROSS) + m);
            if (tx < ACROSS && row >= i0 && row < i1) {
                double sum = 0;
                for (int lane = tx; lane < SIDE; lane += ACROSS) sum += own.lanes[ty * SIDE + lane];
                out[((i1 - i0) * blockIdx.y + row - i0) * R + r] = sum;
            }
        }
}
