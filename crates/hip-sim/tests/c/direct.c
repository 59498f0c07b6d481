/* Direct storage on a file: argument 1 the file, argument 2 whether it is opened with O_DIRECT. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "hipsim.h"

typedef hipError_t (*direct_t)(hipAmdFileHandle_t, void *, uint64_t, int64_t, uint64_t *, int32_t *);

static uint64_t copied;
static int32_t status;

static hipError_t call(direct_t function, int fd, void *pointer, uint64_t size, int64_t offset) {
    hipAmdFileHandle_t handle;
    memset(&handle, 0, sizeof handle);
    handle.fd = fd;
    copied = 77;
    status = 77;
    errno = 0;
    return function(handle, pointer, size, offset, &copied, &status);
}

static direct_t find(const char *name, int version) {
    void *found = NULL;
    hipDriverProcAddressQueryResult result = HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    OK(hipGetProcAddress(name, &found, version, 0, &result));
    EXPECT(result, HIP_GET_PROC_ADDRESS_SUCCESS);
    direct_t function;
    memcpy(&function, &found, sizeof function);
    return function;
}

/* Refused by the driver: its errno comes as the status. */
#define REFUSED(call, number)             \
    do {                                  \
        EXPECT(call, hipErrorUnknown);    \
        EXPECT(errno, number);            \
        EXPECT(status, -(number));        \
    } while (0)

/* Refused before the driver: nothing is written. */
#define NOT_ASKED(call, code)  \
    do {                       \
        EXPECT(call, code);    \
        EXPECT(status, 77);    \
        EXPECT(copied, 77);    \
        EXPECT(errno, 0);      \
    } while (0)

#define MOVED(call, bytes)      \
    do {                        \
        OK(call);               \
        EXPECT(copied, bytes);  \
        EXPECT(status, 0);      \
    } while (0)

int main(int count, char **arguments) {
    enum { BLOCK = 4096, SIZE = 4 * BLOCK, TAIL = 100 };
    static char pattern[SIZE + TAIL], result[SIZE + BLOCK];
    char *device, *pinned;
    int fd, direct;
    hipDriverProcAddressQueryResult query;
    void *found;

    EXPECT(count, 3);
    direct = atoi(arguments[2]);
    for (int i = 0; i < SIZE + TAIL; i++) pattern[i] = (char)(i * 11 + i / 256);
    fd = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT(pwrite(fd, pattern, sizeof pattern, 0), sizeof pattern);
    EXPECT(fsync(fd), 0);
    close(fd);
    fd = open(arguments[1], O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0));
    EXPECT(fd >= 0, 1);

    direct_t read = find("hipAmdFileRead", HIP_VERSION), write = find("hipAmdFileWrite", HIP_VERSION);
    EXPECT(read == hipAmdFileRead, 1);
    EXPECT(hipGetProcAddress("hipAmdFileRead", &found, 60000000, 0, &query), hipErrorNotFound);
    EXPECT(query, HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT(found == NULL, 1);
    EXPECT(hipGetProcAddress("hipNoSuchThing", &found, HIP_VERSION, 0, &query), hipErrorNotFound);
    EXPECT(query, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    OK(hipMalloc((void **)&device, SIZE + BLOCK));
    OK(hipHostMalloc((void **)&pinned, SIZE, 0));
    OK(hipMemset(device, 0, SIZE + BLOCK));
    OK(hipDeviceSynchronize());

    /* Bytes are right, and a read ends with the file. */
    MOVED(call(read, fd, device, SIZE, 0), SIZE);
    OK(hipMemcpy(result, device, SIZE, hipMemcpyDeviceToHost));
    EXPECT(memcmp(result, pattern, SIZE), 0);
    MOVED(call(read, fd, device + BLOCK, SIZE, BLOCK), SIZE - BLOCK + TAIL);
    OK(hipMemcpy(result, device, SIZE + TAIL, hipMemcpyDeviceToHost));
    EXPECT(memcmp(result, pattern, SIZE + TAIL), 0);
    MOVED(call(read, fd, device, BLOCK, 10 * SIZE), 0);
    MOVED(call(read, fd, device, 0, 0), 0);

    /* A write goes into the file. */
    OK(hipMemset(device, 'w', BLOCK));
    OK(hipDeviceSynchronize());
    MOVED(call(write, fd, device, BLOCK, 2 * BLOCK), BLOCK);
    MOVED(call(read, fd, device + BLOCK, BLOCK, 2 * BLOCK), BLOCK);
    OK(hipMemcpy(result, device + BLOCK, BLOCK, hipMemcpyDeviceToHost));
    EXPECT(result[0], 'w');
    EXPECT(result[BLOCK - 1], 'w');
    EXPECT(pread(open(arguments[1], O_RDONLY | O_CLOEXEC), result, BLOCK, 2 * BLOCK), BLOCK);
    EXPECT(result[BLOCK - 1], 'w');

    /* What the layers above the driver refuse. */
    NOT_ASKED(call(read, fd, NULL, BLOCK, 0), hipErrorUnknown);
    NOT_ASKED(call(read, fd, pinned, BLOCK, 0), hipErrorUnknown);
    NOT_ASKED(call(read, fd, result, BLOCK, 0), hipErrorUnknown);
    NOT_ASKED(call(read, fd, device + BLOCK, SIZE + 1, 0), hipErrorUnknown);

    /* What the driver refuses. */
    REFUSED(call(read, -1, device, BLOCK, 0), EINVAL);
    REFUSED(call(read, 1000, device, BLOCK, 0), EBADF);
    REFUSED(call(read, fd, device, BLOCK, -BLOCK), EINVAL);
    if (direct) {
        REFUSED(call(read, fd, device, BLOCK + 1, 0), EINVAL);
        REFUSED(call(read, fd, device, BLOCK, 1), EINVAL);
        REFUSED(call(read, fd, device + 1, BLOCK, 0), EINVAL);
    } else {
        MOVED(call(read, fd, device + 1, BLOCK + 1, 1), BLOCK + 1);
    }

    /* Old drivers want pages, whatever the file wants, and memory at any place. */
    EXPECT(hipsim_set_ais("old"), 0);
    REFUSED(call(read, fd, device, 512, 0), EINVAL);
    REFUSED(call(read, fd, device, BLOCK, 512), EINVAL);
    MOVED(call(read, fd, device, BLOCK, SIZE), TAIL);
    if (!direct) MOVED(call(read, fd, device + 1, BLOCK, 0), BLOCK);
    EXPECT(hipsim_set_ais("oldest"), 0);
    REFUSED(call(read, fd, device, BLOCK, SIZE), EIO);
    EXPECT(copied, TAIL);

    /* A driver without it: what comes back is what was asked. */
    EXPECT(hipsim_set_ais("enotty"), 0);
    EXPECT(call(read, fd, device + 8192, BLOCK, 0), hipErrorUnknown);
    EXPECT(errno, ENOTTY);
    EXPECT(status, 8192);
    EXPECT(copied >> 32 != 0, 1);

    /* A runtime without it. */
    EXPECT(hipsim_set_ais("absent"), 0);
    EXPECT(hipGetProcAddress("hipAmdFileWrite", &found, HIP_VERSION, 0, &query), hipErrorNotFound);
    EXPECT(query, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    NOT_ASKED(call(read, fd, device, BLOCK, 0), hipErrorNotSupported);
    EXPECT(hipsim_set_ais("none"), 1);
    EXPECT(hipsim_set_ais("new"), 0);

    /* Faults. */
    hipsim_reset();
    EXPECT(hipsim_fault("hipAmdFileRead:2=errno:121,hipAmdFileRead:3=errno:5@4096,hipAmdFileRead:4+=short:8192"), 0);
    MOVED(call(read, fd, device, SIZE, 0), SIZE);
    REFUSED(call(read, fd, device, SIZE, 0), EREMOTEIO);
    EXPECT(copied, 0);
    OK(hipMemset(device, 0, SIZE));
    OK(hipDeviceSynchronize());
    REFUSED(call(read, fd, device, SIZE, 0), EIO);
    EXPECT(copied, 4096);
    OK(hipMemcpy(result, device, SIZE, hipMemcpyDeviceToHost));
    EXPECT(memcmp(result, pattern, BLOCK), 0);
    EXPECT(result[BLOCK], 0);
    MOVED(call(read, fd, device, SIZE, 0), 8192);
    MOVED(call(read, fd, device, BLOCK, 0), BLOCK);
    EXPECT(hipsim_calls("hipAmdFileRead"), 5);
    EXPECT(hipsim_calls("hipAmdFileWrite"), 0);
    EXPECT(hipsim_calls("hipNothing"), UINT64_MAX);
    EXPECT(hipsim_fault("hipAmdFileRead=errno"), 1);
    hipsim_reset();
    MOVED(call(read, fd, device, SIZE, 0), SIZE);

    /* A lost device. */
    EXPECT(hipsim_fault("hipAmdFileRead=lost"), 0);
    REFUSED(call(read, fd, device, SIZE, 0), ENODEV);
    hipsim_reset();
    EXPECT(hipMemcpy(result, device, 1, hipMemcpyDeviceToHost), hipErrorLaunchFailure);
    EXPECT(hipMalloc(&found, 1), hipErrorLaunchFailure);
    EXPECT(hipDeviceSynchronize(), hipErrorLaunchFailure);
    EXPECT(hipsim_lose_device(1), 1);
    return 0;
}
