// The logarithm of the global alignment kernel, for one series against as many others as a vector has lanes.

// M(i, j) = k(x_i, z_j) (M(i - 1, j) + M(i, j - 1) + M(i - 1, j - 1)) over nx x nz places, with k = g / (2 - g) and g =
// exp(-gamma |x_i - z_j|^2), after M. Cuturi (2011). In logarithms, because products of hundreds of factors leave the
// range of double. z has an element for each place j, coordinate c and lane; `length` has one for each lane; `row` has
// nz + 1 vectors.
void alignments(const double* x, int64_t nx, const double* z, int64_t nz, const int64_t* length, int64_t depth,
                double gamma, double* row, double* out) {
    using V = Vec<double>;
    constexpr int W = Simd<double>::W;
    const V nothing = splat<double>(-1e300);  // stands for log 0; an infinity less itself would be NaN
    for (int64_t j = 0; j <= nz; ++j) store(row + j * W, j ? nothing : V{});
    for (int64_t i = 0; i < nx; ++i) {
        V corner = load(row), left = nothing;
        store(row, nothing);
        for (int64_t j = 0; j < nz; ++j) {
            V square{};
            for (int64_t c = 0; c < depth; ++c) {
                const V difference = load(z + (j * depth + c) * W) - x[i * depth + c];
                square += difference * difference;
            }
            const V exponent = square * -gamma;
            const V local = exponent - vlog(2.0 - vexp(exponent));
            const V above = load(row + (j + 1) * W);
            const V most = vmax(vmax(above, left), corner);
            const V sum = vexp(above - most) + vexp(left - most) + vexp(corner - most);
            left = local + most + vlog(sum);
            corner = above;
            store(row + (j + 1) * W, left);
        }
    }
    for (int lane = 0; lane < W; ++lane) out[lane] = row[length[lane] * W + lane];
}
