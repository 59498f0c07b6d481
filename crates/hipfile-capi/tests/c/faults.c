/* What fails below, and what a client sees of it. Started with the fastpath open. */

#include "use.h"

static hipFileHandle_t handle;
static char *memory;

static void fault(const char *requests) {
    hipsim_reset();
    EXPECT(hipsim_fault(requests), 0);
}

/* The driver refuses, the fallback does it: nobody but the statistics knows. */
static void refused(int fd) {
    static const int eligible[] = {ENODEV, EREMOTEIO, EINVAL, EOPNOTSUPP, ENOMEM};
    for (size_t i = 0; i < sizeof eligible / sizeof eligible[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "hipAmdFileRead:1=errno:%d,hipAmdFileWrite:1=errno:%d", eligible[i], eligible[i]);
        fault(text);
        wipe(memory, 0, 64 * KIB);
        EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
        expect_device(memory, 64 * KIB, 0, 1);
        fill_device(memory, 64 * KIB, 0, 2);
        EXPECT(hipFileWrite(handle, memory, 64 * KIB, 64 * KIB, 0), 64 * KIB);
        expect_file(fd, 64 * KIB, 64 * KIB, 0, 2);
        EXPECT(hipsim_calls("hipAmdFileRead"), 1);
        /* A file remembers that its drive cannot reach the GPU. */
        hipFileHandleDeregister(handle);
        handle = register_file(fd);
    }
    /* Part way: from the first byte that is not known to have moved. */
    fault("hipAmdFileRead:1=errno:19@8192,hipAmdFileWrite:1=errno:121@16384");
    wipe(memory, 0, 64 * KIB);
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
    expect_device(memory, 64 * KIB, 0, 1);
    fill_device(memory, 64 * KIB, 0, 3);
    EXPECT(hipFileWrite(handle, memory, 64 * KIB, 64 * KIB, 0), 64 * KIB);
    expect_file(fd, 64 * KIB, 64 * KIB, 0, 3);
}

/* What the fallback would not do better. */
static void failed(void) {
    fault("hipAmdFileRead:1=errno:5,hipAmdFileWrite:1=errno:28");
    FAILS_WITH(hipFileRead(handle, memory, 64 * KIB, 0, 0), EIO);
    FAILS_WITH(hipFileWrite(handle, memory, 64 * KIB, 64 * KIB, 0), ENOSPC);
    EXPECT(hipsim_calls("hipMemcpyAsync") + hipsim_calls("hipMemcpyWithStream"), 0);
    fault("hipAmdFileWrite:1=errno:28@8192");
    EXPECT(hipFileWrite(handle, memory, 64 * KIB, 64 * KIB, 0), 8 * KIB);
    fault("hipAmdFileRead:1=short:4096");
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), 4 * KIB);
    /* The next one is as good as ever. */
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
}

/* HIP itself: -5011, and its own code where HIP has it. */
static void hip(void) {
    hipsim_reset();
    (void)hipGetLastError();
    errno = EXDEV;
    fault("hipAmdFileRead:1=error:999");
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), -hipFileHipDriverError);
    EXPECT(hipPeekAtLastError(), hipErrorUnknown);
    EXPECT(errno, EXDEV);
    (void)hipGetLastError();
    fault("hipMemGetAddressRange:1=error:700");
    char *other = (char *)device_memory(PAGE);
    FAILS_IN_HIP(hipFileBufRegister(other, PAGE, 0), hipErrorIllegalAddress);
    fault("hipMemGetAddressRange:1=error:1");
    FAILS(hipFileBufRegister(other, PAGE, 0), hipFileInvalidValue);
    fault("hipMemGetAddressRange:1=error:500");
    FAILS(hipFileBufRegister(other, PAGE, 0), hipFileInvalidValue);
    fault("hipPointerGetAttributes:1=error:999");
    FAILS_IN_HIP(hipFileBufRegister(other, PAGE, 0), hipErrorUnknown);
    fault("hipStreamGetDevice:1=error:400");
    FAILS_IN_HIP(hipFileStreamRegister(NULL, 0), hipErrorInvalidHandle);
    hipsim_reset();
    OK(hipFree(other));
    (void)hipGetLastError();
}

/* The driver does not know the request: what it leaves in count and status is no result. */
static void old_driver(void) {
    hipsim_reset();
    EXPECT(hipsim_set_ais("enotty"), 0);
    wipe(memory, 0, 64 * KIB);
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
    expect_device(memory, 64 * KIB, 0, 1);
    EXPECT(hipsim_calls("hipAmdFileRead"), 1);
    /* It is not asked again. */
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
    EXPECT(hipsim_calls("hipAmdFileRead"), 1);
}

static void lost(void) {
    hipsim_reset();
    EXPECT(hipsim_lose_device(0), 0);
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), -hipFileHipDriverError);
    EXPECT(hipFileWrite(handle, memory, 64 * KIB, 0, 0), -hipFileHipDriverError);
    GOOD(hipFileBufDeregister(memory));
    hipFileHandleDeregister(handle);
    GOOD(hipFileDriverClose());
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/faults", arguments[1]);
    int fd = make_file(path, 128 * KIB, 1, 0);
    handle = register_file(fd);
    memory = (char *)device_memory(64 * KIB);
    GOOD(hipFileBufRegister(memory, 64 * KIB, 0));
    refused(fd);
    failed();
    hip();
    old_driver();
    lost();
    return 0;
}
