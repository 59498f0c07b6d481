/* Reads and writes in the usual shapes: short, at the end of the file, far out, too large, with and without O_DIRECT. */

#include <sys/mman.h>

#include "use.h"

static const char *folder;
static int is_fast;

static const char *in_folder(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* The whole of a file and parts of it, both ways, at offsets that fit direct I/O and that do not. */
static void parts(int flags) {
    const size_t size = 3 * MIB + 512;
    static const struct { long offset, size, into; } shapes[] = {
        {0, 4 * KIB, 0},         {4 * KIB, 4 * KIB, 8 * KIB},   {1, 1, 1},         {4095, 2, 4097},
        {100, 70000, 3},         {64 * KIB, 1 * MIB, 64 * KIB}, {0, 3 * MIB, 0},   {512, 2 * MIB + 512, 512},
        {4 * KIB, 1 * MIB, 777},
    };
    int fd = make_file(in_folder("parts"), size, 1, flags);
    if (fd < 0) {
        EXPECT(errno, EINVAL);
        fprintf(stderr, "skipped O_DIRECT, because the file system does not take it\n");
        return;
    }
    hipFileHandle_t handle = register_file(fd);
    char *memory = (char *)device_memory(4 * MIB);
    GOOD(hipFileBufRegister(memory, 4 * MIB, 0));
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        long offset = shapes[i].offset, length = shapes[i].size, into = shapes[i].into;
        wipe(memory, 0xee, 4 * MIB);
        EXPECT(hipFileRead(handle, memory, length, offset, into), length);
        expect_device(memory + into, length, offset, 1);
        expect_device_is(memory, into, 0xee);
        expect_device_is(memory + into + length, 4 * KIB, 0xee);
        /* Other bytes, and the old ones back. */
        fill_device(memory + into, length, offset, 2);
        EXPECT(hipFileWrite(handle, memory, length, offset, into), length);
        expect_file(fd, length, offset, offset, 2);
        if (offset > 0) expect_file(fd, offset, 0, 0, 1);
        expect_file(fd, size - offset - length, offset + length, offset + length, 1);
        fill_device(memory + into, length, offset, 1);
        EXPECT(hipFileWrite(handle, memory, length, offset, into), length);
    }
    struct stat found;
    EXPECT(fstat(fd, &found), 0);
    EXPECT(found.st_size, size);

    /* The end of the file: what there is, and nothing. */
    wipe(memory, 0xee, 4 * MIB);
    EXPECT(hipFileRead(handle, memory, 1 * MIB, 3 * MIB, 0), 512);
    expect_device(memory, 512, 3 * MIB, 1);
    EXPECT(hipFileRead(handle, memory, 1 * MIB, 3 * MIB + 100, 0), 412);
    EXPECT(hipFileRead(handle, memory, 1 * MIB, size, 0), 0);
    EXPECT(hipFileRead(handle, memory, 1 * MIB, 64 * MIB, 0), 0);
    EXPECT(hipFileRead(handle, memory, 4 * MIB, 0, 0), size);
    expect_device(memory, size, 0, 1);

    /* Beyond it a write makes a hole. */
    fill_device(memory, 8 * KIB, 0, 3);
    EXPECT(hipFileWrite(handle, memory, 8 * KIB, 8 * MIB, 0), 8 * KIB);
    expect_file(fd, 8 * KIB, 8 * MIB, 0, 3);
    EXPECT(hipFileRead(handle, memory, 4 * KIB, 6 * MIB, 0), 4 * KIB);
    expect_device_is(memory, 4 * KIB, 0);

    /* The client's descriptor is as it was. */
    EXPECT(fcntl(fd, F_GETFL) & (O_DIRECT | O_ACCMODE), flags | O_RDWR);
    EXPECT(lseek(fd, 0, SEEK_CUR), 0);
    hipFileHandleDeregister(handle);
    GOOD(hipFileBufDeregister(memory));
    OK(hipFree(memory));
    close(fd);
}

/* Offsets for which 32 and 40 bits are too few. */
static void far_out(void) {
    const int64_t far_offsets[] = {0xfffff000, (1ll << 40) + PAGE, (1ll << 43) + 12345};
    int fd = make_file(in_folder("far"), 0, 0, 0);
    hipFileHandle_t handle = register_file(fd);
    char *memory = (char *)device_memory(64 * KIB);
    for (size_t i = 0; i < sizeof far_offsets / sizeof far_offsets[0]; i++) {
        int64_t offset = far_offsets[i];
        fill_device(memory, 16 * KIB, offset, 4);
        ssize_t written = hipFileWrite(handle, memory, 16 * KIB, offset, 0);
        if (written == -1 && errno == EFBIG) {
            fprintf(stderr, "skipped offset %lld, because files are not as large here\n", (long long)offset);
            continue;
        }
        EXPECT(written, 16 * KIB);
        expect_file(fd, 16 * KIB, offset, offset, 4);
        wipe(memory, 0, 64 * KIB);
        EXPECT(hipFileRead(handle, memory, 64 * KIB, offset, 0), 16 * KIB);
        expect_device(memory, 16 * KIB, offset, 4);
    }
    FAILS_WITH(hipFileWrite(handle, memory, 1, INT64_MAX, 0), EINVAL); /* as pwrite */
    hipFileHandleDeregister(handle);
    OK(hipFree(memory));
    close(fd);
}

/* One call moves what Linux moves in one, and says so; the range is checked before. */
static void too_large(void) {
    const size_t most = 0x7ffff000, size = most + MIB;
    int fd = make_file(in_folder("large"), 0, 0, 0);
    EXPECT(ftruncate(fd, size), 0);
    unsigned char *tail = filled(4 * KIB, 0, 5);
    EXPECT(pwrite(fd, tail, 4 * KIB, most - 4 * KIB), 4 * KIB);
    free(tail);
    hipFileHandle_t handle = register_file(fd);
    char *memory = (char *)device_memory(size);
    wipe(memory + most, 0xee, 4 * KIB);
    EXPECT(hipFileRead(handle, memory, size, 0, 0), most);
    expect_device(memory + most - 4 * KIB, 4 * KIB, 0, 5);
    expect_device_is(memory + most, 4 * KIB, 0xee);
    EXPECT(hipFileRead(handle, memory, size + 1, 0, 0), -hipFileInvalidValue);
    hipFileHandleDeregister(handle);
    OK(hipFree(memory));
    close(fd);
}

/* What the descriptor does not allow is the system's error. */
static void rights(void) {
    close(make_file(in_folder("rights"), 8 * KIB, 1, 0));
    int reader = open(in_folder("rights"), O_RDONLY), writer = open(in_folder("rights"), O_WRONLY);
    hipFileHandle_t read_only = register_file(reader), write_only = register_file(writer);
    char *memory = (char *)device_memory(8 * KIB);
    EXPECT(hipFileRead(read_only, memory, 8 * KIB, 0, 0), 8 * KIB);
    expect_device(memory, 8 * KIB, 0, 1);
    FAILS_WITH(hipFileWrite(read_only, memory, 8 * KIB, 0, 0), EBADF);
    EXPECT(hipFileWrite(write_only, memory, 8 * KIB, 0, 0), 8 * KIB);
    FAILS_WITH(hipFileRead(write_only, memory, 8 * KIB, 0, 0), EBADF);
    hipFileHandleDeregister(read_only);
    hipFileHandleDeregister(write_only);
    OK(hipFree(memory));
    close(reader);
    close(writer);
}

static void sleep_a_while(void *nothing) {
    (void)nothing;
    usleep(50000);
}

/* What is in the default stream comes before a call that takes the fallback, as before hipMemcpy. */
static void after_the_default_stream(void) {
    int fd = make_file(in_folder("default"), 64 * KIB, 1, 0);
    hipFileHandle_t handle = register_file(fd);
    char *memory = (char *)device_memory(64 * KIB), *host = NULL;
    OK(hipLaunchHostFunc(NULL, sleep_a_while, NULL));
    OK(hipMemset(memory, 0xee, 64 * KIB));
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
    expect_device(memory, 64 * KIB, 0, 1);
    OK(hipHostMalloc((void **)&host, 64 * KIB, 0));
    for (long i = 0; i < 64 * KIB; i++) host[i] = (char)pattern((uint64_t)i, 2);
    OK(hipLaunchHostFunc(NULL, sleep_a_while, NULL));
    OK(hipMemcpyAsync(memory, host, 64 * KIB, hipMemcpyHostToDevice, NULL));
    EXPECT(hipFileWrite(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
    expect_file(fd, 64 * KIB, 0, 0, 2);
    hipFileHandleDeregister(handle);
    OK(hipHostFree(host));
    OK(hipFree(memory));
    close(fd);
}

/* Which way they went: aligned requests directly, if anything can. */
static void paths(void) {
    hipFileStatsLevel1_t before, after;
    hipFileStatsLevel2_t sizes;
    int fd = make_file(in_folder("paths"), 1 * MIB, 1, 0);
    hipFileHandle_t handle = register_file(fd);
    char *memory = (char *)device_memory(1 * MIB);
    GOOD(hipFileGetStatsL1(&before));
    EXPECT(hipFileRead(handle, memory, 1 * MIB, 0, 0), 1 * MIB);
    EXPECT(hipFileRead(handle, memory, 3, 1, 0), 3);
    EXPECT(hipFileWrite(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
    GOOD(hipFileGetStatsL1(&after));
    EXPECT(after.read_ops.ok - before.read_ops.ok, 2);
    EXPECT(after.write_ops.ok - before.write_ops.ok, 1);
    EXPECT(after.read_bytes - before.read_bytes, 1 * MIB + 3);
    EXPECT(after.write_bytes - before.write_bytes, 64 * KIB);
    EXPECT(after.read_ops.err + after.write_ops.err, before.read_ops.err + before.write_ops.err);
    GOOD(hipFileGetStatsL2(&sizes));
    EXPECT(sizes.basic.read_bytes, after.read_bytes);
    TRUE(sizes.read_size_kb_hist[0] >= 1);
    TRUE(sizes.read_size_kb_hist[9] >= 1);
    TRUE(sizes.write_size_kb_hist[5] >= 1);
    static hipFileStatsLevel3_t gpus;
    GOOD(hipFileGetStatsL3(&gpus));
    EXPECT(gpus.num_gpus, 1);
    EXPECT(gpus.per_gpu_stats[0].n_nvfs_reads > 0, is_fast);
    EXPECT(gpus.per_gpu_stats[0].n_nvfs_writes > 0, is_fast);
    TRUE(gpus.per_gpu_stats[0].n_posix_reads > 0);
    EXPECT(hipsim_calls("hipAmdFileRead") > 0, is_fast);
    EXPECT(hipsim_calls("hipAmdFileWrite") > 0, is_fast);
    hipFileHandleDeregister(handle);
    OK(hipFree(memory));
    close(fd);
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 4);
    folder = arguments[1];
    is_fast = strcmp(arguments[2], "fast") == 0;
    parts(0);
    parts(O_DIRECT);
    far_out();
    rights();
    paths();
    if (!is_fast) after_the_default_stream();
    if (strcmp(arguments[3], "large") == 0) too_large();
    GOOD(hipFileDriverClose());
    return 0;
}
