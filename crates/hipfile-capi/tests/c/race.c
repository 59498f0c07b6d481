/* Looks at a result before its stream has passed the operation, so that a test can see whether anybody notices. */

#include "use.h"

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/race", arguments[1]);
    hipFileHandle_t handle = register_file(make_file(path, PAGE, 1, 0));
    void *memory = device_memory(PAGE);
    size_t size = PAGE;
    hoff_t file_offset = 0, buffer_offset = 0;
    ssize_t result = 0;
    GOOD(hipFileReadAsync(handle, memory, &size, &file_offset, &buffer_offset, &result, NULL));
    for (int i = 0; i < 10000 && result == 0; i++) usleep(1000);
    OK(hipStreamSynchronize(NULL));
    EXPECT(result, PAGE);
    return 0;
}
