// The Python module: the instruction sets of this machine, the number of threads, and the bindings of each part.
#include <string>
#include <vector>

#include "bindings/bindings.hpp"

namespace mercer {

Engine::~Engine() = default;

namespace {

std::vector<InstructionSet> instruction_sets() {
    std::vector<InstructionSet> found{baseline()};
#if defined(MERCER_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        found.push_back(x86_64_v3());
#endif
#if defined(MERCER_AVX512)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        found.push_back(x86_64_v4());
#endif
    return found;
}

}  // namespace

const InstructionSet& find_isa(const std::string& name) {
    static const std::vector<InstructionSet> sets = instruction_sets();
    if (name.empty()) return sets.back();
    for (const InstructionSet& s : sets)
        if (name == s.name) return s;
    throw nb::value_error(("this machine has no instruction set named '" + name + "'").c_str());
}

namespace {

std::vector<std::string> isa_names() {
    std::vector<std::string> names;
    for (const InstructionSet& s : instruction_sets()) names.emplace_back(s.name);
    return names;
}

}  // namespace
}  // namespace mercer

NB_MODULE(_core, m) {
    m.def("instruction_sets", &mercer::isa_names,
          "Names of the instruction sets that this machine can run, the best one last.");
    m.def("threads", &mercer::threads, "How many threads the next call uses.");
    m.def("bound_threads", &mercer::bound_threads, nanobind::arg("most"),
          "Use no more threads than this, whatever is set elsewhere.");
    mercer::bind_tiles(m);
    mercer::bind_band(m);
    mercer::bind_coordinates(m);
    mercer::bind_groups(m);
    mercer::bind_online(m);
    mercer::bind_quantised(m);
    mercer::bind_sequences(m);
    mercer::bind_smo(m);
}
