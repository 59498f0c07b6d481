/* Batches, each rule of the specification's table. */

#include <time.h>

#include "use.h"

static hipFileHandle_t handle;
static char *memory;

static hipFileIOParams_t operation(hipFileOpcode_t opcode, long file_offset, long into, size_t size, intptr_t cookie) {
    hipFileIOParams_t params;
    memset(&params, 0, sizeof params);
    params.mode = hipFileBatch;
    params.u.batch.devPtr_base = memory;
    params.u.batch.file_offset = file_offset;
    params.u.batch.devPtr_offset = into;
    params.u.batch.size = size;
    params.fh = handle;
    params.opcode = opcode;
    params.cookie = (void *)cookie;
    return params;
}

static hipFileBatchHandle_t set_up(unsigned most) {
    hipFileBatchHandle_t batch = NULL;
    GOOD(hipFileBatchIOSetUp(&batch, most));
    TRUE(batch != NULL);
    return batch;
}

static void set_ups(void) {
    hipFileBatchHandle_t batch = NULL;
    FAILS(hipFileBatchIOSetUp(NULL, 1), hipFileInvalidValue);
    FAILS(hipFileBatchIOSetUp(&batch, 0), hipFileInvalidValue);
    FAILS(hipFileBatchIOSetUp(&batch, 129), hipFileInvalidValue);
    FAILS(hipFileBatchIOSetUp(&batch, 0xffffffff), hipFileInvalidValue);
    EXPECT(batch, NULL);
    hipFileBatchIODestroy(NULL);
    hipFileBatchIODestroy(&batch);
    hipFileBatchHandle_t small = set_up(1), large = set_up(128);
    TRUE(small != large);
    hipFileBatchIODestroy(small);
    hipFileBatchIODestroy(small);
    hipFileBatchIODestroy(large);
    FAILS(hipFileBatchIOCancel(small), hipFileInvalidValue);
    FAILS(hipFileBatchIOCancel(NULL), hipFileInvalidValue);
}

/* One wrong entry and nothing is submitted. */
static void wrong_entries(void) {
    hipFileBatchHandle_t batch = set_up(4);
    hipFileIOParams_t two[2] = {operation(hipFileBatchRead, 0, 0, PAGE, 1), operation(hipFileBatchRead, 0, 0, PAGE, 2)};
    FAILS(hipFileBatchIOSubmit(batch, 0, two, 0), hipFileInvalidValue);
    FAILS(hipFileBatchIOSubmit(batch, 2, NULL, 0), hipFileInvalidValue);
    FAILS(hipFileBatchIOSubmit(NULL, 2, two, 0), hipFileInvalidValue);
    FAILS(hipFileBatchIOSubmit(&batch, 2, two, 0), hipFileInvalidValue);

    struct {
        hipFileIOParams_t entry;
        hipFileOpError_t code;
    } wrong[] = {
        {operation((hipFileOpcode_t)2, 0, 0, PAGE, 2), hipFileInvalidValue},
        {operation((hipFileOpcode_t)-1, 0, 0, PAGE, 2), hipFileInvalidValue},
        {operation(hipFileBatchRead, -1, 0, PAGE, 2), hipFileInvalidValue},
        {operation(hipFileBatchRead, 0, -1, PAGE, 2), hipFileInvalidValue},
        {operation(hipFileBatchRead, 0, 1 * MIB, 1, 2), hipFileInvalidValue},
        {operation(hipFileBatchRead, 0, 0, 1 * MIB + 1, 2), hipFileInvalidValue},
        {operation(hipFileBatchRead, 0, 0, PAGE, 2), hipFileInvalidValue},
        {operation(hipFileBatchRead, 0, 0, PAGE, 2), hipFileInvalidValue},
        {operation(hipFileBatchRead, 0, 0, PAGE, 2), hipFileHandleNotRegistered},
        {operation(hipFileBatchRead, 0, 0, PAGE, 2), hipFileHandleNotRegistered},
    };
    wrong[6].entry.mode = (hipFileBatchMode_t)0;
    wrong[7].entry.u.batch.devPtr_base = NULL;
    wrong[8].entry.fh = NULL;
    wrong[9].entry.fh = memory;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        two[1] = wrong[i].entry;
        FAILS(hipFileBatchIOSubmit(batch, 2, two, 0), wrong[i].code);
    }
    /* Memory of the program itself is no buffer. */
    two[1].fh = handle;
    two[1].u.batch.devPtr_base = two;
    FAILS(hipFileBatchIOSubmit(batch, 2, two, 0), hipFileHipMemoryTypeInvalid);

    hipFileIOEvents_t events[4];
    unsigned count = 4;
    struct timespec now = {0, 0};
    GOOD(hipFileBatchIOGetStatus(batch, 0, &count, events, &now));
    EXPECT(count, 0);
    hipFileBatchIODestroy(batch);
}

static void statuses(void) {
    hipFileBatchHandle_t batch = set_up(4);
    hipFileIOEvents_t events[4];
    unsigned count = 4;
    struct timespec now = {0, 0}, wrong[] = {{-1, 0}, {0, -1}, {0, 1000000000}};
    FAILS(hipFileBatchIOGetStatus(NULL, 0, &count, events, &now), hipFileInvalidValue);
    FAILS(hipFileBatchIOGetStatus(batch, 0, NULL, events, &now), hipFileInvalidValue);
    FAILS(hipFileBatchIOGetStatus(batch, 0, &count, NULL, &now), hipFileInvalidValue);
    FAILS(hipFileBatchIOGetStatus(batch, 5, &count, events, &now), hipFileInvalidValue);
    for (size_t i = 0; i < 3; i++) {
        FAILS(hipFileBatchIOGetStatus(batch, 0, &count, events, &wrong[i]), hipFileInvalidValue);
    }
    EXPECT(count, 4);
    count = 0;
    FAILS(hipFileBatchIOGetStatus(batch, 0, &count, events, &now), hipFileInvalidValue);
    /* Nothing is outstanding: there is nothing to wait for, however long. */
    count = 4;
    GOOD(hipFileBatchIOGetStatus(batch, 4, &count, events, NULL));
    EXPECT(count, 0);
    hipFileBatchIODestroy(batch);
}

/* Every operation comes back once, with its cookie and its bytes, and frees its place. */
static void transfers(int fd) {
    enum { MANY = 64 };
    hipFileBatchHandle_t batch = set_up(MANY);
    hipFileIOParams_t entries[MANY + 1];
    hipFileIOEvents_t events[MANY];
    fill_device(memory, 1 * MIB, 0, 2);
    for (int round = 0; round < 3; round++) {
        hipFileOpcode_t opcode = round == 1 ? hipFileBatchRead : hipFileBatchWrite;
        if (round == 1) wipe(memory, 0, 1 * MIB);
        for (int i = 0; i <= MANY; i++) entries[i] = operation(opcode, i * 8 * KIB, i * 8 * KIB, 8 * KIB, i + 1);
        FAILS(hipFileBatchIOSubmit(batch, MANY + 1, entries, 0), hipFileBatchFull);
        GOOD(hipFileBatchIOSubmit(batch, MANY, entries, 0xffffffff));
        /* The array is the client's again. */
        memset(entries, 0xee, sizeof entries);
        entries[0] = operation(opcode, 0, 0, 8 * KIB, 1);
        FAILS(hipFileBatchIOSubmit(batch, 1, entries, 0), hipFileBatchFull);
        char seen[MANY] = {0};
        for (unsigned done = 0; done < MANY;) {
            unsigned count = done % 7 + 1;
            GOOD(hipFileBatchIOGetStatus(batch, 1, &count, events, NULL));
            TRUE(count >= 1 && count <= done % 7 + 1);
            for (unsigned i = 0; i < count; i++) {
                intptr_t cookie = (intptr_t)events[i].cookie;
                TRUE(cookie >= 1 && cookie <= MANY && !seen[cookie - 1]);
                seen[cookie - 1] = 1;
                EXPECT(events[i].status, hipFileComplete);
                EXPECT(events[i].ret, 8 * KIB);
            }
            done += count;
        }
        if (round == 1) expect_device(memory, MANY * 8 * KIB, 0, 2);
    }
    expect_file(fd, MANY * 8 * KIB, 0, 0, 2);
    hipFileBatchIODestroy(batch);
}

/* What goes wrong in one operation is that operation's. */
static void failures(void) {
    hipFileBatchHandle_t batch = set_up(3);
    int reader = open("/proc/self/exe", O_RDONLY);
    hipFileHandle_t read_only = register_file(reader);
    hipFileIOParams_t entries[3] = {
        operation(hipFileBatchWrite, 0, 0, PAGE, 1),
        operation(hipFileBatchRead, 1ll << 40, 0, PAGE, 2),
        operation(hipFileBatchWrite, 0, 0, PAGE, 3),
    };
    entries[2].fh = read_only;
    GOOD(hipFileBatchIOSubmit(batch, 3, entries, 0));
    hipFileIOEvents_t events[3];
    unsigned count = 3;
    GOOD(hipFileBatchIOGetStatus(batch, 3, &count, events, NULL));
    EXPECT(count, 3);
    for (int i = 0; i < 3; i++) {
        intptr_t cookie = (intptr_t)events[i].cookie;
        EXPECT(events[i].status, cookie == 3 ? hipFileFailed : hipFileComplete);
        EXPECT((ssize_t)events[i].ret, cookie == 3 ? -EBADF : cookie == 2 ? 0 : PAGE);
    }
    hipFileHandleDeregister(read_only);
    close(reader);
    hipFileBatchIODestroy(batch);
}

/* More than the workers do at once, with slow copies: some were not begun. */
static void cancels(void) {
    enum { MANY = 128 };
    hipFileBatchHandle_t batch = set_up(MANY);
    hipFileIOParams_t entries[MANY];
    static hipFileIOEvents_t events[MANY];
    for (int i = 0; i < MANY; i++) entries[i] = operation(hipFileBatchRead, 1, 1 + i * 8 * KIB, 4 * KIB, i + 1);
    GOOD(hipFileBatchIOSubmit(batch, MANY, entries, 0));
    GOOD(hipFileBatchIOCancel(batch));
    unsigned count = MANY, canceled = 0;
    struct timespec now = {0, 0};
    GOOD(hipFileBatchIOGetStatus(batch, MANY, &count, events, &now));
    EXPECT(count, MANY);
    for (int i = 0; i < MANY; i++) {
        if (events[i].status == hipFileCanceled) {
            canceled++;
        } else {
            EXPECT(events[i].status, hipFileComplete);
            EXPECT(events[i].ret, 4 * KIB);
        }
    }
    TRUE(canceled > 0);
    /* And away with it in the middle. */
    GOOD(hipFileBatchIOSubmit(batch, MANY, entries, 0));
    hipFileBatchIODestroy(batch);
}

/* Where hipFileWrite waits for the default stream a batch does too: what the GPU does there is written. */
static void after_the_default_stream(int fd) {
    enum { SIZE = 64 * 1024 - 100 }; /* never direct */
    unsigned char *bytes = NULL;
    OK(hipHostMalloc((void **)&bytes, SIZE, 0));
    for (size_t i = 0; i < SIZE; i++) bytes[i] = pattern(i, 5);
    hipFileBatchHandle_t batch = set_up(1);
    hipFileIOParams_t entry = operation(hipFileBatchWrite, 0, 0, SIZE, 1);
    hipFileIOEvents_t event;
    unsigned count = 1;
    OK(hipMemcpyAsync(memory, bytes, SIZE, hipMemcpyHostToDevice, NULL));
    GOOD(hipFileBatchIOSubmit(batch, 1, &entry, 0));
    GOOD(hipFileBatchIOGetStatus(batch, 1, &count, &event, NULL));
    EXPECT(event.ret, SIZE);
    expect_file(fd, SIZE, 0, 0, 5);
    hipFileBatchIODestroy(batch);
    OK(hipHostFree(bytes));
}

/* Nobody can wait for a batch after the last close, so that it waits itself: nothing moves after it. */
static void closed_during_io(void) {
    unsigned char first = 0, then = 0;
    wipe(memory, 0, PAGE);
    hipFileBatchHandle_t batch = set_up(1);
    hipFileIOParams_t entry = operation(hipFileBatchRead, 1, 0, PAGE, 1);
    GOOD(hipFileBatchIOSubmit(batch, 1, &entry, 0));
    usleep(5000); /* of the 20 ms that its copy takes */
    GOOD(hipFileDriverClose());
    OK(hipMemcpy(&first, memory, 1, hipMemcpyDeviceToHost));
    usleep(50000);
    OK(hipMemcpy(&then, memory, 1, hipMemcpyDeviceToHost));
    EXPECT(then, first);
    FAILS(hipFileBatchIOCancel(batch), hipFileInvalidValue);
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/batch", arguments[1]);
    int fd = make_file(path, 1 * MIB, 1, 0);
    hipFileHandle_t nothing = NULL;
    hipFileIOParams_t entry = operation(hipFileBatchRead, 0, 0, PAGE, 1);
    hipFileBatchHandle_t batch = set_up(1);
    entry.fh = nothing;
    FAILS(hipFileBatchIOSubmit(batch, 1, &entry, 0), hipFileDriverNotInitialized);
    EXPECT(hipFileUseCount(), 0);
    hipFileBatchIODestroy(batch);

    handle = register_file(fd);
    memory = (char *)device_memory(1 * MIB);
    GOOD(hipFileBufRegister(memory, 1 * MIB, 0));
    set_ups();
    wrong_entries();
    statuses();
    transfers(fd);
    failures();
    cancels();
    after_the_default_stream(fd);
    /* What a batch has told of is in use no more. */
    GOOD(hipFileBufDeregister(memory));

    hipFileStatsLevel1_t stats;
    GOOD(hipFileGetStatsL1(&stats));
    TRUE(stats.batch_submit_ops.ok >= 6 && stats.batch_submit_ops.err >= 10);
    TRUE(stats.batch_write_bytes >= 1 * MIB);
    /* The last close takes batches back. */
    closed_during_io();
    OK(hipFree(memory));
    close(fd);
    return 0;
}
