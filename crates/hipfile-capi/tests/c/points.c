/* What AMD's library does and this one does not, seen from a program: one function for each point, by its number. */

#include <pthread.h>
#include <sys/resource.h>
#include <signal.h>

#include "use.h"

static const char *folder;

static const char *in_folder(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static hipFileError_t try_register(int fd) {
    hipFileDescr_t description;
    hipFileHandle_t handle = NULL;
    description.type = hipFileHandleTypeOpaqueFD;
    description.handle.fd = fd;
    return hipFileHandleRegister(&handle, &description);
}

/* 1: a HIP error is never -1, which is the system's, and HIP's own code stays to be had in this thread. */
static void hip_errors(void) {
    int fd = make_file(in_folder("p1"), 64 * KIB, 1, 0);
    hipFileHandle_t handle = register_file(fd);
    char *memory = (char *)device_memory(64 * KIB);
    GOOD(hipFileBufRegister(memory, 64 * KIB, 0));
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
    errno = EXDEV;
    EXPECT(hipsim_fault("hipMemcpyAsync=error:1,hipMemcpyWithStream=error:1"), 0);
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), -hipFileHipDriverError);
    EXPECT(errno, EXDEV);
    EXPECT(hipPeekAtLastError(), hipErrorInvalidValue);
    /* The word is HIP's own, also for programs that find this library's function first: what was cleared is gone. */
    EXPECT(hipGetLastError(), hipErrorInvalidValue);
    EXPECT(hipPeekAtLastError(), hipSuccess);
    hipsim_reset();
}

/* 2: causes have numbers of their own. */
static void causes(void) {
    int fd = make_file(in_folder("p2"), 64 * KIB, 1, 0);
    FAILS(try_register(-1), hipFileInvalidValue);
    FAILS(try_register(1 << 20), hipFileInvalidValue);
    int path_only = open(in_folder("p2"), O_PATH);
    FAILS(try_register(path_only), hipFileInvalidValue);
    struct rlimit limit, none;
    EXPECT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)path_only + 1;
    EXPECT(setrlimit(RLIMIT_NOFILE, &none), 0);
    FAILS(try_register(fd), hipFileGetNewFDFailed);
    EXPECT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT(hipFileUseCount(), 0);
    GOOD(try_register(fd));
}

/* 5: both ways forbidden is said when the driver is opened, and is not overridden. */
static void both_forbidden(void) {
    FAILS(hipFileDriverOpen(), hipFileIODisabled);
    EXPECT(hipFileUseCount(), 0);
    int fd = make_file(in_folder("p5"), 4 * KIB, 1, 0);
    FAILS(try_register(fd), hipFileIODisabled);
    /* The parameters are those variables. */
    GOOD(hipFileSetParameterBool(hipFileParamPropertiesAllowCompatMode, true));
    GOOD(hipFileDriverOpen());
    GOOD(try_register(fd));
}

/* 6: a request that overruns its buffer is refused whatever its size, and however it would go. */
static void bounds(void) {
    int fd = make_file(in_folder("p6"), 64 * KIB, 1, 0);
    hipFileHandle_t handle = register_file(fd);
    char *memory = (char *)device_memory(64 * KIB);
    EXPECT(hipFileRead(handle, memory, 3ul << 30, 0, 0), -hipFileInvalidValue);
    EXPECT(hipFileWrite(handle, memory, 3ul << 30, 0, 0), -hipFileInvalidValue);
}

/* 7: bytes that moved before an error are told; the error comes with the next call. */
static void progress(void) {
    struct rlimit limit = {1 * MIB + 100, 1 * MIB + 100};
    int fd = make_file(in_folder("p7"), 0, 1, 0);
    hipFileHandle_t handle = register_file(fd);
    char *memory = (char *)device_memory(4 * MIB);
    fill_device(memory, 4 * MIB, 0, 2);
    TRUE(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    EXPECT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ssize_t written = hipFileWrite(handle, memory, 4 * MIB, 0, 0);
    EXPECT(written, 1 * MIB + 100);
    expect_file(fd, (size_t)written, 0, 0, 2);
    FAILS_WITH(hipFileWrite(handle, memory, 1 * MIB, written, 0), EFBIG);
}

/* 11: a descriptor's number that was closed and used again is another file; the old handle stays the old file. */
static void numbers(void) {
    int fd = make_file(in_folder("p11-a"), 4 * KIB, 1, 0);
    close(make_file(in_folder("p11-b"), 4 * KIB, 2, 0));
    hipFileHandle_t old = register_file(fd);
    close(fd);
    EXPECT(open(in_folder("p11-b"), O_RDWR), fd);
    hipFileHandle_t now = register_file(fd);
    char *memory = (char *)device_memory(4 * KIB);
    EXPECT(hipFileRead(old, memory, 4 * KIB, 0, 0), 4 * KIB);
    expect_device(memory, 4 * KIB, 0, 1);
    EXPECT(hipFileRead(now, memory, 4 * KIB, 0, 0), 4 * KIB);
    expect_device(memory, 4 * KIB, 0, 2);
    FAILS(try_register(fd), hipFileHandleAlreadyRegistered);
}

/* 12: a file is deregistered while a read of it runs: the read ends well, and its descriptors close after it. */
static hipFileHandle_t slow;
static char *slow_memory;

static void *slow_read(void *nothing) {
    (void)nothing;
    return (void *)(intptr_t)hipFileRead(slow, slow_memory, 64 * KIB, 0, 0);
}

static void under_way(void) {
    int fd = make_file(in_folder("p12"), 64 * KIB, 1, 0);
    pthread_t thread;
    void *result = NULL;
    slow = register_file(fd);
    slow_memory = (char *)device_memory(64 * KIB);
    uint64_t copies = hipsim_calls("hipMemcpyWithStream");
    EXPECT(pthread_create(&thread, NULL, slow_read, NULL), 0);
    /* From here on its copy takes 200 ms. */
    while (hipsim_calls("hipMemcpyWithStream") == copies) usleep(1000);
    hipFileHandleDeregister(slow);
    EXPECT(hipFileRead(slow, slow_memory, 4 * KIB, 0, 0), -hipFileHandleNotRegistered);
    GOOD(try_register(fd));
    EXPECT(pthread_join(thread, &result), 0);
    EXPECT((intptr_t)result, 64 * KIB);
    expect_device(slow_memory, 64 * KIB, 0, 1);
}

/* 13: kept on purpose: a registration that fails opens the driver all the same, as AMD's tests want it. */
static void failed_registration(void) {
    FAILS(hipFileBufRegister(NULL, 1, 0), hipFileInvalidValue);
    EXPECT(hipFileUseCount(), 1);
}

/* 14: stream registrations end with the last close. */
static void stream_registrations(void) {
    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    GOOD(hipFileDriverOpen());
    GOOD(hipFileStreamRegister(stream, 0xf));
    FAILS(hipFileStreamRegister(stream, 0xf), hipFileInvalidValue);
    GOOD(hipFileDriverClose());
    GOOD(hipFileStreamRegister(stream, 0));
}

/* 17: I/O counts for the GPU of its buffer, not for the thread's. */
static void counted_where_it_was(void) {
    static hipFileStatsLevel3_t stats;
    int fd = make_file(in_folder("p17"), 64 * KIB, 1, 0);
    hipFileHandle_t handle = register_file(fd);
    OK(hipSetDevice(1));
    char *memory = (char *)device_memory(64 * KIB);
    OK(hipSetDevice(0));
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
    GOOD(hipFileGetStatsL3(&stats));
    EXPECT(stats.num_gpus, 1);
    EXPECT(stats.per_gpu_stats[0].n_total_reads, 0);
    EXPECT(stats.per_gpu_stats[1].n_total_reads, 1);
    EXPECT(stats.per_gpu_stats[1].read_bytes, 64 * KIB);
    int is_named = 0, device = -1;
    for (int i = 0; i < HIPFILE_GPU_UUID_LEN; i++) is_named |= stats.per_gpu_stats[1].uuid[i];
    TRUE(is_named);
    OK(hipGetDevice(&device));
    EXPECT(device, 0);
}

int main(int count_of_arguments, char **arguments) {
    static const struct {
        int number;
        void (*run)(void);
    } points[] = {
        {1, hip_errors}, {2, causes},           {5, both_forbidden},        {6, bounds},
        {7, progress},   {11, numbers},         {12, under_way},            {13, failed_registration},
        {14, stream_registrations},             {17, counted_where_it_was},
    };
    EXPECT(count_of_arguments, 3);
    folder = arguments[1];
    int number = atoi(arguments[2]);
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        if (points[i].number == number) {
            points[i].run();
            return 0;
        }
    }
    fprintf(stderr, "there is no point %d\n", number);
    return 2;
}
