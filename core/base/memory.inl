// Aligned memory with an owner. Each instruction set has its own copy, without std containers: base/simd.inl says why.

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

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

// Zeros that begin on a cache line. Pages of a large buffer are first touched by the thread that writes them.
template <class T>
class Buffer {
   public:
    Buffer() = default;
    explicit Buffer(int64_t n) { reset(n); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(base_); }
    void reset(int64_t n) {
        std::free(base_);
        const size_t bytes = size_t(n) * sizeof(T) + 64;
        base_ = std::calloc(1, bytes);
        if (!base_) throw std::bad_alloc();
        ask_for_large_pages(base_, bytes);
        at_ = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(base_) + 63) & ~uintptr_t(63));
    }
    T* get() const { return at_; }
    T& operator[](int64_t i) const { return at_[i]; }

   private:
    void* base_ = nullptr;
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
