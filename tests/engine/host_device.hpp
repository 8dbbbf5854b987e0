// Threads, blocks, shared memory and tensor cores of CUDA on the host: the threads of a block take turns from barrier to
// barrier.
#pragma once
#include <setjmp.h>
#include <string.h>
#include <ucontext.h>
// The functions that sources call, for float and double. <cmath> would take longer to read than a program to compile.
#define OF_ONE(name) \
    static float name(float a) { return __builtin_##name##f(a); } \
    static double name(double a) { return __builtin_##name(a); }
#define OF_TWO(name) \
    static float name(float a, float b) { return __builtin_##name##f(a, b); } \
    static double name(double a, double b) { return __builtin_##name(a, b); }
OF_ONE(fabs) OF_ONE(exp) OF_ONE(exp2) OF_ONE(log) OF_ONE(sqrt) OF_ONE(tanh) OF_ONE(sin) OF_ONE(cos)
OF_TWO(pow) OF_TWO(fmin) OF_TWO(fmax)
static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
static float fabsf(float a) { return __builtin_fabsf(a); }
static float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
static int ilogbf(float a) { return __builtin_ilogbf(a); }
static float ldexpf(float a, int exponent) { return __builtin_ldexpf(a, exponent); }
#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
struct Three { unsigned x, y, z; };
static Three threadIdx, blockIdx, gridDim, blockDim;
constexpr int kMost = 64;
static ucontext_t fibers[kMost];
static jmp_buf scheduler, waiting[kMost];  // jumps take no system call, as switches of contexts do
static char stacks[kMost][1 << 16], ended[kMost], begun[kMost];
static int current, running, votes[kMost];
static void (*body)();
static void copy(void* to, const void* from) {  // at other addresses a device stops: here come no numbers
    if ((size_t(to) | size_t(from)) % 16) memset(to, 0xff, 16);
    else memcpy(to, from, 16);
}
static void commit() {}
static void rare() {}
template <int N>
static void arrived() {}
static float power_of_two(float a) { return exp2(a); }
static double power_of_two(double a) { return exp2(a); }
static void __syncthreads() {
    if (!_setjmp(waiting[current])) _longjmp(scheduler, 1);
}
static int __syncthreads_or(int vote) {
    votes[current] = vote;
    __syncthreads();
    int any = 0;
    for (int t = 0; t < running; ++t) any |= votes[t];
    __syncthreads();
    return any;
}
static double given[kMost];
template <typename Number>
static Number from_neighbour(Number value, int bit) {
    given[current] = value;
    __syncthreads();
    const Number found = Number(given[current ^ bit]);
    __syncthreads();
    return found;
}
static void enter() { body(), ended[current] = 1, _longjmp(scheduler, 1); }
static void go_on(int t) {
    current = t, threadIdx.x = unsigned(t);
    if (_setjmp(scheduler)) return;
    if (begun[t]) _longjmp(waiting[t], 1);
    begun[t] = 1, setcontext(&fibers[t]);
}
static void run(int gx, int gy, int threads, void (*kernel)()) {
    body = kernel, running = threads, gridDim = {unsigned(gx), unsigned(gy), 1};
    for (blockIdx.y = 0; int(blockIdx.y) < gy; ++blockIdx.y)
        for (blockIdx.x = 0; int(blockIdx.x) < gx; ++blockIdx.x) {
            for (int t = 0; t < threads; ++t) {
                getcontext(&fibers[t]);
                fibers[t].uc_stack = {stacks[t], 0, sizeof stacks[t]};
                fibers[t].uc_link = nullptr, ended[t] = begun[t] = 0;
                makecontext(&fibers[t], enter, 0);
            }
            for (int left = threads; left;) {  // each thread runs to its next barrier, or to its end
                left = 0;
                for (int t = 0; t < threads; ++t) {
                    if (ended[t]) continue;
                    go_on(t);
                    left += !ended[t];
                }
            }
        }
}

// ---- tensor cores ---------------------------------------------------------------------------------------------------


static unsigned half(float x) {  // to nearest, ties to even, with numbers below 2^-14 as multiples of 2^-24
    const double size = fabs(double(x)), unit = __builtin_ldexp(1.0, size < __builtin_ldexp(1.0, -14) ? -24 : __builtin_ilogb(size) - 10);
    const double whole = __builtin_nearbyint(size / unit) * unit;
    const int exponent = whole < __builtin_ldexp(1.0, -14) ? -15 : __builtin_ilogb(whole);
    const unsigned bits = exponent == -15 ? unsigned(__builtin_ldexp(whole, 24))
                                          : unsigned(exponent + 15) << 10 | (unsigned(__builtin_ldexp(whole, 10 - exponent)) & 1023);
    return bits | (__builtin_signbit(x) ? 1u << 15 : 0);
}
static float whole(unsigned bits) {
    const int exponent = bits >> 10 & 31, digits = bits & 1023;
    const float size = exponent ? ldexpf(1024 + digits, exponent - 25) : ldexpf(digits, -24);
    return bits >> 15 & 1 ? -size : size;
}
static unsigned halves(float& x, float& y) {
    const unsigned first = half(x), second = half(y);
    x -= whole(first), y -= whole(second);
    return first | second << 16;
}

#ifdef __clang__
#define WELL
#else
#define WELL __attribute__((optimize("O2")))  // the programs are compiled quickly, and these two functions well
#endif

// A sum as tensor cores take it, at their worst: each term is cut off at the last bit of the largest, and so is the sum.
WELL static float cut_off_sum(const double* terms, int count) {
    double largest = 0, sum = 0;
    for (int k = 0; k < count; ++k) largest = fmax(largest, fabs(terms[k]));
    if (!(largest > 0) || __builtin_isinf(largest)) return float(largest);
    const double unit = __builtin_ldexp(1.0, __builtin_ilogb(largest) - 23);
    for (int k = 0; k < count; ++k) sum += double((long long)(terms[k] / unit));  // below 2^24
    sum *= unit;
    if (sum == 0) return 0;
    const double last = __builtin_ldexp(1.0, __builtin_ilogb(sum) - 23);
    return float(__builtin_trunc(sum / last) * last);
}

// c += a b of a warp, with the layout of mma.m16n8k16. Threads leave their parts for the others, twice in turn, so that
// one barrier is enough.
static unsigned warps_a[2][kMost][4], warps_b[2][kMost][2];
static int turns[kMost];
WELL static void add_products(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    const int turn = turns[current] ^= 1, warp = current / 32 * 32, q = current % 32 / 4, t = current % 4;
    memcpy(warps_a[turn][current], a, sizeof a), memcpy(warps_b[turn][current], b, sizeof b);
    __syncthreads();
    for (int e = 0; e < 4; ++e) {
        double terms[17] = {c[e]};
        for (int k = 0; k < 16; ++k) {
            const int lane = k % 8 / 2, half = k / 8, shift = k % 2 ? 16 : 0;
            const unsigned left = warps_a[turn][warp + 4 * q + lane][2 * half + e / 2];
            const unsigned right = warps_b[turn][warp + 4 * (2 * t + e % 2) + lane][half];
            terms[1 + k] = double(whole(left >> shift & 0xffff)) * whole(right >> shift & 0xffff);
        }
        c[e] = cut_off_sum(terms, 17);
    }
}

// Four 8 × 8 matrices, as ldmatrix reads them.
template <typename Eight>
static void read_matrices(unsigned (&out)[4], const Eight* lines, int near, int far) {
    for (int e = 0; e < 4; ++e) out[e] = lines[e / 2 * far + e % 2 * near + current % 32 / 4].of[current % 4];
}
