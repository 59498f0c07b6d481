/* A program that closes the library while operations are still in a stream. Not linked with it. */

#include <dlfcn.h>

#include "use.h"

#define FIND(name) __typeof__(&name) find_##name = (__typeof__(&name))dlsym(library, #name)

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/pending", arguments[1]);
    int fd = make_file(path, 64 * KIB, 1, 0);
    void *library = dlopen("libhipfile.so", RTLD_LAZY | RTLD_LOCAL);
    TRUE(library != NULL);
    FIND(hipFileHandleRegister);
    FIND(hipFileReadAsync);
    hipFileDescr_t description;
    hipFileHandle_t handle = NULL;
    description.type = hipFileHandleTypeOpaqueFD;
    description.handle.fd = fd;
    GOOD(find_hipFileHandleRegister(&handle, &description));
    char *memory = (char *)device_memory(64 * KIB);
    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    enum { OPERATIONS = 4 };
    size_t sizes[OPERATIONS];
    hoff_t offsets[OPERATIONS];
    ssize_t results[OPERATIONS];
    for (int i = 0; i < OPERATIONS; i++) {
        sizes[i] = 16 * KIB;
        offsets[i] = i * 16 * KIB;
        GOOD(find_hipFileReadAsync(handle, memory, &sizes[i], &offsets[i], &offsets[i], &results[i], stream));
    }
    EXPECT(dlclose(library), 0);
    OK(hipStreamSynchronize(stream));
    for (int i = 0; i < OPERATIONS; i++) EXPECT(results[i], 16 * KIB);
    expect_device(memory, 64 * KIB, 0, 1);
    /* It is the same one. */
    library = dlopen("libhipfile.so", RTLD_LAZY | RTLD_LOCAL);
    TRUE(library != NULL);
    TRUE(dlsym(library, "hipFileReadAsync") == (void *)find_hipFileReadAsync);
    return 0;
}
