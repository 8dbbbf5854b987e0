// What the parts of the Python module share: arrays in, arrays out, the interpreter lock released, Python never called
// back.
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

using Input = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<nb::c_contig, nb::device::cpu>;
using Index = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A plan of the tile engine as the other parts see it.
class Planned {
   public:
    virtual ~Planned() = default;
    virtual bool is_double() const = 0;
    virtual int64_t rows() const = 0;
    virtual int64_t columns() const = 0;
    virtual Engine& engine() const = 0;
};

// The instruction set of that name; the machine's best for the empty one.
const InstructionSet& find_isa(const std::string& name);

// Functions of one topic each, declared to the module.
void bind_online(nb::module_& m);

// Nothing that Python hands over may crash the process: what is not so is a ValueError.
inline void require(bool ok, const char* what) {
    if (!ok) throw nb::value_error(what);
}

void bind_sequences(nb::module_& m);

template <class A>
bool has_type(const A& a, bool is_double) {
    return a.dtype() == (is_double ? nb::dtype<double>() : nb::dtype<float>());
}

void bind_coordinates(nb::module_& m);
void bind_dual(nb::module_& m);
void bind_quantised(nb::module_& m);
void bind_groups(nb::module_& m);
void bind_band(nb::module_& m);

}  // namespace mercer
