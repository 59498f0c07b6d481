/* The header in C and C++: layouts, and that the library has the same numbers by the same names. */
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "hip/hip_runtime.h"
#include "hipsim.h"

#ifdef __cplusplus
#define ASSERT_IS(what) static_assert(what, #what)
#else
#define ASSERT_IS(what) _Static_assert(what, #what)
#endif

ASSERT_IS(sizeof(hipError_t) == 4);
ASSERT_IS(sizeof(hipMemoryType) == 4);
ASSERT_IS(sizeof(hipPointerAttribute_t) == 32);
ASSERT_IS(offsetof(hipPointerAttribute_t, type) == 0);
ASSERT_IS(offsetof(hipPointerAttribute_t, device) == 4);
ASSERT_IS(offsetof(hipPointerAttribute_t, devicePointer) == 8);
ASSERT_IS(offsetof(hipPointerAttribute_t, hostPointer) == 16);
ASSERT_IS(offsetof(hipPointerAttribute_t, isManaged) == 24);
ASSERT_IS(offsetof(hipPointerAttribute_t, allocationFlags) == 28);
ASSERT_IS(sizeof(hipAmdFileHandle_t) == 8);
ASSERT_IS(offsetof(hipAmdFileHandle_t, fd) == 0);
ASSERT_IS(sizeof(hipUUID) == 16);
ASSERT_IS(sizeof(dim3) == 12);
/* As compilers lay out HIP's own header. */
ASSERT_IS(sizeof(hipDeviceProp_t) == 1472);
ASSERT_IS(offsetof(hipDeviceProp_t, uuid) == 256);
ASSERT_IS(offsetof(hipDeviceProp_t, totalGlobalMem) == 288);
ASSERT_IS(offsetof(hipDeviceProp_t, maxThreadsPerBlock) == 320);
ASSERT_IS(offsetof(hipDeviceProp_t, integrated) == 396);
ASSERT_IS(offsetof(hipDeviceProp_t, canMapHostMemory) == 400);
ASSERT_IS(offsetof(hipDeviceProp_t, concurrentKernels) == 576);
ASSERT_IS(offsetof(hipDeviceProp_t, pciBusID) == 584);
ASSERT_IS(offsetof(hipDeviceProp_t, pciDeviceID) == 588);
ASSERT_IS(offsetof(hipDeviceProp_t, pciDomainID) == 592);
ASSERT_IS(offsetof(hipDeviceProp_t, asyncEngineCount) == 600);
ASSERT_IS(offsetof(hipDeviceProp_t, managedMemory) == 652);
ASSERT_IS(offsetof(hipDeviceProp_t, gcnArchName) == 1160);

#define SAME(code) EXPECT(strcmp(hipGetErrorName(code), #code), 0)

int main(void) {
    void *pointer;
    hipUUID uuid;
    dim3 one = {1, 1, 1};
    SAME(hipSuccess);
    SAME(hipErrorInvalidValue);
    SAME(hipErrorOutOfMemory);
    SAME(hipErrorNotInitialized);
    SAME(hipErrorDeinitialized);
    SAME(hipErrorInvalidDevicePointer);
    SAME(hipErrorInvalidMemcpyDirection);
    SAME(hipErrorNoDevice);
    SAME(hipErrorInvalidDevice);
    SAME(hipErrorInvalidHandle);
    SAME(hipErrorNotFound);
    SAME(hipErrorNotReady);
    SAME(hipErrorIllegalAddress);
    SAME(hipErrorHostMemoryAlreadyRegistered);
    SAME(hipErrorHostMemoryNotRegistered);
    SAME(hipErrorLaunchFailure);
    SAME(hipErrorNotSupported);
    SAME(hipErrorUnknown);
    EXPECT(strlen(hipGetErrorString(hipErrorUnknown)) > 0, 1);
    EXPECT(strlen(hipGetErrorString((hipError_t)12345)) > 0, 1);
    OK(hipDeviceGetUuid(&uuid, 0));
    EXPECT(memcmp(uuid.bytes, "hip-sim-gpu-0000", 16), 0);
    hipDeviceProp_t properties;
    size_t total;
    int bus;
    memset(&properties, 0x55, sizeof properties);
    OK(hipGetDeviceProperties(&properties, 0));
    OK(hipDeviceTotalMem(&total, 0));
    OK(hipDeviceGetAttribute(&bus, hipDeviceAttributePciBusId, 0));
    EXPECT(strcmp(properties.name, "hip-sim simulated GPU 0"), 0);
    EXPECT(strcmp(properties.gcnArchName, "gfx000"), 0);
    EXPECT(memcmp(properties.uuid.bytes, uuid.bytes, 16), 0);
    EXPECT(properties.totalGlobalMem == total, 1);
    EXPECT(properties.pciBusID, bus);
    EXPECT(properties.maxThreadsPerBlock, 1024);
    EXPECT(properties.other9[55], 0);
    EXPECT(hipGetDeviceProperties(NULL, 0), hipErrorInvalidValue);
    EXPECT(hipGetDeviceProperties(&properties, 1), hipErrorInvalidDevice);
    EXPECT(hipLaunchKernel(&one, one, one, NULL, 0, NULL), hipErrorNotSupported);
#ifdef __cplusplus
    char *typed;
    OK(hipMalloc(&typed, 10));
    OK(hipMemcpyAsync(typed, "123456789", 10, hipMemcpyHostToDevice));
    OK(hipFree(typed));
#endif
    OK(hipMalloc(&pointer, 1));
    OK(hipFree(pointer));
    return 0;
}
