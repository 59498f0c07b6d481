/* 64 threads and as many files as said, registered, read, written and let go; handles that come and go under I/O. */

#include <pthread.h>
#include <sys/resource.h>

#include "use.h"

enum { THREADS = 64 };

static const char *folder;
static int files;
static pthread_barrier_t barrier;

static void path_of(char *path, long number) { snprintf(path, 4096, "%s/many-%ld", folder, number); }

static void *work(void *argument) {
    long me = (long)(intptr_t)argument;
    char path[4096];
    char *memory = (char *)device_memory(16 * KIB);
    pthread_barrier_wait(&barrier);
    /* From a count of zero, all at once: the driver opens once. */
    GOOD(hipFileBufRegister(memory, 16 * KIB, 0));
    pthread_barrier_wait(&barrier);
    EXPECT(hipFileUseCount(), 1);
    for (long number = me; number < files; number += THREADS) {
        path_of(path, number);
        int fd = make_file(path, 8 * KIB, (unsigned)number, 0);
        hipFileHandle_t handle = register_file(fd);
        EXPECT(hipFileRead(handle, memory, 16 * KIB, 0, 0), 8 * KIB);
        expect_device(memory, 8 * KIB, 0, (unsigned)number);
        fill_device(memory, 8 * KIB, 0, (unsigned)number + 1);
        EXPECT(hipFileWrite(handle, memory, 8 * KIB, 8 * KIB, 0), 8 * KIB);
        expect_file(fd, 8 * KIB, 8 * KIB, 0, (unsigned)number + 1);
        if (number % 2) hipFileHandleDeregister(handle);
        if (number % 3) {
            close(fd);
            unlink(path);
        }
    }
    GOOD(hipFileBufDeregister(memory));
    OK(hipFree(memory));
    return NULL;
}

/* A number that is closed and means another file now is that other file, and the old handle still the old one. */
static void reused_number(void) {
    char first[4096], second[4096];
    path_of(first, 1000001);
    path_of(second, 1000002);
    int fd = make_file(first, 8 * KIB, 1, 0);
    close(make_file(second, 8 * KIB, 2, 0));
    hipFileHandle_t old = register_file(fd);
    close(fd);
    int again = open(second, O_RDWR);
    EXPECT(again, fd);
    hipFileHandle_t now = register_file(again);
    TRUE(now != old);
    char *memory = (char *)device_memory(8 * KIB);
    EXPECT(hipFileRead(old, memory, 8 * KIB, 0, 0), 8 * KIB);
    expect_device(memory, 8 * KIB, 0, 1);
    EXPECT(hipFileRead(now, memory, 8 * KIB, 0, 0), 8 * KIB);
    expect_device(memory, 8 * KIB, 0, 2);
    hipFileHandleDeregister(old);
    EXPECT(hipFileRead(now, memory, 8 * KIB, 0, 0), 8 * KIB);
    hipFileHandleDeregister(now);
    OK(hipFree(memory));
    close(again);
}

static int over, started;
static hipFileHandle_t shared;

static void *reader(void *memory) {
    long done = 0;
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
        hipFileHandle_t handle = __atomic_load_n(&shared, __ATOMIC_SEQ_CST);
        ssize_t got = hipFileRead(handle, memory, 64 * KIB, 0, 0);
        TRUE(got == 64 * KIB || got == -hipFileHandleNotRegistered || (got == -1 && errno == EINVAL));
        if (got == 64 * KIB && done++ == 0) __atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
    }
    expect_device(memory, 64 * KIB, 0, 1);
    return (void *)(intptr_t)done;
}

/* Deregistration and the last close do not wait for I/O, nor does I/O suffer from them. */
static void under_way(void) {
    char path[4096];
    path_of(path, 1000003);
    int fd = make_file(path, 64 * KIB, 1, 0);
    pthread_t threads[4];
    void *memory[4];
    shared = register_file(fd);
    for (int i = 0; i < 4; i++) {
        memory[i] = device_memory(64 * KIB);
        EXPECT(hipFileRead(shared, memory[i], 64 * KIB, 0, 0), 64 * KIB);
        EXPECT(pthread_create(&threads[i], NULL, reader, memory[i]), 0);
    }
    /* On a busy machine a thread may come to nothing for long. */
    for (int i = 0; i < 200 || __atomic_load_n(&started, __ATOMIC_SEQ_CST) < 4; i++) {
        usleep(200);
        if (i % 3 == 2) {
            GOOD(hipFileDriverClose());
        } else {
            hipFileHandleDeregister(shared);
        }
        __atomic_store_n(&shared, register_file(fd), __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 4; i++) {
        void *done = NULL;
        EXPECT(pthread_join(threads[i], &done), 0);
        TRUE((intptr_t)done > 0);
        OK(hipFree(memory[i]));
    }
    GOOD(hipFileDriverClose());
    close(fd);
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 3);
    folder = arguments[1];
    files = atoi(arguments[2]);
    struct rlimit limit;
    EXPECT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    EXPECT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i), 0);
    }
    for (int i = 0; i < THREADS; i++) EXPECT(pthread_join(threads[i], NULL), 0);
    EXPECT(hipFileUseCount(), 1);
    GOOD(hipFileDriverClose());
    reused_number();
    GOOD(hipFileDriverClose());
    under_way();
    return 0;
}
