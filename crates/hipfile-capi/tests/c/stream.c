/* Operations in streams: order, the flags that say when a parameter is read, and what is refused. */

#include <pthread.h>

#include "use.h"

static hipFileHandle_t handle;
static char *memory;

typedef struct {
    size_t size;
    hoff_t file_offset, buffer_offset;
    ssize_t result;
} Places;

static hipFileError_t read_async(void *buffer, Places *places, hipStream_t stream) {
    return hipFileReadAsync(handle, buffer, &places->size, &places->file_offset, &places->buffer_offset,
                            &places->result, stream);
}

static hipFileError_t write_async(void *buffer, Places *places, hipStream_t stream) {
    return hipFileWriteAsync(handle, buffer, &places->size, &places->file_offset, &places->buffer_offset,
                             &places->result, stream);
}

/* A host function that keeps its stream waiting until it is let go. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void wait_at_gate(void *nothing) {
    (void)nothing;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static void refusals(hipStream_t stream, hipStream_t elsewhere) {
    Places places = {PAGE, 0, 0, 77};
    char stack[16];
    size_t *no_size = NULL;
    hoff_t *no_offset = NULL;
    ssize_t *no_result = NULL;
    FAILS(hipFileReadAsync(handle, NULL, &places.size, &places.file_offset, &places.buffer_offset, &places.result, stream),
          hipFileInvalidValue);
    FAILS(hipFileReadAsync(handle, memory, no_size, &places.file_offset, &places.buffer_offset, &places.result, stream),
          hipFileInvalidValue);
    FAILS(hipFileReadAsync(handle, memory, &places.size, no_offset, &places.buffer_offset, &places.result, stream),
          hipFileInvalidValue);
    FAILS(hipFileWriteAsync(handle, memory, &places.size, &places.file_offset, no_offset, &places.result, stream),
          hipFileInvalidValue);
    FAILS(hipFileWriteAsync(handle, memory, &places.size, &places.file_offset, &places.buffer_offset, no_result, stream),
          hipFileInvalidValue);
    FAILS(hipFileReadAsync(NULL, memory, &places.size, &places.file_offset, &places.buffer_offset, &places.result, stream),
          hipFileHandleNotRegistered);
    FAILS(hipFileReadAsync(memory, memory, &places.size, &places.file_offset, &places.buffer_offset, &places.result, stream),
          hipFileHandleNotRegistered);
    FAILS(read_async(stack, &places, stream), hipFileHipMemoryTypeInvalid);
    static const Places wrong[] = {
        {PAGE, -1, 0, 77}, {PAGE, 0, -1, 77}, {PAGE, 0, 4 * MIB, 77}, {4 * MIB + 1, 0, 0, 77}, {2, 0, 4 * MIB - 1, 77},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        Places one = wrong[i];
        FAILS(read_async(memory, &one, stream), hipFileInvalidValue);
        FAILS(write_async(memory, &one, stream), hipFileInvalidValue);
        EXPECT(one.result, 77);
    }
    FAILS(read_async(memory, &places, elsewhere), hipFileInvalidValue);
    hoff_t *crooked = (hoff_t *)((char *)&places.file_offset + 1);
    FAILS(hipFileReadAsync(handle, memory, &places.size, crooked, &places.buffer_offset, &places.result, stream),
          hipFileInvalidValue);
    EXPECT(places.result, 77);
    places.size = 0;
    GOOD(read_async(memory, &places, stream));
    EXPECT(places.result, 0);
}

/* The stream waits at a gate, so that nothing has begun when a call returns. */
static void flags(unsigned bits) {
    hipStream_t stream;
    OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    GOOD(hipFileStreamRegister(stream, bits));
    wipe(memory, 0, 1 * MIB);
    pthread_mutex_lock(&gate);
    OK(hipLaunchHostFunc(stream, wait_at_gate, NULL));
    Places places = {16 * KIB, 64 * KIB, 32 * KIB, 77};
    GOOD(read_async(memory, &places, stream));
    EXPECT(places.result, 0);
    /* Too late where the flag says that it is final. */
    places.size = 8 * KIB;
    places.file_offset = 128 * KIB;
    places.buffer_offset = 256 * KIB;
    pthread_mutex_unlock(&gate);
    OK(hipStreamSynchronize(stream));
    long size = bits & HIPFILE_STREAM_FIXED_FILE_SIZE ? 16 * KIB : 8 * KIB;
    long offset = bits & HIPFILE_STREAM_FIXED_FILE_OFFSET ? 64 * KIB : 128 * KIB;
    long into = bits & HIPFILE_STREAM_FIXED_BUF_OFFSET ? 32 * KIB : 256 * KIB;
    EXPECT(places.result, size);
    expect_device(memory + into, size, offset, 1);
    expect_device_is(memory, into, 0);
    expect_device_is(memory + into + size, 64 * KIB, 0);
    GOOD(hipFileStreamDeregister(stream));
    OK(hipStreamDestroy(stream));
}

/* What is wrong only when the stream gets there is in the result. */
static void late_mistakes(hipStream_t stream) {
    static const Places late[] = {
        {16 * KIB + 1, 0, 0, 0}, {PAGE, -1, 0, 0}, {PAGE, 0, -1, 0}, {PAGE, 0, 4 * MIB, 0},
    };
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
        Places places = {16 * KIB, 0, 0, 0};
        pthread_mutex_lock(&gate);
        OK(hipLaunchHostFunc(stream, wait_at_gate, NULL));
        GOOD(read_async(memory, &places, stream));
        places.size = late[i].size;
        places.file_offset = late[i].file_offset;
        places.buffer_offset = late[i].buffer_offset;
        pthread_mutex_unlock(&gate);
        OK(hipStreamSynchronize(stream));
        EXPECT(places.result, -hipFileInvalidValue);
    }
    /* The stream goes on as if nothing had been. */
    Places places = {16 * KIB, 0, 0, 0};
    GOOD(read_async(memory, &places, stream));
    OK(hipStreamSynchronize(stream));
    EXPECT(places.result, 16 * KIB);
}

/* A chain in one stream: what is read is copied, changed and written, without a wait in between. */
static void order(int fd, hipStream_t stream) {
    enum { STEPS = 16 };
    static Places reads[STEPS], writes[STEPS];
    for (int i = 0; i < STEPS; i++) {
        reads[i].size = writes[i].size = 64 * KIB;
        reads[i].file_offset = i * 64 * KIB;
        reads[i].buffer_offset = 1 * MIB;
        writes[i].file_offset = 2 * MIB + i * 64 * KIB;
        writes[i].buffer_offset = 2 * MIB;
        GOOD(read_async(memory, &reads[i], stream));
        OK(hipMemcpyAsync(memory + 2 * MIB, memory + 1 * MIB, 64 * KIB, hipMemcpyDeviceToDevice, stream));
        GOOD(write_async(memory, &writes[i], stream));
    }
    OK(hipStreamSynchronize(stream));
    for (int i = 0; i < STEPS; i++) {
        EXPECT(reads[i].result, 64 * KIB);
        EXPECT(writes[i].result, 64 * KIB);
    }
    expect_file(fd, STEPS * 64 * KIB, 2 * MIB, 0, 1);
}

/* The file may go while its operation waits. */
static void deregistered(int fd, hipStream_t stream) {
    Places places = {16 * KIB, 0, 0, 0};
    wipe(memory, 0, 16 * KIB);
    pthread_mutex_lock(&gate);
    OK(hipLaunchHostFunc(stream, wait_at_gate, NULL));
    GOOD(read_async(memory, &places, stream));
    FAILS(hipFileBufDeregister(memory), hipFileInternalError);
    hipFileHandleDeregister(handle);
    FAILS(read_async(memory, &places, stream), hipFileHandleNotRegistered);
    handle = register_file(fd);
    pthread_mutex_unlock(&gate);
    OK(hipStreamSynchronize(stream));
    EXPECT(places.result, 16 * KIB);
    expect_device(memory, 16 * KIB, 0, 1);
}

/* hipStreamPerThread is another stream in each thread: the end of one thread's operation lets no other thread's stream go on. */
enum { ROUNDS = 50 };

static void per_thread_reads(char *buffer, size_t size) {
    for (int i = 0; i < ROUNDS; i++) {
        Places places = {size, 0, 0, 77};
        GOOD(read_async(buffer, &places, hipStreamPerThread));
        OK(hipStreamSynchronize(hipStreamPerThread));
        EXPECT(places.result, (long)size);
    }
}

static void *other_thread(void *buffer) {
    per_thread_reads((char *)buffer, PAGE);
    return NULL;
}

static void per_thread(void) {
    char *buffer = (char *)device_memory(PAGE);
    pthread_t other;
    EXPECT(pthread_create(&other, NULL, other_thread, buffer), 0);
    per_thread_reads(memory, 4 * MIB);
    EXPECT(pthread_join(other, NULL), 0);
    OK(hipFree(buffer));
}

/* HIP takes the operation and then nothing that would wait for it. What could not be submitted never runs. */
static void taken_back(hipStream_t stream) {
    int waits = 0;
    OK(hipDeviceGetAttribute(&waits, hipDeviceAttributeCanUseStreamWaitValue, 0));
    if (!waits) return;
    Places places = {PAGE, 0, 0, 77};
    char *buffer = (char *)device_memory(PAGE);
    wipe(buffer, 5, PAGE);
    GOOD(hipFileBufRegister(buffer, PAGE, 0));
    pthread_mutex_lock(&gate);
    OK(hipLaunchHostFunc(stream, wait_at_gate, NULL));
    EXPECT(hipsim_fault("hipStreamWaitValue64:1=error:1,hipLaunchHostFunc:2=error:1"), 0);
    FAILS_IN_HIP(read_async(buffer, &places, stream), hipErrorInvalidValue);
    GOOD(hipFileBufDeregister(buffer));
    pthread_mutex_unlock(&gate);
    OK(hipStreamSynchronize(stream));
    EXPECT(places.result, 0);
    expect_device_is(buffer, PAGE, 5);
    OK(hipFree(buffer));
}

/* However many streams there were, they leave nothing behind. */
static void nothing_is_left(void) {
    hipsim_reset();
    for (int i = 0; i < 100; i++) {
        hipStream_t stream;
        OK(hipStreamCreate(&stream));
        GOOD(hipFileStreamRegister(stream, 0));
        Places places = {PAGE, 0, 0, 77};
        GOOD(read_async(memory, &places, stream));
        OK(hipStreamSynchronize(stream));
        EXPECT(places.result, PAGE);
        GOOD(hipFileStreamDeregister(stream));
        OK(hipStreamDestroy(stream));
    }
    TRUE(hipsim_calls("hipExtMallocWithFlags") <= 1);
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/stream", arguments[1]);
    int fd = make_file(path, 4 * MIB, 1, 0);
    hipStream_t stream, elsewhere;
    OK(hipSetDevice(1));
    OK(hipStreamCreate(&elsewhere));
    OK(hipSetDevice(0));
    OK(hipStreamCreate(&stream));
    memory = (char *)device_memory(4 * MIB);

    /* With the driver closed the call opens it, and fails. */
    Places places = {PAGE, 0, 0, 77};
    FAILS(read_async(memory, &places, stream), hipFileInvalidValue);
    EXPECT(hipFileUseCount(), 1);
    EXPECT(places.result, 77);

    handle = register_file(fd);
    GOOD(hipFileBufRegister(memory, 4 * MIB, 0));
    refusals(stream, elsewhere);
    for (unsigned bits = 0; bits <= HIPFILE_STREAM_FLAGS_MASK; bits++) flags(bits);
    late_mistakes(stream);
    order(fd, stream);
    order(fd, NULL);
    deregistered(fd, stream);
    per_thread();
    taken_back(stream);
    nothing_is_left();
    int device = -1;
    OK(hipGetDevice(&device));
    EXPECT(device, 0);
    GOOD(hipFileDriverClose());
    OK(hipStreamDestroy(stream));
    OK(hipStreamDestroy(elsewhere));
    OK(hipFree(memory));
    close(fd);
    return 0;
}
