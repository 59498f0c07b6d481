/*
 * Calls hipFile as fio's engine does: the driver is opened once in a process, one buffer for each job, whose pieces are at
 * index * block size, one file for each job with O_DIRECT, loops on short transfers. Jobs are threads, or forked processes.
 */

#include <pthread.h>
#include <sys/wait.h>

#include "use.h"

enum { JOBS = 4, DEPTH = 16, BLOCK = 64 * 1024, BLOCKS = 256 };

static const char *folder;

static int transfer(hipFileHandle_t handle, char *buffer, int is_write, long index, long offset) {
    size_t done = 0;
    while (done < BLOCK) {
        ssize_t moved = is_write
                            ? hipFileWrite(handle, buffer, BLOCK - done, offset + (long)done, index * BLOCK + (long)done)
                            : hipFileRead(handle, buffer, BLOCK - done, offset + (long)done, index * BLOCK + (long)done);
        if (moved == -1) return errno;
        if (moved < 0) {
            fprintf(stderr, "%s\n", HIPFILE_ERRSTR(moved));
            return EIO;
        }
        if (moved == 0) return EIO;
        done += (size_t)moved;
    }
    return 0;
}

static void *job(void *argument) {
    long number = (long)(intptr_t)argument;
    unsigned seed = (unsigned)number;
    char path[4096];
    snprintf(path, sizeof path, "%s/fio-%ld", folder, number);
    OK(hipSetDevice((int)number % 2));
    char *buffer = (char *)device_memory(DEPTH * BLOCK);
    GOOD(hipFileBufRegister(buffer, DEPTH * BLOCK, 0));
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (fd < 0 && errno == EINVAL) fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    TRUE(fd >= 0);
    hipFileHandle_t handle = register_file(fd);
    for (long block = 0; block < BLOCKS; block++) {
        long index = block % DEPTH;
        fill_device(buffer + index * BLOCK, BLOCK, (uint64_t)block * BLOCK, seed);
        EXPECT(transfer(handle, buffer, 1, index, block * BLOCK), 0);
    }
    expect_file(fd, BLOCKS * BLOCK, 0, 0, seed);
    for (long step = 0; step < BLOCKS; step++) {
        long block = step * 37 % BLOCKS, index = step % DEPTH;
        EXPECT(transfer(handle, buffer, 0, index, block * BLOCK), 0);
        expect_device(buffer + index * BLOCK, BLOCK, (uint64_t)block * BLOCK, seed);
    }
    hipFileHandleDeregister(handle);
    close(fd);
    GOOD(hipFileBufDeregister(buffer));
    OK(hipFree(buffer));
    return NULL;
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 3);
    folder = arguments[1];
    if (strcmp(arguments[2], "threads") == 0) {
        GOOD(hipFileDriverOpen());
        pthread_t threads[JOBS];
        for (long i = 0; i < JOBS; i++) EXPECT(pthread_create(&threads[i], NULL, job, (void *)(intptr_t)i), 0);
        for (int i = 0; i < JOBS; i++) EXPECT(pthread_join(threads[i], NULL), 0);
        GOOD(hipFileDriverClose());
        return 0;
    }
    /* The parent has asked for the library's state before it forks, as a program that parses its options may. */
    EXPECT(hipFileUseCount(), 0);
    pid_t jobs[JOBS];
    for (long i = 0; i < JOBS; i++) {
        jobs[i] = fork();
        if (jobs[i] == 0) {
            GOOD(hipFileDriverOpen());
            job((void *)(intptr_t)i);
            GOOD(hipFileDriverClose());
            exit(0);
        }
    }
    for (int i = 0; i < JOBS; i++) {
        int status = 0;
        EXPECT(waitpid(jobs[i], &status, 0), jobs[i]);
        EXPECT(status, 0);
    }
    return 0;
}
