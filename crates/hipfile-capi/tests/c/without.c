/* Point 19: what works on a machine without HIP, and what says that it is missing. Linked with the library alone. */

#include "hipfile.h"

#include <fcntl.h>
#include <stdio.h>

#define IS(what, value)                                          \
    do {                                                         \
        long found_ = (long)(what);                              \
        if (found_ != (long)(value)) {                           \
            printf("line %d: %s: %ld\n", __LINE__, #what, found_); \
            return 1;                                            \
        }                                                        \
    } while (0)

int main(void) {
    unsigned minor = 0;
    hipFileDriverProps_t props;
    hipFileStatsLevel1_t stats;
    hipFileDescr_t description;
    hipFileHandle_t handle = NULL;
    char memory[16];
    IS(hipFileGetVersion(NULL, &minor, NULL).err, hipFileSuccess);
    IS(minor, 5);
    IS(hipFileGetOpErrorString(hipFilePlatformNotSupported) != NULL, 1);
    IS(hipFileDriverGetProperties(&props).err, hipFileSuccess);
    IS(props.nvfs.driver_status_flags, 0);
    IS(hipFileGetStatsL1(&stats).err, hipFileSuccess);
    IS(hipFileDriverOpen().err, hipFileSuccess);
    description.type = hipFileHandleTypeOpaqueFD;
    description.handle.fd = open("/proc/self/exe", O_RDONLY);
    IS(hipFileHandleRegister(&handle, &description).err, hipFileSuccess);
    IS(hipFileBufRegister(memory, sizeof memory, 0).err, hipFilePlatformNotSupported);
    IS(hipFileRead(handle, memory, sizeof memory, 0, 0), -hipFilePlatformNotSupported);
    IS(hipFileStreamRegister(NULL, 0).err, hipFilePlatformNotSupported);
    IS(hipPeekAtLastError(), hipSuccess);
    hipFileHandleDeregister(handle);
    IS(hipFileDriverClose().err, hipFileSuccess);
    return 0;
}
