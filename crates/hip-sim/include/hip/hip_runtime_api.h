/*
 * HIP as far as the simulation has it: our own declarations with the numbers and layouts of HIP 6 and 7, in C and C++.
 * Programs compiled with them run on the real library too; what is not declared here the simulation does not have.
 */
#ifndef HIP_SIM_HIP_RUNTIME_API_H
#define HIP_SIM_HIP_RUNTIME_API_H

#if !defined(__HIP_PLATFORM_AMD__) || defined(__HIP_PLATFORM_NVIDIA__)
#error "define __HIP_PLATFORM_AMD__"
#endif

#include <stddef.h>
#include <stdint.h>

#include "hip_version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hipError_t {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorNotInitialized = 3,
    hipErrorDeinitialized = 4,
    hipErrorInvalidDevicePointer = 17,
    hipErrorInvalidMemcpyDirection = 21,
    hipErrorNoDevice = 100,
    hipErrorInvalidDevice = 101,
    hipErrorInvalidHandle = 400,
    hipErrorNotFound = 500,
    hipErrorNotReady = 600,
    hipErrorIllegalAddress = 700,
    hipErrorHostMemoryAlreadyRegistered = 712,
    hipErrorHostMemoryNotRegistered = 713,
    hipErrorLaunchFailure = 719,
    hipErrorNotSupported = 801,
    hipErrorUnknown = 999
} hipError_t;

typedef enum hipMemcpyKind {
    hipMemcpyHostToHost = 0,
    hipMemcpyHostToDevice = 1,
    hipMemcpyDeviceToHost = 2,
    hipMemcpyDeviceToDevice = 3,
    hipMemcpyDefault = 4
} hipMemcpyKind;

typedef enum hipMemoryType {
    hipMemoryTypeUnregistered = 0,
    hipMemoryTypeHost = 1,
    hipMemoryTypeDevice = 2,
    hipMemoryTypeManaged = 3,
    hipMemoryTypeArray = 10,
    hipMemoryTypeUnified = 11
} hipMemoryType;

typedef enum hipDeviceAttribute_t {
    hipDeviceAttributeAsyncEngineCount = 2,
    hipDeviceAttributeCanMapHostMemory = 3,
    hipDeviceAttributeConcurrentKernels = 8,
    hipDeviceAttributeIntegrated = 16,
    hipDeviceAttributeManagedMemory = 24,
    hipDeviceAttributeMaxThreadsPerBlock = 56,
    hipDeviceAttributePciBusId = 67,
    hipDeviceAttributePciDeviceId = 68,
    hipDeviceAttributePciDomainID = 69,
    hipDeviceAttributeCanUseStreamWaitValue = 10013
} hipDeviceAttribute_t;

typedef enum hipDriverProcAddressQueryResult {
    HIP_GET_PROC_ADDRESS_SUCCESS = 0,
    HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
} hipDriverProcAddressQueryResult;

typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef void (*hipHostFn_t)(void *userData);

typedef struct hipUUID_t {
    char bytes[16];
} hipUUID;

typedef struct hipPointerAttribute_t {
    enum hipMemoryType type;
    int device;
    void *devicePointer;
    void *hostPointer;
    int isManaged;
    unsigned allocationFlags;
} hipPointerAttribute_t;

/* In the layout of HIP 6 and later; the members that are not named here are zeros. */
typedef struct hipDeviceProp_tR0600 {
    char name[256];
    hipUUID uuid;
    char other1[16];
    size_t totalGlobalMem;
    char other2[24];
    int maxThreadsPerBlock;
    char other3[72];
    int integrated;
    int canMapHostMemory;
    char other4[172];
    int concurrentKernels;
    char other5[4];
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    char other6[4];
    int asyncEngineCount;
    char other7[48];
    int managedMemory;
    char other8[504];
    char gcnArchName[256];
    char other9[56];
} hipDeviceProp_tR0600;
#define hipDeviceProp_t hipDeviceProp_tR0600
#define hipGetDeviceProperties hipGetDevicePropertiesR0600

typedef struct dim3 {
    uint32_t x;
    uint32_t y;
    uint32_t z;
} dim3;

#define hipStreamDefault 0x00
#define hipStreamNonBlocking 0x01
#define hipStreamPerThread ((hipStream_t)2)
#define hipEventDefault 0x0
#define hipEventBlockingSync 0x1
#define hipEventDisableTiming 0x2
#define hipHostMallocDefault 0x0
#define hipHostMallocPortable 0x1
#define hipHostMallocMapped 0x2
#define hipHostRegisterDefault 0x0
#define hipHostRegisterPortable 0x1
#define hipHostRegisterMapped 0x2
#define hipDeviceMallocDefault 0x0
#define hipDeviceMallocFinegrained 0x1
#define hipMallocSignalMemory 0x2
#define hipMemAttachGlobal 0x1
#define hipMemAttachHost 0x2
#define hipStreamWaitValueGte 0x0
#define hipStreamWaitValueEq 0x1
#define hipStreamWaitValueAnd 0x2
#define hipStreamWaitValueNor 0x3

hipError_t hipInit(unsigned flags);
hipError_t hipRuntimeGetVersion(int *version);
hipError_t hipDriverGetVersion(int *version);
hipError_t hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *result);
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorString(hipError_t error);

hipError_t hipGetDeviceCount(int *count);
hipError_t hipGetDevice(int *device);
hipError_t hipSetDevice(int device);
hipError_t hipDeviceGet(hipDevice_t *device, int ordinal);
hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *properties, int device);
hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device);
hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device);
hipError_t hipDeviceGetPCIBusId(char *text, int length, int device);
hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device);
hipError_t hipDeviceSynchronize(void);

hipError_t hipMalloc(void **pointer, size_t size);
hipError_t hipExtMallocWithFlags(void **pointer, size_t size, unsigned flags);
#ifdef __cplusplus
hipError_t hipMallocManaged(void **pointer, size_t size, unsigned flags = hipMemAttachGlobal);
hipError_t hipHostMalloc(void **pointer, size_t size, unsigned flags = hipHostMallocDefault);
#else
hipError_t hipMallocManaged(void **pointer, size_t size, unsigned flags);
hipError_t hipHostMalloc(void **pointer, size_t size, unsigned flags);
#endif
hipError_t hipFree(void *pointer);
hipError_t hipHostFree(void *pointer);
hipError_t hipHostRegister(void *pointer, size_t size, unsigned flags);
hipError_t hipHostUnregister(void *pointer);
hipError_t hipHostGetDevicePointer(void **devicePointer, void *pointer, unsigned flags);
hipError_t hipMemGetInfo(size_t *available, size_t *total);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer);
hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t pointer);

hipError_t hipMemcpy(void *to, const void *from, size_t size, hipMemcpyKind kind);
hipError_t hipMemcpyWithStream(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void *from, size_t size);
hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t size);
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t size);
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void *from, size_t size, hipStream_t stream);
hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t size, hipStream_t stream);
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t size, hipStream_t stream);
hipError_t hipMemset(void *to, int value, size_t size);
#ifdef __cplusplus
hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream = NULL);
hipError_t hipMemsetAsync(void *to, int value, size_t size, hipStream_t stream = NULL);
#else
hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemsetAsync(void *to, int value, size_t size, hipStream_t stream);
#endif

hipError_t hipStreamCreate(hipStream_t *stream);
hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
#ifdef __cplusplus
hipError_t hipStreamWaitValue64(hipStream_t stream, void *pointer, uint64_t value, unsigned flags,
                                uint64_t mask = 0xffffffffffffffff);
#else
hipError_t hipStreamWaitValue64(hipStream_t stream, void *pointer, uint64_t value, unsigned flags, uint64_t mask);
#endif
hipError_t hipStreamWriteValue64(hipStream_t stream, void *pointer, uint64_t value, unsigned flags);
hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void *userData);
hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                           hipStream_t stream);

hipError_t hipEventCreate(hipEvent_t *event);
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags);
#ifdef __cplusplus
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream = NULL);
#else
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
#endif
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop);

#ifdef __cplusplus
}

template <class T>
static inline hipError_t hipMalloc(T **pointer, size_t size) {
    return hipMalloc(reinterpret_cast<void **>(pointer), size);
}

template <class T>
static inline hipError_t hipHostMalloc(T **pointer, size_t size, unsigned flags = hipHostMallocDefault) {
    return hipHostMalloc(reinterpret_cast<void **>(pointer), size, flags);
}
#endif

#endif
