// A plan of the tile engine, as Python sees it. Each method checks its arrays against the plan.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"

namespace mercer {

using Vector = Array<const double, 1>;
using PairingArgument = std::tuple<int, Input, Input, std::optional<Vector>>;  // kind, a, b, origin
// (which pairing, origin, row norms, column norms, rounding, promise, slow, fast, root)
using DistanceArgument = std::tuple<int, std::optional<Vector>, Input, Input, double, double, double, double, double>;
using OperandArgument = std::tuple<int, int>;
using InstructionArgument = std::tuple<int, int, OperandArgument, OperandArgument, OperandArgument, double, double>;

class Tiles {
   public:
    Tiles(bool is_double, int64_t rows, int64_t columns, const std::vector<PairingArgument>& pairings,
          const std::vector<Input>& row_values, const std::vector<Input>& column_values,
          const std::vector<double>& constants, const std::vector<InstructionArgument>& program, int registers,
          int result, std::optional<Index> self_pairs, const std::string& isa,
          const std::vector<DistanceArgument>& norms);

    bool is_double() const { return double_; }
    int64_t rows() const { return n_; }
    int64_t columns() const { return m_; }
    int64_t row_block() const { return engine_->row_block(); }
    Engine& engine() const { return *engine_; }

    void block(int64_t i0, int64_t i1, int64_t j0, int64_t j1, Output out) const;
    void gram(int64_t i0, int64_t i1, Output out) const;
    void upper(int64_t i0, int64_t i1, Output out) const;
    void multiply(int64_t i0, int64_t i1, int64_t j0, int64_t j1, Input v, Array<double, 2> out, bool symmetric) const;
    void normal_product(int64_t i0, int64_t i1, Input v, std::optional<Vector> weights, Array<double, 2> out) const;
    void group_sums(int64_t i0, int64_t i1, Index start, std::optional<Input> weights, Array<double, 2> out) const;

   private:
    bool on_block(int64_t at, int64_t size) const { return at == size || at % row_block() == 0; }
    bool has_shape(const Output& out, int64_t rows, int64_t columns) const;
    void require_vectors(const Input& v) const;

    bool double_;
    int64_t n_, m_;
    std::unique_ptr<Engine> engine_;
};

}  // namespace mercer
