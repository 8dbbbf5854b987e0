// The second stage: the formula, one operation after the other, over a strip of kPanelRows rows that stays in L1.
//
// An operand is a register (one value for each pair), a row value (one for each row of the strip), a column value (one
// for each column), or a constant. Row values and constants are read with step 0 from a vector with the same value in
// every lane, so that one loop serves all combinations. src/mercer/engine/opcodes.py numbers the operations.

template <class T>
struct Operand {
    const T* at;
    int step;  // W or 0
    MERCER_INLINE Vec<T> next() {
        Vec<T> v = load(at);
        at += step;
        return v;
    }
};

// One operation over one row of the strip. An operand may be the target: each element is read before it is written.
template <class T, class F>
MERCER_INLINE void unary(T* out, int columns, Operand<T> a, F f) {
    for (int j = 0; j < columns; j += Simd<T>::W) store<T>(out + j, f(a.next()));
}
template <class T, class F>
MERCER_INLINE void binary(T* out, int columns, Operand<T> a, Operand<T> b, F f) {
    for (int j = 0; j < columns; j += Simd<T>::W) {
        Vec<T> x = a.next(), y = b.next();
        store<T>(out + j, f(x, y));
    }
}
template <class T, class F>
MERCER_INLINE void ternary(T* out, int columns, Operand<T> a, Operand<T> b, Operand<T> c, F f) {
    for (int j = 0; j < columns; j += Simd<T>::W) {
        Vec<T> x = a.next(), y = b.next(), z = c.next();
        store<T>(out + j, f(x, y, z));
    }
}

template <class T>
void power(T* out, int columns, Operand<T> a, double exponent) {
    using V = Vec<T>;
    if (exponent != __builtin_floor(exponent)) return unary<T>(out, columns, a, [=](V x) { return vpow(x, exponent); });
    if (exponent == 2 * __builtin_floor(exponent / 2))
        return unary<T>(out, columns, a, [=](V x) { return vpow(vabs<T>(x), exponent); });
    unary<T>(out, columns, a, [=](V x) {
        const V p = vpow(vabs<T>(x), exponent);
        return x < T(0) ? -p : p;
    });
}

template <class T>
void run_row(const Instruction& s, T* out, int columns, Operand<T> a, Operand<T> b, Operand<T> c) {
    using V = Vec<T>;
    const T k0 = T(s.k0), k1 = T(s.k1);
    const V one = splat<T>(T(1)), zero{};
    switch (Operation(s.op)) {
        case kAdd: return binary<T>(out, columns, a, b, [](V x, V y) { return x + y; });
        case kSub: return binary<T>(out, columns, a, b, [](V x, V y) { return x - y; });
        case kMul: return binary<T>(out, columns, a, b, [](V x, V y) { return x * y; });
        case kDiv: return binary<T>(out, columns, a, b, [](V x, V y) { return x / y; });
        case kMinimum: return binary<T>(out, columns, a, b, [](V x, V y) { return x != x ? x : (x < y ? x : y); });
        case kMaximum: return binary<T>(out, columns, a, b, [](V x, V y) { return x != x ? x : (x > y ? x : y); });
        case kLess: return binary<T>(out, columns, a, b, [=](V x, V y) { return x < y ? one : zero; });
        case kLessEqual: return binary<T>(out, columns, a, b, [=](V x, V y) { return x <= y ? one : zero; });
        case kWhere: return ternary<T>(out, columns, a, b, c, [=](V x, V y, V z) { return x != zero ? y : z; });
        case kNeg: return unary<T>(out, columns, a, [](V x) { return -x; });
        case kAbs: return unary<T>(out, columns, a, [](V x) { return vabs<T>(x); });
        case kExp: return unary<T>(out, columns, a, [](V x) { return vexp(x); });
        case kLog: return unary<T>(out, columns, a, [](V x) { return vlog(x); });
        case kSqrt: return unary<T>(out, columns, a, [](V x) { return vsqrt<T>(x); });
        case kTanh: return unary<T>(out, columns, a, [](V x) { return vtanh(x); });
        case kSin: return unary<T>(out, columns, a, [](V x) { return vsin<T>(x); });
        case kCos: return unary<T>(out, columns, a, [](V x) { return vcos<T>(x); });
        case kPow: return power<T>(out, columns, a, s.k0);
        case kPowInteger: {
            const int n = int(s.k0);
            if (n == 2) return unary<T>(out, columns, a, [](V x) { return x * x; });
            if (n == 3) return unary<T>(out, columns, a, [](V x) { return x * x * x; });
            return unary<T>(out, columns, a, [=](V x) { return vpow_integer(x, n, T(0)); });
        }
        case kAffine: return unary<T>(out, columns, a, [=](V x) { return k0 * x + k1; });
        case kExpAffine: return unary<T>(out, columns, a, [=](V x) { return vexp(k0 * x + k1); });
        case kGaussFromSqdist: return unary<T>(out, columns, a, [=](V x) { return vexp2_negative(k0 * x); });
    }
    __builtin_unreachable();
}
