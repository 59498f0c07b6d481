/* Loads the library by its path and asks for HIP. Says hipFile's code. */

#include <dlfcn.h>

#include "use.h"

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments, 2);
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    TRUE(library != NULL);
    typedef hipFileError_t (*Register)(const void *, size_t, int);
    Register buffer_register = (Register)dlsym(library, "hipFileBufRegister");
    printf("%d\n", (int)buffer_register(&library, 1, 0).err);
    return 0;
}
