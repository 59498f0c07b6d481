/* What the simulation has beside HIP: signs, faults and counts, for tests. */
#ifndef HIPSIM_H
#define HIPSIM_H

#include <stdint.h>

#include "hip/hip_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Direct storage, which is in none of HIP's public headers. Real programs find the functions with hipGetProcAddress. */
typedef struct hipAmdFileHandle_t {
    union {
        void *handle;
        int fd;
        uint8_t pad[8];
    };
} hipAmdFileHandle_t;

hipError_t hipAmdFileRead(hipAmdFileHandle_t handle, void *pointer, uint64_t size, int64_t offset, uint64_t *copied,
                          int32_t *status);
hipError_t hipAmdFileWrite(hipAmdFileHandle_t handle, void *pointer, uint64_t size, int64_t offset, uint64_t *copied,
                           int32_t *status);

/* Its name and version. The real library has no such symbol. */
const char *hipsim_is_a_simulation(void);

/* How often a function was called since the start or hipsim_reset; UINT64_MAX if there is no such function. */
uint64_t hipsim_calls(const char *function);

/*
 * Requests faults: FUNCTION[:N[+]]=ACTION, several with commas between. At the N-th call from now (with + also at later
 * ones, without N at all) ACTION happens:
 *   error:CODE         the call fails with this hipError_t and does nothing
 *   later:CODE         the call succeeds and its work does not: the stream's next synchronisation fails
 *   errno:E[@BYTES]    hipAmdFile*: the kernel refuses with this errno, after that many bytes
 *   short:BYTES        hipAmdFile*: the transfer ends well after at most that many bytes
 *   flip:BYTE          hipAmdFile*: the transfer ends well, but this byte of it arrives with its lowest bit wrong
 *   corrupt:KIND       hipAmdFile*: the transfer ends well, but what arrives is wrong:
 *                      swap (the first two pages, or the halves of one, in each other's place), stale (nothing arrives),
 *                      shift (the bytes of a page, or half of one, further on), tail (nothing of the last page), zero, spill
 *                      (what should, and a page behind it too)
 *   lost               the calling thread's device is lost for good
 * Returns 0, or 1 and says on stderr what is wrong.
 */
int hipsim_fault(const char *requests);

/* Takes all requests back and counts calls from 0. A lost device stays lost. */
void hipsim_reset(void);

/* Changes what HIPSIM_AIS said: new, old, oldest, enotty or absent. Returns 0 or 1. */
int hipsim_set_ais(const char *kind);

/* Loses a device for good. Returns 0, or 1 if there is none. */
int hipsim_lose_device(int device);

#ifdef __cplusplus
}
#endif

#endif
