// Vectors of fixed width, by the compiler's vector extension, and elementary functions on them.
//
// Each instruction set includes this file inside an anonymous namespace. Without it the linker might merge two copies
// of a function, and a machine without AVX-512 would run AVX-512 code.
//
// Errors in units in the last place, which tests/core/test_functions.py checks:
//   float: exp 1.4 (1.1 with fused multiply-add); log, tanh, pow 0.51, through double
//   double: exp 1.3 (1.0 with fused multiply-add); log 1; tanh 1.5; pow 1.5 + 2 |a log x|; sin, cos the C library's
// sqrt, +, -, *, / are rounded correctly. exp returns zero for results below about twice the smallest normal number,
// because arithmetic on subnormal numbers is a hundred times slower. tanh(-0) is 0.

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kPanelRows = 12;  // 12 x 2 accumulators of 32 registers; 14 spill
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
constexpr int kPanelRows = 6;  // 6 x 2 of 16 registers
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16;
constexpr int kPanelRows = 12;
#else
constexpr int kVectorBytes = 16;
constexpr int kPanelRows = 6;
#endif

#define MERCER_INLINE inline __attribute__((always_inline))

template <class T>
struct Simd;

template <>
struct Simd<float> {
    using Scalar = float;
    using Int = int32_t;
    static constexpr int W = kVectorBytes / 4;
    typedef float V __attribute__((vector_size(kVectorBytes), may_alias));
    typedef float U __attribute__((vector_size(kVectorBytes), may_alias, aligned(4)));
    typedef int32_t I __attribute__((vector_size(kVectorBytes), may_alias));
    typedef double D __attribute__((vector_size(2 * kVectorBytes), may_alias));  // the same lanes in double
};

template <>
struct Simd<double> {
    using Scalar = double;
    using Int = int64_t;
    static constexpr int W = kVectorBytes / 8;
    typedef double V __attribute__((vector_size(kVectorBytes), may_alias));
    typedef double U __attribute__((vector_size(kVectorBytes), may_alias, aligned(8)));
    typedef int64_t I __attribute__((vector_size(kVectorBytes), may_alias));
    typedef V D;
};

template <class T>
using Vec = typename Simd<T>::V;
template <class T>
using IntVec = typename Simd<T>::I;
using Wide = Simd<float>::D;
typedef int64_t WideInt __attribute__((vector_size(2 * kVectorBytes), may_alias));

// Exponents are added as integers, which may wrap around for arguments whose result is replaced later.
typedef uint32_t Unsigned32 __attribute__((vector_size(kVectorBytes), may_alias));
typedef uint64_t Unsigned64 __attribute__((vector_size(kVectorBytes), may_alias));
typedef uint64_t WideUnsigned __attribute__((vector_size(2 * kVectorBytes), may_alias));
MERCER_INLINE IntVec<float> wrapping_add(IntVec<float> a, IntVec<float> b) {
    return (IntVec<float>)((Unsigned32)a + (Unsigned32)b);
}
MERCER_INLINE IntVec<double> wrapping_add(IntVec<double> a, IntVec<double> b) {
    return (IntVec<double>)((Unsigned64)a + (Unsigned64)b);
}
MERCER_INLINE WideInt wrapping_add(WideInt a, WideInt b) { return (WideInt)((WideUnsigned)a + (WideUnsigned)b); }

template <class T>
MERCER_INLINE Vec<T> splat(T x) {
    return Vec<T>{} + x;
}
template <class T>
MERCER_INLINE Vec<T> load(const T* p) {
    return *reinterpret_cast<const Vec<T>*>(p);
}
template <class T>
MERCER_INLINE Vec<T> load_unaligned(const T* p) {
    return *reinterpret_cast<const typename Simd<T>::U*>(p);
}
template <class T>
MERCER_INLINE void store(T* p, Vec<T> x) {
    *reinterpret_cast<Vec<T>*>(p) = x;
}
template <class T>
MERCER_INLINE void store_unaligned(T* p, Vec<T> x) {
    *reinterpret_cast<typename Simd<T>::U*>(p) = x;
}
// The second argument where one is NaN.
template <class V>
MERCER_INLINE V vmin(V a, V b) {
    return a < b ? a : b;
}
template <class V>
MERCER_INLINE V vmax(V a, V b) {
    return a > b ? a : b;
}
// The processor has these, but if `a` is a constant, GCC turns the comparison round, compares and blends.
#if defined(__AVX512F__)
#define MERCER_X86(name, a, b) _mm512_maskz_##name(-1, a, b)  // of the unmasked ones GCC 12 warns
#elif defined(__AVX__)
#define MERCER_X86(name, a, b) _mm256_##name(a, b)
#elif defined(__SSE2__)
#define MERCER_X86(name, a, b) _mm_##name(a, b)
#endif
#if defined(MERCER_X86)
MERCER_INLINE Vec<float> vmin(Vec<float> a, Vec<float> b) { return MERCER_X86(min_ps, a, b); }
MERCER_INLINE Vec<float> vmax(Vec<float> a, Vec<float> b) { return MERCER_X86(max_ps, a, b); }
MERCER_INLINE Vec<double> vmin(Vec<double> a, Vec<double> b) { return MERCER_X86(min_pd, a, b); }
MERCER_INLINE Vec<double> vmax(Vec<double> a, Vec<double> b) { return MERCER_X86(max_pd, a, b); }
#undef MERCER_X86
#endif
template <class T>
MERCER_INLINE Vec<T> vabs(Vec<T> a) {
    using I = IntVec<T>;
    using Int = typename Simd<T>::Int;
    constexpr Int mask = sizeof(T) == 4 ? Int(0x7fffffff) : Int(0x7fffffffffffffffLL);
    return (Vec<T>)((I)a & mask);
}
template <class T>
MERCER_INLINE double lane_sum(Vec<T> a) {
    double s = 0;
    for (int i = 0; i < Simd<T>::W; ++i) s += double(a[i]);
    return s;
}

template <class T>
MERCER_INLINE T lane_min(Vec<T> a) {
    alignas(kVectorBytes) T x[Simd<T>::W];
    store<T>(x, a);
#pragma GCC unroll 8
    for (int half = Simd<T>::W / 2; half > 0; half /= 2)
#pragma GCC unroll 16
        for (int i = 0; i < half; ++i) x[i] = x[i + half] < x[i] ? x[i + half] : x[i];
    return x[0];
}

// ---- exp ------------------------------------------------------------------------------------------------------------
// e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln(2)/2; minimax polynomials (relative error 1.9e-9 and 3.1e-18). The
// float coefficients carry a factor 2 and the exponent n - 1, so that the top binade does not overflow early.

MERCER_INLINE Vec<float> vexp(Vec<float> x) {
    using V = Vec<float>;
    using I = IntVec<float>;
    constexpr float magic = 12582911.0f;  // 1.5 * 2^23 - 1: the low bits of t hold n - 1
    V y = vmin(vmax(x, splat<float>(-87.0f)), splat<float>(88.72283f));
    V t = y * 1.44269504088896341f + magic;
    V n = t - magic;
    V r = y - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    V p = splat<float>(2 * 0.0013836794163791407627f);
    p = p * r + float(2 * 0.0083748570678409875334);
    p = p * r + float(2 * 0.041668228680641646649);
    p = p * r + float(2 * 0.16666419680551915347);
    p = p * r + float(2 * 0.49999992056107965376);
    p = p * r + float(2 * 1.0000000364310052768);
    p = p * r + 2.0f;
    V e = (V)wrapping_add((I)p, (I)t << 23);
    e = x < -86.64f ? V{} : e;
    e = x > 88.72283f ? splat<float>(__builtin_inff()) : e;
    return x != x ? x : e;
}

template <class V, class I>
MERCER_INLINE V vexp_double(V x) {
    constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
    V zero{};
    V y = vmin(vmax(x, zero - 708.0), zero + 709.782712893384);
    V t = y * 1.4426950408889634074 + magic;
    V n = t - magic;
    V r = y - n * 0.693147180369123816490;
    r = r - n * 1.90821492927058770002e-10;
    V p = zero + 2.4994247177932404938e-8;
    p = p * r + 2.7632368019197577849e-7;
    p = p * r + 2.7557623136996031038e-6;
    p = p * r + 0.000024801486320588121143;
    p = p * r + 0.00019841269431454022099;
    p = p * r + 0.0013888888951410252813;
    p = p * r + 0.0083333333335601749048;
    p = p * r + 0.041666666666492074803;
    p = p * r + 0.16666666666666166175;
    p = p * r + 0.50000000000000177736;
    p = p * r + 1.0000000000000000305;
    p = p * r + 1.0;
    // two factors, because 2^1024 is not finite although p 2^1024 may be
    I half = ((I)t << 52 >> 52) >> 1, rest = ((I)t << 52 >> 52) - half;
    V e = p * (V)((half + 1023) << 52) * (V)((rest + 1023) << 52);
    e = x < -708.0 ? zero : e;
    e = x > 709.782712893384 ? zero + __builtin_inf() : e;
    return x != x ? x : e;
}
MERCER_INLINE Vec<double> vexp(Vec<double> x) { return vexp_double<Vec<double>, IntVec<double>>(x); }

// 2^x for x <= 0: the last step of the Gaussian, whose constants contain log2(e). At the bound the bits of the exponent
// cancel to an exact zero, so that no selection is needed; up to 1 above the bound the result is a number below the
// smallest normal one. The bound is the first argument of vmax, which returns the second one if either is NaN: NaN
// passes through, because its low bits are zero.
MERCER_INLINE Vec<float> vexp2_negative(Vec<float> x) {
    using V = Vec<float>;
    using I = IntVec<float>;
    constexpr float magic = 12582912.0f;
    V y = vmax(splat<float>(-127.0f), x);
    V t = y + magic;
    V r = y - (t - magic);
    V p = splat<float>(0.00015345754520322688264f);
    p = p * r + 0.0013399997241850203167f;
    p = p * r + 0.0096184896752783798203f;
    p = p * r + 0.055503286140172468392f;
    p = p * r + 0.24022646879243200957f;
    p = p * r + 0.693147205811993902f;
    p = p * r + 1.0f;
    return (V)wrapping_add((I)p, (I)t << 23);
}
MERCER_INLINE Vec<double> vexp2_negative(Vec<double> x) {
    using V = Vec<double>;
    using I = IntVec<double>;
    constexpr double magic = 6755399441055744.0;
    V y = vmax(splat<double>(-1023.0), x);
    V t = y + magic;
    V r = y - (t - magic);
    V p = splat<double>(4.4352707044277139102e-10);
    p = p * r + 7.0741247602637315593e-9;
    p = p * r + 1.0178198257195728898e-7;
    p = p * r + 1.3215432982577701067e-6;
    p = p * r + 0.000015252733489018935716;
    p = p * r + 0.00015403530462721190474;
    p = p * r + 0.0013333558146791396057;
    p = p * r + 0.0096181291075881752319;
    p = p * r + 0.055504108664819913191;
    p = p * r + 0.24022650695910156627;
    p = p * r + 0.69314718055994533059;
    p = p * r + 1.0;
    return (V)wrapping_add((I)p, (I)t << 52);
}

// ---- log: x = 2^k m, m in [sqrt(1/2), sqrt(2)); s = f / (2 + f); the classical fdlibm polynomial in s^2 -------------

template <class V, class I>
MERCER_INLINE V vlog_double(V x) {
    V zero{};
    // subnormals: scale up by 2^54 first
    auto tiny = x < 2.2250738585072014e-308;
    V y = tiny ? x * 18014398509481984.0 : x;
    I bits = (I)y;
    I k = wrapping_add(bits, I{} - 0x3fe6a09e667f3bcdLL) >> 52;
    V m = (V)wrapping_add(wrapping_add(bits, ~(k << 52)), I{} + 1);  // bits - (k << 52)
    V e = __builtin_convertvector(k, V) - (tiny ? zero + 54.0 : zero);
    V f = m - 1.0;
    V s = f / (2.0 + f);
    V z = s * s;
    V q = zero + 1.479819860511658591e-01;
    q = q * z + 1.531383769920937332e-01;
    q = q * z + 1.818357216161805012e-01;
    q = q * z + 2.222219843214978396e-01;
    q = q * z + 2.857142874366239149e-01;
    q = q * z + 3.999999999940941908e-01;
    q = q * z + 6.666666666666735130e-01;
    q = q * z;
    V h = 0.5 * f * f;
    V r = e * 6.93147180369123816490e-01 - ((h - (s * (h + q) + e * 1.90821492927058770002e-10)) - f);
    r = x == 0.0 ? zero - __builtin_inf() : r;
    r = x < 0.0 ? zero + __builtin_nan("") : r;
    r = x == __builtin_inf() ? x : r;
    return x != x ? x : r;
}
MERCER_INLINE Vec<double> vlog(Vec<double> x) { return vlog_double<Vec<double>, IntVec<double>>(x); }

// ---- tanh (Cephes): rational near zero, 1 - 2 / (e^2x + 1) beyond ---------------------------------------------------

template <class V, class I>
MERCER_INLINE V vtanh_double(V x) {
    V zero{};
    V a = x < 0.0 ? -x : x;
    V z = x * x;
    V p = ((-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3) * z;
    V q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3;
    V near = x + x * (p / q);
    V far = 1.0 - 2.0 / (vexp_double<V, I>(vmin(2.0 * a, zero + 100.0)) + 1.0);
    far = x < 0.0 ? -far : far;
    V r = a < 0.625 ? near : far;
    return x != x ? x : r;
}
MERCER_INLINE Vec<double> vtanh(Vec<double> x) { return vtanh_double<Vec<double>, IntVec<double>>(x); }

// pow with a fixed exponent that is not an integer; x^a = e^(a log x)
template <class V, class I>
MERCER_INLINE V vpow_double(V x, double a) {
    return vexp_double<V, I>(a * vlog_double<V, I>(x));
}
MERCER_INLINE Vec<double> vpow(Vec<double> x, double a) { return vpow_double<Vec<double>, IntVec<double>>(x, a); }

// float through double: one rounding at the end, so at most a little over half an ulp
MERCER_INLINE Wide widen(Vec<float> x) { return __builtin_convertvector(x, Wide); }
MERCER_INLINE Vec<float> narrow(Wide x) { return __builtin_convertvector(x, Vec<float>); }
MERCER_INLINE Vec<float> vlog(Vec<float> x) { return narrow(vlog_double<Wide, WideInt>(widen(x))); }
MERCER_INLINE Vec<float> vtanh(Vec<float> x) { return narrow(vtanh_double<Wide, WideInt>(widen(x))); }
MERCER_INLINE Vec<float> vpow(Vec<float> x, double a) { return narrow(vpow_double<Wide, WideInt>(widen(x), a)); }

template <class T>
MERCER_INLINE Vec<T> vsqrt(Vec<T> x) {
    Vec<T> r;
    for (int i = 0; i < Simd<T>::W; ++i)
        r[i] = sizeof(T) == 4 ? T(__builtin_sqrtf(float(x[i]))) : T(__builtin_sqrt(x[i]));
    return r;
}
// The C library, lane by lane: few kernels need it, and it is accurate for every argument.
template <class T>
MERCER_INLINE Vec<T> vsin(Vec<T> x) {
    Vec<T> r;
    for (int i = 0; i < Simd<T>::W; ++i) r[i] = T(__builtin_sin(double(x[i])));
    return r;
}
template <class T>
MERCER_INLINE Vec<T> vcos(Vec<T> x) {
    Vec<T> r;
    for (int i = 0; i < Simd<T>::W; ++i) r[i] = T(__builtin_cos(double(x[i])));
    return r;
}

template <class V, class T>
MERCER_INLINE V vpow_integer(V x, int n, T) {
    bool invert = n < 0;
    unsigned e = invert ? unsigned(-n) : unsigned(n);
    V r = V{} + T(1);
    while (e) {
        if (e & 1) r = r * x;
        e >>= 1;
        if (e) x = x * x;
    }
    return invert ? T(1) / r : r;
}
