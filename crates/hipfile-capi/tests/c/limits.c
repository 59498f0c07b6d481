/* Sizes that are set act on I/O that starts later. Started with the fastpath open, or with "slow" without it. */

#include "use.h"

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 3);
    char path[4096];
    snprintf(path, sizeof path, "%s/limits", arguments[1]);
    int fd = make_file(path, 4 * MIB, 1, 0);
    hipFileHandle_t handle = register_file(fd);
    char *memory = (char *)device_memory(4 * MIB);
    if (strcmp(arguments[2], "fast") == 0) {
        GOOD(hipFileDriverSetMaxDirectIOSize(64));
        EXPECT(hipFileRead(handle, memory, 4 * MIB, 0, 0), 4 * MIB);
        EXPECT(hipsim_calls("hipAmdFileRead"), 64);
    } else {
        GOOD(hipFileDriverSetMaxPinnedMemSize(1024)); /* too little for two large pieces */
        EXPECT(hipFileRead(handle, memory, 4 * MIB, 0, 0), 4 * MIB);
        uint64_t small = hipsim_calls("hipMemcpyAsync");
        hipsim_reset();
        wipe(memory, 0, 4 * MIB);
        GOOD(hipFileDriverSetMaxPinnedMemSize(64 * 1024));
        EXPECT(hipFileRead(handle, memory, 4 * MIB, 0, 0), 4 * MIB);
        uint64_t large = hipsim_calls("hipMemcpyAsync");
        EXPECT(small, 64);
        EXPECT(large, 4);
    }
    expect_device(memory, 4 * MIB, 0, 1);
    hipFileHandleDeregister(handle);
    GOOD(hipFileDriverClose());
    OK(hipFree(memory));
    close(fd);
    return 0;
}
