#define MERCER_ISA x86_64_v3
#define MERCER_ISA_NAME "x86-64-v3"
#include "isa/isa.inl"
