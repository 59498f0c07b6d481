/* Device, pinned, registered and managed memory; copies of every kind and their bounds; several devices. */
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "check.h"
#include "hipsim.h"

static sigjmp_buf back;

static void caught(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

static int can_touch(volatile char *byte) {
    struct sigaction action, old;
    int touched = 0;
    memset(&action, 0, sizeof action);
    action.sa_handler = caught;
    sigaction(SIGSEGV, &action, &old);
    if (sigsetjmp(back, 1) == 0) {
        (void)*byte;
        touched = 1;
    }
    sigaction(SIGSEGV, &old, NULL);
    return touched;
}

static void attributes(const void *pointer, int type, int device, int managed, int has_device, int has_host) {
    hipPointerAttribute_t found;
    memset(&found, 0xff, sizeof found);
    OK(hipPointerGetAttributes(&found, pointer));
    EXPECT(found.type, type);
    EXPECT(found.device, device);
    EXPECT(found.isManaged, managed);
    EXPECT(found.devicePointer == (has_device ? pointer : NULL), 1);
    EXPECT(found.hostPointer == (has_host ? pointer : NULL), 1);
}

int main(void) {
    enum { SIZE = 10000 };
    static char pattern[SIZE], result[SIZE];
    char *device, *other, *pinned, *managed, *own, name[64];
    void *base, *mapped;
    size_t size, available, total;
    int count, number;

    EXPECT(strncmp(hipsim_is_a_simulation(), "hip-sim ", 8), 0);
    OK(hipInit(0));
    EXPECT(hipInit(1), hipErrorInvalidValue);
    EXPECT(hipPeekAtLastError(), hipErrorInvalidValue);
    EXPECT(hipGetLastError(), hipErrorInvalidValue);
    EXPECT(hipGetLastError(), hipSuccess);
    OK(hipRuntimeGetVersion(&number));
    EXPECT(number, HIP_VERSION);
    OK(hipGetDeviceCount(&count));
    EXPECT(count, 2);
    OK(hipDeviceGetPCIBusId(name, sizeof name, 1));
    EXPECT(strcmp(name, "0000:03:00.1"), 0);
    EXPECT(hipDeviceGetPCIBusId(name, 12, 1), hipErrorInvalidValue);
    OK(hipDeviceGetPCIBusId(name, 13, 1));
    OK(hipDeviceGetName(name, 8, 0));
    EXPECT(strcmp(name, "hip-sim"), 0);
    OK(hipDeviceGetAttribute(&number, hipDeviceAttributeCanUseStreamWaitValue, 0));
    EXPECT(number, 1);
    EXPECT(hipDeviceGetAttribute(&number, hipDeviceAttributePciBusId, 2), hipErrorInvalidDevice);
    EXPECT(strcmp(hipGetErrorName(hipErrorInvalidDevice), "hipErrorInvalidDevice"), 0);

    for (int i = 0; i < SIZE; i++) pattern[i] = (char)(i * 7 + i / 256);

    OK(hipMemGetInfo(&available, &total));
    EXPECT(total, 16 << 20);
    EXPECT(available, total);
    EXPECT(hipMalloc((void **)&device, total + 1), hipErrorOutOfMemory);
    OK(hipMalloc((void **)&device, SIZE));
    OK(hipMemGetInfo(&available, &total));
    EXPECT(total - available, 3 * 4096);
    OK(hipMemset(device, 0x5a, SIZE));
    OK(hipMemcpy(result, device, SIZE, hipMemcpyDeviceToHost));
    EXPECT(result[0], 0x5a);
    EXPECT(result[SIZE - 1], 0x5a);
    OK(hipMemcpy(device, pattern, SIZE, hipMemcpyHostToDevice));
    OK(hipMemcpy(result, device + 1, SIZE - 1, hipMemcpyDeviceToHost));
    EXPECT(memcmp(result, pattern + 1, SIZE - 1), 0);

    /* The host has no access, and nothing passes the end of an allocation. */
    EXPECT(can_touch(device), 0);
    EXPECT(can_touch(device + SIZE - 1), 0);
    EXPECT(hipMemcpy(device + 1, pattern, SIZE, hipMemcpyHostToDevice), hipErrorInvalidValue);
    EXPECT(hipMemcpy(result, device + SIZE, 1, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    EXPECT(hipMemset(device, 0, SIZE + 1), hipErrorInvalidValue);
    EXPECT(hipMemcpy(device, pattern, 1, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    EXPECT(hipMemcpy(result, pattern, 1, hipMemcpyHostToDevice), hipErrorInvalidValue);
    EXPECT(hipMemcpy(device, pattern, 1, (hipMemcpyKind)5), hipErrorInvalidMemcpyDirection);
    OK(hipMemcpy(device, NULL, 0, hipMemcpyHostToDevice));

    OK(hipMemGetAddressRange(&base, &size, device + 77));
    EXPECT(base == device, 1);
    EXPECT(size, SIZE);
    EXPECT(hipMemGetAddressRange(&base, &size, device + SIZE), hipErrorNotFound);
    attributes(device + 5, hipMemoryTypeDevice, 0, 0, 1, 0);
    attributes(pattern, hipMemoryTypeUnregistered, -2, 0, 0, 0);

    /* Another device. */
    OK(hipSetDevice(1));
    EXPECT(hipSetDevice(2), hipErrorInvalidDevice);
    OK(hipGetDevice(&number));
    EXPECT(number, 1);
    OK(hipMalloc((void **)&other, SIZE));
    attributes(other, hipMemoryTypeDevice, 1, 0, 1, 0);
    OK(hipMemcpy(other, device, SIZE, hipMemcpyDeviceToDevice));
    memset(result, 0, SIZE);
    OK(hipMemcpyDtoH(result, other, SIZE));
    EXPECT(memcmp(result, pattern, SIZE), 0);
    OK(hipMemcpyHtoD(other, result + 1, 10));
    OK(hipMemcpyDtoD(device, other, 10));
    OK(hipMemcpy(result, device, 10, hipMemcpyDefault));
    EXPECT(memcmp(result, pattern + 1, 10), 0);

    /* Memory of both sides. */
    OK(hipHostMalloc((void **)&pinned, SIZE, hipHostMallocPortable));
    attributes(pinned, hipMemoryTypeHost, 1, 0, 1, 1);
    OK(hipHostGetDevicePointer(&mapped, pinned, 0));
    EXPECT(mapped == pinned, 1);
    EXPECT(hipHostGetDevicePointer(&mapped, device, 0), hipErrorInvalidValue);
    memcpy(pinned, pattern, SIZE);
    OK(hipMemcpy(device, pinned, SIZE, hipMemcpyHostToDevice));
    OK(hipMallocManaged((void **)&managed, SIZE, hipMemAttachGlobal));
    attributes(managed, hipMemoryTypeManaged, 1, 1, 1, 1);
    OK(hipMemcpy(managed, device, SIZE, hipMemcpyDeviceToDevice));
    EXPECT(memcmp(managed, pattern, SIZE), 0);
    own = malloc(SIZE);
    OK(hipHostRegister(own, SIZE, hipHostRegisterDefault));
    EXPECT(hipHostRegister(own + 10, SIZE, hipHostRegisterDefault), hipErrorHostMemoryAlreadyRegistered);
    attributes(own + 10, hipMemoryTypeHost, 1, 0, 1, 1);
    EXPECT(hipFree(own), hipErrorInvalidDevicePointer);
    OK(hipHostUnregister(own));
    EXPECT(hipHostUnregister(own), hipErrorHostMemoryNotRegistered);
    free(own);

    /* Each is freed as it was allocated, from its beginning, once. */
    EXPECT(hipFree(pinned), hipErrorInvalidDevicePointer);
    EXPECT(hipHostFree(device), hipErrorInvalidValue);
    EXPECT(hipFree(device + 4096), hipErrorInvalidDevicePointer);
    OK(hipFree(device));
    EXPECT(hipFree(device), hipErrorInvalidDevicePointer);
    EXPECT(hipMemcpy(result, device, 1, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    EXPECT(hipMemcpy(result, device, 1, hipMemcpyDefault), hipErrorInvalidValue);
    EXPECT(can_touch(device), 0);
    OK(hipFree(other));
    OK(hipFree(managed));
    OK(hipHostFree(pinned));
    OK(hipFree(NULL));
    OK(hipSetDevice(0));
    OK(hipMemGetInfo(&available, &total));
    EXPECT(available, total);
    return 0;
}
