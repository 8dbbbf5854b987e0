// The interface of the core, which is the same for every instruction set: what the Python bindings call, and the
// structures that they fill.
#pragma once
#include <cstdint>

#include "opcodes.hpp"  // generated from src/mercer/engine/opcodes.py
#include "base/team.hpp"

namespace mercer {

// Rows as the caller has them, row-major, in float or double. The engine converts them while it packs them, without
// another copy.
struct RowsSpec {
    const void* at;
    bool is_double;
};

// Squared distances by norms of rows less a common origin: see pairing/distances.inl.
struct DistanceSpec {
    const double* origin;                  // null is 0
    const void *row_norms, *column_norms;  // squared, of rows less the origin, in the type of the plan
    double rounding;                       // a distance has an error of at most this times the sum of its norms
    double promise;                        // how large its relative error may be, or the error of the kernel
    // The kernel's derivative is at most fast (1 + root slow s)^(-1/root), or fast e^(-slow s) if root is 0. If it has
    // no such bound, slow is 0 and fast infinite.
    double slow, fast, root;
};

struct PairingSpec {
    int kind;
    int64_t depth;
    RowsSpec a, b;              // n x depth and m x depth
    const double* origin;       // subtracted from both; null is 0
    const DistanceSpec* norms;  // may be null
};

// reg[target] = op of up to three operands, each of a kind and with an index within that kind.
struct Instruction {
    int op, target;
    int kind[3], index[3];
    double k0, k1;
};

// A plan: n rows against m columns. The engine reads all arrays during its construction only.
struct Plan {
    bool is_double;
    int64_t rows, columns;
    int pairings;
    const PairingSpec* pairing;
    int row_values, column_values, constants, registers, instructions;
    const void* const* row_value;     // each n long
    const void* const* column_value;  // each m long
    const double* constant;
    const Instruction* instruction;
    int result;                 // the register with the value of the kernel
    const int64_t* self_pairs;  // for each row the column that is the same point, or -1; may be null
};

// Where the block row of row i begins, if block rows, each from the diagonal on, are stored one after the other.
constexpr int64_t upper_start(int64_t i, int64_t n, int64_t row_block) { return i * n - i * (i - row_block) / 2; }

class Engine {
   public:
    // Defined in one file: otherwise each instruction set would have its own tables, and the linker would choose one.
    virtual ~Engine();
    virtual int64_t row_block() const = 0;
    // rows [i0, i1) x columns [j0, j1) into out[(i - i0) * stride + (j - j0)]
    virtual void block(int64_t i0, int64_t i1, int64_t j0, int64_t j1, void* out, int64_t stride) = 0;
    // rows [i0, i1) and, by symmetry, the same columns, into the whole n x n matrix `out`; i0 a multiple of row_block()
    virtual void gram(int64_t i0, int64_t i1, void* out, int64_t stride) = 0;
    // the same rows from the diagonal blocks on, each block row contiguous at upper_start of its first row; i0 and i1
    // are multiples of row_block(), or the end
    virtual void upper(int64_t i0, int64_t i1, void* out) = 0;
    // out (float64, r wide) += K[i0:i1, j0:j1] v[j0:j1], v being m x r. If `symmetric`, out is n x r, entries left of
    // the diagonal blocks are not visited, and those right of them contribute to both of their rows. All ranges end on
    // row blocks, or at the end.
    virtual void multiply(int64_t i0, int64_t i1, int64_t j0, int64_t j1, const void* v, int64_t r, double* out,
                          bool symmetric) = 0;
    // out (float64, m x r) += transpose of K[i0:i1, :] times diag(w[i0:i1]) K[i0:i1, :] v, with each entry computed
    // once; w has n elements, or is null. Ranges end on row blocks, or at the end.
    virtual void normal_product(int64_t i0, int64_t i1, const void* v, int64_t r, const double* w, double* out) = 0;
    // out[i - i0, g] += sum of w_j K[i, j] over columns start[g] <= j < start[g + 1]
    virtual void group_sums(int64_t i0, int64_t i1, const int64_t* start, int64_t groups, const void* w,
                            double* out) = 0;
};

// Problems on rows of one matrix of features, min 1/2 |w|^2 - c'b + epsilon |b| with w = sum of b_t x_t and lower <= b
// <= upper. Variable t of problem p, offset[p] <= t < offset[p + 1], belongs to the row row[t]. Arrays that are not
// const are read and written.
struct LinearDualBatch {
    bool is_double;
    const void* features;  // n x width
    int64_t width, problems;
    const int64_t *offset, *row;
    const double *square, *linear, *lower, *upper;  // square: |x|^2 of each row of features
    double epsilon;
    double *beta, *w;  // w: problems x width
    int64_t* order;    // of the variables within their problem; active ones come first
    // For each problem: how many variables are active, how many of these this pass has visited, how many passes are
    // over.
    int64_t* place;
    double* level;  // for each problem: the largest violation in this pass, and in the last one
    int64_t* random;
    const double* tol;  // for each problem
    int64_t work;       // variables that each problem may visit in this call
    int64_t* ended;
};
using RunCoordinates = void (*)(const LinearDualBatch&);
// Problems that share one matrix K: min 1/2 b'Kb - c'b + epsilon |b| with lower <= b <= upper and the sum of b fixed.
// Variable t of problem p, offset[p] <= t < offset[p + 1], belongs to the row row[t] of K. From split[p] on, the
// variables are a second group with a fixed sum of its own. The caller owns all arrays; those that are not const are
// read and written.
struct DualBatch {
    bool is_double;
    const void* matrix;  // null: `tiles` compute the entries of each problem
    int64_t rows;
    Engine* tiles;
    int64_t problems;
    const int64_t *offset, *split, *row;
    const double *lower, *upper;
    double epsilon;
    double *beta, *gradient;           // gradient: c - Kb, of the active variables
    double *anchor, *anchor_gradient;  // an earlier b, and all gradients at it
    uint8_t* active;
    double tol;
    // How many steps each problem may take in all, how many entries it may visit in this call, and bytes for the rows
    // of each thread.
    int64_t limit, work, cache;
    double* gap;
    int64_t *steps, *ended;
};
using RunDual = void (*)(const DualBatch&);

using MakeEngine = Engine* (*)(const Plan&);
using Evaluate = void (*)(int op, bool is_double, double k0, double k1, const void* in, void* out, int64_t n);

constexpr int64_t kSubsequenceColumns = 96;  // of a block: three levels of 8 lanes are 18 kB
// Vectors of work for a sequence of nx symbols.
constexpr int64_t subsequence_work(int64_t nx, int length) {
    return (length - 1) * (kSubsequenceColumns + (nx + 1) / 2 * 4);
}
using Subsequences = void (*)(const int32_t* x, int64_t nx, const int64_t* z, int64_t nz, int length, double decay,
                              bool exact, double* work, double* out);
using Alignments = void (*)(const double* x, int64_t nx, const double* z, int64_t nz, const int64_t* length,
                            int64_t depth, double gamma, double* work, double* out);

// Compares windows of a piece of x with all those of the sequences [first, last) of z: sums[j] += the worth of each
// pair's matches. A piece has at most kMatchedRows + kLongestComparedWindow - 1 symbols, so that a byte tells them
// apart.
constexpr int64_t kMatchedRows = 128;
constexpr int64_t kMatchPad = 64;                       // between sequences of z: the widest vector
constexpr uint8_t kOtherSymbol = 254, kNoSymbol = 255;  // no symbol of x
struct MatchTask {
    const uint8_t* x;
    int64_t windows;
    const uint8_t* z;
    const int8_t* unknown;      // -1 where no window begins
    const int64_t *at, *count;  // of each sequence of z: where it begins, and its windows
    int64_t first, last;
    int span, least, planes, segments;  // fewer matches than `least` are worth nothing
    const uint8_t* tables;  // planes x segments x 16: byte `plane` of what least + 16 * segment + i matches are worth
    uint64_t* sums;
};
using Matches = void (*)(const MatchTask&);

// A chunk of rows for budgeted stochastic gradient descent: see solvers/online.inl. void is float or double.
struct MergeTask {
    bool is_double;
    int64_t rows, depth, outputs, budget, slots;  // slots = budget + 1
    double alpha, gamma;
    const int64_t* labels;  // of the rows; 0 or 1 with one output
    const void* x;          // rows x depth
    const void* own;        // rows x rows: distances within the chunk
    void* near;             // slots x rows: those from the dictionary, the first `used` rows given
    void* z;                // slots x depth: the dictionary
    double *b, *u;          // slots x outputs: coefficients, and what their sum over all rows seen lacks of t * b
    int64_t used, t;        // in and out: slots in use, rows seen
    int64_t mistakes, updates, merges, removals;  // out: are added to
    double loss;
};

// out (n x r) += the blocks [first, last) of a symmetric n x n matrix in 16 bits times v (n x r): see
// solvers/quantised.inl.
struct QuantisedSpec {
    const int16_t* entries;
    const int64_t* start;  // where each block begins
    const double* step;    // of each block
    int64_t n, r, first, last;
    const float* v;
    double* out;
};
using Quantise = void (*)(const float* x, int64_t rows, int64_t columns, const uint32_t* seeds, int16_t* out,
                          double* centre, double* step);
using QuantisedProduct = void (*)(const QuantisedSpec&);

// A symmetric matrix of `blocks` times kBand rows that is reduced to a band: see solvers/band.inl. All arrays begin on
// multiples of 64 bytes.
struct BandSpec {
    int64_t blocks, step;
    double* slabs;           // the lower triangle, from the diagonal tile of each block of columns downwards
    double *upper, *factor;  // out: kBand x kBand, the tile of B below the diagonal, and T of the reflectors
    double* pending;         // 4 tiles for each block: what the next step does first
};
struct VectorSpec {
    int64_t blocks, first, last;
    const double *slabs, *factors;
    double* out;  // Qᵀ, of which the rows of the blocks [first, last) are written
};
struct FactorSpec {
    int64_t blocks, shifts;
    const double *diagonal, *upper;  // tiles of B on the diagonal and below it
    const double* shift;
    double *below, *inverse;  // of each shift and block, zeros at first: -L[k, k - 1], and L[k, k]⁻¹
    uint8_t* definite;        // of each shift: whether there is such an L
};
struct NormSpec {
    int64_t blocks, shifts;
    const double* vectors;          // Qᵀ
    const double *below, *inverse;  // as above
    double* out;                    // shifts x rows
};
using BandReduce = void (*)(const BandSpec&);
using BandVectors = void (*)(const VectorSpec&);
using BandFactors = void (*)(const FactorSpec&);
using BandLengths = void (*)(const NormSpec&);

// out[place[t]] += weight[t] matrix[row[t]], for one t after the other, in double; `out` is places x width. A null
// weight is 1.
struct RowSums {
    bool is_double;
    const void* matrix;
    int64_t width, count, places;
    const int64_t *row, *place;
    const double* weight;
    double* out;
};

// Distances D[i][c] = max(sums[c][i] slope[c] + offset[c] + diagonal[i], 0) of rows from means; infinite if the offset
// is. The result for each row: the first mean within `rounding` of the smallest distance, its distance, and the
// distance of the mean of the row's label.
struct MeanDistances {
    int64_t rows, groups;
    const double *sums, *slope, *offset, *diagonal;
    const int64_t* labels;
    double rounding;
    double *own, *left;
    int64_t* nearest;
};

struct InstructionSet {
    const char* name;
    MakeEngine make;
    Evaluate evaluate;  // one elementary function over an array, for the tests of its error
    int lanes;          // sequences that the next two take at once, interleaved
    Subsequences subsequences;
    Alignments alignments;
    Matches matches;
    int match_lanes;  // windows that it compares at once
    RunCoordinates coordinates;
    RunDual smo;
    void (*merge_pass)(MergeTask&);
    Quantise quantise;
    QuantisedProduct quantised_product;
    void (*add_rows)(const RowSums&);
    void (*nearest_means)(const MeanDistances&);
    BandReduce band_step;
    BandVectors band_vectors;
    BandFactors band_factors;
    BandLengths band_norms;
};

InstructionSet baseline();
#if defined(MERCER_X86)
InstructionSet x86_64_v3();
#endif
#if defined(MERCER_AVX512)
InstructionSet x86_64_v4();
#endif

}  // namespace mercer
