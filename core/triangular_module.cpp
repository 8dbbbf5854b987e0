// The Python face of substitution with a triangular factor.
#include <cstdint>
#include <string>

#include "bindings.hpp"

namespace mercer {
namespace {

void cholesky_solve(Input upper, Output x, const std::string& isa) {
    const bool is_double = has_type(upper, true);
    require(upper.ndim() == 2 && (is_double || has_type(upper, false)), "the factor is no matrix of floats");
    require(upper.shape(0) == upper.shape(1), "the factor is not square");
    require(x.ndim() == 2 && has_type(x, is_double) && x.shape(0) == upper.shape(0), "the columns do not fit the factor");
    const TriangularSpec spec{is_double, int64_t(upper.shape(0)), int64_t(x.shape(1)), upper.data(), x.data()};
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    set.cholesky_solve(spec);
}

}  // namespace

void bind_triangular(nb::module_& m) {
    m.def("cholesky_solve", &cholesky_solve, "upper"_a.noconvert(), "x"_a.noconvert(), "isa"_a = "");
}

}  // namespace mercer
