/* Streams: order, what waits for what, host functions, wait values, events, and errors that come later. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "hipsim.h"

/* A host function that waits until it is let go. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int open;
} gate_t;

#define GATE {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}

static void pass(void *argument) {
    gate_t *gate = argument;
    pthread_mutex_lock(&gate->mutex);
    while (!gate->open) pthread_cond_wait(&gate->changed, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
}

static void open_gate(gate_t *gate) {
    pthread_mutex_lock(&gate->mutex);
    gate->open = 1;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

static void count_up(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

static int order[1000];
static int next;

static void note(void *argument) { order[next++] = (int)(intptr_t)argument; }

static hipStream_t own;
static hipError_t own_sync, own_copy, own_free, own_direct_memory;
static char *memory;

static void wait_for_self(void *argument) {
    char byte;
    (void)argument;
    own_sync = hipStreamSynchronize(own);
    own_copy = hipMemcpy(&byte, memory, 1, hipMemcpyDeviceToHost);
    own_free = hipFree(memory);
    own_direct_memory = hipMemsetAsync(memory, 9, 1, own);
}

static void destroy_self(void *argument) {
    (void)argument;
    own_sync = hipStreamDestroy(own);
}

static void sleep_ms(int ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static void in_order(void) {
    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    for (int i = 0; i < 1000; i++) OK(hipLaunchHostFunc(stream, note, (void *)(intptr_t)i));
    OK(hipStreamSynchronize(stream));
    for (int i = 0; i < 1000; i++) EXPECT(order[i], i);
    EXPECT(hipLaunchHostFunc(stream, NULL, NULL), hipErrorInvalidValue);
    OK(hipStreamDestroy(stream));
    EXPECT(hipStreamSynchronize(stream), hipErrorInvalidHandle);
    EXPECT(hipStreamDestroy(NULL), hipErrorInvalidHandle);
    EXPECT(hipStreamCreateWithFlags(&stream, 2), hipErrorInvalidValue);
}

/* The NULL stream and blocking streams wait for each other; a non-blocking stream is nothing to it. */
static void legacy(void) {
    hipStream_t blocking, other, free_one;
    gate_t first = GATE, second = GATE;
    atomic_int done = 0, free_done = 0;
    hipDevice_t device = -1;
    OK(hipStreamCreate(&blocking));
    OK(hipStreamCreate(&other));
    OK(hipStreamCreateWithFlags(&free_one, hipStreamNonBlocking));
    OK(hipStreamGetDevice(free_one, &device));
    EXPECT(device, 0);

    OK(hipLaunchHostFunc(blocking, pass, &first));
    OK(hipLaunchHostFunc(NULL, count_up, &done));
    OK(hipLaunchHostFunc(other, count_up, &done));
    OK(hipLaunchHostFunc(free_one, count_up, &free_done));
    OK(hipStreamSynchronize(free_one));
    EXPECT(free_done, 1);
    (void)hipGetLastError();
    EXPECT(hipStreamQuery(NULL), hipErrorNotReady);
    EXPECT(hipStreamQuery(other), hipErrorNotReady);
    EXPECT(hipGetLastError(), hipSuccess);
    sleep_ms(20);
    EXPECT(done, 0);
    open_gate(&first);
    OK(hipStreamSynchronize(other));
    EXPECT(done, 2);
    OK(hipStreamQuery(NULL));

    OK(hipLaunchHostFunc(free_one, pass, &second));
    OK(hipMemset(memory, 1, 1));
    OK(hipStreamSynchronize(NULL));
    EXPECT(hipStreamQuery(free_one), hipErrorNotReady);
    open_gate(&second);
    OK(hipDeviceSynchronize());
    OK(hipStreamQuery(free_one));

    OK(hipStreamDestroy(blocking));
    OK(hipStreamDestroy(other));
    OK(hipStreamDestroy(free_one));
}

/* A synchronous copy comes after what blocking streams were asked before. */
static void *open_soon(void *argument) {
    sleep_ms(30);
    open_gate(argument);
    return NULL;
}

static void synchronous(void) {
    hipStream_t blocking;
    gate_t gate = GATE;
    pthread_t thread;
    char byte = 0;
    OK(hipStreamCreate(&blocking));
    OK(hipMemset(memory, 1, 1));
    OK(hipLaunchHostFunc(blocking, pass, &gate));
    OK(hipMemsetAsync(memory, 2, 1, blocking));
    EXPECT(pthread_create(&thread, NULL, open_soon, &gate), 0);
    OK(hipMemcpy(&byte, memory, 1, hipMemcpyDeviceToHost));
    EXPECT(byte, 2);
    EXPECT(pthread_join(thread, NULL), 0);
    OK(hipMemsetAsync(memory, 3, 1, blocking));
    OK(hipMemcpyWithStream(&byte, memory, 1, hipMemcpyDeviceToHost, blocking));
    EXPECT(byte, 3);
    OK(hipStreamDestroy(blocking));
}

/* With pinned memory a copy is asynchronous: it takes the bytes that are there when its turn comes. */
static void asynchronous(void) {
    hipStream_t stream;
    gate_t gate = GATE;
    char *pinned, pageable = 'a', byte = 0;
    OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    OK(hipHostMalloc((void **)&pinned, 2, 0));
    pinned[0] = 'b';
    OK(hipLaunchHostFunc(stream, pass, &gate));
    OK(hipMemcpyAsync(memory, pinned, 1, hipMemcpyHostToDevice, stream));
    OK(hipMemcpyAsync(pinned + 1, memory, 1, hipMemcpyDeviceToHost, stream));
    pinned[0] = 'c';
    pinned[1] = 0;
    open_gate(&gate);
    OK(hipStreamSynchronize(stream));
    EXPECT(pinned[1], 'c');

    OK(hipMemcpyAsync(memory, &pageable, 1, hipMemcpyHostToDevice, stream));
    pageable = 'z';
    OK(hipMemcpyDtoHAsync(&byte, memory, 1, stream));
    EXPECT(byte, 'a');
    OK(hipHostFree(pinned));
    OK(hipStreamDestroy(stream));
}

static void wait_value(hipStream_t stream, hipStream_t writer, uint64_t *signal, unsigned flags, uint64_t value,
                       uint64_t mask, uint64_t no, uint64_t yes) {
    __atomic_store_n(signal, no, __ATOMIC_RELEASE);
    OK(hipStreamWaitValue64(stream, signal, value, flags, mask));
    sleep_ms(5);
    EXPECT(hipStreamQuery(stream), hipErrorNotReady);
    if (writer)
        OK(hipStreamWriteValue64(writer, signal, yes, 0));
    else
        __atomic_store_n(signal, yes, __ATOMIC_RELEASE);
    OK(hipStreamSynchronize(stream));
    EXPECT(__atomic_load_n(signal, __ATOMIC_ACQUIRE), yes);
}

static void wait_values(void) {
    hipStream_t stream, writer;
    uint64_t *signal, word = 0;
    OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    OK(hipStreamCreateWithFlags(&writer, hipStreamNonBlocking));
    EXPECT(hipExtMallocWithFlags((void **)&signal, 16, hipMallocSignalMemory), hipErrorInvalidValue);
    OK(hipExtMallocWithFlags((void **)&signal, 8, hipMallocSignalMemory));
    wait_value(stream, NULL, signal, hipStreamWaitValueGte, 5, UINT64_MAX, 4, 6);
    wait_value(stream, writer, signal, hipStreamWaitValueGte, 5, 0xf, 0x104, 0x105);
    wait_value(stream, writer, signal, hipStreamWaitValueEq, 7, UINT64_MAX, 8, 7);
    wait_value(stream, NULL, signal, hipStreamWaitValueAnd, 6, UINT64_MAX, 9, 2);
    wait_value(stream, writer, signal, hipStreamWaitValueNor, 1, 3, 2, 1);
    EXPECT(hipStreamWaitValue64(stream, &word, 1, hipStreamWaitValueGte, 1), hipErrorInvalidValue);
    EXPECT(hipStreamWaitValue64(stream, memory, 1, hipStreamWaitValueGte, 1), hipErrorInvalidValue);
    EXPECT(hipStreamWaitValue64(stream, signal, 1, 4, 1), hipErrorInvalidValue);
    EXPECT(hipStreamWriteValue64(stream, &word, 1, 0), hipErrorInvalidValue);
    EXPECT(hipStreamWriteValue64(stream, memory + 1, 1, 0), hipErrorInvalidValue);
    OK(hipStreamWriteValue64(stream, memory + 8, 0x1122334455667788, 0));
    OK(hipStreamSynchronize(stream));
    OK(hipMemcpy(&word, memory + 8, 8, hipMemcpyDeviceToHost));
    EXPECT(word, 0x1122334455667788);
    OK(hipFree(signal));
    OK(hipStreamDestroy(stream));
    OK(hipStreamDestroy(writer));
}

static void events(void) {
    hipStream_t first, second;
    hipEvent_t event, later, untimed;
    gate_t gate = GATE, again = GATE;
    atomic_int done = 0;
    float ms = -1;
    OK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    OK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    OK(hipEventCreate(&event));
    OK(hipEventCreate(&later));
    OK(hipEventCreateWithFlags(&untimed, hipEventDisableTiming));
    OK(hipEventQuery(event));
    OK(hipEventSynchronize(event));
    EXPECT(hipEventElapsedTime(&ms, event, later), hipErrorInvalidHandle);

    OK(hipEventRecord(event, first));
    OK(hipLaunchHostFunc(first, pass, &gate));
    OK(hipEventRecord(later, first));
    OK(hipEventRecord(untimed, first));
    OK(hipStreamWaitEvent(second, later, 0));
    OK(hipLaunchHostFunc(second, count_up, &done));
    OK(hipEventSynchronize(event));
    EXPECT(hipEventQuery(later), hipErrorNotReady);
    EXPECT(hipEventElapsedTime(&ms, event, later), hipErrorNotReady);
    sleep_ms(20);
    EXPECT(done, 0);
    open_gate(&gate);
    OK(hipStreamSynchronize(second));
    EXPECT(done, 1);
    OK(hipEventElapsedTime(&ms, event, later));
    EXPECT(ms >= 20, 1);
    EXPECT(hipEventElapsedTime(&ms, event, untimed), hipErrorInvalidHandle);

    /* A stream waits for what was recorded when it was told, also when the event goes on or away. */
    OK(hipStreamWaitEvent(second, later, 0));
    OK(hipLaunchHostFunc(first, pass, &again));
    OK(hipEventRecord(later, first));
    OK(hipStreamSynchronize(second));
    OK(hipEventDestroy(later));
    EXPECT(hipEventDestroy(later), hipErrorInvalidHandle);
    open_gate(&again);
    OK(hipStreamSynchronize(first));
    OK(hipEventDestroy(event));
    OK(hipEventDestroy(untimed));
    OK(hipStreamDestroy(first));
    OK(hipStreamDestroy(second));
}

static void own_stream(void) {
    OK(hipStreamCreate(&own));
    OK(hipLaunchHostFunc(own, wait_for_self, NULL));
    OK(hipStreamSynchronize(own));
    EXPECT(own_sync, hipErrorNotSupported);
    EXPECT(own_copy, hipErrorNotSupported);
    EXPECT(own_free, hipErrorNotSupported);
    EXPECT(own_direct_memory, hipSuccess);
    OK(hipLaunchHostFunc(own, destroy_self, NULL));
    OK(hipDeviceSynchronize());
    while (hipStreamQuery(own) == hipSuccess) sleep_ms(1);
    EXPECT(hipStreamQuery(own), hipErrorInvalidHandle);
    EXPECT(own_sync, hipSuccess);
}

static void faults(void) {
    hipStream_t stream;
    char *pinned;
    OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    OK(hipHostMalloc((void **)&pinned, 1, 0));
    *pinned = 0;
    OK(hipMemset(memory, 5, 1));
    OK(hipDeviceSynchronize());
    EXPECT(hipsim_fault("hipMemcpyAsync:1=later:719,hipMemcpyAsync:2=error:1,hipStreamCreate=error:2"), 0);
    OK(hipMemcpyAsync(pinned, memory, 1, hipMemcpyDeviceToHost, stream));
    EXPECT(hipMemcpyAsync(pinned, memory, 1, hipMemcpyDeviceToHost, stream), hipErrorInvalidValue);
    EXPECT(hipStreamSynchronize(stream), hipErrorLaunchFailure);
    EXPECT(*pinned, 0);
    OK(hipStreamSynchronize(stream));
    OK(hipMemcpyAsync(pinned, memory, 1, hipMemcpyDeviceToHost, stream));
    OK(hipStreamSynchronize(stream));
    EXPECT(*pinned, 5);
    EXPECT(hipStreamCreate(&own), hipErrorOutOfMemory);
    EXPECT(hipsim_calls("hipStreamCreate") > 0, 1);
    hipsim_reset();
    EXPECT(hipsim_calls("hipStreamCreate"), 0);
    OK(hipHostFree(pinned));
    OK(hipStreamDestroy(stream));
}

/* A lost device ends all waiting for it. */
static void lost(void) {
    hipStream_t stream;
    uint64_t *signal;
    atomic_int done = 0;
    OK(hipStreamCreate(&stream));
    OK(hipExtMallocWithFlags((void **)&signal, 8, hipMallocSignalMemory));
    *signal = 0;
    OK(hipStreamWaitValue64(stream, signal, 1, hipStreamWaitValueEq, UINT64_MAX));
    OK(hipLaunchHostFunc(stream, count_up, &done));
    EXPECT(hipsim_lose_device(0), 0);
    EXPECT(hipStreamSynchronize(stream), hipErrorLaunchFailure);
    EXPECT(done, 0);
    EXPECT(hipLaunchHostFunc(stream, count_up, &done), hipErrorLaunchFailure);
    OK(hipStreamDestroy(stream));
}

int main(void) {
    OK(hipMalloc((void **)&memory, 4096));
    in_order();
    legacy();
    synchronous();
    asynchronous();
    wait_values();
    events();
    own_stream();
    faults();
    lost();
    return 0;
}
