/*
 * With HIPSIM_COPY_GBPS=0.2 and HIPSIM_COPY_LATENCY_US=2000: how long copies take, and that they take it asleep.
 * With HIPSIM_AIS_GBPS=0.5 and HIPSIM_AIS_LATENCY_US=3000: the same of direct storage, on the file in argument 1.
 */
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "hipsim.h"

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

int main(int count, char **arguments) {
    enum { SIZE = 20 * 1000 * 1000 };
    char *device, *pinned;
    hipStream_t first, second;
    double begin, busy;
    hipAmdFileHandle_t file;
    uint64_t copied = 0;
    int32_t status = 1;
    OK(hipMalloc((void **)&device, 2 * SIZE));
    OK(hipHostMalloc((void **)&pinned, 2 * SIZE, 0));
    OK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    OK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    OK(hipMemcpy(device, pinned, 2 * SIZE, hipMemcpyHostToDevice));

    begin = now(CLOCK_MONOTONIC);
    busy = now(CLOCK_PROCESS_CPUTIME_ID);
    OK(hipMemcpy(device, pinned, SIZE, hipMemcpyHostToDevice));
    EXPECT(now(CLOCK_MONOTONIC) - begin >= 102, 1);
    EXPECT(now(CLOCK_PROCESS_CPUTIME_ID) - busy < 60, 1);

    /* One direction is shared, also by two streams. */
    begin = now(CLOCK_MONOTONIC);
    OK(hipMemcpyAsync(device, pinned, SIZE, hipMemcpyHostToDevice, first));
    OK(hipMemcpyAsync(device + SIZE, pinned + SIZE, SIZE, hipMemcpyHostToDevice, second));
    EXPECT(now(CLOCK_MONOTONIC) - begin < 150, 1);
    OK(hipDeviceSynchronize());
    EXPECT(now(CLOCK_MONOTONIC) - begin >= 202, 1);

    /* A small one takes the latency. */
    begin = now(CLOCK_MONOTONIC);
    OK(hipMemcpy(pinned, device, 1, hipMemcpyDeviceToHost));
    EXPECT(now(CLOCK_MONOTONIC) - begin >= 2, 1);

    EXPECT(count, 2);
    memset(&file, 0, sizeof file);
    file.fd = open(arguments[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    begin = now(CLOCK_MONOTONIC);
    OK(hipAmdFileWrite(file, device, 5 * 1000 * 1000, 0, &copied, &status));
    EXPECT(copied, 5 * 1000 * 1000);
    EXPECT(now(CLOCK_MONOTONIC) - begin >= 13, 1);
    return 0;
}
