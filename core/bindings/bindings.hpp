// What all bindings share. A binding checks its arrays, releases the interpreter lock, and never calls Python back.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>

#include "engine.hpp"

namespace mercer {

namespace nb = nanobind;
using namespace nb::literals;

// Arrays that are only read may have any type that the function checks for; arrays that are written are the caller's
// own.
using Input = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<nb::c_contig, nb::device::cpu>;
template <class T, int Dimensions>
using Array = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
using Index = Array<const int64_t, 1>;

// The instruction set of that name; the machine's best if the name is empty.
const InstructionSet& find_isa(const std::string& name);

// No argument may crash the process: a ValueError says which one does not fit.
inline void require(bool ok, const char* what) {
    if (!ok) throw nb::value_error(what);
}

template <class A>
bool has_type(const A& a, bool is_double) {
    return a.dtype() == (is_double ? nb::dtype<double>() : nb::dtype<float>());
}

// Each adds the functions of one part to the module. Functions with more than four arguments take them by name.
void bind_band(nb::module_& m);
void bind_coordinates(nb::module_& m);
void bind_groups(nb::module_& m);
void bind_online(nb::module_& m);
void bind_quantised(nb::module_& m);
void bind_sequences(nb::module_& m);
void bind_smo(nb::module_& m);
void bind_tiles(nb::module_& m);

}  // namespace mercer
