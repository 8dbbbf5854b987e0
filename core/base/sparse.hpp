// Products of sparse rows, by the features that they share.
#pragma once
#include <algorithm>
#include <cstdint>

#include "engine.hpp"

namespace mercer {

// Numbers by row, or numbers by feature.
template <typename T>
struct Sparse {
    const int64_t* start;
    const int32_t* index;
    const T* value;
};

// out[i, j] += weight * sum over features f of x[i, f] z[f, j] for rows [i0, i1). If `triangle`, z is x, and only j >=
// i are computed.
template <typename T>
void add_products(const Sparse<T>& x, const Sparse<T>& z, double weight, bool triangle, int64_t i0, int64_t i1,
                  double* out, int64_t stride) {
    parallel(i1 - i0, [&](int64_t task) {
        const int64_t i = i0 + task;
        double* row = out + i * stride;
        for (int64_t e = x.start[i]; e < x.start[i + 1]; ++e) {
            const double c = weight * x.value[e];
            const int32_t* begin = z.index + z.start[x.index[e]];
            const int32_t* end = z.index + z.start[x.index[e] + 1];
            if (triangle) begin = std::lower_bound(begin, end, int32_t(i));
            const T* value = z.value + (begin - z.index);
            for (; begin < end; ++begin, ++value) row[*begin] += c * *value;
        }
    });
}

}  // namespace mercer
