/* What the programs share: a client's own small helpers around HIP and hipFile. */
#ifndef USE_H
#define USE_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "hipfile.h"
#include "hipsim.h"

#define KIB 1024l
#define MIB (1024l * 1024)
#define PAGE 4096l

static inline void expect_status(int line, const char *what, hipFileError_t found, int code, int hip) {
    if ((int)found.err == code && (int)found.hip_drv_err == hip) return;
    fprintf(stderr, "line %d: %s: expected %d and %d, found %d and %d\n", line, what, code, hip, (int)found.err,
            (int)found.hip_drv_err);
    exit(1);
}

/* A call that returns hipFileError_t. */
#define FAILS(call, code) expect_status(__LINE__, #call, call, code, hipSuccess)
#define GOOD(call) FAILS(call, hipFileSuccess)
/* The same with an error of HIP. */
#define FAILS_IN_HIP(call, code) expect_status(__LINE__, #call, call, hipFileHipDriverError, code)

/* A call that returns -1 with errno. */
#define FAILS_WITH(call, number) \
    do {                         \
        errno = 0;               \
        EXPECT(call, -1);        \
        EXPECT(errno, number);   \
    } while (0)

#define TRUE(what) EXPECT(!!(what), 1)

static inline void *device_memory(size_t size) {
    void *memory = NULL;
    OK(hipMalloc(&memory, size));
    return memory;
}

/* hipMemset returns before it is done, and I/O past the host does not wait for the default stream. */
static inline void wipe(void *memory, int value, size_t size) {
    OK(hipMemset(memory, value, size));
    OK(hipStreamSynchronize(NULL));
}

/* Bytes that differ from place to place and from seed to seed. */
static inline unsigned char pattern(uint64_t at, unsigned seed) {
    uint64_t mixed = (at + 1) * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
    return (unsigned char)(mixed >> 37);
}

static inline unsigned char *filled(size_t size, uint64_t at, unsigned seed) {
    unsigned char *bytes = (unsigned char *)malloc(size + 1);
    for (size_t i = 0; i < size; i++) bytes[i] = pattern(at + i, seed);
    return bytes;
}

static inline int make_file(const char *path, size_t size, unsigned seed, int flags) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    TRUE(fd >= 0);
    unsigned char *bytes = filled(size, 0, seed);
    EXPECT(pwrite(fd, bytes, size, 0), size);
    free(bytes);
    if (flags == 0) return fd;
    close(fd);
    return open(path, O_RDWR | flags);
}

static inline hipFileHandle_t register_file(int fd) {
    hipFileDescr_t description;
    hipFileHandle_t handle = NULL;
    /* fs_ops is left as it is: of a descriptor nothing else is looked at. */
    memset(&description, 0xee, sizeof description);
    description.type = hipFileHandleTypeOpaqueFD;
    description.handle.fd = fd;
    GOOD(hipFileHandleRegister(&handle, &description));
    TRUE(handle != NULL);
    return handle;
}

/* GPU memory holds the pattern, and nothing around it changed. */
static inline void expect_device(const void *memory, size_t size, uint64_t at, unsigned seed) {
    unsigned char *bytes = (unsigned char *)malloc(size + 1);
    OK(hipMemcpy(bytes, memory, size, hipMemcpyDeviceToHost));
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != pattern(at + i, seed)) {
            fprintf(stderr, "byte %zu of %zu is wrong\n", i, size);
            exit(1);
        }
    }
    free(bytes);
}

static inline void expect_device_is(const void *memory, size_t size, int value) {
    unsigned char *bytes = (unsigned char *)malloc(size + 1);
    OK(hipMemcpy(bytes, memory, size, hipMemcpyDeviceToHost));
    for (size_t i = 0; i < size; i++) EXPECT(bytes[i], value);
    free(bytes);
}

static inline void fill_device(void *memory, size_t size, uint64_t at, unsigned seed) {
    unsigned char *bytes = filled(size, at, seed);
    OK(hipMemcpy(memory, bytes, size, hipMemcpyHostToDevice));
    free(bytes);
}

static inline void expect_file(int fd, size_t size, uint64_t offset, uint64_t at, unsigned seed) {
    unsigned char *bytes = (unsigned char *)aligned_alloc(PAGE, (size + PAGE) / PAGE * PAGE);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int plain = open(path, O_RDONLY);
    TRUE(plain >= 0);
    EXPECT(pread(plain, bytes, size, (off_t)offset), size);
    close(plain);
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != pattern(at + i, seed)) {
            fprintf(stderr, "byte %zu of the file's %zu from %" PRIu64 " is wrong\n", i, size, offset);
            exit(1);
        }
    }
    free(bytes);
}

/* Requests that took the fastpath and the fallback so far, both ways. */
static inline void expect_paths(uint64_t fast, uint64_t slow) {
    static hipFileStatsLevel3_t stats;
    uint64_t found_fast = 0, found_slow = 0;
    GOOD(hipFileGetStatsL3(&stats));
    for (int i = 0; i < HIPFILE_MAX_GPUS; i++) {
        const hipFilePerGpuStats_t *gpu = &stats.per_gpu_stats[i];
        found_fast += gpu->n_nvfs_reads + gpu->n_nvfs_writes;
        found_slow += gpu->n_posix_reads + gpu->n_posix_writes;
    }
    EXPECT(found_fast, fast);
    EXPECT(found_slow, slow);
}

#endif
