// Memory that is aligned and owned. Included inside an instruction set's own namespace, and no std containers: see simd.hpp on
// shared symbols.

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

// Zeroed, on a cache line.
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
        base_ = std::malloc(size_t(n) * sizeof(T) + 64);
        if (!base_) throw std::bad_alloc();
        at_ = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(base_) + 63) & ~uintptr_t(63));
        std::memset(static_cast<void*>(at_), 0, size_t(n) * sizeof(T));
    }
    T* get() const { return at_; }
    T& operator[](int64_t i) const { return at_[i]; }

   private:
    void* base_ = nullptr;
    T* at_ = nullptr;
};

// A fixed number of objects; what was made is destroyed even where the owner's constructor throws later.
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
