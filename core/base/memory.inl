// Aligned memory with an owner. Each instruction set has its own copy, without std containers: base/simd.inl says why.

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
constexpr int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

// Asks for large pages, as NumPy does for its arrays: the first touch of memory in pages of 4 kB costs more than
// filling it.
inline void ask_for_large_pages([[maybe_unused]] void* at, [[maybe_unused]] size_t bytes) {
#if defined(MADV_HUGEPAGE)
    constexpr uintptr_t page = 4096;
    const uintptr_t first = (reinterpret_cast<uintptr_t>(at) + page - 1) & ~(page - 1),
                    last = (reinterpret_cast<uintptr_t>(at) + bytes) & ~(page - 1);
    if (bytes >= size_t(1) << 22) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

// Blocks that a thread gave back last, of at most 4 MB together. The C library returns such blocks to the system;
// where two threads did so for each task, a product with 26 vectors took 6 ms instead of 1.4 (n = 2048), most of it in
// the system. Blocks of the very size are taken, and nobody may use them meanwhile, so that sanitizers notice what is
// read or written beyond them, or after they were given back.
class Spares {
   public:
    ~Spares() {
        for (const Block& one : blocks_) std::free(one.at);
    }
    // A block of exactly so many bytes, not cleared; null if there is none.
    void* take(size_t bytes) {
        for (Block& one : blocks_)
            if (one.at && one.bytes == bytes) {
                void* at = one.at;
                one.at = nullptr;
                ASAN_UNPOISON_MEMORY_REGION(at, bytes);
                return at;
            }
        return nullptr;
    }
    // The oldest block makes room.
    void give(void* at, size_t bytes) {
        Block& one = blocks_[next_];
        next_ = (next_ + 1) % kSpares;
        std::free(one.at);
        ASAN_POISON_MEMORY_REGION(at, bytes);
        one = {at, bytes};
    }
    static bool holds(size_t bytes) { return bytes >= size_t(1) << 16 && bytes < size_t(1) << 20; }

   private:
    struct Block {
        void* at = nullptr;
        size_t bytes = 0;
    };
    static constexpr int kSpares = 4;
    Block blocks_[kSpares];
    int next_ = 0;
};
inline thread_local Spares spares;

// Zeros that begin on a cache line. Pages of a large buffer are first touched by the thread that writes them.
template <class T>
class Buffer {
   public:
    Buffer() = default;
    explicit Buffer(int64_t n) { reset(n); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { release(); }
    void reset(int64_t n) {
        release();
        bytes_ = size_t(n) * sizeof(T) + 64;
        base_ = Spares::holds(bytes_) ? spares.take(bytes_) : nullptr;
        if (base_)
            std::memset(base_, 0, bytes_);
        else if (!(base_ = std::calloc(1, bytes_)))
            throw std::bad_alloc();
        ask_for_large_pages(base_, bytes_);
        at_ = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(base_) + 63) & ~uintptr_t(63));
    }
    T* get() const { return at_; }
    T& operator[](int64_t i) const { return at_[i]; }

   private:
    void release() {
        if (Spares::holds(bytes_) && base_)
            spares.give(base_, bytes_);
        else
            std::free(base_);
        base_ = nullptr;
    }
    void* base_ = nullptr;
    size_t bytes_ = 0;
    T* at_ = nullptr;
};

// A fixed number of objects. They are destroyed even if the owner's constructor throws later.
template <class T>
class Owned {
   public:
    explicit Owned(int n) : at_(new T[size_t(n > 0 ? n : 1)]) {}
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() { delete[] at_; }
    T& operator[](int i) const { return at_[i]; }

   private:
    T* at_;
};
