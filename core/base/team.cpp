// A team of threads that sleep while they have nothing to do.
//
// An OpenMP region ends when every thread of the team has passed through it, even one that had no processor; between
// regions OpenMP's threads spin. If other processes run, both cost whole time slices. Here any thread that is awake
// takes the next task. The caller closes the round when no task is left, and waits only for helpers in the middle of a
// task.
#include "base/team.hpp"

#include <atomic>
#include <cstdlib>
#include <system_error>
#include <thread>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace mercer {
namespace {

constexpr int kMost = 1024;
// How often a thread looks before it goes to sleep: some 30 microseconds, about the time that waking a thread takes.
constexpr int kPatience = 1000;

void rest() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Returns when `value` is no longer `old`.
void await_change(const std::atomic<uint32_t>& value, uint32_t old) {
    for (int turn = 0; turn < kPatience; ++turn, rest())
        if (value.load(std::memory_order_acquire) != old) return;
    value.wait(old, std::memory_order_acquire);
}

class Team {
   public:
    // False if another call uses the team.
    bool run(int64_t tasks, int helpers, void (*work)(void*, int64_t), void* context) {
        if (taken_.exchange(true, std::memory_order_acquire)) return false;
        helpers = enlist(helpers);
        next_.store(0, std::memory_order_relaxed);
        tasks_ = tasks, work_ = work, context_ = context;
        gate_.store(uint32_t(helpers) * kPlace, std::memory_order_release);
        round_.fetch_add(1, std::memory_order_release);
        if (helpers == size_)
            round_.notify_all();
        else
            for (int i = 0; i < helpers; ++i) round_.notify_one();
        take_tasks();
        // This closes the gate: helpers that arrive now are too late.
        uint32_t inside = gate_.fetch_and(kInside, std::memory_order_acq_rel) & kInside;
        for (; inside; inside = gate_.load(std::memory_order_acquire)) await_change(gate_, inside);
        taken_.store(false, std::memory_order_release);
        return true;
    }

   private:
    // The gate counts free places in its high bits and helpers inside in its low bits.
    static constexpr uint32_t kPlace = 1 << 16, kInside = kPlace - 1;

    // Starts helpers until there are `wanted`; fewer if the system has no more threads.
    int enlist(int wanted) {
        for (; size_ < wanted; ++size_) try {
                std::thread([this] { help(); }).detach();
            } catch (const std::system_error&) {
                return size_;
            }
        return wanted;
    }

    void help() {
        for (uint32_t seen = 0;;) {
            const uint32_t round = round_.load(std::memory_order_acquire);
            if (round == seen) {
                await_change(round_, seen);
                continue;
            }
            seen = round;
            if (!enter()) continue;
            take_tasks();
            if (gate_.fetch_sub(1, std::memory_order_acq_rel) == 1) gate_.notify_one();  // closed, and the last one
        }
    }

    bool enter() {
        uint32_t gate = gate_.load(std::memory_order_acquire);
        while (gate >= kPlace)
            if (gate_.compare_exchange_weak(gate, gate - kPlace + 1, std::memory_order_acq_rel)) return true;
        return false;
    }

    void take_tasks() {
        for (int64_t t; (t = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_;) work_(context_, t);
    }

    std::atomic<bool> taken_{false};
    std::atomic<uint32_t> round_{0}, gate_{0};
    std::atomic<int64_t> next_{0};
    int64_t tasks_ = 0;
    void (*work_)(void*, int64_t) = nullptr;
    void* context_ = nullptr;
    int size_ = 0;
};

std::atomic<bool> forked{false};
std::atomic<int> bound{kMost};

Team& team() {
    static Team* const one = new Team;  // never destroyed: its threads sleep in it when the process ends
    return *one;
}

[[maybe_unused]] const bool watches_forks = [] {
#if defined(__unix__) || defined(__APPLE__)
    // Threads do not survive a fork: the child would wait for them for ever.
    pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
#endif
    return true;
}();

}  // namespace

int threads() {
    if (forked.load(std::memory_order_relaxed)) return 1;
#if defined(_OPENMP)
    // Only the setting is OpenMP's, because other libraries know how to change it. The threads are our own.
    const int number = omp_get_max_threads();
    const int most = bound.load(std::memory_order_relaxed);
#else
    static const int chosen = [] {
        const char* text = std::getenv("OMP_NUM_THREADS");  // obeyed without OpenMP, too
        const int given = text ? std::atoi(text) : 0;
        return given > 0 ? given : int(std::thread::hardware_concurrency());
    }();
    // Nobody can change the environment's number, so a bound takes its place, and may be larger.
    const int most = bound.load(std::memory_order_relaxed), number = most < kMost ? most : chosen;
#endif
    return number < 1 ? 1 : number < most ? number : most;
}

void bound_threads(int most) { bound.store(most < 1 ? 1 : most < kMost ? most : kMost); }

void run_tasks(int64_t tasks, void (*work)(void*, int64_t), void* context) {
    const int64_t most = threads() < tasks ? threads() : tasks;
    if (most > 1 && team().run(tasks, int(most - 1), work, context)) return;
    for (int64_t t = 0; t < tasks; ++t) work(context, t);
}

}  // namespace mercer
