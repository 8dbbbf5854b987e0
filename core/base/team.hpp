// The threads that work on a call of the engine.
#pragma once
#include <cstdint>
#include <new>

namespace mercer {

// How many threads a call may use. A call's division into tasks may depend on this number, but not on what changes from
// run to run.
int threads();

// Limits threads() from now on, whatever OpenMP says: a control group may have a quota.
// Without OpenMP this sets threads().
void bound_threads(int most);

// work(context, t) for 0 <= t < tasks, in any order, on at most threads() threads. `work` must not throw.
void run_tasks(int64_t tasks, void (*work)(void* context, int64_t task), void* context);

namespace {  // each instruction set has its own copy: see base/simd.inl

// Runs f(task) for every task on the team. An exception must not leave a thread; only memory can run out here.
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
