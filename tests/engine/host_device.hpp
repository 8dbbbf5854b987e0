// Threads, blocks and shared memory of CUDA on the host: the threads of a block take turns from barrier to barrier.
#pragma once
#include <ucontext.h>
#include <cmath>
using std::fabs; using std::exp; using std::exp2; using std::log; using std::sqrt; using std::tanh; using std::sin;
using std::cos; using std::pow;
#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
struct Three { unsigned x, y, z; };
static Three threadIdx, blockIdx, gridDim, blockDim;
static ucontext_t scheduler;
constexpr int kMost = 64;
static ucontext_t fibers[kMost];
static char stacks[kMost][1 << 16], ended[kMost];
static int current;
static void (*body)();
static void __syncthreads() { swapcontext(&fibers[current], &scheduler); }
static void enter() { body(); ended[current] = 1; swapcontext(&fibers[current], &scheduler); }
static void run(int gx, int gy, int threads, void (*kernel)()) {
    body = kernel;
    for (blockIdx.y = 0; int(blockIdx.y) < gy; ++blockIdx.y)
        for (blockIdx.x = 0; int(blockIdx.x) < gx; ++blockIdx.x) {
            for (int t = 0; t < threads; ++t) {
                getcontext(&fibers[t]);
                fibers[t].uc_stack = {stacks[t], 0, sizeof stacks[t]};
                fibers[t].uc_link = nullptr, ended[t] = 0;
                makecontext(&fibers[t], enter, 0);
            }
            for (int left = threads; left;) {  // each thread runs to its next barrier, or to its end
                left = 0;
                for (int t = 0; t < threads; ++t) {
                    if (ended[t]) continue;
                    current = t, threadIdx.x = unsigned(t);
                    swapcontext(&scheduler, &fibers[t]);
                    left += !ended[t];
                }
            }
        }
}
