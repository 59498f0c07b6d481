/* Ways to end a process with work under way, by the name in argument 1. Each must end, and soon. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "hipsim.h"

static void forever(void *argument) {
    (void)argument;
    for (;;) pause();
}

static void a_while(void *argument) {
    usleep(100000);
    *(int *)argument = 1;
}

static int finished;
static hipStream_t stream;
static void *memory;

static void *synchronize(void *argument) {
    (void)argument;
    if (hipStreamSynchronize(stream) == hipSuccess) {
        fprintf(stderr, "work that never ended was reported as done\n");
        _exit(2);
    }
    return NULL;
}

/* Runs after the simulation's own end: what waits for work that never ended is not done either. */
static void too_late(void) {
    char byte;
    if (hipMemcpyWithStream(&byte, memory, 1, hipMemcpyDeviceToHost, stream) != hipErrorDeinitialized) _exit(4);
    usleep(20000);
}

static void report(void) {
    if (!finished) _exit(3);
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "";
    uint64_t *signal;
    pthread_t thread;
    if (strcmp(way, "host-function") == 0) atexit(report);
    if (strcmp(way, "wait-value") == 0) atexit(too_late);
    if (strcmp(way, "fork-before") == 0) {
        pid_t child = fork();
        int status;
        if (child == 0) {
            OK(hipMalloc(&memory, 1));
            exit(0);
        }
        EXPECT(waitpid(child, &status, 0), child);
        EXPECT(status, 0);
    }
    OK(hipMalloc(&memory, 4096));
    OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    OK(hipExtMallocWithFlags((void **)&signal, 8, hipMallocSignalMemory));
    *signal = 0;
    if (strcmp(way, "wait-value") == 0) {
        OK(hipStreamWaitValue64(stream, signal, 1, hipStreamWaitValueEq, UINT64_MAX));
        EXPECT(pthread_create(&thread, NULL, synchronize, NULL), 0);
        usleep(20000);
    } else if (strcmp(way, "host-function") == 0) {
        /* One that is running is waited for before the handlers that were there first. */
        OK(hipLaunchHostFunc(stream, a_while, &finished));
        usleep(20000);
    } else if (strcmp(way, "stuck") == 0) {
        OK(hipLaunchHostFunc(stream, forever, NULL));
        usleep(20000);
    } else if (strcmp(way, "queued") == 0) {
        for (int i = 0; i < 10000; i++) OK(hipMemsetAsync(memory, i, 4096, stream));
    } else if (strcmp(way, "fork-after") == 0) {
        pid_t child;
        int status;
        OK(hipLaunchHostFunc(stream, a_while, &finished));
        child = fork();
        if (child == 0) {
            void *other;
            int version;
            EXPECT(hipMalloc(&other, 1), hipErrorNotInitialized);
            EXPECT(hipMemset(memory, 1, 1), hipErrorNotInitialized);
            EXPECT(hipStreamSynchronize(stream), hipErrorNotInitialized);
            EXPECT(hipStreamDestroy(stream), hipErrorNotInitialized);
            EXPECT(hipFree(memory), hipErrorNotInitialized);
            EXPECT(hipRuntimeGetVersion(&version), hipErrorNotInitialized);
            EXPECT(hipGetLastError(), hipErrorNotInitialized);
            exit(0);
        }
        EXPECT(waitpid(child, &status, 0), child);
        EXPECT(status, 0);
        OK(hipStreamSynchronize(stream));
        EXPECT(finished, 1);
    } else {
        EXPECT(strcmp(way, "fork-before"), 0);
    }
    return 0;
}
