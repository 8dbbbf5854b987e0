"""The engine for NVIDIA devices: CUDA C++ written from the program, compiled when it is first used."""
