#define MERCER_ISA baseline
#if defined(__aarch64__)
#define MERCER_ISA_NAME "aarch64"
#elif defined(__x86_64__) || defined(_M_X64)
#define MERCER_ISA_NAME "x86-64-v2"
#else
#define MERCER_ISA_NAME "baseline"
#endif
#include "isa/isa.inl"
