// The threads that work on one call of the engine, and how many they may be.
#pragma once
#include <cstdint>
#include <new>

namespace mercer {

// How many threads a call may use. What it is divided into may depend on this number, and on nothing that changes with
// time.
int threads();

// No more than so many from now on, whatever is set elsewhere: the quota of a control group.
void bound_threads(int most);

// work(context, t) for 0 <= t < tasks, in any order, on at most threads() threads. `work` must not throw.
void run_tasks(int64_t tasks, void (*work)(void* context, int64_t task), void* context);

namespace {  // each instruction set has its own copy: see base/simd.inl

// Runs f(task) for every task on the team. An exception must not leave a thread: memory is the only cause here.
template <class F>
void parallel(int64_t tasks, const F& f) {
    struct Call {
        const F& f;
        bool failed;
    } call{f, false};
    run_tasks(tasks, [](void* context, int64_t task) {
        Call& own = *static_cast<Call*>(context);
        try {
            own.f(task);
        } catch (...) {
            __atomic_store_n(&own.failed, true, __ATOMIC_RELAXED);
        }
    }, &call);
    if (call.failed) throw std::bad_alloc();
}

}  // namespace
}  // namespace mercer
