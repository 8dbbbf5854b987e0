// A file layer that fails: the n-th operation on a file below a folder, or all from the n-th on, as on a full disk.
// Built by faulty_files.py and loaded before libc; `fault_at` is called from Python.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX];
static atomic_long count, first;
static int lasting, with;

// Operations from now on are counted from 1. The first-th fails, and the later ones if `stays`; 0 fails none.
void fault_at(const char* where, long which, int stays, int error) {
    strncpy(folder, where, sizeof folder - 1);
    lasting = stays;
    with = error;
    atomic_store(&count, 0);
    atomic_store(&first, which);
}
long fault_count(void) { return count; }

static int fails(const char* path) {
    if (!folder[0] || strncmp(path, folder, strlen(folder))) return 0;
    const long now = atomic_fetch_add(&count, 1) + 1, at = first;
    if (!at || (lasting ? now < at : now != at)) return 0;
    errno = with;
    return 1;
}

static int fails_at(int file) {
    char name[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return fails(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define OF_FILE(type, name, given, passed) \
    type name given { return fails_at(file) ? -1 : REAL(name) passed; }
#define WRITES (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC)
#define OPENING(name)                                                      \
    int name(const char* path, int flags, ...) {                           \
        va_list rest;                                                      \
        va_start(rest, flags);                                             \
        const int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; \
        va_end(rest);                                                      \
        return (flags & WRITES) && fails(path) ? -1 : REAL(name)(path, flags, mode); \
    }

OPENING(open)
OPENING(open64)
OF_FILE(ssize_t, write, (int file, const void* data, size_t size), (file, data, size))
OF_FILE(ssize_t, pwrite, (int file, const void* data, size_t size, off_t at), (file, data, size, at))
OF_FILE(ssize_t, pwrite64, (int file, const void* data, size_t size, off64_t at), (file, data, size, at))
OF_FILE(int, fsync, (int file), (file))
OF_FILE(int, fdatasync, (int file), (file))
OF_FILE(int, ftruncate, (int file, off_t size), (file, size))
OF_FILE(int, ftruncate64, (int file, off64_t size), (file, size))
int rename(const char* old, const char* new) { return fails(new) ? -1 : REAL(rename)(old, new); }
int mkdir(const char* path, mode_t mode) { return fails(path) ? -1 : REAL(mkdir)(path, mode); }
int posix_fallocate(int file, off_t at, off_t size) { return fails_at(file) ? with : REAL(posix_fallocate)(file, at, size); }
int posix_fallocate64(int file, off64_t at, off64_t size) {
    return fails_at(file) ? with : REAL(posix_fallocate64)(file, at, size);
}
