// Rows [i0, i1) × columns [j0, j1) into `out`. Long dot products that are entries are added there, some slices at a time.
extern "C" __global__ void __launch_bounds__(SIDE* SIDE, 2)
    entries(const Index* at, const REAL* numbers, Index rows, Index columns, Index i0, Index i1, Index j0, Index j1,
            REAL* out) {
    const Plan plan{at, numbers, rows, columns};
    const Index i = begin(i0) + Index(blockIdx.y) * TILE, j = begin(j0) + Index(blockIdx.x) * TILE;
    const int tx = own_column(), ty = own_row();
    __shared__ Shared own;
    Flow flow = started(plan, i);
    const int slices = APART ? (int(plan.at[2]) + DEEP - 1) / DEEP : 1;
    for (; flow.from < slices; flow.from += TENSOR_SLICES) {
        REAL values[WIDE][WIDE];
        tile(plan, own, flow, i, j, values);
#pragma unroll
        for (int m = 0; m < WIDE; ++m)
#pragma unroll
            for (int c = 0; c < WIDE; ++c) {
                const Index row = i + row_of(ty, m), column = j + column_of(tx, c);
                if (row < i0 || row >= i1 || column < j0 || column >= j1) continue;
                REAL& entry = out[(row - i0) * (j1 - j0) + column - j0];
                entry = APART && flow.from ? entry + values[m][c] : values[m][c];
            }
    }
}
