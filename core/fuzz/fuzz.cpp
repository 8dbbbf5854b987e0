// libFuzzer over the bindings, as Python calls them: arguments that fit or nearly, hostile numbers, sizes and opcodes.
//
// A call is made of the input's bytes. It must return, or raise ValueError or TypeError, within a second of processor
// time; called twice it must give the same bits, and with another instruction set nearly the same numbers. Each array
// ends where its memory ends, so that the address sanitizer sees what is read or written beyond it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "bindings/bindings.hpp"

extern "C" PyObject* PyInit__core();

namespace {

namespace nb = nanobind;
using namespace nb::literals;
using Shape = std::vector<int64_t>;

// The input, as choices. At its end all choices are 0.
class Choices {
   public:
    Choices(const uint8_t* at, size_t left) : at_(at), left_(left) {}
    uint64_t bytes(int count) {
        uint64_t found = 0;
        for (; count-- && left_; --left_) found = found << 8 | *at_++;
        return found;
    }
    int64_t below(int64_t limit) { return limit > 0 ? int64_t(bytes(limit > 255 ? 2 : 1)) % limit : 0; }
    bool one_in(int64_t many) { return below(many) == many - 1; }
    // From 0, as a rule small, now and then at the border of a vector, and seldom at that of a block or a chunk.
    int64_t size() {
        static const int64_t vectors[] = {0, 1, 15, 16, 17, 32, 33, 47, 48, 49},
                             blocks[] = {64, 65, 192, 193, 257, 385};
        if (one_in(30)) return one_in(30) ? blocks[below(6)] : vectors[below(10)];
        return below(11);
    }
    double number() {
        static const double special[] = {0.0,  -0.0,  1.0,    -1.0, 0.5,      2.0,       1e-300, 1e300,
                                         1e38, -1e38, 5e-324, NAN,  INFINITY, -INFINITY, 1e16,   3.0};
        if (one_in(5)) return special[below(16)];
        if (!one_in(9)) return double(below(64)) / 16 - 2;
        const uint64_t bits = bytes(8);
        double found;
        std::memcpy(&found, &bits, 8);
        return found;
    }
    int64_t integer() {
        static const int64_t special[] = {-1, 0, 1, 2, int64_t(1) << 31, int64_t(1) << 40, INT64_MAX, INT64_MIN};
        return one_in(2) ? special[below(8)] : below(200);
    }

   private:
    const uint8_t* at_;
    size_t left_;
};

// A value that fits, or now and then any.
template <class T>
T nearly(Choices& c, T value) {
    return c.one_in(60) ? T(c.integer()) : value;
}

struct Contents {
    nb::dlpack::dtype type;
    Shape shape;
    std::vector<uint8_t> bytes;
};

template <class T, class F>
Contents made(Choices& c, Shape shape, const F& value) {
    if (c.one_in(90) && !shape.empty()) shape[size_t(c.below(int64_t(shape.size())))] += c.below(3) - 1;
    if (c.one_in(200)) shape.push_back(1);
    for (int64_t& side : shape) side = std::max<int64_t>(side, 0);
    Contents a{nb::dtype<T>(), std::move(shape), {}};
    if (c.one_in(200)) a.type = c.one_in(2) ? nb::dtype<int16_t>() : nb::dtype<float>();
    const int64_t count = std::accumulate(a.shape.begin(), a.shape.end(), int64_t(1), std::multiplies<>());
    const auto values = std::make_unique<T[]>(size_t(count));  // std::vector packs bool
    for (int64_t i = 0; i < count; ++i) values[size_t(i)] = value(i);
    if (count && c.one_in(40)) values[size_t(c.below(count))] = T(c.integer());
    a.bytes.resize(size_t(count) * sizeof(T));
    if (count) std::memcpy(a.bytes.data(), values.get(), a.bytes.size());
    if (a.type != nb::dtype<T>()) a.bytes.resize(size_t(count) * (a.type.bits / 8));
    return a;
}

// A pseudo-random sequence from the input: a matrix of chosen numbers would need an input as long as itself.
uint32_t next(uint32_t& state) { return state = state * 1664525u + 1013904223u; }

// Numbers that are small multiples of 1/16, some of them chosen.
template <class T>
Contents numbers(Choices& c, Shape shape, double least = -2.0) {
    uint32_t state = uint32_t(c.bytes(2));
    Contents a = made<T>(c, std::move(shape), [&](int64_t) { return T(least + double(next(state) >> 26) / 16); });
    const int64_t count = a.type == nb::dtype<T>() ? int64_t(a.bytes.size() / sizeof(T)) : 0;
    for (int64_t left = count && c.one_in(2) ? c.below(4) : 0; left--;) {
        const T value = T(c.number());
        std::memcpy(a.bytes.data() + size_t(c.below(count)) * sizeof(T), &value, sizeof(T));
    }
    return a;
}
Contents reals(Choices& c, bool is_double, Shape shape) {
    return is_double ? numbers<double>(c, std::move(shape)) : numbers<float>(c, std::move(shape));
}
template <class T>
Contents zeros(Choices& c, Shape shape) {
    return made<T>(c, std::move(shape), [](int64_t) { return T(0); });
}
template <class T>
Contents indices(Choices& c, Shape shape, int64_t below) {
    uint32_t state = uint32_t(c.bytes(2));
    return made<T>(c, std::move(shape), [&](int64_t) { return T(below > 0 ? (next(state) >> 8) % below : 0); });
}
// Where `parts` parts of `whole` begin, and the end.
std::vector<int64_t> cuts(Choices& c, int64_t parts, int64_t whole) {
    std::vector<int64_t> at(size_t(parts) + 1, 0);
    for (int64_t i = 1; i < parts; ++i) at[size_t(i)] = c.below(whole + 1);
    at.back() = whole;
    std::sort(at.begin(), at.end());
    return at;
}
int64_t at(const std::vector<int64_t>& values, size_t i) { return i < values.size() ? values[i] : 0; }
Contents listed(Choices& c, const std::vector<int64_t>& values) {
    return made<int64_t>(c, {int64_t(values.size())}, [&](int64_t i) { return at(values, size_t(i)); });
}

using Value = std::variant<bool, int64_t, double, Contents>;
struct Argument {
    const char* name;
    Value value;
};

// What a call left: its arrays, or the type of its error.
struct Outcome {
    bool raised = false;
    std::vector<std::vector<uint8_t>> arrays;
    bool operator==(const Outcome&) const = default;
};

class Memory;
struct Call {
    std::string name;
    std::vector<Argument> arguments = {};
    bool takes_isa = true, comparable = false;  // comparable: rounding alone tells instruction sets apart
    // The object that it is a method of, which `more` describes.
    nb::object (*make)(nb::handle core, const Call&, const char* isa, Memory&) = nullptr;
    std::shared_ptr<void> more = {};

    void add(const char* argument, Value value) { arguments.push_back({argument, std::move(value)}); }
};

[[noreturn]] void wrong(const char* why, const Call& call) {
    std::fprintf(stderr, "%s: %s\n", call.name.c_str(), why);
    std::abort();
}

// The memory of all arrays of a call, which outlives its objects.
class Memory {
   public:
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
        for (void* at : taken_) std::free(at);
    }
    void* take(size_t size) {
        void* at = nullptr;
        if (posix_memalign(&at, 64, std::max<size_t>(size, 1))) std::abort();
        taken_.push_back(at);
        return at;
    }

   private:
    std::vector<void*> taken_;
};

// A copy that ends where its memory ends, on a cache line.
nb::object array(const Contents& a, Memory& memory, void*& at) {
    at = memory.take(a.bytes.size());
    std::copy(a.bytes.begin(), a.bytes.end(), static_cast<uint8_t*>(at));
    std::vector<size_t> shape(a.shape.begin(), a.shape.end());
    return nb::cast(nb::ndarray<>(at, shape.size(), shape.data(), nb::none(), nullptr, a.type));
}

// Named values, and where their arrays are.
using Places = std::vector<std::pair<const Contents*, void*>>;
nb::object given(const Value& value, Memory& memory, Places& places) {
    if (const auto* flag = std::get_if<bool>(&value)) return nb::cast(*flag);
    if (const auto* integer = std::get_if<int64_t>(&value)) return nb::cast(*integer);
    if (const auto* number = std::get_if<double>(&value)) return nb::cast(*number);
    void* at = nullptr;
    const Contents& contents = std::get<Contents>(value);
    nb::object found = array(contents, memory, at);
    places.emplace_back(&contents, at);
    return found;
}
nb::dict given(const std::vector<Argument>& arguments, Memory& memory, Places& places) {
    nb::dict named;
    for (const Argument& one : arguments) named[one.name] = given(one.value, memory, places);
    return named;
}

Outcome outcome(nb::handle core, const Call& call, const char* isa) {
    Memory memory;
    Places arrays;
    Outcome found;
    const clock_t start = std::clock();
    try {
        nb::dict named = given(call.arguments, memory, arrays);
        if (!call.make && call.takes_isa) named["isa"] = isa;
        const nb::object self = call.make ? call.make(core, call, isa, memory) : nb::borrow(core);
        self.attr(call.name.c_str())(**named);
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) wrong(error.what(), call);
        found.raised = true;
    }
    if (double(std::clock() - start) > 1.0 * CLOCKS_PER_SEC) wrong("more than a second", call);
    for (auto& [contents, at] : arrays) {
        const auto* first = static_cast<const uint8_t*>(at);
        found.arrays.emplace_back(first, first + contents->bytes.size());
    }
    return found;
}

template <class T>
bool near(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, double rtol) {
    std::vector<T> x(a.size() / sizeof(T)), z(x.size());
    if (!x.empty()) std::memcpy(x.data(), a.data(), a.size()), std::memcpy(z.data(), b.data(), b.size());
    double largest = 1;
    for (const auto* all : {&x, &z})
        for (T one : *all) {
            if (!(std::abs(double(one)) < 1e4)) return true;  // sums of such numbers cancel
            largest = std::max(largest, std::abs(double(one)));
        }
    for (size_t i = 0; i < x.size(); ++i)
        if (!(std::abs(double(x[i]) - double(z[i])) <= rtol * largest)) {
            std::fprintf(stderr, "%.17g or %.17g in place %zu\n", double(x[i]), double(z[i]), i);
            return false;
        }
    return true;
}

bool near(const Call& call, const Outcome& a, const Outcome& b) {
    if (a.raised != b.raised) return false;
    size_t at = 0;
    for (const Argument& one : call.arguments) {
        const auto* contents = std::get_if<Contents>(&one.value);
        if (!contents) continue;
        const auto &x = a.arrays[at], &z = b.arrays[at++];
        if (contents->type == nb::dtype<double>()  ? !near<double>(x, z, 1e-6)
            : contents->type == nb::dtype<float>() ? !near<float>(x, z, 1e-3)
                                                   : x != z)
            return false;
    }
    return true;
}

// ---- a call of each binding ----------------------------------------------------------------------------------------

Call add_rows(Choices& c) {
    const int64_t n = c.size(), width = c.size(), places = c.below(9), count = n && places ? c.size() : 0;
    const bool is_double = c.below(2);
    Call call{"add_rows"};
    call.comparable = true;
    call.add("matrix", reals(c, is_double, {n, width}));
    call.add("row", indices<int64_t>(c, {count}, n));
    call.add("place", indices<int64_t>(c, {count}, places));
    call.add("weight", numbers<double>(c, {count}));
    call.add("out", zeros<double>(c, {places, width}));
    return call;
}

Call nearest_means(Choices& c) {
    const int64_t groups = 1 + c.below(9), n = c.size();
    Call call{"nearest_means"};
    call.add("sums", numbers<double>(c, {groups, n}));
    for (const char* name : {"slope", "offset"}) call.add(name, numbers<double>(c, {groups}));
    call.add("diagonal", numbers<double>(c, {n}));
    call.add("labels", indices<int64_t>(c, {n}, groups));
    call.add("rounding", c.number());
    for (const char* name : {"own", "left"}) call.add(name, zeros<double>(c, {n}));
    call.add("nearest", zeros<int64_t>(c, {n}));
    return call;
}

Call coordinates(Choices& c) {
    const int64_t problems = c.below(4), n = 1 + c.size(), m = 1 + c.size(), t = problems ? c.size() : 0;
    const auto offset = cuts(c, problems, t);
    const bool is_double = c.below(2);
    Call call{"coordinates"};
    call.add("features", reals(c, is_double, {n, m}));
    call.add("square", numbers<double>(c, {n}, 0.0));
    call.add("offset", listed(c, offset));
    call.add("row", indices<int64_t>(c, {t}, n));
    call.add("linear", numbers<double>(c, {t}));
    call.add("lower", numbers<double>(c, {t}));
    call.add("upper", numbers<double>(c, {t}, 0.0));
    call.add("epsilon", c.number());
    call.add("beta", zeros<double>(c, {t}));
    call.add("w", numbers<double>(c, {problems, m}));
    size_t part = 0;
    call.add("order", made<int64_t>(c, {t}, [&](int64_t i) {
        while (part + 2 < offset.size() && offset[part + 1] <= i) ++part;
        return at(offset, part + 1) - 1 - i;  // backwards
    }));
    call.add("place", made<int64_t>(c, {problems, 3}, [&](int64_t i) {
        return i % 3 ? 0 : at(offset, size_t(i / 3) + 1) - at(offset, size_t(i / 3));
    }));
    call.add("level", numbers<double>(c, {problems, 2}));
    call.add("random", indices<int64_t>(c, {problems}, int64_t(1) << 24));
    call.add("tol", numbers<double>(c, {problems}, 0.0));
    call.add("work", nearly(c, c.below(200)));
    call.add("ended", zeros<int64_t>(c, {problems}));
    return call;
}

void add_dual(Choices& c, Call& call, int64_t n) {
    const int64_t problems = c.below(4), t = problems && n ? c.size() : 0;
    const auto offset = cuts(c, problems, t);
    std::vector<int64_t> split;
    for (size_t p = 0; p + 1 < offset.size(); ++p) split.push_back(offset[p] + c.below(offset[p + 1] - offset[p] + 1));
    call.add("offset", listed(c, offset));
    call.add("split", listed(c, split));
    call.add("row", indices<int64_t>(c, {t}, n));
    call.add("lower", numbers<double>(c, {t}, -4.0));
    call.add("upper", numbers<double>(c, {t}, 0.0));
    call.add("epsilon", c.number());
    for (const char* name : {"beta", "gradient", "anchor", "anchor_gradient"}) call.add(name, numbers<double>(c, {t}));
    call.add("active", indices<uint8_t>(c, {t}, 2));
    call.add("tol", c.number());
    call.add("limit", nearly(c, c.below(300)));
    call.add("work", nearly(c, c.below(3000)));
    call.add("cache", nearly(c, c.below(20000)));
    call.add("gap", zeros<double>(c, {problems}));
    for (const char* name : {"steps", "ended"}) call.add(name, zeros<int64_t>(c, {problems}));
}

Call smo(Choices& c) {
    const int64_t n = c.size();
    Call call{"smo"};
    call.add("matrix", reals(c, c.below(2), {n, n}));
    add_dual(c, call, n);
    return call;
}

Call merge_pass(Choices& c) {
    const int64_t rows = 1 + c.below(12), depth = 1 + c.below(12), slots = 2 + c.below(8), outputs = 1 + c.below(4);
    const bool is_double = c.below(2);
    Call call{"merge_pass"};
    call.add("x", reals(c, is_double, {rows, depth}));
    call.add("own", reals(c, is_double, {rows, rows}));
    call.add("near", reals(c, is_double, {slots, rows}));
    call.add("z", reals(c, is_double, {slots, depth}));
    for (const char* name : {"b", "u"}) call.add(name, numbers<double>(c, {slots, outputs}));
    call.add("labels", indices<int64_t>(c, {rows}, outputs == 1 ? 2 : outputs));
    call.add("used", nearly(c, c.below(slots)));
    call.add("t", nearly(c, c.below(1000)));
    call.add("alpha", c.number());
    call.add("gamma", c.number());
    return call;
}

Call quantise(Choices& c) {
    const int64_t n = c.one_in(100) ? 192 : 1 + c.size(), rows = std::min<int64_t>(n, 192);
    const int64_t columns = rows == 192 ? 192 + c.size() : rows;
    Call call{"quantise"};
    call.add("x", numbers<float>(c, {rows, columns}));
    call.add("seeds", indices<uint32_t>(c, {columns}, int64_t(1) << 24));
    call.add("out", zeros<int16_t>(c, {(rows + 7) / 8 * 8 * ((columns + 15) / 16 * 16)}));
    return call;
}

Call quantised_product(Choices& c) {
    const int64_t n = 1 + c.size(), r = 1 + c.below(9), blocks = (n + 191) / 192;
    std::vector<int64_t> start(1, 0);
    for (int64_t b = 0; b < blocks; ++b) {
        const int64_t left = n - b * 192;
        start.push_back(start.back() + (std::min<int64_t>(192, left) + 7) / 8 * 8 * ((left + 15) / 16 * 16));
    }
    Call call{"quantised_product"};
    call.add("entries", indices<int16_t>(c, {start.back()}, 65536));
    call.add("start", listed(c, start));
    call.add("step", numbers<double>(c, {blocks}));
    const int64_t first = c.below(blocks + 1);
    call.add("first", nearly(c, first));
    call.add("last", nearly(c, first + c.below(blocks - first + 1)));
    call.add("v", numbers<float>(c, {n, r}));
    call.add("out", zeros<double>(c, {n, r}));
    return call;
}

Call band(Choices& c) {
    const int64_t blocks = 1 + c.below(c.one_in(60) ? 4 : 1), shifts = c.below(3), side = mercer::kBand,
                  last = c.below(blocks + 1);
    const auto tiles = [&](const char* name, Call& call, Shape shape) {
        shape.insert(shape.end(), {side, side});
        call.add(name, numbers<double>(c, shape));
    };
    switch (c.below(4)) {
        case 0: {
            Call call{"band_step"};
            call.add("slabs", numbers<double>(c, {blocks * (blocks + 1) / 2 * side * side}));
            tiles("upper", call, {blocks - 1});
            tiles("factors", call, {blocks - 1});
            call.add("pending", numbers<double>(c, {4 * blocks * side * side}));
            call.add("step", nearly(c, c.below(blocks)));
            return call;
        }
        case 1: {
            Call call{"band_vectors"};
            call.add("slabs", numbers<double>(c, {blocks * (blocks + 1) / 2 * side * side}));
            tiles("factors", call, {blocks - 1});
            call.add("out", zeros<double>(c, {blocks * side, blocks * side}));
            call.add("first", nearly(c, c.below(last + 1)));
            call.add("last", nearly(c, last));
            return call;
        }
        case 2: {
            Call call{"band_factors"};
            tiles("diagonal", call, {blocks});
            tiles("upper", call, {blocks - 1});
            call.add("shifts", numbers<double>(c, {shifts}));
            tiles("below", call, {shifts, blocks});
            tiles("inverse", call, {shifts, blocks});
            call.add("definite", made<bool>(c, {shifts}, [](int64_t) { return false; }));
            return call;
        }
        default: {
            Call call{"band_norms"};
            call.add("vectors", numbers<double>(c, {blocks * side, blocks * side}));
            tiles("below", call, {shifts, blocks});
            tiles("inverse", call, {shifts, blocks});
            call.add("out", zeros<double>(c, {shifts, blocks * side}));
            return call;
        }
    }
}

// Two sets of sequences, or one twice, under their names.
std::pair<int64_t, int64_t> add_corpora(Choices& c, Call& call, int64_t alphabet, bool same) {
    const int64_t nx = c.size(), x_count = nx ? 1 + c.below(9) : c.below(3), nz = same ? nx : c.size();
    const int64_t z_count = same ? x_count : nz ? 1 + c.below(20) : c.below(3);
    call.add("x", indices<int32_t>(c, {nx}, alphabet));
    call.add("x_starts", listed(c, cuts(c, x_count, nx)));
    call.add("z", indices<int32_t>(c, {nz}, alphabet));
    call.add("z_starts", listed(c, cuts(c, z_count, nz)));
    return {nx && !x_count ? 0 : x_count, z_count};
}

void add_range(Choices& c, Call& call, const char* from, const char* to, int64_t size) {
    const int64_t first = c.below(size + 1);
    call.add(from, nearly(c, first));
    call.add(to, nearly(c, first + c.below(size - first + 1)));
}

Call count_kmers(Choices& c) {
    const int64_t n = c.size(), count = n ? 1 + c.below(9) : c.below(3), span = 1 + c.below(9);
    const auto starts = cuts(c, count, n);
    int64_t windows = 0;
    for (size_t i = 0; i + 1 < starts.size(); ++i)
        windows += std::max<int64_t>(0, starts[i + 1] - starts[i] - span + 1);
    Call call{"count_kmers"};
    call.takes_isa = false;
    const int64_t alphabet = 1 + c.below(30);
    call.add("symbols", indices<int32_t>(c, {n}, alphabet));
    call.add("starts", listed(c, starts));
    call.add("offsets", indices<int64_t>(c, {c.below(span + 2)}, span));
    call.add("span", nearly(c, span));
    call.add("alphabet", nearly(c, alphabet));
    call.add("start", zeros<int64_t>(c, {windows + 1}));
    for (const char* name : {"rows", "counts"}) call.add(name, zeros<int32_t>(c, {windows}));
    call.add("first", zeros<int64_t>(c, {windows}));
    if (c.below(2)) call.add("shown", zeros<int32_t>(c, {n}));
    return call;
}

Call add_products(Choices& c) {
    const int64_t n = c.below(9), m = c.below(9), features = c.below(9), entries = n && features ? c.size() : 0;
    const int64_t others = m && features ? c.size() : 0;
    Call call{"add_products"};
    call.takes_isa = false;
    call.add("row_start", listed(c, cuts(c, n, entries)));
    call.add("features", indices<int32_t>(c, {entries}, features));
    const bool counts = c.below(2);
    if (counts)
        call.add("row_values", indices<int32_t>(c, {entries}, 1 << 20));
    else
        call.add("row_values", numbers<double>(c, {entries}));
    call.add("feature_start", listed(c, cuts(c, features, others)));
    call.add("rows", indices<int32_t>(c, {others}, m));
    if (counts)
        call.add("feature_values", indices<int32_t>(c, {others}, 1 << 20));
    else
        call.add("feature_values", numbers<double>(c, {others}));
    call.add("weight", c.number());
    call.add("triangle", bool(c.below(2)));
    add_range(c, call, "i0", "i1", n);
    call.add("out", zeros<double>(c, {n, m}));
    return call;
}

Call subsequences(Choices& c) {
    const bool triangle = c.below(2);
    Call call{"subsequence_kernel"};
    call.comparable = !triangle;
    const auto [rows, columns] = add_corpora(c, call, 1 + c.below(9), triangle);
    call.add("length", nearly(c, 1 + c.below(8)));
    call.add("decay", c.number());
    call.add("triangle", triangle);
    add_range(c, call, "i0", "i1", rows);
    call.add("out", zeros<double>(c, {rows, columns}));
    call.add("exact", bool(c.below(2)));
    return call;
}

Call substrings(Choices& c) {
    const bool triangle = c.below(2), product = c.below(2);
    Call call{product ? "substring_product" : "substring_kernel"};
    call.takes_isa = false;
    const int64_t alphabet = 1 + c.below(9), r = c.below(5);
    const auto [rows, columns] = add_corpora(c, call, alphabet, triangle);
    call.add("alphabet", nearly(c, alphabet));
    call.add("decay", c.number());
    if (product) {
        call.add("v", numbers<double>(c, {columns, r}));
        call.add("out", zeros<double>(c, {rows, r}));
        return call;
    }
    call.add("triangle", triangle);
    add_range(c, call, "j0", "j1", columns);
    call.add("out", zeros<double>(c, {rows, columns}));
    return call;
}

Call alignments(Choices& c) {
    const bool triangle = c.below(2);
    const int64_t nx = c.size(), rows = nx ? 1 + c.below(5) : c.below(2), nz = triangle ? nx : c.size();
    const int64_t columns = triangle ? rows : nz ? 1 + c.below(12) : c.below(2), depth = 1 + c.below(4);
    Call call{"alignment_kernel"};
    const double gamma = c.number();
    // Left of the diagonal, each set computes whole vectors; a negative gamma gives logarithms of differences.
    call.comparable = !triangle && gamma >= 0;
    call.add("x", numbers<double>(c, {nx, depth}));
    call.add("x_starts", listed(c, cuts(c, rows, nx)));
    call.add("z", numbers<double>(c, {nz, depth}));
    call.add("z_starts", listed(c, cuts(c, columns, nz)));
    call.add("gamma", gamma);
    call.add("triangle", triangle);
    add_range(c, call, "i0", "i1", rows);
    call.add("out", zeros<double>(c, {rows, columns}));
    return call;
}

Call evaluate(Choices& c) {
    const int64_t n = c.size();
    const bool is_double = c.below(2);
    Call call{"evaluate"};
    call.add("op", nearly(c, c.below(mercer::kOperations)));
    for (const char* name : {"k0", "k1"}) call.add(name, c.one_in(3) ? c.number() : double(c.below(9) - 4));
    call.add("x", reals(c, is_double, {n}));
    call.add("out", is_double ? zeros<double>(c, {n}) : zeros<float>(c, {n}));
    return call;
}

// ---- windows that are compared, and plans: an object first, then a call of it
// -----------------------------------------

nb::object comparison(nb::handle core, const Call& call, const char* isa, Memory& memory) {
    Places places;
    nb::dict named = given(static_cast<const Call*>(call.more.get())->arguments, memory, places);
    named["isa"] = isa;
    return core.attr("WindowComparison")(**named);
}

Call windows(Choices& c) {
    const int64_t which = c.below(3), span = 1 + c.below(c.one_in(5) ? 127 : 9), alphabet = 1 + c.below(9);
    auto own = std::make_shared<Call>(Call{"WindowComparison"});
    const auto [rows, columns] = add_corpora(c, *own, alphabet, which != 0);
    own->add("worth", indices<int64_t>(c, {span + 1}, c.one_in(3) ? int64_t(1) << 24 : 9));
    own->add("alphabet", nearly(c, alphabet));
    own->add("which", nearly(c, which));
    Call call{"add"};
    call.comparable = which != mercer::kUpper;
    call.more = own;
    call.make = comparison;
    const auto* x = std::get_if<Contents>(&own->arguments[0].value);
    add_range(c, call, "from", "to", x->shape.empty() ? 0 : x->shape[0]);
    call.add("out", zeros<double>(c, {rows, which == mercer::kDiagonal ? 1 : columns}));
    return call;
}

struct PlanParts : Call {
    struct Paired {
        int kind;
        Contents a, b;
        bool moved;
        Contents origin;
    };
    struct Norms {
        int at;
        bool moved;
        Contents origin, rows, columns;
        double number[5];
    };
    using Operand = std::tuple<int, int>;
    std::vector<Paired> pairings;
    std::vector<Norms> norms;
    std::vector<Contents> row_values, column_values;
    std::vector<double> constants;
    std::vector<std::tuple<int, int, Operand, Operand, Operand, double, double>> program;
    bool has_pairs = false;
    Contents self_pairs;
    int64_t rows = 0, columns = 0;
    bool is_double = false;
};

// The plan's arrays are gone when it is used: it reads them during its construction only.
nb::object plan(nb::handle core, const Call& call, const char* isa, Memory&) {
    Memory memory;
    const auto one = [&](const Contents& a) {
        void* at = nullptr;
        return array(a, memory, at);
    };
    const auto& p = *static_cast<const PlanParts*>(call.more.get());
    nb::list pairings, norms, row_values, column_values;
    const auto origin = [&](bool moved, const Contents& a) { return moved ? one(a) : nb::object(nb::none()); };
    for (const auto& x : p.pairings)
        pairings.append(nb::make_tuple(x.kind, one(x.a), one(x.b), origin(x.moved, x.origin)));
    for (const auto& x : p.norms)
        norms.append(nb::make_tuple(x.at, origin(x.moved, x.origin), one(x.rows), one(x.columns), x.number[0],
                                    x.number[1], x.number[2], x.number[3], x.number[4]));
    for (const Contents& x : p.row_values) row_values.append(one(x));
    for (const Contents& x : p.column_values) column_values.append(one(x));
    Places places;
    nb::dict named = given(p.arguments, memory, places);
    named["pairings"] = pairings, named["norms"] = norms;
    named["row_values"] = row_values, named["column_values"] = column_values;
    named["constants"] = p.constants, named["program"] = p.program, named["isa"] = isa;
    if (p.has_pairs) named["self_pairs"] = one(p.self_pairs);
    return core.attr("Tiles")(**named);
}

std::shared_ptr<PlanParts> parts(Choices& c) {
    auto p = std::make_shared<PlanParts>();
    p->name = "Tiles";
    p->is_double = c.below(2);
    p->rows = 1 + c.size(), p->columns = c.one_in(2) ? p->rows : 1 + c.size();
    const int registers = 1 + int(c.below(5)), pairings = int(c.below(registers + 1));
    for (int i = 0; i < pairings; ++i) {
        const int64_t depth = 1 + c.size();
        p->pairings.push_back({int(nearly(c, c.below(mercer::kPairings))), reals(c, c.below(2), {p->rows, depth}),
                               reals(c, c.below(2), {p->columns, depth}), c.one_in(3), numbers<double>(c, {depth})});
        if (p->pairings.back().kind == mercer::kSqdist && c.one_in(2)) {
            PlanParts::Norms norms{i,
                                   c.one_in(3),
                                   numbers<double>(c, {depth}),
                                   reals(c, p->is_double, {p->rows}),
                                   reals(c, p->is_double, {p->columns}),
                                   {}};
            for (double& one : norms.number) one = c.number();
            p->norms.push_back(std::move(norms));
        }
    }
    for (int64_t left = c.below(3); left--;) p->row_values.push_back(reals(c, p->is_double, {p->rows}));
    for (int64_t left = c.below(3); left--;) p->column_values.push_back(reals(c, p->is_double, {p->columns}));
    for (int64_t left = c.below(3); left--;) p->constants.push_back(c.number());
    const int64_t limit[] = {registers, int64_t(p->row_values.size()), int64_t(p->column_values.size()),
                             int64_t(p->constants.size())};
    const auto operand = [&] {
        const int kind = c.one_in(60) ? int(c.below(7)) - 2 : int(c.below(4));
        const bool known = kind >= 0 && kind < 4 && limit[kind];
        return PlanParts::Operand{known || c.one_in(60) ? kind : 0, int(nearly(c, c.below(known ? limit[kind] : 1)))};
    };
    for (int64_t left = c.below(9); left--;) {
        const int op = int(nearly(c, c.below(mercer::kOperations))), target = int(nearly(c, c.below(registers)));
        const auto x = operand(), y = operand(), z = operand();
        const double k0 = c.one_in(3) ? c.number() : double(c.below(9) - 4), k1 = c.number();
        p->program.emplace_back(op, target, x, y, z, k0, k1);
    }
    p->has_pairs = c.one_in(3);
    p->self_pairs = indices<int64_t>(c, {p->rows}, p->columns);
    p->add("is_double", p->is_double);
    p->add("rows", nearly(c, p->rows));
    p->add("columns", nearly(c, p->columns));
    p->add("registers", int64_t(registers));
    p->add("result", nearly(c, c.below(registers)));
    return p;
}

// Where a range of whole blocks begins and ends.
void add_blocks(Choices& c, Call& call, const char* from, const char* to, int64_t size) {
    const int64_t last = (size - 1) / mercer::kRowBlock, first = c.below(last + 1);
    const int64_t end = first + 1 + c.below(last - first + 1);
    call.add(from, nearly(c, first * mercer::kRowBlock));
    call.add(to, nearly(c, std::min<int64_t>(end * mercer::kRowBlock, size)));
}

Call tiles(Choices& c) {
    const auto p = parts(c);
    const int64_t n = p->rows, m = p->columns, r = 1 + c.below(9);
    const auto entries = [&](Shape shape) {
        return p->is_double ? zeros<double>(c, std::move(shape)) : zeros<float>(c, std::move(shape));
    };
    const auto range = [](const Call& call, size_t at) {
        const double size = double(std::get<int64_t>(call.arguments[at + 1].value)) -
                            double(std::get<int64_t>(call.arguments[at].value));
        return size > 0 && size < 1000 ? int64_t(size) : 1;
    };
    Call call{""};
    call.make = plan;
    call.more = p;
    switch (c.below(6)) {
        case 0: {
            call.name = "block";
            const int64_t i0 = c.below(n), j0 = c.below(m);
            call.add("i0", nearly(c, i0));
            call.add("i1", nearly(c, i0 + 1 + c.below(n - i0)));
            call.add("j0", nearly(c, j0));
            call.add("j1", nearly(c, j0 + 1 + c.below(m - j0)));
            call.add("out", entries({range(call, 0), range(call, 2)}));
            break;
        }
        case 1:
            call.name = "gram";
            add_blocks(c, call, "i0", "i1", n);
            call.add("out", entries({n, m}));
            break;
        case 2: {
            call.name = "upper";
            add_blocks(c, call, "i0", "i1", n);
            const int64_t last = (n - 1) / mercer::kRowBlock * mercer::kRowBlock;
            call.add("out", entries({mercer::upper_start(last, n, mercer::kRowBlock) + (n - last) * (n - last)}));
            break;
        }
        case 3: {
            call.name = "multiply";
            const bool symmetric = n == m && c.below(2);
            add_blocks(c, call, "i0", "i1", n);
            add_blocks(c, call, "j0", "j1", m);
            call.add("v", reals(c, p->is_double, {m, r}));
            call.add("out", zeros<double>(c, {symmetric ? n : range(call, 0), r}));
            call.add("symmetric", symmetric);
            break;
        }
        case 4:
            call.name = "normal_product";
            add_blocks(c, call, "i0", "i1", n);
            call.add("v", reals(c, p->is_double, {m, r}));
            call.add("weights", numbers<double>(c, {n}));
            call.add("out", zeros<double>(c, {m, r}));
            break;
        default: {
            call.name = "group_sums";
            const int64_t groups = 1 + c.below(4);
            add_blocks(c, call, "i0", "i1", n);
            call.add("start", listed(c, cuts(c, groups, m)));
            call.add("weights", reals(c, p->is_double, {m}));
            call.add("out", zeros<double>(c, {range(call, 0), groups}));
        }
    }
    return call;
}

constexpr Call (*kCalls[])(Choices&) = {
    add_rows,          nearest_means, coordinates, smo,          merge_pass,   quantise,
    quantised_product, band,          count_kmers, add_products, subsequences, substrings,
    alignments,        evaluate,      windows,     tiles,        tiles};

nb::handle core() {
    static const nb::handle found = [] {
        PyImport_AppendInittab("_core", PyInit__core);
        Py_InitializeEx(0);
        return nb::module_::import_("_core").release();
    }();
    return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const nb::handle module = core();
    static const std::vector<std::string> isas = nb::cast<std::vector<std::string>>(module.attr("instruction_sets")());
    Choices c(data, size);
    const Call call = kCalls[c.below(std::size(kCalls))](c);
    const size_t which = size_t(c.below(int64_t(isas.size())));
    const bool again = c.below(2), other = c.below(2);
    const Outcome found = outcome(module, call, isas[which].c_str());
    if (again && outcome(module, call, isas[which].c_str()) != found) wrong("other bits at the second call", call);
    if (other && call.takes_isa) {
        const Outcome else_where = outcome(module, call, isas[(which + 1) % isas.size()].c_str());
        if (else_where.raised != found.raised) wrong("another instruction set judges the arguments otherwise", call);
        if (call.comparable && !near(call, found, else_where)) wrong("other numbers by another instruction set", call);
    }
    return 0;
}
