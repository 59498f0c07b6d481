/* With HIPSIM_COPY_GBPS=1 and HIPSIM_COPY_LATENCY_US=2000: how long copies take, and that they take it asleep. */
#include <time.h>

#include "check.h"
#include "hipsim.h"

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

int main(void) {
    enum { SIZE = 20 * 1000 * 1000 };
    char *device, *pinned;
    hipStream_t first, second;
    double begin, busy;
    OK(hipMalloc((void **)&device, 2 * SIZE));
    OK(hipHostMalloc((void **)&pinned, 2 * SIZE, 0));
    OK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    OK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    OK(hipMemcpy(device, pinned, 2 * SIZE, hipMemcpyHostToDevice));

    begin = now(CLOCK_MONOTONIC);
    busy = now(CLOCK_PROCESS_CPUTIME_ID);
    OK(hipMemcpy(device, pinned, SIZE, hipMemcpyHostToDevice));
    EXPECT(now(CLOCK_MONOTONIC) - begin >= 22, 1);
    EXPECT(now(CLOCK_PROCESS_CPUTIME_ID) - busy < 20, 1);

    /* One direction is shared, also by two streams. */
    begin = now(CLOCK_MONOTONIC);
    OK(hipMemcpyAsync(device, pinned, SIZE, hipMemcpyHostToDevice, first));
    OK(hipMemcpyAsync(device + SIZE, pinned + SIZE, SIZE, hipMemcpyHostToDevice, second));
    EXPECT(now(CLOCK_MONOTONIC) - begin < 20, 1);
    OK(hipDeviceSynchronize());
    EXPECT(now(CLOCK_MONOTONIC) - begin >= 42, 1);

    /* A small one takes the latency. */
    begin = now(CLOCK_MONOTONIC);
    OK(hipMemcpy(pinned, device, 1, hipMemcpyDeviceToHost));
    EXPECT(now(CLOCK_MONOTONIC) - begin >= 2, 1);
    return 0;
}
