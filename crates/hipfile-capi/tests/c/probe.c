/* Succeeds if a plain aligned read takes the fastpath. */

#include "use.h"

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/probe", arguments[1]);
    int fd = make_file(path, 64 * KIB, 1, 0);
    hipFileHandle_t handle = register_file(fd);
    void *memory = device_memory(64 * KIB);
    EXPECT(hipFileRead(handle, memory, 64 * KIB, 0, 0), 64 * KIB);
    expect_device(memory, 64 * KIB, 0, 1);
    expect_paths(1, 0);
    return 0;
}
