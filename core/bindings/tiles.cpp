// Python bindings of the tile engine.
#include "bindings/tiles.hpp"

#include <utility>

namespace mercer {
namespace {

constexpr double kMaxPower = 1 << 20;
constexpr int64_t kMaxSide = int64_t(1) << 40;  // so that no size overflows

// The parts of a plan in the engine's structures, each one checked.
struct Parts {
    std::vector<PairingSpec> pairings;
    std::vector<DistanceSpec> norms;
    std::vector<const void*> row_values, column_values;
    std::vector<Instruction> program;

    void add_pairing(const PairingArgument& pairing, int64_t rows, int64_t columns) {
        const auto& [kind, a, b, origin] = pairing;
        require(kind >= 0 && kind < kPairings, "unknown pairing");
        require(a.ndim() == 2 && b.ndim() == 2 && a.shape(1) == b.shape(1), "a pairing's two sides differ in width");
        require(int64_t(a.shape(0)) == rows && int64_t(b.shape(0)) == columns, "a pairing's sides do not fit the plan");
        require(a.shape(1) >= 1 && a.shape(1) < (1u << 30), "a pairing needs at least one feature");
        pairings.push_back({kind, int64_t(a.shape(1)), given(a), given(b), at_origin(origin, a.shape(1)), nullptr});
    }

    static RowsSpec given(const Input& rows) {
        const bool is_double = has_type(rows, true);
        require(is_double || has_type(rows, false), "a pairing's rows are neither float nor double");
        return {rows.data(), is_double};
    }

    static const double* at_origin(const std::optional<Vector>& origin, size_t depth) {
        require(!origin || origin->shape(0) == depth, "an origin does not fit the rows");
        return origin ? origin->data() : nullptr;
    }

    void add_norms(const DistanceArgument& argument, bool is_double, int64_t rows, int64_t columns) {
        const auto& [at, origin, row_norms, column_norms, rounding, promise, slow, fast, root] = argument;
        require(at >= 0 && size_t(at) < pairings.size() && pairings[size_t(at)].kind == kSqdist,
                "norms belong to squared distances only");
        const double* moved_by = at_origin(origin, size_t(pairings[size_t(at)].depth));
        for (auto [norm, length] : {std::pair{&row_norms, rows}, std::pair{&column_norms, columns}})
            require(has_type(*norm, is_double) && norm->ndim() == 1 && int64_t(norm->shape(0)) == length,
                    "norms do not fit the plan");
        norms.push_back({moved_by, row_norms.data(), column_norms.data(), rounding, promise, slow, fast, root});
        pairings[size_t(at)].norms = &norms.back();
    }

    static void add_value(std::vector<const void*>& to, const Input& value, bool is_double, int64_t length) {
        require(has_type(value, is_double) && value.ndim() == 1 && int64_t(value.shape(0)) == length,
                "a row or column value does not fit");
        to.push_back(value.data());
    }

    void add_instruction(const InstructionArgument& instruction, int registers, int constants) {
        const auto& [op, target, a, b, c, k0, k1] = instruction;
        require(op >= 0 && op < kOperations && target >= 0 && target < registers, "unknown instruction");
        require_exponent(op, k0);
        Instruction s{op, target, {}, {}, k0, k1};
        const OperandArgument* all[] = {&a, &b, &c};
        const int limit[] = {registers, int(row_values.size()), int(column_values.size()), constants};
        for (int i = 0; i < 3; ++i) {
            const auto [kind, index] = *all[i];
            if (kind == kNothing) continue;  // an operand that the operation does not read
            require(kind >= kRegister && kind <= kConstant && index >= 0 && index < limit[kind],
                    "an operand does not exist");
            s.kind[i] = kind, s.index[i] = index;
        }
        program.push_back(s);
    }

    static void require_exponent(int op, double k0) {
        require(op != kPowInteger || (k0 == double(int64_t(k0 > -kMaxPower && k0 < kMaxPower ? k0 : 0.5))),
                "an exponent is not a small integer");
    }
};

void require_range(int64_t from, int64_t to, int64_t size) {
    require(0 <= from && from < to && to <= size, "an empty or impossible range");
}

}  // namespace

Tiles::Tiles(bool is_double, int64_t rows, int64_t columns, const std::vector<PairingArgument>& pairings,
             const std::vector<Input>& row_values, const std::vector<Input>& column_values,
             const std::vector<double>& constants, const std::vector<InstructionArgument>& program, int registers,
             int result, std::optional<Index> self_pairs, const std::string& isa,
             const std::vector<DistanceArgument>& norms)
    : double_(is_double), n_(rows), m_(columns) {
    require(rows > 0 && columns > 0 && rows < kMaxSide && columns < kMaxSide,
            "a plan needs at least one row and one column");
    require(registers >= 1 && registers <= kMaxRegisters && pairings.size() <= size_t(registers), "too many registers");
    require(result >= 0 && result < registers, "the result's register does not exist");
    require(!self_pairs || int64_t(self_pairs->shape(0)) == rows, "one self-pair for each row");
    Parts p;
    for (const PairingArgument& one : pairings) p.add_pairing(one, rows, columns);
    p.norms.reserve(norms.size());  // so that pointers to them stay valid
    for (const DistanceArgument& one : norms) p.add_norms(one, is_double, rows, columns);
    for (const Input& one : row_values) Parts::add_value(p.row_values, one, is_double, rows);
    for (const Input& one : column_values) Parts::add_value(p.column_values, one, is_double, columns);
    for (const InstructionArgument& one : program) p.add_instruction(one, registers, int(constants.size()));
    const Plan plan{.is_double = is_double,
                    .rows = rows,
                    .columns = columns,
                    .pairings = int(pairings.size()),
                    .pairing = p.pairings.data(),
                    .row_values = int(row_values.size()),
                    .column_values = int(column_values.size()),
                    .constants = int(constants.size()),
                    .registers = registers,
                    .instructions = int(program.size()),
                    .row_value = p.row_values.data(),
                    .column_value = p.column_values.data(),
                    .constant = constants.data(),
                    .instruction = p.program.data(),
                    .result = result,
                    .self_pairs = self_pairs ? self_pairs->data() : nullptr};
    const InstructionSet& set = find_isa(isa);
    nb::gil_scoped_release free;
    engine_.reset(set.make(plan));
}

bool Tiles::has_shape(const Output& out, int64_t rows, int64_t columns) const {
    return has_type(out, double_) && out.ndim() == 2 && int64_t(out.shape(0)) == rows &&
           int64_t(out.shape(1)) == columns;
}

void Tiles::require_vectors(const Input& v) const {
    require(has_type(v, double_) && v.ndim() == 2 && int64_t(v.shape(0)) == m_ && v.shape(1) >= 1,
            "the vectors do not fit");
}

void Tiles::block(int64_t i0, int64_t i1, int64_t j0, int64_t j1, Output out) const {
    require_range(i0, i1, n_);
    require_range(j0, j1, m_);
    require(has_shape(out, i1 - i0, j1 - j0), "the output does not fit the block");
    nb::gil_scoped_release free;
    engine_->block(i0, i1, j0, j1, out.data(), j1 - j0);
}

void Tiles::gram(int64_t i0, int64_t i1, Output out) const {
    require_range(i0, i1, n_);
    require(n_ == m_ && i0 % row_block() == 0, "a symmetric Gram matrix is square and starts on a block");
    require(has_shape(out, n_, m_), "the output is not n x n");
    nb::gil_scoped_release free;
    engine_->gram(i0, i1, out.data(), m_);
}

void Tiles::upper(int64_t i0, int64_t i1, Output out) const {
    require_range(i0, i1, n_);
    require(n_ == m_ && on_block(i0, n_) && on_block(i1, n_), "block rows are a symmetric matrix's, whole ones");
    const int64_t last = (n_ - 1) / row_block() * row_block();
    require(has_type(out, double_) && out.ndim() == 1 &&
                int64_t(out.shape(0)) == upper_start(last, n_, row_block()) + (n_ - last) * (n_ - last),
            "the output does not fit the block rows");
    nb::gil_scoped_release free;
    engine_->upper(i0, i1, out.data());
}

void Tiles::multiply(int64_t i0, int64_t i1, int64_t j0, int64_t j1, Input v, Array<double, 2> out,
                     bool symmetric) const {
    require_range(i0, i1, n_);
    require_range(j0, j1, m_);
    require(!symmetric || n_ == m_, "a symmetric product is square");
    require(on_block(i0, n_) && on_block(j0, m_) && on_block(j1, m_) && (!symmetric || on_block(i1, n_)),
            "a product starts and ends on blocks");
    require_vectors(v);
    require(int64_t(out.shape(0)) == (symmetric ? n_ : i1 - i0) && out.shape(1) == v.shape(1),
            "the output does not fit");
    nb::gil_scoped_release free;
    engine_->multiply(i0, i1, j0, j1, v.data(), int64_t(v.shape(1)), out.data(), symmetric);
}

void Tiles::normal_product(int64_t i0, int64_t i1, Input v, std::optional<Vector> weights, Array<double, 2> out) const {
    require_range(i0, i1, n_);
    require(on_block(i0, n_) && on_block(i1, n_), "a product starts and ends on blocks");
    require_vectors(v);
    require(!weights || int64_t(weights->shape(0)) == n_, "one weight per row");
    require(int64_t(out.shape(0)) == m_ && out.shape(1) == v.shape(1), "the output does not fit");
    nb::gil_scoped_release free;
    engine_->normal_product(i0, i1, v.data(), int64_t(v.shape(1)), weights ? weights->data() : nullptr, out.data());
}

void Tiles::group_sums(int64_t i0, int64_t i1, Index start, std::optional<Input> weights, Array<double, 2> out) const {
    require_range(i0, i1, n_);
    const int64_t groups = int64_t(start.shape(0)) - 1;
    require(groups >= 1 && int64_t(out.shape(0)) == i1 - i0 && int64_t(out.shape(1)) == groups,
            "the output does not fit");
    require(start(0) == 0 && start(size_t(groups)) == m_, "the groups do not cover the columns");
    for (int64_t g = 0; g < groups; ++g)
        require(start(size_t(g)) <= start(size_t(g + 1)), "the groups are not in order");
    if (weights)
        require(has_type(*weights, double_) && weights->ndim() == 1 && int64_t(weights->shape(0)) == m_,
                "one weight per column");
    nb::gil_scoped_release free;
    engine_->group_sums(i0, i1, start.data(), groups, weights ? weights->data() : nullptr, out.data());
}

namespace {

// Applies one operation to an array, so that tests can measure its error.
void evaluate_array(int op, double k0, double k1, Input in, Output out, const std::string& isa) {
    const bool is_double = in.dtype() == nb::dtype<double>();
    require(op >= 0 && op < kOperations && kOperandsRead[op] == 1 && op != kGaussFromSqdist,
            "not an operation on one operand");
    Parts::require_exponent(op, k0);
    require((is_double || in.dtype() == nb::dtype<float>()) && in.dtype() == out.dtype() && in.size() == out.size(),
            "arrays differ");
    find_isa(isa).evaluate(op, is_double, k0, k1, in.data(), out.data(), int64_t(in.size()));
}

}  // namespace

void bind_tiles(nb::module_& m) {
    m.def("evaluate", &evaluate_array, nb::kw_only(), "op"_a, "k0"_a, "k1"_a, "x"_a, "out"_a.noconvert(), "isa"_a = "");
    // noconvert: an output of another type or layout would be copied, and the result would be lost
    nb::class_<Tiles>(m, "Tiles")
        .def(nb::init<bool, int64_t, int64_t, const std::vector<PairingArgument>&, const std::vector<Input>&,
                      const std::vector<Input>&, const std::vector<double>&, const std::vector<InstructionArgument>&,
                      int, int, std::optional<Index>, const std::string&, const std::vector<DistanceArgument>&>(),
             nb::kw_only(), "is_double"_a, "rows"_a, "columns"_a, "pairings"_a, "row_values"_a, "column_values"_a,
             "constants"_a, "program"_a, "registers"_a, "result"_a, "self_pairs"_a.noconvert() = nb::none(),
             "isa"_a = "", "norms"_a = std::vector<DistanceArgument>())
        .def_prop_ro("row_block", &Tiles::row_block)
        .def("block", &Tiles::block, "i0"_a, "i1"_a, "j0"_a, "j1"_a, nb::kw_only(), "out"_a.noconvert())
        .def("gram", &Tiles::gram, "i0"_a, "i1"_a, "out"_a.noconvert())
        .def("upper", &Tiles::upper, "i0"_a, "i1"_a, "out"_a.noconvert())
        .def("multiply", &Tiles::multiply, "i0"_a, "i1"_a, "j0"_a, "j1"_a, nb::kw_only(), "v"_a, "out"_a.noconvert(),
             "symmetric"_a)
        .def("normal_product", &Tiles::normal_product, "i0"_a, "i1"_a, nb::kw_only(), "v"_a, "weights"_a.none(),
             "out"_a.noconvert())
        .def("group_sums", &Tiles::group_sums, "i0"_a, "i1"_a, nb::kw_only(), "start"_a.noconvert(), "weights"_a.none(),
             "out"_a.noconvert());
}

}  // namespace mercer
